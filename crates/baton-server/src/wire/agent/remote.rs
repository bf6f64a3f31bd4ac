//! Whether an agent on another server can be reached.

use std::time::Duration;

use baton_core::agent::Agent;
use baton_core::remote::Reachability;
use baton_engine::Extensions;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

/// How long a request for an agent waits for the card. A card that was fetched before is used without waiting.
const TIME: Duration = Duration::from_secs(2);
/// Characters of a text of the card.
const MAX_TEXT: usize = 300;

/// Whether an agent on another server can be reached, and what its card says.
#[derive(Debug, Serialize, ToSchema)]
pub struct RemoteView {
    pub reachable: bool,
    /// Why it cannot be reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// The name on its card.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub card_name: Option<String>,
    /// The version on its card.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub card_version: Option<String>,
}

impl RemoteView {
    /// `None` for a local agent.
    pub async fn of(extensions: &Extensions, agent: &Agent) -> Option<Self> {
        if !agent.kind.is_remote() {
            return None;
        }
        let Some(remotes) = &extensions.remotes else {
            return Some(Self::unreachable("this server has no connections to other servers".to_owned()));
        };
        let remote = match remotes.connect(agent) {
            Ok(remote) => remote,
            Err(error) => return Some(Self::unreachable(error.message)),
        };
        Some(match tokio::time::timeout(TIME, remote.reachability()).await {
            Ok(Reachability::Reachable { card, .. }) => Self::reachable(&card),
            Ok(Reachability::Unreachable(reason)) => Self::unreachable(reason),
            Err(_) => Self::unreachable(format!("it did not answer within {} s", TIME.as_secs())),
        })
    }

    fn reachable(card: &Value) -> Self {
        let text = |name: &str| card[name].as_str().map(|text| baton_core::text::head(text, MAX_TEXT));
        Self { reachable: true, reason: None, card_name: text("name"), card_version: text("version") }
    }

    fn unreachable(reason: String) -> Self {
        Self { reachable: false, reason: Some(reason), card_name: None, card_version: None }
    }
}
