//! Which wire a provider speaks, and where it lives.

use std::sync::Arc;

use baton_core::Model;
use secrecy::SecretString;

use crate::anthropic::Anthropic;
use crate::client::Client;
use crate::gemini::Gemini;
use crate::ollama::Ollama;
use crate::openai::OpenAi;

/// A provider as it is configured.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The first half of `provider/model`.
    pub provider: String,
    /// Absent for a well-known provider.
    pub base_url: Option<String>,
    pub key: Option<SecretString>,
}

impl Endpoint {
    /// The address as configured, or the provider's own.
    pub(crate) fn base(&self) -> Option<&str> {
        self.base_url.as_deref().or_else(|| default_base(&self.provider))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Chat completions.
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
}

impl Wire {
    /// By the name of the provider. Whoever is unknown is taken to speak what most speak.
    pub fn of(provider: &str) -> Self {
        match provider {
            "anthropic" => Self::Anthropic,
            "gemini" | "google" => Self::Gemini,
            "ollama" => Self::Ollama,
            _ => Self::OpenAi,
        }
    }
}

/// A provider that is ready to be called. Nothing is checked here: what is wrong with an endpoint is the error of the
/// first call.
pub fn connect(wire: Wire, endpoint: Endpoint, client: Client) -> Arc<dyn Model> {
    match wire {
        Wire::OpenAi => Arc::new(OpenAi::new(endpoint, client)),
        Wire::Anthropic => Arc::new(Anthropic::new(endpoint, client)),
        Wire::Gemini => Arc::new(Gemini::new(endpoint, client)),
        Wire::Ollama => Arc::new(Ollama::new(endpoint, client)),
    }
}

/// Where well-known providers live.
pub fn default_base(provider: &str) -> Option<&'static str> {
    Some(match provider {
        "openai" => "https://api.openai.com/v1",
        "anthropic" => "https://api.anthropic.com",
        "gemini" | "google" => "https://generativelanguage.googleapis.com",
        "ollama" => "http://127.0.0.1:11434",
        "openrouter" => "https://openrouter.ai/api/v1",
        "groq" => "https://api.groq.com/openai/v1",
        "mistral" => "https://api.mistral.ai/v1",
        "deepseek" => "https://api.deepseek.com",
        _ => return None,
    })
}

/// The environment variable that holds a provider's key: `OPENAI_API_KEY`.
pub fn key_variable(provider: &str) -> String {
    let word: String = provider
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("{word}_API_KEY")
}
