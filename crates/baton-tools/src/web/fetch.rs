//! One page, through redirects and within limits.

use baton_core::ToolError;
use futures_util::StreamExt;
use reqwest::header::{ACCEPT, CONTENT_TYPE, LOCATION};
use reqwest::{Client, Response};
use url::Url;

use super::content::is_text;
use super::reach::{Reach, ReachRefused};

pub const MAX_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of a file that is not text. It is kept whole or not at all.
pub const MAX_FILE_BYTES: usize = 8 * 1024 * 1024;
const MAX_REDIRECTS: usize = 5;
const ACCEPTED: &str = "text/html, text/plain, application/json;q=0.9, text/*;q=0.8, */*;q=0.1";

/// What came back, from the last address of the chain.
#[derive(Debug)]
pub struct FetchedPage {
    pub url: Url,
    pub content_type: Option<String>,
    pub bytes: Vec<u8>,
    pub is_cut: bool,
}

pub async fn fetch(client: &Client, reach: &Reach, url: Url) -> Result<FetchedPage, ToolError> {
    let mut url = url;
    for _ in 0..=MAX_REDIRECTS {
        reach.check(&url).map_err(|refused| ToolError::NotPermitted(refused.to_string()))?;
        let sent = client.get(url.clone()).header(ACCEPT, ACCEPTED).send().await;
        let response = sent.map_err(|error| failure(&error))?;
        match redirect(&response, &url)? {
            Some(next) => url = next,
            None => return read(response, url).await,
        }
    }
    Err(ToolError::Limit(format!("more than {MAX_REDIRECTS} redirects")))
}

fn redirect(response: &Response, url: &Url) -> Result<Option<Url>, ToolError> {
    let status = response.status();
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let target = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let invalid = || ToolError::Execution(format!("{url} redirects ({status}) to no usable address"));
    target.and_then(|target| url.join(target).ok()).map(Some).ok_or_else(invalid)
}

async fn read(response: Response, url: Url) -> Result<FetchedPage, ToolError> {
    let status = response.status();
    if !status.is_success() {
        return Err(ToolError::Execution(format!("{url} answered {status}")));
    }
    let content_type =
        response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let limit = if is_text(content_type.as_deref().unwrap_or_default()) { MAX_BYTES } else { MAX_FILE_BYTES };
    let mut page = FetchedPage { url, content_type, bytes: Vec::new(), is_cut: false };
    // Counted after decompression, so a small bomb is cut like a large page.
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        let chunk = chunk.map_err(|error| failure(&error))?;
        let room = limit - page.bytes.len();
        page.bytes.extend_from_slice(&chunk[..chunk.len().min(room)]);
        if chunk.len() > room {
            page.is_cut = true;
            break;
        }
    }
    Ok(page)
}

/// A refusal of the resolver arrives as the innermost cause of a failed connection.
pub(crate) fn failure(error: &reqwest::Error) -> ToolError {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    let mut deepest = error.to_string();
    while let Some(current) = cause {
        if let Some(refused) = current.downcast_ref::<ReachRefused>() {
            return ToolError::NotPermitted(refused.to_string());
        }
        deepest = current.to_string();
        cause = current.source();
    }
    ToolError::Transport(deepest)
}
