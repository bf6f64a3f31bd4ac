//! The keys that an issuer publishes (JWKS): fetched when they are needed, kept, and fetched again when they are old or when a
//! token names one that is not among them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use reqwest::redirect::Policy;
use reqwest::{Client, Url};
use tokio::sync::watch;
use tokio_util::task::AbortOnDropHandle;

use super::keyset::KeySet;
use super::refusal::AuthRefusal;
use super::token::{Algorithm, InvalidTokens};
use crate::guards::origins::is_loopback;

const TIMEOUT: Duration = Duration::from_secs(5);
const MAX_BYTES: usize = 1 << 20;
/// Keys that are older are fetched again while they are used.
const FRESH: Duration = Duration::from_mins(5);
/// By default, keys that are older are not used any more.
const MAX_STALE: Duration = Duration::from_hours(1);
/// Between two attempts while there are no keys at all.
const WITHOUT_KEYS: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct JwksSettings {
    pub url: String,
    /// Tokens with unknown keys, which any client can make, cause at most one fetch in this time.
    pub pause: Duration,
    /// Keys that could not be fetched again for this long are not used any more, so that a revoked key expires although the issuer
    /// cannot be reached.
    pub max_stale: Duration,
    pub clock: Clock,
}

impl JwksSettings {
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            pause: Duration::from_secs(30),
            max_stale: MAX_STALE,
            clock: Clock::default(),
        }
    }
}

/// The time by which keys age. Tests set their own.
#[derive(Clone)]
pub struct Clock(pub Arc<dyn Fn() -> Instant + Send + Sync>);

impl Default for Clock {
    fn default() -> Self {
        Self(Arc::new(Instant::now))
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Clock")
    }
}

#[derive(Debug)]
pub(super) struct Jwks {
    source: Arc<JwksSource>,
    /// The running fetch, or the last one. It belongs to no request, so a client that disconnects does not cancel it.
    fetch: Mutex<Option<AbortOnDropHandle<()>>>,
}

#[derive(Debug)]
struct JwksSource {
    url: Url,
    pause: Duration,
    max_stale: Duration,
    clock: Clock,
    client: Client,
    state: watch::Sender<JwksState>,
}

#[derive(Debug, Clone, Default)]
struct JwksState {
    keys: Arc<KeySet>,
    /// When they came.
    fetched: Option<Instant>,
    /// When the last attempt ended.
    tried: Option<Instant>,
    /// When an unknown key last led to a fetch.
    searched: Option<Instant>,
    is_fetching: bool,
}

#[derive(Debug, thiserror::Error)]
enum FetchError {
    #[error("{0}")]
    Http(#[from] reqwest::Error),
    #[error("the answer has status {0}")]
    Status(reqwest::StatusCode),
    #[error("the answer is longer than {MAX_BYTES} bytes")]
    TooLong,
    #[error("the answer is no key set: {0}")]
    Json(#[from] serde_json::Error),
    #[error("the answer holds no public key to verify signatures with")]
    Empty,
}

impl Jwks {
    pub(super) fn new(settings: JwksSettings) -> Result<Self, InvalidTokens> {
        let JwksSettings { url: text, pause, max_stale, clock } = settings;
        let invalid = || InvalidTokens::Url(text.clone());
        let url = Url::parse(&text).map_err(|_| invalid())?;
        let is_local = url.host_str().is_some_and(is_loopback);
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && is_local);
        if !is_safe || !url.username().is_empty() || url.password().is_some() {
            return Err(invalid());
        }
        let builder = Client::builder().timeout(TIMEOUT).redirect(Policy::none()).https_only(!is_local);
        let client = if is_local { builder.no_proxy() } else { builder }.build()?;
        // Keys are fetched again before they are too old, also if they may be old for a short time only.
        let pause = pause.min(max_stale / 4);
        let source = JwksSource { url, pause, max_stale, clock, client, state: watch::Sender::default() };
        Ok(Self { source: Arc::new(source), fetch: Mutex::new(None) })
    }

    /// The keys, among them one for such a token if the issuer has one. Keys that are too old are not returned.
    pub(super) async fn keys_for(
        &self,
        algorithm: Algorithm,
        id: Option<&str>,
    ) -> Result<Arc<KeySet>, AuthRefusal> {
        let max_stale = self.source.max_stale;
        if self.source.age().is_none_or(|age| age >= max_stale) {
            self.fetch(JwksState::may_try).await;
            if self.source.age().is_some_and(|age| age >= max_stale) {
                return Err(AuthRefusal::NoKeys);
            }
        } else if self.source.age().is_some_and(|age| age >= FRESH.min(max_stale / 2)) {
            self.begin(JwksState::may_try);
        }
        let keys = self.source.keys();
        if keys.find(algorithm, id).next().is_some() {
            return Ok(keys);
        }
        self.fetch(JwksState::may_search).await;
        let keys = self.source.keys();
        if keys.is_empty() { Err(AuthRefusal::NoKeys) } else { Ok(keys) }
    }

    /// Waits for the running fetch, or for a new one if one may start.
    async fn fetch(&self, may_begin: fn(&mut JwksState, Instant, Duration) -> bool) {
        let mut state = self.source.state.subscribe();
        self.begin(may_begin);
        // Never fails: the sender lives as long as this.
        let _ = state.wait_for(|state| !state.is_fetching).await;
    }

    fn begin(&self, may_begin: fn(&mut JwksState, Instant, Duration) -> bool) {
        let begins = self.source.state.send_if_modified(|state| {
            let begins = !state.is_fetching && may_begin(state, self.source.now(), self.source.pause);
            state.is_fetching |= begins;
            begins
        });
        if begins {
            let task = tokio::spawn(Arc::clone(&self.source).refresh());
            let mut fetch = self.fetch.lock().unwrap_or_else(PoisonError::into_inner);
            *fetch = Some(AbortOnDropHandle::new(task));
        }
    }
}

impl JwksState {
    fn may_try(&mut self, now: Instant, pause: Duration) -> bool {
        let pause = if self.fetched.is_some() { pause } else { WITHOUT_KEYS.min(pause) };
        self.tried.is_none_or(|tried| now.saturating_duration_since(tried) >= pause)
    }

    fn may_search(&mut self, now: Instant, pause: Duration) -> bool {
        let is_over = |searched| now.saturating_duration_since(searched) >= pause;
        let may = self.fetched.is_some() && self.searched.is_none_or(is_over);
        if may {
            self.searched = Some(now);
        }
        may
    }
}

impl JwksSource {
    fn now(&self) -> Instant {
        (self.clock.0)()
    }

    fn age(&self) -> Option<Duration> {
        let now = self.now();
        self.state.borrow().fetched.map(|fetched| now.saturating_duration_since(fetched))
    }

    fn keys(&self) -> Arc<KeySet> {
        Arc::clone(&self.state.borrow().keys)
    }

    async fn refresh(self: Arc<Self>) {
        // Also when something panics: those who wait must not wait for ever.
        let _ended = FetchEnded(&self);
        // Before the request: a key that was revoked meanwhile may still be in the answer.
        let asked = self.now();
        match self.get().await {
            Ok(keys) => self.state.send_modify(|state| {
                state.keys = Arc::new(keys);
                state.fetched = Some(asked);
            }),
            Err(error) => {
                tracing::warn!(%error, "the keys of the issuer of tokens could not be fetched");
            }
        }
    }

    async fn get(&self) -> Result<KeySet, FetchError> {
        let sent = self.client.get(self.url.clone()).send().await;
        let mut response = sent.map_err(reqwest::Error::without_url)?;
        if !response.status().is_success() {
            return Err(FetchError::Status(response.status()));
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(reqwest::Error::without_url)? {
            if body.len() + chunk.len() > MAX_BYTES {
                return Err(FetchError::TooLong);
            }
            body.extend_from_slice(&chunk);
        }
        let keys = KeySet::from_json(&body)?;
        if keys.is_empty() { Err(FetchError::Empty) } else { Ok(keys) }
    }
}

struct FetchEnded<'a>(&'a JwksSource);

impl Drop for FetchEnded<'_> {
    fn drop(&mut self) {
        let now = self.0.now();
        self.0.state.send_modify(|state| {
            state.is_fetching = false;
            state.tried = Some(now);
        });
    }
}
