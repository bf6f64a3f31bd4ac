//! The native chat API of Ollama.

mod reply;
mod request;

use baton_core::model::{ModelFacts, ReplyStream};
use baton_core::usage::Price;
use baton_core::{Model, ModelRequest};
use http::Uri;

use crate::answer::ask;
use crate::client::ModelHttpClient;
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
}

impl Ollama {
    pub fn new(endpoint: Endpoint, client: ModelHttpClient) -> Self {
        let connection = ProviderConnection::new(endpoint, client, KeyHeader::BEARER);
        Self { address: connection.address(&["api", "chat"], None), connection }
    }

    fn spell(&self, request: &ModelRequest<'_>, names: &ToolNames) -> Result<ProviderCall, ModelFault> {
        let body = request::body(request, names)?;
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

    /// A model on one's own machine costs nothing; Ollama also passes calls on to its paid service.
    fn facts(&self, model: &str) -> ModelFacts {
        facts(self.connection.base(), model)
    }
}

pub(crate) fn facts(base: &str, model: &str) -> ModelFacts {
    let is_paid = model.ends_with("cloud") || base.contains("ollama.com");
    ModelFacts { price: (!is_paid).then_some(Price::FREE), context_window: None, ..ModelFacts::default() }
}
