//! The endpoint of the model.

use std::time::Duration;

use anyhow::Context as _;
use reqwest::Client;
use serde::Deserialize;

const TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Deserialize)]
struct ModelList {
    data: Vec<ListedModel>,
}

#[derive(Deserialize)]
struct ListedModel {
    id: String,
}

/// The first model that the endpoint lists.
pub async fn first_model(base_url: &str) -> anyhow::Result<String> {
    let url = format!("{}/models", base_url.trim_end_matches('/'));
    let mut request = Client::new().get(&url).timeout(TIMEOUT);
    if let Ok(key) = std::env::var("SMOKE_API_KEY") {
        request = request.bearer_auth(key);
    }
    let response = request.send().await.and_then(reqwest::Response::error_for_status);
    let response = response.with_context(|| format!("{url} does not answer; name the model with --model"))?;
    let list: ModelList = response.json().await.with_context(|| format!("{url} lists no models"))?;
    let first = list.data.into_iter().next();
    Ok(first.with_context(|| format!("{url} lists no models; name one with --model"))?.id)
}
