//! Handoffs, and the workflow state of their holders.

use std::time::Duration;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::choices;
use crate::id::{AgentName, HandoffId, RunId, ThreadId, UserId};
use crate::money::Usd;
use crate::remote::RemoteLink;
use crate::store::Pending;
use crate::store::pattern::{GENERAL_CLASS, Hop, HopKind, HopOutcome};

choices! {
    pub enum HandoffState {
        Pending = "pending",
        Active = "active",
        Returning = "returning",
        Completed = "completed",
        Cancelled = "cancelled",
        Error = "error",
    }
}

impl HandoffState {
    /// Whether the handoff is pending, active or returning.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Pending | Self::Active | Self::Returning)
    }
}

/// See [`Handoffs::resumable_handoffs_of`].
pub const MAX_LEFT_HANDOFFS: u32 = 8;

/// A handoff to be created.
#[derive(Debug, Clone, PartialEq)]
pub struct NewHandoff {
    pub handoff_id: HandoffId,
    pub thread_id: ThreadId,
    pub user_id: UserId,
    pub source_agent_id: AgentName,
    pub target_agent_id: AgentName,
    pub context_summary: String,
    pub handoff_reason: String,
    /// Opaque data of the caller.
    pub metadata: Value,
    pub notes: HandoffNotes,
    /// Refuses if the target already has this many open handoffs in the tenant.
    pub max_open: Option<u32>,
    /// Creates the handoff as active, in the same write.
    pub activation: Option<Activation>,
}

/// The initial state of an active handoff.
#[derive(Debug, Clone, PartialEq)]
pub struct Activation {
    pub workflow: Option<WorkflowState>,
    pub expires_at: Option<Timestamp>,
}

/// A stored handoff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HandoffSession {
    pub handoff_id: HandoffId,
    pub thread_id: ThreadId,
    pub user_id: UserId,
    pub source_agent_id: AgentName,
    pub target_agent_id: AgentName,
    pub state: HandoffState,
    pub context_summary: String,
    pub handoff_reason: String,
    pub started_at: Timestamp,
    pub updated_at: Timestamp,
    pub completed_at: Option<Timestamp>,
    pub result_summary: Option<String>,
    pub artifacts_created: Vec<String>,
    pub metadata: Value,
    /// When the lease ends; set while the handoff is open.
    pub expires_at: Option<Timestamp>,
    pub notes: HandoffNotes,
    /// A request queued until this handoff ends. Written only by [`Handoffs::queue_handoff`]; not covered by the version.
    #[serde(skip)]
    pub next: Option<Value>,
    /// State of the holder's workflow; `None` once its retention has passed.
    pub workflow: Option<WorkflowState>,
    /// Incremented by each change, which names the version it is based on. 0 before the first write.
    pub version: u64,
}

impl HandoffSession {
    /// The handoff as a hop, with no cost yet. The outcome is `None` while it is open.
    pub fn hop(&self, now: Timestamp) -> (Hop, Option<HopOutcome>) {
        let origin = self.notes.origin.as_deref();
        let by_state = match self.state {
            HandoffState::Completed => HopOutcome::Completed,
            HandoffState::Error => HopOutcome::Failed,
            _ => HopOutcome::Cancelled,
        };
        let outcome = self.notes.end.map_or(by_state, HandoffEnd::outcome);
        let lasted = self.completed_at.unwrap_or(now).duration_since(self.started_at);
        let hop = Hop {
            hop_id: self.handoff_id.as_uuid(),
            thread_id: self.thread_id,
            run_id: origin.and_then(|origin| origin.opened_in.as_ref()).map(|(run, _)| *run),
            kind: HopKind::Handoff,
            from: self.source_agent_id.clone(),
            to: self.target_agent_id.clone(),
            reason: self.handoff_reason.clone(),
            query_class: origin.map_or(GENERAL_CLASS, |origin| &origin.query_class).to_owned(),
            outcome,
            latency_ms: u64::try_from(lasted.as_millis()).unwrap_or(0),
            cost: Usd::from_nanos(0),
            at: self.started_at,
            request: origin.map_or(0, |origin| origin.request),
        };
        (hop, (!self.state.is_open()).then_some(outcome))
    }
}

choices! {
    /// Why a handoff ended.
    pub enum HandoffEnd {
        /// The target completed its task.
        Completed = "completed",
        /// The target returned the thread without completing its task.
        Declined = "declined",
        /// The user left.
        Left = "left",
        /// The lease expired.
        Expired = "expired",
        /// The target failed.
        Failed = "failed",
        /// A caller with the permission to end other users' handoffs ended it.
        Ended = "ended",
    }
}

impl HandoffEnd {
    /// The outcome of the hop. A user who leaves has not been served.
    pub fn outcome(self) -> HopOutcome {
        match self {
            Self::Completed => HopOutcome::Completed,
            Self::Declined => HopOutcome::Declined,
            Self::Left | Self::Expired | Self::Ended => HopOutcome::Cancelled,
            Self::Failed => HopOutcome::Failed,
        }
    }
}

choices! {
    /// Who was notified that the handoff became active or ended.
    pub enum NotifiedParty {
        Nobody = "nobody",
        Person = "person",
        /// The user, and the agent that holds the thread again.
        Agent = "agent",
    }
}

choices! {
    /// The last topic of the conversation, as seen from an ended handoff.
    pub enum LastTopic {
        Other = "other",
        /// The end of the handoff.
        End = "end",
        /// Whether the user wants to resume it.
        Question = "question",
    }
}

/// State that the engine keeps about a handoff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct HandoffNotes {
    /// Whether the source agent speaks when the thread returns.
    pub return_expected: bool,
    /// Whether collected values are kept if the handoff ends early.
    pub preserve_state: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end: Option<HandoffEnd>,
    /// The run that ended it, so that the run recognizes this after a crash.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended_in: Option<RunId>,
    pub told: NotifiedParty,
    pub topic: LastTopic,
    /// Consecutive failed runs of the target.
    pub failures: u32,
    /// The number of the message that started it. `recent` is the number of earlier messages that the target may see.
    pub since: u64,
    pub recent: u32,
    /// The workflow's question that was asked last. The store closes it when the handoff ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<Uuid>,
    /// The task at the target, if the target is a remote agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote: Option<Box<RemoteLink>>,
    /// Where it began, and what the request was about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub origin: Option<Box<HandoffOrigin>>,
    /// What the user asked for while the target held the thread, until it is decided or carried out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub second: Option<SecondRequest>,
    /// The last runs that were about a second request. Their messages are not for the target.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aside: Vec<RunId>,
    /// The handoff that was paused for this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused: Option<HandoffId>,
    /// Where the user was asked whether to resume it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offered: Option<ResumeQuestion>,
    /// How long it was expected to take when the target accepted it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub estimated_seconds: Option<u64>,
}

/// The question in another thread whether to resume a handoff there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResumeQuestion {
    pub thread: ThreadId,
    /// The number of the message that replies to it.
    pub reply: u64,
}

/// Where a handoff began, for its hop.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HandoffOrigin {
    /// The run that opened it, and the path at which the target answers in this run. `None` if it began outside of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub opened_in: Option<(RunId, String)>,
    pub query_class: String,
    /// The fingerprint of the request.
    #[serde(default)]
    pub request: u64,
}

/// A request for something else than the work of the agent that holds the thread.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondRequest {
    /// The number of the message that made it.
    pub message: u64,
    /// The agent that it is for. `None`: the agent that handed the thread off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    pub state: SecondRequestState,
    /// When the user was last asked whether to finish first, and how often.
    pub asked_at: Timestamp,
    pub times_asked: u32,
}

choices! {
    pub enum SecondRequestState {
        /// The user has been asked whether to finish first.
        Asked = "asked",
        /// It is carried out when the handoff has ended.
        Queued = "queued",
    }
}

impl SecondRequest {
    pub fn is_queued(&self) -> bool {
        self.state == SecondRequestState::Queued
    }
}

impl Default for HandoffNotes {
    fn default() -> Self {
        Self {
            return_expected: true,
            preserve_state: true,
            end: None,
            ended_in: None,
            told: NotifiedParty::Nobody,
            topic: LastTopic::Other,
            failures: 0,
            since: 0,
            recent: 5,
            question: None,
            remote: None,
            origin: None,
            second: None,
            aside: Vec::new(),
            paused: None,
            offered: None,
            estimated_seconds: None,
        }
    }
}

/// State of a workflow.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkflowState {
    pub state: String,
    /// Collected values, and other data of the workflow.
    pub data: Value,
}

/// Operations on handoffs.
pub trait Handoffs: Send + Sync {
    /// Creates a handoff, as `pending` or with an activation as `active`. Fails while another one is open on the thread.
    fn open_handoff(&self, handoff: NewHandoff) -> Pending<'_, HandoffSession>;

    fn handoff(&self, handoff: HandoffId) -> Pending<'_, HandoffSession>;

    /// The open handoff of a thread.
    fn open_handoff_of(&self, thread: ThreadId) -> Pending<'_, Option<HandoffSession>>;

    /// The open handoffs of these threads, unordered. Unknown threads are omitted.
    fn open_handoffs_of(&self, threads: &[ThreadId]) -> Pending<'_, Vec<HandoffSession>>;

    /// All handoffs of a thread, oldest first.
    fn handoffs(&self, thread: ThreadId) -> Pending<'_, Vec<HandoffSession>>;

    /// Ended handoffs of a thread whose workflow state still exists, newest first.
    fn resumable_handoffs(&self, thread: ThreadId) -> Pending<'_, Vec<HandoffSession>>;

    /// The newest ended handoffs of a user, in any thread, whose workflow state still exists, newest first. At most
    /// [`MAX_LEFT_HANDOFFS`] handoffs are looked at, so that the cost does not grow with the user's threads.
    fn resumable_handoffs_of(&self, user: &UserId) -> Pending<'_, Vec<HandoffSession>>;

    /// At most `limit` expired handoffs on threads without an active or queued run.
    fn expired_handoffs(&self, limit: u32) -> Pending<'_, Vec<HandoffSession>>;

    /// How long the newest completed handoffs to an agent took, newest first, at most `limit`. Reads that many entries of an index.
    fn completed_durations(&self, target: &AgentName, limit: u32) -> Pending<'_, Vec<Duration>>;

    /// Replaces a handoff with its workflow state, if its version is unchanged since `changed` was read. Also sets the thread's
    /// holder: the target while the handoff is active, the source once it has ended.
    fn update_handoff(&self, changed: HandoffSession) -> Pending<'_, HandoffSession>;

    /// Queues a request until the handoff ends. Returns `false` if it has ended or already has one.
    fn queue_handoff(&self, handoff: HandoffId, next: Value) -> Pending<'_, bool>;

    /// Removes the queued request.
    fn unqueue_handoff(&self, handoff: HandoffId) -> Pending<'_, ()>;
}
