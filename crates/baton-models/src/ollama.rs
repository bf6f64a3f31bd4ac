//! The native chat API of Ollama.

mod reply;
mod request;

use std::pin::Pin;

use baton_core::model::{ModelFacts, ReplyStream};
use baton_core::usage::Price;
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

pub(crate) use reply::OllamaDecoder;

#[derive(Debug)]
pub struct Ollama {
    connection: ProviderConnection,
    address: Result<Uri, ModelFault>,
    facts: ProviderFacts,
}

impl Ollama {
    pub fn new(endpoint: Endpoint, client: ModelHttpClient) -> Self {
        let facts = ProviderFacts::new(&endpoint);
        let connection = ProviderConnection::new(endpoint, client, KeyHeader::BEARER);
        Self { address: connection.address(&["api", "chat"], None), connection, facts }
    }

    fn spell(&self, request: &ModelRequest<'_>, names: &ToolNames) -> Result<ProviderCall, ModelFault> {
        let body = request::body(request, names, self.facts.of(request.model).context_window)?;
        self.connection.post(self.address.clone()?, body)
    }
}

impl Model for Ollama {
    fn provider(&self) -> &str {
        self.connection.provider()
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let names = ToolNames::of(request);
        let spelt = self.spell(request, &names);
        ask(&self.connection, request.trace, spelt, Framing::Ndjson, OllamaDecoder::new(names))
    }

    fn facts(&self, model: &str) -> ModelFacts {
        self.facts.of(model)
    }

    fn learn<'a>(&'a self, model: &'a str) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>> {
        if self.facts.is_learned(model) {
            return Box::pin(std::future::ready(()));
        }
        Box::pin(self.facts.learn(model, discovery::ask_ollama(&self.connection, model)))
    }
}

/// A model on one's own machine costs nothing.
pub(crate) fn facts(base: &str, model: &str) -> ModelFacts {
    let price = (!is_paid(base, model)).then_some(Price::FREE);
    ModelFacts { price, ..ModelFacts::default() }
}

/// Whether Ollama passes calls on to its paid service.
pub(crate) fn is_paid(base: &str, model: &str) -> bool {
    model.ends_with("cloud") || base.contains("ollama.com")
}
