//! Every provider over a real connection, against a server that plays recorded bytes.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod connections;
mod faults;
mod hostile;
mod local;
mod replies;
mod requests;
mod server;
mod talk;

use std::sync::Arc;

use baton_core::model::ReplyStream;
use baton_core::{Chunk, Model, ModelError};
use baton_models::{Endpoint, ModelHttpClient, ProviderSettings, WireFormat, connect};
use futures_util::StreamExt;

use server::Server;
use talk::Talk;

const KEY: &str = "sk-test-0123456789";

fn endpoint(provider: &str, base_url: Option<&str>) -> Endpoint {
    Endpoint {
        provider: provider.into(),
        base_url: base_url.map(Into::into),
        key: Some(KEY.into()),
        settings: ProviderSettings::default(),
    }
}

/// A provider whose address is the server's.
fn provider(name: &str, server: &Server) -> Arc<dyn Model> {
    connect(WireFormat::of(name), endpoint(name, Some(&server.url)), ModelHttpClient::default())
}

/// The whole reply; an error is its last item.
async fn collect(mut stream: ReplyStream) -> Vec<Result<Chunk, ModelError>> {
    let mut items = Vec::new();
    while let Some(item) = stream.next().await {
        items.push(item);
    }
    items
}

async fn ask(model: &dyn Model) -> Vec<Result<Chunk, ModelError>> {
    collect(Talk::hello().stream(model)).await
}

/// The error that a call ends with.
async fn fail(model: &dyn Model) -> ModelError {
    ask(model).await.pop().unwrap().unwrap_err()
}

/// One line an item. Deltas of the same thing are one item: how many there are depends on how the bytes arrive.
fn log(items: &[Result<Chunk, ModelError>]) -> String {
    let mut joined: Vec<Result<Chunk, ModelError>> = Vec::new();
    for item in items {
        match (joined.last_mut(), item) {
            (Some(Ok(Chunk::Text(text))), Ok(Chunk::Text(more)))
            | (Some(Ok(Chunk::Reasoning(text))), Ok(Chunk::Reasoning(more))) => text.push_str(more),
            (
                Some(Ok(Chunk::Arguments { index, delta })),
                Ok(Chunk::Arguments { index: same, delta: more }),
            ) if index == same => {
                delta.push_str(more);
            }
            _ => joined.push(item.clone()),
        }
    }
    let line = |item: &Result<Chunk, ModelError>| match item {
        Ok(Chunk::Text(text)) => format!("text {text:?}"),
        Ok(Chunk::Reasoning(text)) => format!("reasoning {text:?}"),
        Ok(Chunk::ReasoningSignature(signature)) => format!("signature {signature:?}"),
        Ok(Chunk::Call { index, id, name, signature }) => format!("call {index} {id} {name} {signature:?}"),
        Ok(Chunk::Arguments { index, delta }) => format!("arguments {index} {delta:?}"),
        Ok(Chunk::File(file)) => format!("file {:?} {} bytes", file.media_type, file.bytes.len()),
        Ok(Chunk::Tokens(t)) => format!(
            "tokens in {} out {} cached {} written {} reasoning {}",
            t.input_tokens, t.output_tokens, t.cached_tokens, t.cache_write_tokens, t.reasoning_tokens
        ),
        Ok(Chunk::Done(finish)) => format!("done {finish}"),
        Err(error) => format!("error {error}"),
    };
    joined.iter().map(line).collect::<Vec<_>>().join("\n")
}
