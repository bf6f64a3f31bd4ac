//! Who worked in a run, below whom, and what it took.

use std::collections::HashMap;

use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::store::{SessionRecord, Step, StepKind};
use baton_core::{SessionId, Usage};
use baton_engine::session_info::{SessionFailure, SessionInfo};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::run::{RunErrorView, StatusView};
use super::schema::moment;
use super::usage::UsageView;

/// One agent's part in a run, with those it involved.
#[derive(Debug, Serialize, ToSchema)]
pub struct SessionView {
    #[schema(value_type = String)]
    pub session_id: SessionId,
    pub agent: String,
    /// Where in the run it begins, such as `assistant/turn:1/tool:1/delegate:research`.
    pub path: String,
    pub status: StatusView,
    /// Why it was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub why: Option<String>,
    /// Why it gave no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<RunErrorView>,
    #[schema(schema_with = moment)]
    pub started_at: Timestamp,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment, required = false)]
    pub finished_at: Option<Timestamp>,
    /// Those of this session alone.
    pub calls: CallsView,
    /// What those calls took.
    pub own: UsageView,
    /// The same, including its sub-agents.
    pub subtree: UsageView,
    /// Those it involved, in the order in which they began.
    #[schema(no_recursion)]
    pub sessions: Vec<Self>,
}

/// How many calls there were, also of those that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, ToSchema)]
pub struct CallsView {
    pub models: u64,
    pub tools: u64,
    pub failed: u64,
}

/// The sessions of a run as a tree. Normally there is one root: the agent that was asked.
pub fn tree(sessions: Vec<SessionRecord>, steps: &[Step], rows: &[LedgerRow]) -> Vec<SessionView> {
    let mut calls: HashMap<&SessionId, CallsView> = HashMap::new();
    for row in rows {
        calls.entry(&row.session_id).or_default().count(row);
    }
    let begun = steps.iter().filter(|step| step.kind == StepKind::Session);
    let begun: HashMap<&SessionId, &Step> = begun.map(|step| (&step.session_id, step)).collect();
    let views = sessions.into_iter().map(|session| {
        let who = begun.get(&session.session_id).map(|step| SessionInfo::of(step, &session));
        let calls = calls.get(&session.session_id).copied().unwrap_or_default();
        (session.usage, SessionView::of(session, who, calls))
    });
    nest(views.collect())
}

/// Parents come before their children, so from the end on every session is whole when its parent takes it in.
fn nest(mut views: Vec<(Usage, SessionView)>) -> Vec<SessionView> {
    let places: HashMap<SessionId, usize> =
        views.iter().enumerate().map(|(at, (_, view))| (view.session_id.clone(), at)).collect();
    let mut roots = Vec::new();
    while let Some((total, mut view)) = views.pop() {
        view.subtree = total.into();
        view.sessions.sort_by_key(|child| child.started_at);
        let parent = view.session_id.parent().and_then(|parent| places.get(&parent));
        match parent.and_then(|at| views.get_mut(*at)) {
            Some((sum, parent)) => {
                *sum += total;
                parent.sessions.push(view);
            }
            None => roots.push(view),
        }
    }
    roots.reverse();
    roots
}

impl SessionView {
    fn of(session: SessionRecord, who: Option<SessionInfo>, calls: CallsView) -> Self {
        let (why, failure) = who.map_or((None, None), |who| (who.why, who.failure));
        let own: UsageView = session.usage.into();
        Self {
            session_id: session.session_id,
            agent: session.agent.to_string(),
            path: session.path,
            status: session.status.into(),
            why,
            error: failure.map(|SessionFailure { code, message }| RunErrorView { code, message }),
            started_at: session.started_at,
            finished_at: session.finished_at,
            calls,
            subtree: own.clone(),
            own,
            sessions: Vec::new(),
        }
    }
}

impl CallsView {
    fn count(&mut self, row: &LedgerRow) {
        match row.call {
            Called::Model { .. } => self.models += 1,
            Called::Tool { .. } => self.tools += 1,
        }
        self.failed += u64::from(row.outcome != CallOutcome::Ok);
    }
}
