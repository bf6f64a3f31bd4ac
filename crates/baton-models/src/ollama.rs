//! The native chat API of Ollama.

mod reply;
mod request;

use baton_core::model::{ModelFacts, ReplyStream};
use baton_core::usage::Price;
use baton_core::{Model, ModelRequest};
use reqwest::{Client, Request};

use crate::answer::ask;
use crate::fault::Fault;
use crate::frames::Framing;
use crate::registry::Endpoint;
use crate::tool_names::ToolNames;
use crate::transport::Connection;

pub(crate) use reply::Decoder;

#[derive(Debug)]
pub struct Ollama {
    connection: Connection,
}

impl Ollama {
    pub fn new(endpoint: Endpoint, client: Client) -> Self {
        Self { connection: Connection::new(endpoint, client) }
    }

    fn spell(&self, request: &ModelRequest<'_>, names: &ToolNames) -> Result<Request, Fault> {
        let url = self.connection.url(&["api", "chat"])?;
        let body = request::body(request, names)?;
        self.connection.post(url, "authorization", "Bearer ", body)
    }
}

impl Model for Ollama {
    fn provider(&self) -> &str {
        &self.connection.provider
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
