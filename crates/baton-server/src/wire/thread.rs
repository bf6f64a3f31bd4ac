//! Threads, as the API shows them.

use baton_core::store::{HandoffSession, HandoffState, Hop, Thread};
use baton_core::workflow::WorkflowProgress;
use baton_core::{AgentName, HandoffId, RunId, TenantId, ThreadId, UserId};
use baton_engine::Agents;
use baton_engine::handoff::{is_resumable, welcome_back_message};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::handoff::{HandoffView, called};
use super::hop::HopView;
use super::page::Limit;
use super::schema::{moment, words};
use super::text::ShortText;
use crate::strict::Checked;

/// Which threads are wanted.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ThreadParams {
    /// Only this user's. Others than the caller's own are for those with `trace:read`.
    #[param(value_type = Option<String>, min_length = 1, max_length = 255)]
    pub user_id: Option<UserId>,
    /// Only those whose title contains this text. Upper and lower case of ASCII letters are the same; of other letters they are
    /// the same on PostgreSQL and differ on SQLite.
    #[param(value_type = Option<String>, min_length = 1, max_length = 200)]
    pub q: Option<ShortText>,
    /// How many at most.
    #[param(value_type = Option<u32>, minimum = 1, maximum = 200, default = 50)]
    pub limit: Option<Limit>,
    /// `next_cursor` of the page before.
    pub cursor: Option<String>,
}

/// What a thread is called from now on.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({ "title": "Rate limits" })))]
pub struct RenameThread {
    /// 1 to 200 characters without control characters. Spaces around it are dropped.
    #[schema(value_type = String, min_length = 1, max_length = 200)]
    pub title: ShortText,
}

impl Checked for RenameThread {}

/// A conversation.
#[derive(Debug, Serialize, ToSchema)]
pub struct ThreadView {
    #[schema(value_type = Uuid)]
    pub thread_id: ThreadId,
    #[schema(value_type = String)]
    pub tenant_id: TenantId,
    #[schema(value_type = String)]
    pub user_id: UserId,
    /// The beginning of what was said first, or the name of the file that it began with, until it is renamed.
    pub title: String,
    #[schema(schema_with = moment)]
    pub created_at: Timestamp,
    #[schema(schema_with = moment)]
    pub updated_at: Timestamp,
    /// The agent that answers next: the holder, or the main agent. Absent if the message decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub current_active_agent: Option<AgentName>,
    /// Whether a handoff is active or pending.
    pub is_handoff_active: bool,
    /// How far that agent has come, if its work has steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub progress: Option<ProgressView>,
    /// All messages there are, also those that only those see who may read traces: it is the `number` of the last one.
    pub total_messages: u64,
    /// The number of the last event: `events?after=` goes on from here.
    pub last_seq: u64,
    /// The run that is being worked on.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>, nullable = false)]
    pub active_run_id: Option<RunId>,
    /// Runs that wait for their turn.
    pub queued: u64,
}

/// A conversation as it stands, and what can be done next in it.
#[derive(Debug, Serialize, ToSchema)]
pub struct ThreadContext {
    #[serde(flatten)]
    pub thread: ThreadView,
    /// Who has the thread by a handoff, or is about to.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub handoff_target_agent: Option<AgentName>,
    /// Handoffs that ended before they were done and can be taken up again, the newest first.
    pub resumable_handoffs: Vec<ResumableView>,
    /// Each time that one agent involved another, in the order in which they began: the newest 200. Callers without
    /// `trace:read` see handoffs only.
    pub handoff_chain: Vec<HopView>,
    pub state_metadata: StateMetadata,
}

/// State that is kept with the conversation.
#[derive(Debug, Serialize, ToSchema)]
pub struct StateMetadata {
    /// The handoff that is active or pending.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub handoff_session: Option<HandoffView>,
}

/// Where an agent stands in its workflow: step 2 of 5.
#[derive(Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ProgressView {
    /// As its file calls it.
    pub state: String,
    /// The same for people.
    pub label: String,
    /// From 1.
    pub step: u32,
    pub total: u32,
    /// Values that are known or were skipped. It never goes back.
    pub answered: u32,
    /// Values that the workflow collects in all, on the way that it takes by default.
    pub questions: u32,
    /// The agent's mode: `[Skill Creation Mode]`. Absent if people do not see the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub mode: Option<String>,
    /// The state and the values in one line: `Gathering requirements - 3/6 answers`. Without values, the states: `Planning - 1/5 steps`.
    pub text: String,
}

/// A handoff that can be taken up again.
#[derive(Debug, Serialize, ToSchema)]
pub struct ResumableView {
    #[schema(value_type = Uuid)]
    pub handoff_id: HandoffId,
    /// The conversation that it belongs to.
    #[schema(value_type = Uuid)]
    pub thread_id: ThreadId,
    #[schema(value_type = String)]
    pub agent: AgentName,
    /// What people call that agent.
    pub display_name: String,
    /// How it ended.
    #[schema(schema_with = words::<HandoffState>)]
    pub state: HandoffState,
    /// Why there was one.
    pub reason: String,
    #[schema(schema_with = moment)]
    pub started_at: Timestamp,
    #[schema(schema_with = moment)]
    pub updated_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub progress: Option<ProgressView>,
    /// What the person is asked when they come back.
    pub message: String,
}

impl ThreadView {
    /// `main` answers while there is no holder.
    pub fn of(tenant: &TenantId, thread: Thread, main: Option<&AgentName>) -> Self {
        Self {
            thread_id: thread.thread_id,
            tenant_id: tenant.clone(),
            user_id: thread.user_id,
            title: thread.title,
            created_at: thread.created_at,
            updated_at: thread.updated_at,
            current_active_agent: thread.holder.or_else(|| main.cloned()),
            is_handoff_active: thread.handoff.is_some(),
            progress: None,
            total_messages: thread.total_messages,
            last_seq: thread.last_seq,
            active_run_id: thread.active_run,
            queued: thread.queued,
        }
    }

    /// `open` was read after the thread, so it counts: the thread's handoff may have ended in between.
    #[must_use]
    pub fn with_handoff(self, open: Option<&HandoffSession>, agents: &Agents) -> Self {
        let progress = open.and_then(|handoff| ProgressView::of(handoff, agents));
        Self { is_handoff_active: open.is_some(), progress, ..self }
    }
}

impl ThreadContext {
    pub fn of(
        thread: ThreadView,
        open: Option<&HandoffSession>,
        resumable: Vec<HandoffSession>,
        hops: Vec<Hop>,
        agents: &Agents,
    ) -> Self {
        let session = open.map(|open| HandoffView::of(&thread.tenant_id, open.clone(), agents));
        Self {
            thread: thread.with_handoff(open, agents),
            handoff_target_agent: open.map(|handoff| handoff.target_agent_id.clone()),
            resumable_handoffs: ResumableView::all(resumable, agents),
            handoff_chain: HopView::chain(hops, open, Timestamp::now()),
            state_metadata: StateMetadata { handoff_session: session },
        }
    }
}

impl ProgressView {
    /// Nothing where the agent or the state is gone from the files.
    pub fn of(handoff: &HandoffSession, agents: &Agents) -> Option<Self> {
        let agent = agents.get(&handoff.target_agent_id)?;
        let progress = WorkflowProgress::of(agent, handoff.workflow.as_ref()?)?;
        let WorkflowProgress { state, label, step, total, answered, questions, mode, text } = progress;
        Some(Self { state, label, step, total, answered, questions, mode, text })
    }
}

impl ResumableView {
    /// Those of them that can really be gone on with.
    pub fn all(left: Vec<HandoffSession>, agents: &Agents) -> Vec<Self> {
        let can_go_on = |one: &HandoffSession| {
            agents.get(&one.target_agent_id).is_some_and(|agent| is_resumable(agent, one))
        };
        left.into_iter().filter(can_go_on).map(|one| Self::of(one, agents)).collect()
    }

    fn of(handoff: HandoffSession, agents: &Agents) -> Self {
        Self {
            handoff_id: handoff.handoff_id,
            thread_id: handoff.thread_id,
            display_name: called(&handoff.target_agent_id, agents),
            progress: ProgressView::of(&handoff, agents),
            message: welcome_back_message(agents, &handoff),
            agent: handoff.target_agent_id,
            state: handoff.state,
            reason: handoff.handoff_reason,
            started_at: handoff.started_at,
            updated_at: handoff.updated_at,
        }
    }
}
