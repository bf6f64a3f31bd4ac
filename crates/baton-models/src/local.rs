//! Finds model servers on this machine.

use std::time::Duration;

use baton_core::agent::Sampling;
use baton_core::model::{Chunk, ModelSupport, ToolChoice};
use baton_core::{AgentName, ChatMessage, Model, ModelError, ModelErrorKind, ModelRequest};
use futures_util::StreamExt as _;
use futures_util::future::join_all;
use serde_json::Value;
use url::Url;

use crate::client::ModelHttpClient;
use crate::fault::ModelFault;
use crate::registry::Endpoint;
use crate::settings::ProviderSettings;
use crate::transport::{KeyHeader, ProviderConnection, is_loopback};

/// The default addresses of local servers.
pub const USUAL_ADDRESSES: &[(&str, &str)] = &[
    ("Ollama", "http://127.0.0.1:11434"),
    ("llama.cpp", "http://127.0.0.1:8080"),
    ("vLLM", "http://127.0.0.1:8000"),
    ("LM Studio", "http://127.0.0.1:1234"),
];

/// Time limit for all requests to one address.
const DETECT_TIMEOUT: Duration = Duration::from_secs(3);

/// Enough for a short answer of a model that thinks before it speaks.
const MAX_OUTPUT_TOKENS: u32 = 256;

/// A model server that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelServer {
    pub kind: ServerKind,
    /// As `base_url` of the provider in `baton.toml`.
    pub base_url: String,
    pub models: Vec<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    Ollama,
    LlamaCpp,
    Vllm,
    LmStudio,
    /// Another server that speaks OpenAI's protocol.
    Compatible,
}

impl ServerKind {
    /// The name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Ollama => "Ollama",
            Self::LlamaCpp => "llama.cpp",
            Self::Vllm => "vLLM",
            Self::LmStudio => "LM Studio",
            Self::Compatible => "an OpenAI-compatible server",
        }
    }

    /// The name of the provider in `baton.toml`.
    pub fn provider(self) -> &'static str {
        match self {
            Self::Ollama => "ollama",
            Self::LlamaCpp => "llamacpp",
            Self::Vllm => "vllm",
            Self::LmStudio => "lmstudio",
            Self::Compatible => "local",
        }
    }
}

/// The first of these servers that answers and has a model.
pub async fn find(addresses: &[(&str, &str)], client: &ModelHttpClient) -> Option<ModelServer> {
    let found = join_all(addresses.iter().map(|(_, address)| detect(address, client))).await;
    found.into_iter().flatten().find(|server| !server.models.is_empty())
}

/// Whether an address is this machine's own.
pub fn is_on_this_machine(address: &str) -> bool {
    is_loopback(address)
}

/// Asks the server at `address` (`http://host:port`, with or without `/v1`) what it is and which models it has.
pub async fn detect(address: &str, client: &ModelHttpClient) -> Result<ModelServer, ModelError> {
    let root = address.trim_end_matches('/').trim_end_matches("/v1").to_owned();
    let with_version = format!("{root}/v1");
    let endpoint = Endpoint {
        provider: "the server".into(),
        base_url: Some(with_version.clone()),
        key: None,
        settings: ProviderSettings::default(),
    };
    let connection = ProviderConnection::new(endpoint, client.clone(), KeyHeader::BEARER);
    match tokio::time::timeout(DETECT_TIMEOUT, ask(&connection)).await {
        Ok(Ok((kind, models))) => {
            let base_url = if kind == ServerKind::Ollama { root } else { with_version };
            Ok(ModelServer { kind, base_url, models })
        }
        Ok(Err(fault)) => Err(connection.report(fault)),
        Err(_) => {
            let message = format!("no answer within {} s", DETECT_TIMEOUT.as_secs());
            Err(ModelError::new(ModelErrorKind::Timeout, connection.provider(), message))
        }
    }
}

async fn ask(connection: &ProviderConnection) -> Result<(ServerKind, Vec<String>), ModelFault> {
    let address = connection.address(&["models"], None)?;
    let listing = connection.fetch(connection.get(address)?).await?;
    Ok((kind_of(connection, &listing).await, ids(&listing)))
}

/// Servers sign their lists differently. Only Ollama has a version under `/api`, and only LM Studio a second list.
async fn kind_of(connection: &ProviderConnection, listing: &Value) -> ServerKind {
    let owner = listing.pointer("/data/0/owned_by").and_then(Value::as_str).unwrap_or_default();
    match owner {
        "llamacpp" => return ServerKind::LlamaCpp,
        "vllm" => return ServerKind::Vllm,
        _ => {}
    }
    if has(connection, &["api", "version"], "/version").await {
        ServerKind::Ollama
    } else if has(connection, &["api", "v0", "models"], "/data").await {
        ServerKind::LmStudio
    } else {
        ServerKind::Compatible
    }
}

async fn has(connection: &ProviderConnection, path: &[&str], pointer: &str) -> bool {
    let Some(address) = connection.server_address(path) else { return false };
    let Ok(request) = connection.get(address) else { return false };
    connection.fetch(request).await.is_ok_and(|body| body.pointer(pointer).is_some())
}

fn ids(listing: &Value) -> Vec<String> {
    let entries = listing.get("data").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    entries.iter().filter_map(|entry| Some(entry.get("id")?.as_str()?.to_owned())).collect()
}

/// Asks a model for a word. Fails if the call fails or the answer is empty.
pub async fn ask_once(model: &dyn Model, name: &str) -> Result<(), ModelError> {
    let question = [ChatMessage::user("Answer with one word: ready")];
    let sampling = Sampling { max_output_tokens: Some(MAX_OUTPUT_TOKENS), ..Sampling::default() };
    let agent = AgentName::parse("init").expect("a valid name");
    let mut reply = model.stream(&ModelRequest {
        agent: &agent,
        model: name,
        system: "You answer briefly.",
        messages: question.as_slice().into(),
        tools: &[],
        tool_choice: ToolChoice::Auto,
        sampling: &sampling,
        output_schema: None,
        supports: ModelSupport::default(),
        trace: None,
    });
    let mut is_answered = false;
    while let Some(chunk) = reply.next().await {
        is_answered |=
            matches!(chunk?, Chunk::Text(text) | Chunk::Reasoning(text) if !text.trim().is_empty());
    }
    if is_answered {
        return Ok(());
    }
    Err(ModelError::new(ModelErrorKind::Malformed, model.provider(), "the answer is empty"))
}

/// Whether a text is an address that [`detect`] can ask.
pub fn is_address(text: &str) -> bool {
    Url::parse(text).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host())
}
