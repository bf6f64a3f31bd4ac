//! The A2A client: Baton's remote agents.
//!
//! - [`peer`]: one remote agent, with its card, its credentials and its circuit breaker.
//! - [`card_source`]: fetches and caches cards. [`interface`]: which address of a card is used.
//! - [`http`]: requests with limits. [`auth`]: credentials. [`breaker`]: stops requests to an agent that is down.
//! - [`connection`]: the methods of the protocol over each transport.
//! - [`message`]: what is sent. [`reply`]: what a peer's events mean. [`drive`]: sends, reads, reconnects, polls.
//!
//! The operator has configured the address, so private addresses are allowed; redirects to other hosts are not followed. Everything
//! that a peer controls is bounded.

mod auth;
mod breaker;
mod card_source;
mod connection;
mod drive;
mod http;
mod interface;
mod message;
mod peer;
mod reply;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use baton_core::agent::{Agent, AgentKind, RemoteAuth, RemoteCard};
use baton_core::remote::{RemoteAgent, RemoteAgents, RemoteError, RemoteErrorKind};
use secrecy::SecretString;
use tokio_util::task::TaskTracker;

use crate::signature::JwkSet;
use peer::Peer;

/// Reads a secret by the name of its environment variable.
pub type Secrets = Arc<dyn Fn(&str) -> Option<SecretString> + Send + Sync>;

/// The time limits of requests.
#[derive(Debug, Clone, Copy)]
pub struct ClientTimeouts {
    pub connect: Duration,
    /// Until the head of a response.
    pub response: Duration,
    /// For a card, from the first request to the last byte.
    pub card: Duration,
    /// Without any data in a stream. Then the task is subscribed to again.
    pub silence: Duration,
    /// Before the first attempt to reconnect; doubles with each attempt.
    pub back_off: Duration,
    /// Between two requests for the state of a task.
    pub poll: Duration,
}

impl Default for ClientTimeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            response: Duration::from_mins(1),
            card: Duration::from_secs(10),
            silence: Duration::from_mins(2),
            back_off: Duration::from_millis(500),
            poll: Duration::from_secs(1),
        }
    }
}

/// The remote agents of a process. Cheap to clone. Dropping the last clone ends requests in the background.
#[derive(Clone)]
pub struct A2aAgents(Arc<Shared>);

struct Shared {
    /// Made for the first remote agent: reading the certificates of the machine takes tens of milliseconds.
    http: OnceLock<reqwest::Client>,
    secrets: Secrets,
    timeouts: ClientTimeouts,
    trusted: Option<Arc<JwkSet>>,
    /// By the address and the credentials, so that a changed agent file gets a new peer.
    peers: Mutex<HashMap<String, Arc<Peer>>>,
    background: TaskTracker,
}

impl fmt::Debug for A2aAgents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("A2aAgents").finish_non_exhaustive()
    }
}

impl A2aAgents {
    pub fn new(secrets: Secrets, timeouts: ClientTimeouts) -> Self {
        let (http, peers, background) = (OnceLock::new(), Mutex::default(), TaskTracker::new());
        Self(Arc::new(Shared { http, secrets, timeouts, trusted: None, peers, background }))
    }

    /// Accepts only cards that one of these keys has signed. Has no effect on connections that exist.
    #[must_use]
    pub fn trusting(self, keys: JwkSet) -> Self {
        let Shared { secrets, timeouts, .. } = &*self.0;
        let (secrets, timeouts) = (Arc::clone(secrets), *timeouts);
        let (http, peers, background) = (OnceLock::new(), Mutex::default(), TaskTracker::new());
        Self(Arc::new(Shared { http, secrets, timeouts, trusted: Some(Arc::new(keys)), peers, background }))
    }

    fn http(&self) -> Result<reqwest::Client, RemoteError> {
        if let Some(client) = self.0.http.get() {
            return Ok(client.clone());
        }
        let client = http::client(&self.0.timeouts)?;
        Ok(self.0.http.get_or_init(|| client).clone())
    }

    fn peer(&self, agent: &Agent) -> Result<Arc<Peer>, RemoteError> {
        let AgentKind::Remote { card, auth } = &agent.kind else {
            let message = format!("`{}` is not a remote agent", agent.name);
            return Err(RemoteError::new(RemoteErrorKind::Refused, message));
        };
        let (key, http) = (key(card, auth.as_ref()), self.http()?);
        let mut peers = self.0.peers.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(peer) = peers.get(&key) {
            return Ok(Arc::clone(peer));
        }
        let credentials =
            auth.as_ref().map(|auth| auth::Credentials::new(auth, &self.0.secrets)).transpose()?;
        let http = http::Http::new(http, self.0.timeouts, credentials, self.0.trusted.clone());
        let peer = Arc::new(Peer::new(card, http, self.0.background.clone())?);
        // Agent files may change many times while a process lives.
        if peers.len() >= MAX_PEERS {
            peers.clear();
        }
        peers.insert(key, Arc::clone(&peer));
        Ok(peer)
    }
}

/// Peers that are kept. More than any roster has.
const MAX_PEERS: usize = 1_000;

fn key(card: &RemoteCard, auth: Option<&RemoteAuth>) -> String {
    // Names of secrets, never secrets.
    serde_json::to_string(&(card, auth)).unwrap_or_default()
}

impl RemoteAgents for A2aAgents {
    fn connect(&self, agent: &Agent) -> Result<Arc<dyn RemoteAgent>, RemoteError> {
        let name = agent.name.clone();
        Ok(Arc::new(peer::NamedPeer { name, peer: self.peer(agent)? }))
    }
}
