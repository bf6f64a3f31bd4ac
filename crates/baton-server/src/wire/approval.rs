//! Decisions that wait for a person.

use baton_core::store::{
    Approval, ApprovalFilter, ApprovalKind, ApprovalQuery, ApprovalStatus, Order, RememberedDecision,
};
use baton_core::tool::Risk;
use baton_core::{AgentName, HandoffId, RunId, ThreadId, UserId};
use baton_engine::{DecisionInput, Verdict};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::page::Limit;
use super::schema::{moment, order, words};
use super::text::Remark;
use crate::strict::Checked;

/// Which approvals are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ApprovalParams {
    /// Only those; without it, all. `decided` is every status but `pending`.
    #[param(schema_with = words::<ApprovalFilter>)]
    pub status: Option<ApprovalFilter>,
    /// Only of this thread.
    #[param(value_type = Option<Uuid>)]
    pub thread_id: Option<ThreadId>,
    /// By `created_at`. `asc`: the oldest first. `desc`: the newest first. A cursor is valid in its own order only.
    #[param(schema_with = order)]
    pub order: Option<Order>,
    /// How many at most.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<Limit>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl ApprovalParams {
    pub fn query(&self, user: Option<&UserId>) -> ApprovalQuery {
        ApprovalQuery {
            status: self.status,
            user_id: user.cloned(),
            thread_id: self.thread_id,
            order: self.order.unwrap_or_default(),
        }
    }
}

/// A call or a question that waits, or waited, for a person.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalView {
    pub approval_id: Uuid,
    #[schema(value_type = Uuid)]
    pub thread_id: ThreadId,
    #[schema(value_type = Uuid)]
    pub run_id: RunId,
    /// `tool`: a call that needs approval. `question`: an agent asks something.
    #[schema(schema_with = words::<ApprovalKind>)]
    pub kind: ApprovalKind,
    /// Path of the call in the run, such as `assistant/turn:1/tool:1/call:worker/turn:1/tool:1`.
    pub path: String,
    /// The agent that asks.
    #[schema(value_type = String)]
    pub agent: AgentName,
    pub tool: String,
    /// As the agent wrote them.
    pub arguments: Value,
    /// SHA-256 of the tool and its arguments. Send it with the decision, and the decision holds for exactly this call.
    pub digest: String,
    #[schema(schema_with = words::<Risk>)]
    pub risk: Risk,
    pub preview: PreviewView,
    /// JSON Schema of the arguments, or of the answer to a question.
    pub schema: Value,
    /// Suggested answers to a question. Another text is accepted too if it satisfies `schema`.
    pub choices: Vec<String>,
    /// For a question of a workflow: the handoff by which its agent has the conversation. No run waits for the answer, which becomes
    /// the next message of the user.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>, nullable = false)]
    pub handoff_id: Option<HandoffId>,
    /// Who may decide.
    pub deciders: DecidersView,
    #[schema(schema_with = words::<ApprovalStatus>)]
    pub status: ApprovalStatus,
    #[schema(schema_with = moment)]
    pub created_at: Timestamp,
    /// Without a decision until then, the call is denied.
    #[schema(schema_with = moment)]
    pub expires_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub decided_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub decided_by: Option<UserId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
    /// The arguments that the call was approved with, if they were changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub edited: Option<Value>,
    /// The answer to a question.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub answer: Option<Value>,
    /// The run of the message that answered a workflow's question.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>, nullable = false)]
    pub answer_run_id: Option<RunId>,
    /// Whether the decision also holds for later calls of the tool in the thread.
    pub remember: bool,
}

/// A call in a few words.
#[derive(Debug, Serialize, ToSchema)]
pub struct PreviewView {
    pub heading: String,
    pub fields: Vec<PreviewFieldView>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct PreviewFieldView {
    pub label: String,
    /// At most 150 characters.
    pub value: String,
}

/// Who may decide: the user of the thread with this permission, and those with it who may read traces.
#[derive(Debug, Serialize, ToSchema)]
pub struct DecidersView {
    #[schema(value_type = String)]
    pub user_id: UserId,
    pub permission: &'static str,
}

/// A tool about which a decision is remembered for the thread.
#[derive(Debug, Serialize, ToSchema)]
pub struct RememberedView {
    pub tool: String,
    /// Whether calls of it run without asking; they are refused otherwise.
    pub approved: bool,
    /// The approval whose decision is remembered.
    pub approval_id: Uuid,
}

impl From<RememberedDecision> for RememberedView {
    fn from(known: RememberedDecision) -> Self {
        Self { tool: known.tool, approved: known.is_approved, approval_id: known.approval_id }
    }
}

/// The permission to decide.
pub const DECIDE: &str = "approval:decide";

impl From<Approval> for ApprovalView {
    fn from(approval: Approval) -> Self {
        let Approval { request, thread_id, run_id, user_id, outcome } = approval;
        let fields = request.preview.fields.into_iter();
        let fields = fields.map(|field| PreviewFieldView { label: field.label, value: field.value });
        Self {
            approval_id: request.approval_id,
            thread_id,
            run_id,
            kind: request.kind,
            path: request.path,
            agent: request.agent,
            tool: request.tool,
            arguments: request.arguments,
            digest: request.digest,
            risk: request.risk,
            preview: PreviewView { heading: request.preview.heading, fields: fields.collect() },
            schema: request.schema,
            choices: request.choices,
            handoff_id: request.handoff_id,
            deciders: DecidersView { user_id, permission: DECIDE },
            status: outcome.status,
            created_at: request.created_at,
            expires_at: request.expires_at,
            decided_at: outcome.decided_at,
            decided_by: outcome.decided_by,
            reason: outcome.reason,
            edited: outcome.edited,
            answer: outcome.answer,
            answer_run_id: outcome.answer_run_id,
            remember: outcome.remember,
        }
    }
}

/// A person's decision.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({ "decision": "approve", "reason": "checked with the owner" })))]
pub struct DecisionBody {
    pub decision: Decision,
    /// Why. Stored with the approval; the agent reads the reason of a denial.
    #[schema(value_type = Option<String>, nullable = false, max_length = 2000)]
    pub reason: Option<Remark>,
    /// With `approve`: the arguments to call the tool with instead. They must satisfy `schema`.
    #[schema(nullable = false)]
    pub arguments: Option<Value>,
    /// Whether the decision also holds for later calls of the tool in the thread.
    #[serde(default)]
    pub remember: bool,
    /// With `approve` of a question: its answer. It must satisfy `schema`.
    #[schema(nullable = false)]
    pub answer: Option<Value>,
    /// `digest` of what the person has seen. The decision is refused if the call is another one.
    #[schema(nullable = false)]
    pub digest: Option<String>,
}

impl Checked for DecisionBody {}

impl DecisionBody {
    pub fn input(self, trace_id: String) -> DecisionInput {
        DecisionInput {
            verdict: self.decision.into(),
            reason: self.reason.and_then(Remark::said),
            arguments: self.arguments,
            remember: self.remember,
            answer: self.answer,
            digest: self.digest,
            trace_id: Some(trace_id),
            ..DecisionInput::new(Verdict::Approve)
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Decision {
    Approve,
    Deny,
}

impl From<Decision> for Verdict {
    fn from(decision: Decision) -> Self {
        match decision {
            Decision::Approve => Self::Approve,
            Decision::Deny => Self::Deny,
        }
    }
}

/// What becomes of an interrupt, as AG-UI says it.
#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct ResumeEntry {
    /// The id of the approval.
    pub interrupt_id: Uuid,
    pub status: ResumeStatus,
    /// For a call: `{"approved": true}`, with `reason`, `arguments` and `remember` if wanted. For a question: its answer.
    #[schema(nullable = false)]
    pub payload: Option<Value>,
    /// Not used.
    #[schema(nullable = false)]
    pub metadata: Option<Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ResumeStatus {
    Resolved,
    /// The call is denied, or the question is not answered.
    Cancelled,
}

/// The payload of a resolved call.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallPayload {
    approved: Option<bool>,
    decision: Option<Decision>,
    reason: Option<Remark>,
    arguments: Option<Value>,
    #[serde(default)]
    remember: bool,
    digest: Option<String>,
}

impl ResumeEntry {
    /// The decision that the entry stands for. The error says what is wrong with the payload.
    pub fn decision(self, kind: ApprovalKind) -> Result<DecisionBody, String> {
        let mut body = DecisionBody {
            decision: Decision::Deny,
            reason: None,
            arguments: None,
            remember: false,
            answer: None,
            digest: None,
        };
        match (self.status, kind) {
            (ResumeStatus::Cancelled, _) => {}
            (ResumeStatus::Resolved, ApprovalKind::Question) => {
                body.decision = Decision::Approve;
                body.answer = self.payload;
            }
            (ResumeStatus::Resolved, ApprovalKind::Tool) => {
                let payload = self.payload.map(serde_json::from_value::<CallPayload>).transpose();
                let payload = payload.map_err(|error| error.to_string())?.unwrap_or_default();
                let said = payload.approved.map(|yes| if yes { Decision::Approve } else { Decision::Deny });
                body.decision = payload.decision.or(said).ok_or("`approved` is missing: true or false")?;
                body.reason = payload.reason;
                body.arguments = payload.arguments;
                body.remember = payload.remember;
                body.digest = payload.digest;
            }
        }
        Ok(body)
    }
}
