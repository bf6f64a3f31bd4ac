//! Vectors of texts, from a server that speaks the embeddings API of `OpenAI`.

use std::sync::Arc;

use baton_core::{HumanDuration, ToolError};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use crate::service::{self, RequestLimits, ServiceClient};

const LIMITS: RequestLimits =
    RequestLimits { within: HumanDuration::from_secs(20), max_bytes: 32 * 1024 * 1024 };
const MAX_DIMENSIONS: usize = 16_384;

/// Where vectors come from.
#[derive(Debug, Clone)]
pub struct EmbeddingSettings {
    /// The address of the API, such as `https://api.openai.com/v1`.
    pub base_url: Url,
    pub model: String,
    pub key: Option<SecretString>,
}

#[derive(Debug)]
pub(super) struct Embedder {
    settings: EmbeddingSettings,
    client: ServiceClient,
}

#[derive(Debug, Deserialize)]
struct EmbeddingAnswer {
    data: Vec<EmbeddingData>,
}

#[derive(Debug, Deserialize)]
struct EmbeddingData {
    index: usize,
    embedding: Vec<f32>,
}

impl Embedder {
    pub(super) fn new(settings: EmbeddingSettings) -> Self {
        Self { settings, client: ServiceClient::default() }
    }

    /// Vectors of different servers are not comparable, so both belong to the name under which they are stored.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.settings.base_url, self.settings.model)
    }

    /// One vector of length 1 for each text, in order.
    pub(super) async fn embed(&self, texts: &[String]) -> Result<Vec<Arc<[f32]>>, ToolError> {
        let EmbeddingSettings { base_url, model, key } = &self.settings;
        let mut url = base_url.clone();
        url.set_path(&format!("{}/embeddings", base_url.path().trim_end_matches('/')));
        let body = json!({"model": model, "input": texts, "encoding_format": "float"});
        let mut request = self.client.get().await?.post(url).json(&body);
        if let Some(key) = key {
            request = request.bearer_auth(key.expose_secret());
        }
        let answered = service::json::<EmbeddingAnswer>(request, LIMITS).await?;
        let mut answer = answered.map_err(|refused| refused.explained("the server for embeddings"))?;
        answer.data.sort_by_key(|data| data.index);
        let is_complete = answer.data.len() == texts.len()
            && answer.data.iter().enumerate().all(|(index, data)| data.index == index);
        let length = answer.data.first().map_or(0, |data| data.embedding.len());
        let is_even = answer.data.iter().all(|data| data.embedding.len() == length);
        if !is_complete || !is_even || !(1..=MAX_DIMENSIONS).contains(&length) {
            let problem = "the server for embeddings did not answer with one vector for each text";
            return Err(ToolError::Execution(problem.to_owned()));
        }
        Ok(answer.data.into_iter().map(|data| normalized(&data.embedding)).collect())
    }
}

/// Of length 1, so that the product of two is their similarity. What has no direction is similar to nothing.
fn normalized(vector: &[f32]) -> Arc<[f32]> {
    let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
    let scale = if length.is_normal() { 1.0 / length } else { 0.0 };
    let number = |number: &f32| if number.is_finite() { number * scale } else { 0.0 };
    vector.iter().map(number).collect()
}
