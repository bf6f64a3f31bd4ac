//! `delegation.resume`: a later call of the same agent in the thread continues its session.
//!
//! The session's id ends with the same digits each time. What was said in it is kept in the thread: each call that succeeds leaves a
//! system message with mission and result, which only traces show, in the append that ends the session. The next call reads them
//! back as its history. Calls of one session run one after the other.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use baton_core::agent::Agent;
use baton_core::chat::{ChatMessage, Reply};
use baton_core::message::{Message, Part, Role, Visibility};
use baton_core::store::{MessageQuery, ThreadMessage};
use baton_core::{MessageId, RunId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::sync::OwnedMutexGuard;
use uuid::Uuid;

use crate::bounds::InvocationKind;
use crate::failure::Failure;
use crate::input::{Input, text_of};
use crate::outcome::Outcome;
use crate::policy::fingerprint;
use crate::retry::retry;
use crate::scope::Scope;

/// Earlier calls that a session remembers.
const MAX_CALLS: usize = 20;
const PAGE_SIZE: u32 = 100;
/// Messages of the thread that are searched for them: an agent that was called long ago starts again.
const MAX_PAGES: u32 = 10;
const MAX_ATTEMPTS: u32 = 3;
const RETRY_DELAY: Duration = Duration::from_millis(300);

/// The session of an agent that continues from call to call: which agent calls which one.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct SubSession(Arc<str>);

impl SubSession {
    /// The session that a call from `scope` continues. `None` if each call has its own: the caller's file does not say `resume`, or
    /// the agent was defined for this call only.
    pub(crate) fn of(scope: &Scope, agent: &Agent, invocation: InvocationKind) -> Option<Self> {
        let caller = scope.agent();
        let known = scope.run.agents.get(&agent.name).filter(|known| known.prompt == agent.prompt);
        let continues = caller.delegation.resume && invocation.counts_depth() && known.is_some();
        continues.then(|| Self(format!("{}/{}", caller.name, agent.name).into()))
    }

    /// The digits at the end of the session's id, which are the same in all runs of the thread.
    pub(crate) fn nonce(&self, scope: &Scope) -> u32 {
        fingerprint(&format!("{}/{}", scope.run.caller.thread_id, self.0))
    }

    /// What was said in the session so far, oldest first.
    pub(crate) async fn history(&self, scope: &Scope, agent: &Agent) -> Result<Vec<ChatMessage>, Failure> {
        // An earlier call of this run may not be stored yet.
        scope.run.recorder.journal.flush().await?;
        let (store, thread) = (&scope.run.store, scope.run.caller.thread_id);
        let (mut calls, mut before) = (VecDeque::new(), None);
        for _ in 0..MAX_PAGES {
            let all = MessageQuery {
                include_internal: true,
                include_system: true,
                ..MessageQuery::last(PAGE_SIZE)
            };
            let query = MessageQuery { before, ..all };
            let page = retry(MAX_ATTEMPTS, RETRY_DELAY, || store.messages(thread, query)).await?;
            before = page.first().map(|first| first.number);
            let is_last = page.len() < PAGE_SIZE as usize;
            for call in page.into_iter().rev().filter_map(|message| self.read(agent, message)) {
                calls.push_front(call);
            }
            if is_last || calls.len() >= MAX_CALLS {
                break;
            }
        }
        let skipped = calls.len().saturating_sub(MAX_CALLS);
        Ok(calls.into_iter().skip(skipped).flat_map(RecordedCall::messages).collect())
    }

    /// The call that a message records, if it is one of this session.
    fn read(&self, agent: &Agent, message: ThreadMessage) -> Option<RecordedCall> {
        let message = message.message;
        if message.role != Role::System || message.agent.as_ref() != Some(&agent.name) {
            return None;
        }
        let Some(Part::Data { data }) = message.parts.into_iter().next() else { return None };
        let call: RecordedCall = serde_json::from_value(data).ok()?;
        (call.sub_session == *self).then_some(call)
    }
}

/// A call that succeeded, as it is kept in the thread.
#[derive(Debug, Serialize, Deserialize)]
struct RecordedCall {
    sub_session: SubSession,
    mission: String,
    result: String,
}

impl RecordedCall {
    fn messages(self) -> [ChatMessage; 2] {
        let result = Reply { text: self.result, ..Reply::default() };
        [ChatMessage::user(self.mission), ChatMessage::Assistant(result)]
    }
}

/// The message that keeps a call for the next one of its session. `None` if the call continues no session, or failed.
pub(crate) fn call_message(
    run_id: RunId,
    agent: &Agent,
    input: &Input,
    result: &Result<Outcome, Failure>,
) -> Option<Message> {
    let (sub_session, outcome) = (input.sub_session.clone()?, result.as_ref().ok()?);
    let call =
        RecordedCall { sub_session, mission: text_of(&input.parts), result: outcome.answer.text.clone() };
    Some(Message {
        id: MessageId::from_uuid(Uuid::now_v7()),
        run_id,
        role: Role::System,
        agent: Some(agent.name.clone()),
        visibility: Visibility::Internal,
        parts: vec![Part::Data { data: json!(call) }],
        created_at: Timestamp::now(),
    })
}

/// One lock for each session that the run's calls continue.
#[derive(Debug, Default)]
pub(crate) struct SessionLocks(Mutex<BTreeMap<SubSession, Arc<tokio::sync::Mutex<()>>>>);

impl SessionLocks {
    /// Waits until no other call of the run is in the session. An agent is never entered again below itself, so calls do not wait
    /// for each other in a circle.
    pub(crate) async fn lock(&self, session: &SubSession) -> OwnedMutexGuard<()> {
        let lock = {
            let mut locks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            Arc::clone(locks.entry(session.clone()).or_default())
        };
        lock.lock_owned().await
    }
}
