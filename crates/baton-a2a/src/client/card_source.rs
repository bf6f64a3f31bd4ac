//! Fetches cards and keeps them as long as the peer allows.

use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::RemoteCard;
use baton_core::remote::{RemoteError, RemoteErrorKind};
use reqwest::header::{ACCEPT, CACHE_CONTROL, ETAG, HeaderMap};
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::http::{Http, Request, auth_error, body, host_of};
use crate::card::AgentCard;
use crate::signature;
use crate::wire::decode_card;

/// Maximum bytes of a card.
const MAX_CARD: usize = 1024 * 1024;
/// How long a card is used if the peer does not say.
const DEFAULT_AGE: Duration = Duration::from_mins(5);
const MAX_AGE: Duration = Duration::from_hours(1);
/// How long an expired card is used before the peer is asked again, after it did not answer.
const RETRY_AGE: Duration = Duration::from_secs(30);
/// The places of cards below an address.
const WELL_KNOWN: [&str; 2] = [".well-known/agent-card.json", ".well-known/agent.json"];

/// A card, and where it came from.
#[derive(Debug, Clone)]
pub(super) struct KnownCard {
    pub(super) card: Arc<AgentCard>,
    /// The card as it was received.
    pub(super) document: Arc<Value>,
    /// `None` for a card in the agent's file.
    pub(super) url: Option<Url>,
}

/// The card of one peer.
#[derive(Debug)]
pub(super) enum CardSource {
    Inline(KnownCard),
    Fetched { url: Url, cached: Mutex<Option<CachedCard>> },
}

#[derive(Debug)]
pub(super) struct CachedCard {
    known: KnownCard,
    etag: Option<String>,
    /// How long the peer lets it be used.
    age: Duration,
    fresh_until: Instant,
}

impl CardSource {
    pub(super) fn new(card: &RemoteCard) -> Result<Self, RemoteError> {
        match card {
            RemoteCard::Inline(document) => {
                let card = read(document, "the card in the agent's file")?;
                let (card, document) = (Arc::new(card), Arc::new(document.clone()));
                Ok(Self::Inline(KnownCard { card, document, url: None }))
            }
            RemoteCard::Url(text) => {
                let url = Url::parse(text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
                let url = url.ok_or_else(|| {
                    let message = "`agent_card_url` in the agent's file is not an http or https URL";
                    RemoteError::new(RemoteErrorKind::Refused, message)
                })?;
                Ok(Self::Fetched { url, cached: Mutex::default() })
            }
        }
    }

    /// The card. Requests that need it at the same time share one fetch. If the peer is down, an expired card is still used.
    pub(super) async fn card(&self, http: &Http) -> Result<KnownCard, RemoteError> {
        let (url, cached) = match self {
            Self::Inline(known) => return Ok(known.clone()),
            Self::Fetched { url, cached } => (url, cached),
        };
        let mut cached = cached.lock().await;
        if let Some(fresh) = cached.as_ref().filter(|card| Instant::now() < card.fresh_until) {
            return Ok(fresh.known.clone());
        }
        let fetching = tokio::time::timeout(http.timeouts.card, fetch(http, url, cached.as_ref())).await;
        let fetched = fetching.unwrap_or_else(|_| {
            let message = format!("{} did not return its card in time", host_of(url));
            Err(RemoteError::new(RemoteErrorKind::Timeout, message))
        });
        match (fetched, cached.as_mut()) {
            (Ok(new), _) => Ok(cached.insert(new).known.clone()),
            (Err(error), Some(old)) if error.kind.is_down() => {
                old.fresh_until = Instant::now() + RETRY_AGE;
                tracing::warn!(%error, "the card of a remote agent could not be renewed");
                Ok(old.known.clone())
            }
            (Err(error), _) => Err(error),
        }
    }
}

/// Fetches the card from the configured address, or from the well-known places below it and at the root of its host.
async fn fetch(http: &Http, url: &Url, old: Option<&CachedCard>) -> Result<CachedCard, RemoteError> {
    // A card that was found somewhere is renewed there.
    let known = old.and_then(|old| old.known.url.clone());
    let places = known.map_or_else(|| places(url), |known| vec![known]);
    let mut first = None;
    for place in places {
        match fetch_from(http, &place, old).await {
            Ok(card) => return Ok(card),
            // Something else may be at this address.
            Err(error)
                if matches!(error.kind, RemoteErrorKind::Malformed | RemoteErrorKind::Disconnected) =>
            {
                first.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    Err(first.unwrap_or_else(|| RemoteError::new(RemoteErrorKind::Malformed, "there is no card")))
}

fn places(url: &Url) -> Vec<Url> {
    let mut places = vec![url.clone()];
    let mut base = url.clone();
    base.set_query(None);
    base.set_fragment(None);
    let path = base.path().trim_end_matches('/').to_owned();
    let is_file = path.rsplit('/').next().is_some_and(|last| last.contains('.'));
    if !is_file {
        for base_path in [path.as_str(), ""] {
            for place in WELL_KNOWN {
                base.set_path(&format!("{base_path}/{place}"));
                if !places.contains(&base) {
                    places.push(base.clone());
                }
            }
        }
    }
    places
}

async fn fetch_from(http: &Http, url: &Url, old: Option<&CachedCard>) -> Result<CachedCard, RemoteError> {
    let mut request = Request::new(Method::GET, url.clone(), http.timeouts.card);
    request.headers.insert(ACCEPT, reqwest::header::HeaderValue::from_static("application/json"));
    // A server of several versions answers in the form that the header names; one without versions ignores it.
    request = request.header("A2A-Version", "1.0");
    if let Some(etag) = old.and_then(|old| old.etag.as_deref()) {
        request = request.header("If-None-Match", etag);
    }
    let response = http.send(&request).await?;
    let (status, headers) = (response.status(), response.headers().clone());
    if let (StatusCode::NOT_MODIFIED, Some(old)) = (status, old) {
        let (known, etag) = (old.known.clone(), old.etag.clone());
        let age = if headers.contains_key(CACHE_CONTROL) { age(&headers) } else { old.age };
        return Ok(CachedCard { known, etag, age, fresh_until: Instant::now() + age });
    }
    if let Some(error) = auth_error(&response, http.has_credentials()) {
        return Err(error);
    }
    let host = host_of(url);
    if !status.is_success() {
        let message =
            format!("{host} has no agent card at the configured address (status {})", status.as_u16());
        let kind =
            if status.is_server_error() { RemoteErrorKind::Disconnected } else { RemoteErrorKind::Malformed };
        return Err(RemoteError::new(kind, message));
    }
    let bytes = body(response, MAX_CARD, http.timeouts.card).await?;
    let document: Value = serde_json::from_slice(&bytes).map_err(|_| {
        RemoteError::new(RemoteErrorKind::Malformed, format!("what {host} returns as its card is not JSON"))
    })?;
    let document = match &http.trusted {
        Some(keys) => signature::verify(&document, keys).map_err(|error| {
            let message = format!("the card of {host} is not trusted: {error} of `a2a.trusted_keys`");
            RemoteError::new(RemoteErrorKind::Malformed, message)
        })?,
        None => document,
    };
    let card = read(&document, &format!("the card of {host}"))?;
    let known = KnownCard { card: Arc::new(card), document: Arc::new(document), url: Some(url.clone()) };
    let etag = headers.get(ETAG).and_then(|value| value.to_str().ok()).map(str::to_owned);
    let age = age(&headers);
    Ok(CachedCard { known, etag, age, fresh_until: Instant::now() + age })
}

fn read(document: &Value, what: &str) -> Result<AgentCard, RemoteError> {
    decode_card(document).map_err(|invalid| {
        RemoteError::new(RemoteErrorKind::Malformed, format!("{what} cannot be read: {invalid}"))
    })
}

/// How long the peer lets its card be used.
fn age(headers: &HeaderMap) -> Duration {
    let value = headers.get(CACHE_CONTROL).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut directives = value.split(',').map(str::trim);
    let seconds = directives.find_map(|one| one.strip_prefix("max-age=")?.parse().ok());
    seconds.map_or(DEFAULT_AGE, Duration::from_secs).min(MAX_AGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cards_are_looked_for_below_the_address_and_at_the_root() {
        let found = |url: &str| {
            let urls = places(&Url::parse(url).unwrap());
            urls.iter().map(|url| url.path().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(
            found("https://x.example/agents/a"),
            [
                "/agents/a",
                "/agents/a/.well-known/agent-card.json",
                "/agents/a/.well-known/agent.json",
                "/.well-known/agent-card.json",
                "/.well-known/agent.json",
            ]
        );
        assert_eq!(found("https://x.example/card.json"), ["/card.json"]);
    }

    #[test]
    fn age_of_a_card_is_bounded() {
        let headers = |value: &'static str| {
            HeaderMap::from_iter([(CACHE_CONTROL, reqwest::header::HeaderValue::from_static(value))])
        };
        assert_eq!(age(&headers("public, max-age=60")), Duration::from_mins(1));
        assert_eq!(age(&headers("max-age=999999999")), MAX_AGE);
        assert_eq!(age(&HeaderMap::new()), DEFAULT_AGE);
    }
}
