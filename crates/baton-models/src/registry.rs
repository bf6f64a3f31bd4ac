//! Which wire a provider speaks, and where it lives.

use std::sync::Arc;

use baton_core::Model;
use baton_core::model::ModelFacts;
use secrecy::SecretString;

use crate::anthropic::Anthropic;
use crate::client::ModelHttpClient;
use crate::facts::configured;
use crate::gemini::Gemini;
use crate::ollama::Ollama;
use crate::openai::OpenAi;
use crate::settings::ProviderSettings;

/// A provider as it is configured.
#[derive(Debug, Clone)]
pub struct Endpoint {
    /// The first half of `provider/model`.
    pub provider: String,
    /// Absent for a well-known provider.
    pub base_url: Option<String>,
    pub key: Option<SecretString>,
    pub settings: ProviderSettings,
}

impl Endpoint {
    /// The address as configured, or the provider's own.
    pub(crate) fn base(&self) -> Option<&str> {
        self.base_url.as_deref().or_else(|| default_base(&self.provider))
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WireFormat {
    /// Chat completions.
    OpenAi,
    Anthropic,
    Gemini,
    Ollama,
}

impl WireFormat {
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

/// What is known about a model of a provider without asking its endpoint.
pub fn facts(provider: &str, base_url: Option<&str>, settings: &ProviderSettings, model: &str) -> ModelFacts {
    let base = base_url.or_else(|| default_base(provider)).unwrap_or_default();
    configured(provider, base, settings, model)
}

/// A provider that is ready to be called. Nothing is checked here: what is wrong with an endpoint is the error of the
/// first call.
pub fn connect(wire: WireFormat, endpoint: Endpoint, client: ModelHttpClient) -> Arc<dyn Model> {
    match wire {
        WireFormat::OpenAi => Arc::new(OpenAi::new(endpoint, client)),
        WireFormat::Anthropic => Arc::new(Anthropic::new(endpoint, client)),
        WireFormat::Gemini => Arc::new(Gemini::new(endpoint, client)),
        WireFormat::Ollama => Arc::new(Ollama::new(endpoint, client)),
    }
}

/// Providers that need no address in the configuration, and where they are.
pub const WELL_KNOWN: &[(&str, &str)] = &[
    ("openai", "https://api.openai.com/v1"),
    ("anthropic", "https://api.anthropic.com"),
    ("gemini", "https://generativelanguage.googleapis.com"),
    ("google", "https://generativelanguage.googleapis.com"),
    ("ollama", "http://127.0.0.1:11434"),
    ("openrouter", "https://openrouter.ai/api/v1"),
    ("groq", "https://api.groq.com/openai/v1"),
    ("mistral", "https://api.mistral.ai/v1"),
    ("deepseek", "https://api.deepseek.com"),
];

/// The address of a well-known provider.
pub fn default_base(provider: &str) -> Option<&'static str> {
    WELL_KNOWN.iter().find(|(name, _)| *name == provider).map(|(_, base)| *base)
}

/// The environment variable that holds a provider's key: `OPENAI_API_KEY`.
pub fn key_variable(provider: &str) -> String {
    let word: String = provider
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("{word}_API_KEY")
}
