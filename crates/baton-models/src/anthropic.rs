//! The Messages API of Anthropic.

mod abilities;
mod reply;
mod request;
mod thinking;

use baton_core::model::{ModelFacts, ReplyStream};
use baton_core::{Model, ModelRequest};
use http::{HeaderValue, Uri};

use crate::answer::ask;
use crate::client::ModelHttpClient;
use crate::facts::ProviderFacts;
use crate::fault::ModelFault;
use crate::frames::Framing;
use crate::registry::Endpoint;
use crate::tool_names::ToolNames;
use crate::transport::{KeyHeader, ProviderCall, ProviderConnection};

pub(crate) use reply::AnthropicDecoder;

const API_VERSION: HeaderValue = HeaderValue::from_static("2023-06-01");

#[derive(Debug)]
pub struct Anthropic {
    connection: ProviderConnection,
    address: Result<Uri, ModelFault>,
    facts: ProviderFacts,
}

impl Anthropic {
    pub fn new(endpoint: Endpoint, client: ModelHttpClient) -> Self {
        let facts = ProviderFacts::new(&endpoint);
        let connection = ProviderConnection::new(endpoint, client, KeyHeader::plain("x-api-key"));
        Self { address: connection.address(&["v1", "messages"], None), connection, facts }
    }

    fn spell(&self, request: &ModelRequest<'_>, names: &ToolNames) -> Result<ProviderCall, ModelFault> {
        let body = request::body(request, names)?;
        let mut request = self.connection.post(self.address.clone()?, body)?;
        request.headers_mut().insert("anthropic-version", API_VERSION);
        Ok(request)
    }
}

impl Model for Anthropic {
    fn provider(&self) -> &str {
        self.connection.provider()
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let names = ToolNames::of(request);
        let spelt = self.spell(request, &names);
        ask(&self.connection, request.trace, spelt, Framing::Sse, AnthropicDecoder::new(names, request.model))
    }

    fn facts(&self, model: &str) -> ModelFacts {
        self.facts.of(model)
    }
}

/// Signatures are bound to the model that made them.
fn signer(model: &str) -> String {
    format!("anthropic/{model}")
}

/// Reasoning that came encrypted and has no text at all.
fn redacted_signer(model: &str) -> String {
    format!("anthropic-redacted/{model}")
}
