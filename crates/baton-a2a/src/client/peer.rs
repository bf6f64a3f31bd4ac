//! One remote agent: its card, its credentials and its circuit breaker.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_core::AgentName;
use baton_core::agent::RemoteCard;
use baton_core::remote::{
    Reachability, RemoteAgent, RemoteError, RemoteErrorKind, RemoteMessage, RemoteStream, RemoteTask,
};
use tokio_util::task::TaskTracker;

use super::breaker::Breaker;
use super::card_source::{CardSource, KnownCard};
use super::connection::Connection;
use super::http::{Http, host_of};
use super::interface::{Endpoint, endpoints};
use super::{ClientTimeouts, drive};
use crate::card::AgentCard;
use crate::error::ErrorCode;
use crate::extension::ExtensionParams;

/// How long a cancellation in the background may take.
const CANCEL_TIME: Duration = Duration::from_secs(30);

/// One remote agent.
#[derive(Debug)]
pub(super) struct Peer {
    cards: CardSource,
    http: Http,
    breaker: Breaker,
    /// The position of the address that worked last.
    preferred: AtomicUsize,
    background: TaskTracker,
}

/// The addresses of a peer, and the one that is tried.
#[derive(Debug, Clone)]
pub(super) struct Route {
    card: Arc<AgentCard>,
    endpoints: Arc<Vec<Endpoint>>,
    at: usize,
    tried: usize,
}

impl Route {
    pub(super) fn has_next(&self) -> bool {
        self.tried + 1 < self.endpoints.len()
    }

    pub(super) fn next(self) -> Self {
        Self { at: (self.at + 1) % self.endpoints.len(), tried: self.tried + 1, ..self }
    }

    pub(super) fn is_streaming(&self) -> bool {
        self.card.capabilities.streaming
    }

    /// Whether the peer declares that it takes over threads by the extension.
    pub(super) fn has_extension(&self) -> bool {
        ExtensionParams::of(&self.card).is_some_and(|params| params.handoff_support)
    }
}

impl Peer {
    pub(super) fn new(card: &RemoteCard, http: Http, background: TaskTracker) -> Result<Self, RemoteError> {
        let cards = CardSource::new(card)?;
        Ok(Self { cards, http, breaker: Breaker::default(), preferred: AtomicUsize::new(0), background })
    }

    pub(super) fn timeouts(&self) -> &ClientTimeouts {
        &self.http.timeouts
    }

    /// The addresses of the peer. Fails at once while its circuit is open.
    pub(super) async fn route(&self) -> Result<Route, RemoteError> {
        self.breaker.check()?;
        let found = self.routes().await;
        if let Err(error) = &found {
            self.count_failure(error);
        }
        found
    }

    async fn routes(&self) -> Result<Route, RemoteError> {
        let known = self.cards.card(&self.http).await?;
        let endpoints = endpoints(&known)?;
        let at = self.preferred.load(Ordering::Relaxed) % endpoints.len();
        Ok(Route { card: known.card, endpoints: Arc::new(endpoints), at, tried: 0 })
    }

    pub(super) fn connection<'a>(&'a self, route: &'a Route) -> Connection<'a> {
        let has_extension = ExtensionParams::of(&route.card).is_some();
        Connection { http: &self.http, endpoint: &route.endpoints[route.at], has_extension }
    }

    pub(super) fn count_success(&self, route: &Route) {
        self.preferred.store(route.at, Ordering::Relaxed);
        self.breaker.count(&Ok::<(), RemoteError>(()));
    }

    pub(super) fn count_failure(&self, error: &RemoteError) {
        self.breaker.count(&Err::<(), _>(error.clone()));
    }

    async fn reachability(&self) -> Reachability {
        match self.cards.card(&self.http).await {
            Ok(known) => Self::described(&known),
            Err(error) => Reachability::Unreachable(error.message),
        }
    }

    fn described(known: &KnownCard) -> Reachability {
        match endpoints(known) {
            Ok(endpoints) => {
                let host = endpoints.first().map(|first| host_of(&first.url)).unwrap_or_default();
                Reachability::Reachable { card: Arc::clone(&known.document), host }
            }
            Err(error) => Reachability::Unreachable(error.message),
        }
    }

    async fn cancel(&self, task: &str) -> Result<(), RemoteError> {
        let route = self.route().await?;
        match self.connection(&route).cancel(task).await {
            Err(error)
                if matches!(
                    error.code(),
                    Some(
                        ErrorCode::TaskNotCancelable
                            | ErrorCode::TaskNotFound
                            | ErrorCode::UnsupportedOperation
                    )
                ) =>
            {
                Ok(())
            }
            result => result.map_err(super::connection::CallError::into_remote),
        }
    }
}

/// A remote agent under the name that it has here.
#[derive(Debug)]
pub(super) struct NamedPeer {
    pub(super) name: AgentName,
    pub(super) peer: Arc<Peer>,
}

impl RemoteAgent for NamedPeer {
    fn send(&self, message: RemoteMessage) -> RemoteStream {
        drive::send(Arc::clone(&self.peer), self.name.clone(), message)
    }

    fn follow(&self, task: RemoteTask) -> RemoteStream {
        drive::follow(Arc::clone(&self.peer), task)
    }

    fn cancel(&self, task_id: &str) -> Pin<Box<dyn Future<Output = Result<(), RemoteError>> + Send + '_>> {
        let task = task_id.to_owned();
        Box::pin(async move { self.peer.cancel(&task).await })
    }

    fn reachability(&self) -> Pin<Box<dyn Future<Output = Reachability> + Send + '_>> {
        Box::pin(self.peer.reachability())
    }

    fn cancel_in_background(&self, task_id: &str) {
        let (peer, task) = (Arc::clone(&self.peer), task_id.to_owned());
        self.peer.background.spawn(async move {
            let cancelled = tokio::time::timeout(CANCEL_TIME, peer.cancel(&task)).await;
            let late = || Err(RemoteError::new(RemoteErrorKind::Timeout, "it did not answer"));
            if let Err(error) = cancelled.unwrap_or_else(|_| late()) {
                tracing::warn!(%error, "a remote task could not be cancelled");
            }
        });
    }
}
