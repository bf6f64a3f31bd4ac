//! Approvals: tool calls and questions that a run waits for a person to decide.
//!
//! The run itself creates an approval with its append ([`super::Append::approvals`]), before it waits. A decision is a write of its
//! own: it makes a waiting run claimable again.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::choices;
use crate::id::{AgentName, HandoffId, RunId, ThreadId, UserId};
use crate::message::Message;
use crate::store::run::Idempotency;
use crate::store::{Order, Page, PageRequest, Pending};
use crate::tool::Risk;

choices! {
    /// What a run waits for.
    pub enum ApprovalKind {
        /// A tool call that needs a person's approval.
        Tool = "tool",
        /// A question of an agent.
        Question = "question",
    }
}

choices! {
    pub enum ApprovalStatus {
        Pending = "pending",
        Approved = "approved",
        Denied = "denied",
        /// A question has its answer.
        Answered = "answered",
        /// Not decided in time, which counts as a denial.
        Expired = "expired",
        /// The run ended before a decision.
        Cancelled = "cancelled",
        /// The call changed after it was shown. The changed call has an approval of its own.
        Invalidated = "invalidated",
    }
}

choices! {
    /// Selects approvals by status.
    pub enum ApprovalFilter {
        Pending = "pending",
        Approved = "approved",
        Denied = "denied",
        Answered = "answered",
        Expired = "expired",
        Cancelled = "cancelled",
        Invalidated = "invalidated",
        /// Every status except `pending`.
        Decided = "decided",
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalQuery {
    /// `None` selects all.
    pub status: Option<ApprovalFilter>,
    /// Only approvals of this user's threads.
    pub user_id: Option<UserId>,
    pub thread_id: Option<ThreadId>,
    /// By creation time.
    pub order: Order,
}

/// A call as the person who decides sees it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ApprovalPreview {
    /// One line: "Call a specialist", or the question.
    pub heading: String,
    /// Labelled values in the order of presentation, long ones cut.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<PreviewField>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreviewField {
    pub label: String,
    pub value: String,
}

/// What a run waits for, as it was asked. It never changes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalRequest {
    /// Derived from the run, the path and the digest.
    pub approval_id: Uuid,
    pub kind: ApprovalKind,
    /// Path of the call, with the asking agent: `assistant/turn:1/tool:1/call:worker/turn:1/tool:1`.
    pub path: String,
    /// The agent that asks.
    pub agent: AgentName,
    pub tool: String,
    pub arguments: Value,
    /// SHA-256 of the tool and its arguments, in hexadecimal. A decision holds for exactly this call.
    pub digest: String,
    pub risk: Risk,
    pub preview: ApprovalPreview,
    /// JSON Schema: of the arguments for a tool call, of the answer for a question.
    pub schema: Value,
    /// Suggested answers to a question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<String>,
    /// For a question of a workflow: the handoff by which its agent holds the thread. No run waits for the answer, which is a
    /// message of the user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handoff_id: Option<HandoffId>,
    pub created_at: Timestamp,
    /// Without a decision until then, the call is denied.
    pub expires_at: Timestamp,
}

/// The tool of a workflow's questions: the one with which their answers are recorded.
pub const WORKFLOW_TOOL: &str = "advance_workflow";

impl ApprovalRequest {
    /// A call of high risk with the least that a request has: no preview, a schema that every object satisfies, and no time.
    pub fn of_call(path: &str, agent: AgentName, tool: &str, arguments: Value) -> Self {
        Self {
            approval_id: Uuid::nil(),
            kind: ApprovalKind::Tool,
            path: path.to_owned(),
            agent,
            tool: tool.to_owned(),
            arguments,
            digest: "0".repeat(64),
            risk: Risk::High,
            preview: ApprovalPreview::default(),
            schema: json!({ "type": "object" }),
            choices: Vec::new(),
            handoff_id: None,
            created_at: Timestamp::UNIX_EPOCH,
            expires_at: Timestamp::UNIX_EPOCH,
        }
    }

    /// Whether a workflow asks, so that no run waits for the answer.
    pub fn is_workflow_question(&self) -> bool {
        self.handoff_id.is_some()
    }
}

/// A stored approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Approval {
    #[serde(flatten)]
    pub request: ApprovalRequest,
    pub thread_id: ThreadId,
    pub run_id: RunId,
    /// The user of the thread, who may decide with the permission `approval:decide`. So may those who see all threads of the
    /// tenant.
    pub user_id: UserId,
    #[serde(flatten)]
    pub outcome: ApprovalOutcome,
}

/// What became of an approval.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ApprovalOutcome {
    pub status: ApprovalStatus,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<UserId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Arguments that replace those of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub edited: Option<Value>,
    /// The answer to a question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer: Option<Value>,
    /// The run of the message that answers a workflow's question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answer_run_id: Option<RunId>,
    /// Whether the decision also holds for later calls of the tool in the thread.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remember: bool,
}

impl ApprovalOutcome {
    pub fn pending() -> Self {
        Self {
            status: ApprovalStatus::Pending,
            decided_at: None,
            decided_by: None,
            reason: None,
            edited: None,
            answer: None,
            answer_run_id: None,
            remember: false,
        }
    }

    /// The outcome of a request that is closed without a decision.
    pub fn closed(status: ApprovalStatus) -> Self {
        Self { status, ..Self::pending() }
    }
}

/// A person's decision. It is valid for a pending approval that has not expired.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    pub approval_id: Uuid,
    /// `Approved`, `Denied` or `Answered`.
    pub status: ApprovalStatus,
    pub by: UserId,
    pub reason: Option<String>,
    /// With `Approved`: arguments that satisfy the tool's schema.
    pub edited: Option<Value>,
    /// With `Answered`.
    pub answer: Option<Value>,
    pub remember: bool,
    /// The message that answers a question, stored in the history of the thread. Its `run_id` is that of the asking run.
    pub message: Option<Message>,
    /// The same request is not processed twice.
    pub idempotency: Option<Idempotency>,
    /// For the audit trail.
    pub trace_id: Option<String>,
}

/// A remembered decision about a tool in a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RememberedDecision {
    pub approval_id: Uuid,
    pub tool: String,
    pub is_approved: bool,
}

/// Revokes the remembered decisions about a tool in a thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revocation {
    pub thread_id: ThreadId,
    pub tool: String,
    pub by: UserId,
    /// For the audit trail.
    pub trace_id: Option<String>,
}

/// Operations on approvals. Runs create them with their appends.
pub trait Approvals: Send + Sync {
    fn approval(&self, approval: Uuid) -> Pending<'_, Approval>;

    /// In the order of the query.
    fn approvals(&self, query: ApprovalQuery, page: PageRequest) -> Pending<'_, Page<Approval>>;

    /// All approvals of a run, in order of creation.
    fn run_approvals(&self, run: RunId) -> Pending<'_, Vec<Approval>>;

    /// The pending approvals of a thread that have not expired, in order of creation.
    fn open_approvals(&self, thread: ThreadId) -> Pending<'_, Vec<Approval>>;

    /// The newest remembered decision about each tool of a thread.
    fn remembered_decisions(&self, thread: ThreadId) -> Pending<'_, Vec<RememberedDecision>>;

    /// Later calls of the tool in the thread wait for a person again. Returns `false` if no decision about it is remembered.
    fn forget_decisions(&self, revocation: Revocation) -> Pending<'_, bool>;

    /// Decides a pending approval that has not expired; anything else is a conflict, also a workflow's question, which
    /// [`NewRun::answers`](super::NewRun::answers) decides. If its run waits, the same write queues the
    /// run, ahead of later messages of the thread.
    fn decide(&self, decision: Decision) -> Pending<'_, Approval>;

    /// Marks a pending approval as expired if its time is over, and queues its waiting run as [`Approvals::decide`] does. Returns
    /// the approval as it is then: another decision may have been first.
    fn expire(&self, approval: Uuid) -> Pending<'_, Approval>;
}
