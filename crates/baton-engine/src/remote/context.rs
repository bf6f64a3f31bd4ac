//! Which conversation of a remote agent continues a thread.
//!
//! The first message to an agent has the id of the thread as its context. If the agent answers in another context, that one is kept
//! for this agent and thread. If it is lost, the agent begins a new context.

use baton_core::remote::RemoteTask;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use crate::scope::Scope;

/// How long a context of an idle thread is kept.
const RETENTION: SignedDuration = SignedDuration::from_hours(24 * 365);

/// The context in which the scope's agent continues the thread.
pub(crate) async fn of_thread(scope: &Scope) -> String {
    let own = scope.run.caller.thread_id.to_string();
    match scope.run.store.cached(&key(scope)).await {
        Ok(Some(Value::String(context))) => context,
        Ok(_) => own,
        Err(error) => {
            tracing::warn!(%error, "the context of a remote agent cannot be read");
            own
        }
    }
}

/// Keeps the context in which the agent answered, unless `sent` was the same.
pub(crate) async fn keep(scope: &Scope, sent: &str, answered: &RemoteTask) {
    let Some(context) = answered.context_id.as_deref().filter(|context| *context != sent) else { return };
    let until = Timestamp::now().checked_add(RETENTION).unwrap_or(Timestamp::MAX);
    let kept = scope.run.store.keep(&key(scope), Value::String(context.to_owned()), until).await;
    if let Err(error) = kept {
        tracing::warn!(%error, "the context of a remote agent cannot be written");
    }
}

fn key(scope: &Scope) -> String {
    format!("remote-context:{}:{}", scope.name(), scope.run.caller.thread_id)
}
