//! Chat completions: OpenAI and everything that speaks its wire, by `base_url` and key alone.

mod reply;
mod request;
mod template;

use std::pin::Pin;

use baton_core::model::{ModelFacts, ReplyStream};
use baton_core::{Model, ModelRequest};
use http::Uri;

use crate::answer::ask;
use crate::client::ModelHttpClient;
use crate::discovery;
use crate::facts::ProviderFacts;
use crate::fault::ModelFault;
use crate::frames::Framing;
use crate::registry::Endpoint;
use crate::tool_names::ToolNames;
use crate::transport::{KeyHeader, ProviderCall, ProviderConnection};

pub(crate) use reply::OpenAiDecoder;

#[derive(Debug)]
pub struct OpenAi {
    connection: ProviderConnection,
    address: Result<Uri, ModelFault>,
    dialect: Dialect,
    facts: ProviderFacts,
}

/// Where servers of this wire differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    OpenAi,
    /// The same models behind another address and another header.
    Azure,
    /// Refuses fields that it does not know, and ids that are not its own.
    Mistral,
    /// Wants its reasoning back while it works with tools, and takes no schema.
    DeepSeek,
    /// vLLM, llama.cpp, LM Studio, Groq, `OpenRouter`, …
    Compatible,
}

impl Dialect {
    fn of(provider: &str, base: &str) -> Self {
        let host = base.split("://").last().and_then(|rest| rest.split('/').next()).unwrap_or_default();
        let is_azure = host.ends_with(".azure.com") || base.contains("/openai/deployments/");
        match provider {
            _ if is_azure => Self::Azure,
            _ if host == "api.openai.com" => Self::OpenAi,
            "mistral" => Self::Mistral,
            _ if host.ends_with(".mistral.ai") => Self::Mistral,
            "deepseek" | "moonshot" => Self::DeepSeek,
            _ if host.ends_with(".deepseek.com") => Self::DeepSeek,
            _ => Self::Compatible,
        }
    }
}

impl OpenAi {
    pub fn new(endpoint: Endpoint, client: ModelHttpClient) -> Self {
        let facts = ProviderFacts::new(&endpoint);
        let dialect = Dialect::of(&endpoint.provider, endpoint.base().unwrap_or_default());
        let key_header =
            if dialect == Dialect::Azure { KeyHeader::plain("api-key") } else { KeyHeader::BEARER };
        let connection = ProviderConnection::new(endpoint, client, key_header);
        let path: &[&str] = if dialect == Dialect::Azure && !connection.base().contains("/openai/") {
            &["openai", "v1", "chat", "completions"]
        } else {
            &["chat", "completions"]
        };
        Self { address: connection.address(path, None), connection, dialect, facts }
    }

    fn spell(&self, request: &ModelRequest<'_>, names: &ToolNames) -> Result<ProviderCall, ModelFault> {
        let body = request::body(request, names, self.dialect)?;
        self.connection.post(self.address.clone()?, body)
    }
}

impl Model for OpenAi {
    fn provider(&self) -> &str {
        self.connection.provider()
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let names = ToolNames::of(request);
        let spelt = self.spell(request, &names);
        ask(&self.connection, request.trace, spelt, Framing::Sse, OpenAiDecoder::new(names))
    }

    fn facts(&self, model: &str) -> ModelFacts {
        self.facts.of(model)
    }

    fn learn<'a>(&'a self, model: &'a str) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        if self.dialect != Dialect::Compatible || self.facts.is_learned(model) {
            return Box::pin(std::future::ready(()));
        }
        Box::pin(self.facts.learn(model, discovery::ask_openai(&self.connection, model)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dialects() {
        let of = Dialect::of;
        assert_eq!(of("openai", "https://api.openai.com/v1"), Dialect::OpenAi);
        assert_eq!(of("openai", "http://127.0.0.1:8000/v1"), Dialect::Compatible);
        assert_eq!(of("work", "https://x.openai.azure.com"), Dialect::Azure);
        assert_eq!(of("work", "https://proxy/openai/deployments/gpt?api-version=1"), Dialect::Azure);
        assert_eq!(of("mistral", "https://api.mistral.ai/v1"), Dialect::Mistral);
        assert_eq!(of("deepseek", "https://api.deepseek.com"), Dialect::DeepSeek);
    }
}
