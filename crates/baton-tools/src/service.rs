//! JSON of services that the operator configured: a search engine, MediaWiki, a server for embeddings.
//!
//! Their addresses come from the configuration and not from a model, so private ones are allowed. Redirects are not followed.

use std::time::Duration;

use baton_core::{HumanDuration, ToolError};
use futures_util::StreamExt as _;
use reqwest::{Client, RequestBuilder, Response, StatusCode};
use serde::de::DeserializeOwned;

use crate::web::fetch::failure;
use crate::web::{LazyClient, Reach};

/// A client for addresses of the configuration.
#[derive(Debug)]
pub(crate) struct ServiceClient(LazyClient);

impl Default for ServiceClient {
    fn default() -> Self {
        Self(LazyClient::new(Reach { allow_private: true, ..Reach::default() }))
    }
}

/// Limits of one request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RequestLimits {
    pub(crate) within: HumanDuration,
    pub(crate) max_bytes: usize,
}

/// An answer that is not a success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refused(pub(crate) StatusCode);

impl ServiceClient {
    pub(crate) async fn get(&self) -> Result<&Client, ToolError> {
        self.0.get().await.map_err(|error| ToolError::Execution(error.to_string()))
    }
}

/// Sends a request and decodes the answer. `Ok(Err(_))` is an answer with an error status, whose body is not read.
pub(crate) async fn json<T: DeserializeOwned>(
    request: RequestBuilder,
    limits: RequestLimits,
) -> Result<Result<T, Refused>, ToolError> {
    let answer = async {
        let response = request.send().await.map_err(|error| failure(&error))?;
        if !response.status().is_success() {
            return Ok(Err(Refused(response.status())));
        }
        let bytes = read(response, limits.max_bytes).await?;
        let value = serde_json::from_slice(&bytes)
            .map_err(|error| ToolError::Execution(format!("the answer is not the expected JSON: {error}")))?;
        Ok(Ok(value))
    };
    let answered = tokio::time::timeout(limits.within.get(), answer).await;
    answered.map_err(|_| ToolError::Timeout(limits.within))?
}

/// Counted after decompression.
async fn read(response: Response, max_bytes: usize) -> Result<Vec<u8>, ToolError> {
    let mut bytes = Vec::new();
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| failure(&error))?;
        if bytes.len() + chunk.len() > max_bytes {
            return Err(ToolError::Limit(format!("the answer has more than {max_bytes} bytes")));
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

impl Refused {
    /// For a service that people call `name`.
    pub(crate) fn explained(self, name: &str) -> ToolError {
        match self.0 {
            StatusCode::TOO_MANY_REQUESTS => {
                ToolError::Limit(format!("{name} allows no more requests now (429); try again later"))
            }
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => {
                ToolError::Execution(format!("{name} refuses the request ({}): check its key", self.0))
            }
            status => ToolError::Execution(format!("{name} answered {status}")),
        }
    }
}

/// The longest wait of a tool beyond the limit of its requests.
pub(crate) const SPARE: Duration = Duration::from_secs(10);
