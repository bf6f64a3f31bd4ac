//! The native chat API of Ollama.

mod reply;
mod request;

use baton_core::model::{ModelFacts, ReplyStream};
use baton_core::usage::Price;
use baton_core::{Model, ModelRequest};
use http::Uri;

use crate::answer::ask;
use crate::client::Client;
use crate::fault::Fault;
use crate::frames::Framing;
use crate::registry::Endpoint;
use crate::tool_names::ToolNames;
use crate::transport::{Call, Connection, KeyHeader};

pub(crate) use reply::Decoder;

#[derive(Debug)]
pub struct Ollama {
    connection: Connection,
    address: Result<Uri, Fault>,
}

impl Ollama {
    pub fn new(endpoint: Endpoint, client: Client) -> Self {
        let connection = Connection::new(endpoint, client, KeyHeader::BEARER);
        Self { address: connection.address(&["api", "chat"], None), connection }
    }

    fn spell(&self, request: &ModelRequest<'_>, names: &ToolNames) -> Result<Call, Fault> {
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
        ask(&self.connection, request.trace, spelt, Framing::Ndjson, Decoder::new(names))
    }

    /// A model on one's own machine costs nothing; Ollama also passes calls on to its paid service.
    fn facts(&self, model: &str) -> ModelFacts {
        let is_paid = model.ends_with("cloud") || self.connection.base().contains("ollama.com");
        ModelFacts { price: (!is_paid).then_some(Price::FREE), context_window: None }
    }
}
