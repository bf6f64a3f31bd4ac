//! A remote agent that does what a test wrote down.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex};

use baton_core::ProducedFile;
use baton_core::agent::Agent;
use baton_core::message::{IncludedParts, parts_to_text};
use baton_core::remote::{
    HandoffReply, Reachability, RemoteAgent, RemoteAgents, RemoteEnd, RemoteError, RemoteErrorKind,
    RemoteEvent, RemoteMessage, RemoteState, RemoteStream, RemoteTask, ReturnOutcome,
};
use baton_core::usage::{Cost, Tokens, Usage};
use futures_util::stream::{self, StreamExt as _};

/// A reply of an agent: events, and what follows them.
#[derive(Debug, Clone, Default)]
pub(super) struct ScriptedReply {
    events: Vec<Result<RemoteEvent, RemoteError>>,
    hangs: bool,
}

impl ScriptedReply {
    /// A task with this id.
    pub(super) fn task(id: &str) -> Self {
        Self::default().event(RemoteEvent::Accepted(task(id)))
    }

    pub(super) fn event(mut self, event: RemoteEvent) -> Self {
        self.events.push(Ok(event));
        self
    }

    pub(super) fn say(self, text: &str) -> Self {
        self.event(RemoteEvent::Text(text.to_owned()))
    }

    pub(super) fn ends(self, state: RemoteState, text: &str, message: &str) -> Self {
        self.event(RemoteEvent::Ended(Box::new(end(state, text, message))))
    }

    pub(super) fn returns(self, text: &str, outcome: ReturnOutcome, artifacts: &[&str]) -> Self {
        let artifacts = artifacts.iter().map(|name| (*name).to_owned()).collect();
        let reply = HandoffReply::Returned { outcome, summary: text.to_owned(), artifacts };
        let end = RemoteEnd { handoff: Some(reply), ..end(RemoteState::Completed, text, "") };
        self.event(RemoteEvent::Ended(Box::new(end)))
    }

    pub(super) fn declines(self, reason: &str) -> Self {
        let handoff = Some(HandoffReply::Declined { reason: reason.to_owned() });
        let end = RemoteEnd { handoff, ..end(RemoteState::Rejected, "", "") };
        self.event(RemoteEvent::Ended(Box::new(end)))
    }

    /// The last end has this file.
    pub(super) fn sends(mut self, file: ProducedFile) -> Self {
        if let Some(Ok(RemoteEvent::Ended(end))) = self.events.last_mut() {
            end.files.push(file);
        }
        self
    }

    /// The last end reports this usage of the task.
    pub(super) fn used(mut self, input_tokens: u64, usd: &str) -> Self {
        if let Some(Ok(RemoteEvent::Ended(end))) = self.events.last_mut() {
            let tokens = Tokens { input_tokens, ..Tokens::default() };
            end.usage = Some(Usage { tokens, cost: Cost::Known(usd.parse().unwrap()), estimated: false });
        }
        self
    }

    pub(super) fn fails(mut self, kind: RemoteErrorKind, message: &str) -> Self {
        self.events.push(Err(RemoteError::new(kind, message)));
        self
    }

    pub(super) fn hangs(mut self) -> Self {
        self.hangs = true;
        self
    }

    fn stream(self) -> RemoteStream {
        let events = stream::iter(self.events);
        if self.hangs { events.chain(stream::pending()).boxed() } else { events.boxed() }
    }
}

pub(super) fn task(id: &str) -> RemoteTask {
    RemoteTask { task_id: Some(id.to_owned()), ..RemoteTask::new_in("their-context") }
}

fn end(state: RemoteState, text: &str, message: &str) -> RemoteEnd {
    let (text, message) = (text.to_owned(), message.to_owned());
    RemoteEnd { state, text, message, artifacts: Vec::new(), usage: None, handoff: None, files: Vec::new() }
}

#[derive(Debug, Default)]
struct Seen {
    replies: HashMap<String, VecDeque<ScriptedReply>>,
    followed_replies: VecDeque<ScriptedReply>,
    sent: Vec<RemoteMessage>,
    followed: Vec<RemoteTask>,
    cancelled: Vec<String>,
}

/// Remote agents that play scripts, and what they were asked.
#[derive(Debug, Clone, Default)]
pub(super) struct ScriptedRemotes(Arc<Mutex<Seen>>);

impl ScriptedRemotes {
    /// What the agent answers to the next messages.
    pub(super) fn script(self, agent: &str, replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        self.0.lock().unwrap().replies.entry(agent.to_owned()).or_default().extend(replies);
        self
    }

    /// What follows if a task is followed.
    pub(super) fn followed_by(self, replies: impl IntoIterator<Item = ScriptedReply>) -> Self {
        self.0.lock().unwrap().followed_replies.extend(replies);
        self
    }

    pub(super) fn shared(&self) -> Arc<dyn RemoteAgents> {
        Arc::new(self.clone())
    }

    pub(super) fn sent(&self) -> Vec<RemoteMessage> {
        self.0.lock().unwrap().sent.clone()
    }

    /// The text of every message that was sent.
    pub(super) fn texts(&self) -> Vec<String> {
        self.sent().iter().map(|one| parts_to_text(&one.parts, IncludedParts::All)).collect()
    }

    pub(super) fn followed(&self) -> Vec<RemoteTask> {
        self.0.lock().unwrap().followed.clone()
    }

    pub(super) fn cancelled(&self) -> Vec<String> {
        self.0.lock().unwrap().cancelled.clone()
    }
}

impl RemoteAgents for ScriptedRemotes {
    fn connect(&self, agent: &Agent) -> Result<Arc<dyn RemoteAgent>, RemoteError> {
        Ok(Arc::new(ScriptedRemote { name: agent.name.to_string(), all: self.clone() }))
    }
}

#[derive(Debug)]
struct ScriptedRemote {
    name: String,
    all: ScriptedRemotes,
}

impl RemoteAgent for ScriptedRemote {
    fn send(&self, message: RemoteMessage) -> RemoteStream {
        let mut seen = self.all.0.lock().unwrap();
        seen.sent.push(message);
        let reply = seen.replies.get_mut(&self.name).and_then(VecDeque::pop_front);
        reply.unwrap_or_else(|| panic!("`{}` has no reply left", self.name)).stream()
    }

    fn follow(&self, task: RemoteTask) -> RemoteStream {
        let mut seen = self.all.0.lock().unwrap();
        seen.followed.push(task);
        seen.followed_replies.pop_front().unwrap_or_default().stream()
    }

    fn cancel(&self, task_id: &str) -> Pin<Box<dyn Future<Output = Result<(), RemoteError>> + Send + '_>> {
        self.cancel_in_background(task_id);
        Box::pin(std::future::ready(Ok(())))
    }

    fn reachability(&self) -> Pin<Box<dyn Future<Output = Reachability> + Send + '_>> {
        Box::pin(std::future::ready(Reachability::Unreachable("it is a script".to_owned())))
    }

    fn cancel_in_background(&self, task_id: &str) {
        self.all.0.lock().unwrap().cancelled.push(task_id.to_owned());
    }
}
