//! What happens to a handoff outside of a run. The change is kept at once; a small run of its own tells whoever listens.

use std::sync::Arc;

use baton_core::message::{Part, Role, Visibility};
use baton_core::store::{
    Cancel, HandoffEnd, HandoffNotes, HandoffSession, HandoffState, MessageQuery, NewHandoff, NewRun, OnBusy,
    RunRecord,
};
use baton_core::{AgentName, HandoffId, Rights, RunId, StoreError, TenantId, TenantStore, ThreadId};
use jiff::Timestamp;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::lease::{change_stored, ended, overdue};
use super::saying::is_exit;
use super::terms::{activate, activation, negotiate};
use super::way::is_resumable;
use super::{HandoffRequest, Leaving, OnConflict, ReturnStatus, Returned, Started, wording};
use crate::engine::{Engine, Overrides, RunRequest, Terms};
use crate::failure::Failure;
use crate::run::words;
use crate::task::{Change, Task};

const NOBODY: &str = "nobody has this thread by a handoff";

impl Engine {
    /// The handoff that is open on a thread. One whose time is over is ended first.
    pub async fn open_handoff(
        self: &Arc<Self>,
        tenant: &TenantId,
        thread: ThreadId,
    ) -> Result<Option<HandoffSession>, Failure> {
        let store = self.parts.store.tenant(tenant);
        let Some(handoff) = store.open_handoff_of(thread).await? else { return Ok(None) };
        let Some(end) = overdue(&self.agents(), &handoff, Timestamp::now()) else { return Ok(Some(handoff)) };
        if store.thread(thread, None).await?.active_run.is_some() {
            return Ok(Some(handoff));
        }
        match change_stored(&*store, handoff, |handoff| ended(handoff, end, None)).await {
            Ok(_) | Err(Failure::NoHandoff(_)) => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// Asks the target and, if it accepts, gives it the thread. Returns when it has it.
    pub async fn start_handoff(self: &Arc<Self>, request: HandoffRequest) -> Result<Started, Failure> {
        let agents = self.agents();
        let (tenant, thread) = (&request.caller.tenant, request.caller.thread_id);
        let target = agents.get(&request.target).ok_or_else(|| Failure::NoAgent(request.target.clone()))?;
        let store = self.parts.store.tenant(tenant);
        negotiate(self, target, &request.rights)?;
        if let Some(open) = self.open_handoff(tenant, thread).await? {
            return self.behind(&*store, open, &request).await;
        }
        // Read now: whoever's time was over has it no more.
        let known = store.thread(thread, None).await?;
        let source = request.source.clone().or(known.holder).filter(|name| *name != target.name);
        let source =
            source.filter(|name| agents.contains_key(name)).unwrap_or_else(|| request.fallback.clone());
        let facts = request.metadata.get("context").and_then(Value::as_object).cloned().unwrap_or_default();
        let new = self.new_handoff(&*store, &request, source).await?;
        // In one write: whoever dies here leaves nothing half done.
        let new = NewHandoff { activation: Some(activation(target, &facts)), ..new };
        let handoff = match store.open_handoff(new).await {
            Ok(handoff) => handoff,
            Err(StoreError::HandoffActive(id)) => {
                return self.behind(&*store, store.handoff(id).await?, &request).await;
            }
            Err(error) => return Err(error.into()),
        };
        let leaving = Leaving::from(&request);
        let run_id = self.announce(&leaving, target.name.clone(), &handoff, Change::Begun).await?;
        Ok(Started::Now { handoff: Box::new(handoff), run_id })
    }

    /// Somebody has the thread: refused with the sentence, or kept until they give it back.
    async fn behind(
        &self,
        store: &dyn TenantStore,
        open: HandoffSession,
        request: &HandoffRequest,
    ) -> Result<Started, Failure> {
        let agents = self.agents();
        let holder = agents.get(&open.target_agent_id);
        let sentence = holder.map_or_else(|| NOBODY.to_owned(), |holder| wording::occupied(holder));
        if request.on_conflict == OnConflict::Reject || open.next.is_some() {
            return Err(Failure::HandoffActive(sentence));
        }
        let next = serde_json::to_value(request).map_err(|error| StoreError::Failed(error.to_string()))?;
        let is_queued = store.queue_handoff(open.handoff_id, next).await?;
        if is_queued { Ok(Started::Queued) } else { Err(Failure::HandoffActive(sentence)) }
    }

    async fn new_handoff(
        &self,
        store: &dyn TenantStore,
        request: &HandoffRequest,
        source: AgentName,
    ) -> Result<NewHandoff, Failure> {
        let policy = &self.parts.policy;
        let thread = request.caller.thread_id;
        let said = store.messages(thread, MessageQuery::last(request.recent_messages)).await?;
        // What the person said last, not what they were answered.
        let asked = said.iter().rfind(|said| said.message.role == Role::User);
        let summary = match (request.context_summary.trim(), asked) {
            ("", Some(asked)) => words(&asked.message.parts),
            ("", None) => request.reason.clone(),
            (summary, _) => summary.to_owned(),
        };
        let summary = match self.agents().get(&source) {
            Some(giver) => crate::patterns::handover::shared(giver, &summary),
            None => summary,
        };
        let notes = HandoffNotes {
            return_expected: request.return_expected,
            preserve_state: request.preserve_state,
            since: said.last().map_or(0, |last| last.number) + 1,
            recent: request.recent_messages,
            ..HandoffNotes::default()
        };
        Ok(NewHandoff {
            handoff_id: HandoffId::from_uuid(Uuid::now_v7()),
            thread_id: thread,
            user_id: request.caller.user.clone(),
            source_agent_id: source,
            target_agent_id: request.target.clone(),
            context_summary: crate::patterns::handover::tail(&summary, policy.context_max_chars),
            handoff_reason: request.reason.clone(),
            metadata: request.metadata.clone(),
            notes,
            max_open: Some(policy.max_open_handoffs),
            activation: None,
        })
    }

    /// The person leaves. Works whatever the holder does: what it is at is ended. Returns the handoff as it is then.
    pub async fn exit_handoff(self: &Arc<Self>, leaving: Leaving) -> Result<HandoffSession, Failure> {
        let end = if leaving.is_administrator { HandoffEnd::Ended } else { HandoffEnd::Left };
        let handoff = self.end_handoff(&leaving, |handoff| ended(handoff, end, None)).await?;
        self.announce(&leaving, handoff.source_agent_id.clone(), &handoff, Change::Ended).await?;
        Ok(handoff)
    }

    /// The holder gives it back, from outside of a run.
    pub async fn return_handoff(
        self: &Arc<Self>,
        leaving: Leaving,
        returned: Returned,
    ) -> Result<HandoffSession, Failure> {
        let end = match returned.status {
            ReturnStatus::Completed => HandoffEnd::Completed,
            ReturnStatus::Cancelled => HandoffEnd::Declined,
            ReturnStatus::Error => HandoffEnd::Failed,
        };
        let change = |handoff: &mut HandoffSession| {
            ended(handoff, end, None);
            handoff.result_summary.clone_from(&returned.result_summary);
            handoff.artifacts_created.clone_from(&returned.artifacts_created);
        };
        let handoff = self.end_handoff(&leaving, change).await?;
        self.announce(&leaving, handoff.source_agent_id.clone(), &handoff, Change::Ended).await?;
        Ok(handoff)
    }

    /// Ends what is open, and whatever run is under way for it.
    async fn end_handoff(
        self: &Arc<Self>,
        leaving: &Leaving,
        change: impl Fn(&mut HandoffSession) + Send,
    ) -> Result<HandoffSession, Failure> {
        let (tenant, thread) = (&leaving.caller.tenant, leaving.caller.thread_id);
        let store = self.parts.store.tenant(tenant);
        let Some(open) = self.open_handoff(tenant, thread).await? else {
            return Err(Failure::NoHandoff(NOBODY));
        };
        let handoff = change_stored(&*store, open, change).await?;
        let active = match store.thread(thread, None).await?.active_run {
            Some(run) => Some(store.run(run).await?).filter(|run| is_under(&handoff, run)),
            None => None,
        };
        if let Some(run) = active.map(|run| run.run_id) {
            match self.cancel(tenant, run, Cancel::Abort).await {
                Ok(_) | Err(StoreError::NotFound(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(handoff)
    }

    /// Goes on with one that ended before it was done, exactly where it was. The run is the one in which its agent takes up the
    /// conversation.
    pub async fn resume_handoff(
        self: &Arc<Self>,
        leaving: Leaving,
        handoff: HandoffId,
    ) -> Result<(HandoffSession, RunId), Failure> {
        let agents = self.agents();
        let (tenant, thread) = (&leaving.caller.tenant, leaving.caller.thread_id);
        let store = self.parts.store.tenant(tenant);
        let kept = store.handoff(handoff).await?;
        if kept.thread_id != thread {
            return Err(StoreError::NotFound("handoff").into());
        }
        let target = agents.get(&kept.target_agent_id);
        let target = target.ok_or_else(|| Failure::NoAgent(kept.target_agent_id.clone()))?;
        if let Some(open) = self.open_handoff(tenant, thread).await? {
            let holder = agents.get(&open.target_agent_id).unwrap_or(target);
            return Err(Failure::HandoffActive(wording::occupied(holder)));
        }
        if !is_resumable(target, &kept) {
            return Err(Failure::NoHandoff(
                "it cannot be gone on with: it is done, or what was collected is gone",
            ));
        }
        negotiate(self, target, &leaving.rights)?;
        let handoff = change_stored(&*store, kept, |handoff| activate(handoff, target, &Map::new())).await?;
        let run = self.announce(&leaving, target.name.clone(), &handoff, Change::Resumed).await?;
        Ok((handoff, run))
    }

    /// A run in which whoever has the thread now takes it up.
    async fn announce(
        self: &Arc<Self>,
        leaving: &Leaving,
        agent: AgentName,
        handoff: &HandoffSession,
        change: Change,
    ) -> Result<RunId, Failure> {
        let agents = self.agents();
        let agent = if agents.contains_key(&agent) { agent } else { handoff.target_agent_id.clone() };
        // The thread stays its person's, whoever acts on it; and what somebody else may do is not theirs.
        let rights = if leaving.is_administrator { Rights::default() } else { leaving.rights.clone() };
        let caller = crate::engine::Caller { user: handoff.user_id.clone(), ..leaving.caller.clone() };
        let request = RunRequest {
            caller,
            agent,
            input: vec![Part::text(format!("The handoff to `{}` has {change}.", handoff.target_agent_id))],
            overrides: Overrides::default(),
            on_busy: OnBusy::Enqueue,
            entry: None,
            task: Task::Handoff { handoff_id: handoff.handoff_id, change },
            rights,
            trace: leaving.trace.clone(),
            metadata: None,
        };
        Ok(self.submit(request, Terms::default()).await?.run_id)
    }

    /// Somebody who leaves is not kept waiting for a holder that is busy: it loses the thread before the message is queued. Only
    /// words that could mean it cost a look.
    pub(crate) async fn leave_at_once(self: &Arc<Self>, request: &RunRequest) -> Result<(), Failure> {
        let said = words(&request.input);
        let agents = self.agents();
        let terms = || agents.values().filter_map(|agent| agent.accepts_handoff.as_ref());
        if !matches!(request.task, Task::Answer) || !terms().any(|terms| is_exit(&terms.exit_words, &said)) {
            return Ok(());
        }
        let (tenant, thread) = (&request.caller.tenant, request.caller.thread_id);
        let store = self.parts.store.tenant(tenant);
        let open = match store.thread(thread, Some(&request.caller.user)).await {
            Ok(thread) if thread.handoff.is_some() && thread.active_run.is_some() => {
                store.open_handoff_of(thread.thread_id).await?
            }
            _ => return Ok(()),
        };
        let target = open.as_ref().and_then(|open| agents.get(&open.target_agent_id));
        let terms = target.and_then(|target| target.accepts_handoff.as_ref());
        if terms.is_some_and(|terms| is_exit(&terms.exit_words, &said)) {
            let leaving = Leaving {
                caller: request.caller.clone(),
                is_administrator: false,
                rights: request.rights.clone(),
                trace: request.trace.clone(),
            };
            match self.end_handoff(&leaving, |handoff| ended(handoff, HandoffEnd::Left, None)).await {
                Ok(_) | Err(Failure::NoHandoff(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Refuses a message to a named agent while another agent holds the thread exclusively.
    pub(crate) async fn must_be_reachable(
        &self,
        store: &dyn TenantStore,
        open: HandoffId,
        run: &NewRun,
    ) -> Result<(), Failure> {
        let open = store.handoff(open).await?;
        if open.state != HandoffState::Active || open.target_agent_id == run.agent {
            return Ok(());
        }
        let agents = self.agents();
        let holder = agents.get(&open.target_agent_id);
        let is_exclusive =
            |agent: &baton_core::Agent| agent.accepts_handoff.as_ref().is_some_and(|terms| terms.exclusive);
        match holder {
            Some(holder) if is_exclusive(holder) => Err(Failure::HandoffActive(wording::occupied(holder))),
            _ => Ok(()),
        }
    }

    /// Starts what waited for the end of a handoff, if something did. It is forgotten once it has begun or cannot begin.
    pub(crate) async fn start_next(self: &Arc<Self>, store: &Arc<dyn TenantStore>, handoff: HandoffId) {
        let Ok(HandoffSession { state, next: Some(next), thread_id, .. }) = store.handoff(handoff).await
        else {
            return;
        };
        let Ok(request) = serde_json::from_value::<HandoffRequest>(next) else { return };
        if state.is_open() {
            return;
        }
        if let Err(failure) =
            self.start_handoff(HandoffRequest { on_conflict: OnConflict::Reject, ..request }).await
        {
            tracing::warn!(%thread_id, %failure, "a handoff that waited cannot begin");
        }
        if let Err(error) = store.unqueue_handoff(handoff).await {
            tracing::warn!(%thread_id, %error, "cannot forget a handoff that waited");
        }
    }

    /// Ends those of a tenant whose time is over, where nobody is at work.
    pub(crate) async fn end_expired(&self, store: &Arc<dyn TenantStore>) -> Result<(), StoreError> {
        for handoff in store.expired_handoffs(MessageQuery::DEFAULT_LIMIT * 10).await? {
            let ended = |handoff: &mut HandoffSession| ended(handoff, HandoffEnd::Expired, None);
            if let Err(failure) = change_stored(&**store, handoff, ended).await {
                tracing::warn!(%failure, "cannot end a handoff whose time is over");
            }
        }
        Ok(())
    }
}

/// Whether a run happens under a handoff: it is the holder's, or the one in which it got the thread.
fn is_under(handoff: &HandoffSession, run: &RunRecord) -> bool {
    let is_asked_for_others = !run.request["task"]["delegate"].is_null();
    let began_before = run.started_at.is_some_and(|started| started <= handoff.started_at);
    !is_asked_for_others && (run.agent == handoff.target_agent_id || began_before)
}

/// How a message that nobody said is kept.
pub(crate) fn unsaid() -> (Role, Visibility) {
    (Role::System, Visibility::Internal)
}

impl From<&HandoffRequest> for Leaving {
    fn from(request: &HandoffRequest) -> Self {
        Self {
            caller: request.caller.clone(),
            is_administrator: false,
            rights: request.rights.clone(),
            trace: request.trace.clone(),
        }
    }
}
