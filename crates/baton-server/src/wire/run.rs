//! Runs, as the API shows them.

use baton_core::event::{Dissent, Source};
use baton_core::store::{Cancel, RunQuery, RunRecord, RunStatus};
use baton_core::{AgentName, SessionId, ThreadId, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

use super::message::PartView;
use super::page::Limit;
use super::schema::{moment, words};
use super::session::SessionView;
use super::usage::UsageView;
use crate::strict::Checked;

/// Which runs are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct RunParams {
    /// Only of this thread.
    #[param(value_type = Option<Uuid>)]
    pub thread_id: Option<String>,
    /// Only of this user. Others than the caller are for those with `trace:read`.
    #[param(value_type = Option<String>, min_length = 1, max_length = 255)]
    pub user_id: Option<UserId>,
    /// Only those that this agent was asked in.
    #[param(value_type = Option<String>, pattern = "^[a-z0-9][a-z0-9_-]{0,63}$")]
    pub agent: Option<AgentName>,
    /// Only those that stand like this.
    #[param(schema_with = words::<RunStatus>)]
    pub status: Option<RunStatus>,
    /// Only those that were accepted at this moment or later.
    #[param(schema_with = moment)]
    pub since: Option<Timestamp>,
    /// How many at most.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<Limit>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

impl RunParams {
    pub fn query(&self, thread_id: Option<ThreadId>, user_id: Option<UserId>) -> RunQuery {
        let (agent, status, since) = (self.agent.clone(), self.status, self.since);
        RunQuery { thread_id, user_id, agent, status, since }
    }
}

/// The work for one message.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct RunView {
    #[schema(value_type = Uuid)]
    pub run_id: String,
    #[schema(value_type = Uuid)]
    pub thread_id: String,
    pub user_id: String,
    /// Who was asked.
    pub agent: String,
    pub status: StatusView,
    #[schema(schema_with = moment)]
    pub created_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub started_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub finished_at: Option<Timestamp>,
    /// Usage so far, including sub-agents.
    pub usage: UsageView,
    /// Whose answer it is, which may be another agent than the one that was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub answered_by: Option<String>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<RunErrorView>,
    /// The limit that made it end early.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub limit: Option<String>,
    /// Who contributed to the answer behind the scenes.
    pub sources: Vec<SourceView>,
}

/// Where a run stands. `waiting` is for a person or a remote agent; the last four are final.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StatusView {
    Queued,
    Running,
    Waiting,
    Completed,
    Failed,
    Cancelled,
    Interrupted,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct RunErrorView {
    /// Stable, for programs.
    pub code: String,
    pub message: String,
}

/// What one agent brought that was asked by another one, or by the caller of a delegation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SubAgentResult {
    pub agent_id: String,
    pub success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub response: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    /// The stable code of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error_type: Option<String>,
    pub latency_ms: u64,
    /// Where it was worked on. Absent if it never began, or if the response was there already.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub session_id: Option<SessionId>,
}

impl From<baton_core::SubAgentResult> for SubAgentResult {
    fn from(result: baton_core::SubAgentResult) -> Self {
        Self {
            agent_id: result.agent_id.to_string(),
            success: result.success,
            response: result.response,
            error: result.error,
            error_type: result.error_type,
            latency_ms: result.latency_ms,
            session_id: result.session_id,
        }
    }
}

/// A run with everything that happened in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunDetail {
    #[serde(flatten)]
    pub run: RunView,
    /// How often a process started it: more than once after a crash.
    pub attempts: u32,
    /// That it is to end early was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = words::<Cancel>, required = false)]
    pub cancel: Option<Cancel>,
    /// The answer to the person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub answer: Option<String>,
    /// The same as JSON, where a schema was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
    /// Members of a team that did not agree with it.
    pub dissent: Vec<DissentView>,
    /// The images and files of the answer, with their download addresses.
    pub files: Vec<PartView>,
    /// The results of the agents that were called, in the order of the calls.
    pub results: Vec<SubAgentResult>,
    /// Who worked in it, and below whom.
    pub sessions: Vec<SessionView>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct SourceView {
    #[schema(value_type = String)]
    pub agent: AgentName,
    #[schema(value_type = String)]
    pub session_id: SessionId,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DissentView {
    #[schema(value_type = String)]
    pub member: AgentName,
    pub reason: String,
}

impl From<Source> for SourceView {
    fn from(Source { agent, session_id }: Source) -> Self {
        Self { agent, session_id }
    }
}

impl RunDetail {
    pub fn of(mut run: RunRecord, results: Vec<SubAgentResult>, sessions: Vec<SessionView>) -> Self {
        let end = run.end.get_or_insert_default();
        let (answer, value) = (end.answer.take(), end.value.take());
        let dissent = std::mem::take(&mut end.dissent).into_iter();
        let files = std::mem::take(&mut end.files).iter().map(|file| file.to_part().into()).collect();
        Self {
            attempts: run.attempts,
            cancel: run.cancel.filter(|_| !run.status.is_final()),
            answer,
            value,
            dissent: dissent.map(|Dissent { member, reason }| DissentView { member, reason }).collect(),
            files,
            results,
            sessions,
            run: run.into(),
        }
    }
}

/// How a run is to end.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({ "mode": "stop" })))]
pub struct CancelBody {
    /// `stop` lets it say in one closing turn what it has; `abort` ends it at once.
    #[serde(default)]
    pub mode: CancelMode,
}

/// An optional body: `null` is the same as none.
#[derive(Debug, Default, Deserialize)]
#[serde(transparent)]
pub struct CancelWish(Option<CancelBody>);

impl CancelWish {
    pub fn how(self) -> Cancel {
        self.0.unwrap_or_default().mode.into()
    }
}

impl Checked for CancelWish {}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CancelMode {
    #[default]
    Stop,
    Abort,
}

impl From<CancelMode> for Cancel {
    fn from(mode: CancelMode) -> Self {
        match mode {
            CancelMode::Stop => Self::Stop,
            CancelMode::Abort => Self::Abort,
        }
    }
}

/// The status of a run that was asked to end. An active one is `running` until its process notices.
#[derive(Debug, Serialize, ToSchema)]
pub struct CancelledView {
    #[schema(value_type = Uuid)]
    pub run_id: String,
    pub status: StatusView,
}

impl From<RunStatus> for StatusView {
    fn from(status: RunStatus) -> Self {
        match status {
            RunStatus::Queued => Self::Queued,
            RunStatus::Running => Self::Running,
            RunStatus::Waiting => Self::Waiting,
            RunStatus::Completed => Self::Completed,
            RunStatus::Failed => Self::Failed,
            RunStatus::Cancelled => Self::Cancelled,
            RunStatus::Interrupted => Self::Interrupted,
        }
    }
}

impl From<RunRecord> for RunView {
    fn from(run: RunRecord) -> Self {
        let end = run.end.unwrap_or_default();
        let message = end.message;
        Self {
            run_id: run.run_id.to_string(),
            thread_id: run.thread_id.to_string(),
            user_id: run.user_id.to_string(),
            agent: run.agent.to_string(),
            status: run.status.into(),
            created_at: run.created_at,
            started_at: run.started_at,
            finished_at: run.finished_at,
            usage: run.usage.into(),
            answered_by: end.answered_by.map(|agent| agent.to_string()),
            error: end.code.map(|code| RunErrorView { code, message: message.unwrap_or_default() }),
            limit: end.limit,
            sources: end.sources.into_iter().map(Into::into).collect(),
        }
    }
}
