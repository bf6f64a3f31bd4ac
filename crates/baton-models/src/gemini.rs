//! The Gemini API of Google.

mod reply;
mod request;
mod schema;

use baton_core::model::{ModelFacts, ReplyStream};
use baton_core::{Model, ModelRequest};

use crate::answer::ask;
use crate::client::ModelHttpClient;
use crate::facts::ProviderFacts;
use crate::fault::ModelFault;
use crate::frames::Framing;
use crate::registry::Endpoint;
use crate::tool_names::ToolNames;
use crate::transport::{KeyHeader, ProviderCall, ProviderConnection};

pub(crate) use reply::GeminiDecoder;

#[derive(Debug)]
pub struct Gemini {
    connection: ProviderConnection,
    facts: ProviderFacts,
}

impl Gemini {
    pub fn new(endpoint: Endpoint, client: ModelHttpClient) -> Self {
        let facts = ProviderFacts::new(&endpoint);
        let key_header = KeyHeader::plain("x-goog-api-key");
        Self { connection: ProviderConnection::new(endpoint, client, key_header), facts }
    }

    fn spell(&self, request: &ModelRequest<'_>, names: &ToolNames) -> Result<ProviderCall, ModelFault> {
        let method = format!("{}:streamGenerateContent", request.model.trim_start_matches("models/"));
        let address = self.connection.address(&["v1beta", "models", &method], Some(("alt", "sse")))?;
        let body = request::body(request, names)?;
        self.connection.post(address, body)
    }
}

impl Model for Gemini {
    fn provider(&self) -> &str {
        self.connection.provider()
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let names = ToolNames::of(request);
        let spelt = self.spell(request, &names);
        ask(&self.connection, request.trace, spelt, Framing::Sse, GeminiDecoder::new(names, request.model))
    }

    fn facts(&self, model: &str) -> ModelFacts {
        self.facts.of(model)
    }
}

/// Signatures are bound to the model that made them.
fn signer(model: &str) -> String {
    format!("gemini/{model}")
}
