//! Starts, ends and resumes handoffs outside of a run. Each operation stores the change first and then submits a run that
//! announces it to the subscribers of the thread.

use std::sync::Arc;

use baton_core::message::{Part, Role, Visibility};
use baton_core::store::{
    Cancel, HandoffEnd, HandoffNotes, HandoffOrigin, HandoffSession, HandoffState, Hop, HopKind, HopOutcome,
    MessageQuery, NewHandoff, NewRun, OnBusy, SecondRequest,
};
use baton_core::{AgentName, HandoffId, Rights, RunId, StoreError, TenantId, TenantStore, ThreadId, Usd};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::negotiation::{activate, negotiate, new_activation};
use super::parked::parked_runs;
use super::start::log_started;
use super::{
    ExitRequest, HandoffResult, HandoffStarted, OnConflict, ReturnStatus, StartHandoff, estimate, messages,
};
use crate::audit;
use crate::classifier;
use crate::engine::Engine;
use crate::failure::Failure;
use crate::input::text_of;
use crate::intent::is_exit;
use crate::lease::{change_stored, overdue_end, set_ended};
use crate::request::{Overrides, RunRequest, StoredRequest, SubmitOptions};
use crate::routing::is_resumable;
use crate::task::{HandoffTransition, RunTask};

/// Actions of the audit trail.
const REQUEST: &str = "handoff.request";
const EXIT: &str = "handoff.exit";
const NO_HANDOFF: &str = "no handoff is active on this thread";

impl Engine {
    /// Returns the open handoff of a thread. Ends an overdue one first, unless a run is active on the thread.
    pub async fn open_handoff(
        self: &Arc<Self>,
        tenant: &TenantId,
        thread: ThreadId,
    ) -> Result<Option<HandoffSession>, Failure> {
        let store = self.parts.store.tenant(tenant);
        let Some(handoff) = store.open_handoff_of(thread).await? else { return Ok(None) };
        let Some(end) = overdue_end(&self.agents(tenant), &handoff, Timestamp::now()) else {
            return Ok(Some(handoff));
        };
        if store.thread(thread, None).await?.active_run.is_some() {
            return Ok(Some(handoff));
        }
        match change_stored(&*store, handoff, |handoff| set_ended(handoff, end, None)).await {
            Ok(ended) => {
                self.release_remote(tenant, &ended);
                self.cancel_parked(tenant, &ended).await.map(|()| None)
            }
            Err(Failure::NoHandoff(_)) => Ok(store.open_handoff_of(thread).await?),
            Err(failure) => Err(failure),
        }
    }

    /// Negotiates with the target and gives it the thread. Returns once the lease is stored; the run in which the target greets
    /// the user is submitted, not awaited.
    pub async fn start_handoff(self: &Arc<Self>, request: StartHandoff) -> Result<HandoffStarted, Failure> {
        let (tenant, thread) = (&request.caller.tenant, request.caller.thread_id);
        let agents = self.agents(tenant);
        let target = agents.get(&request.target).ok_or_else(|| Failure::NoAgent(request.target.clone()))?;
        let store = self.parts.store.tenant(tenant);
        let negotiated = negotiate(self.models(tenant), target, &request.rights);
        if let Err(failure @ Failure::HandoffRejected { .. }) = &negotiated {
            self.record_declined(&*store, &request, failure).await?;
        }
        negotiated?;
        if let Some(open) = self.open_handoff(tenant, thread).await? {
            return self.behind(&*store, open, &request).await;
        }
        // Read after `open_handoff`, which changes the holder if it ends an expired handoff.
        let known = store.thread(thread, None).await?;
        let source = request.source.clone().or(known.holder).filter(|name| *name != target.name);
        let source =
            source.filter(|name| agents.contains_key(name)).unwrap_or_else(|| request.fallback.clone());
        let facts = request.metadata.get("context").and_then(Value::as_object).cloned().unwrap_or_default();
        let new = self.new_handoff(&*store, &request, source).await?;
        // Opened and activated in one write, so that a crash leaves no pending handoff.
        let new = NewHandoff { activation: Some(new_activation(target, &facts)), ..new };
        let new = Box::pin(self.offer_to_remote(&*store, target, new)).await?;
        let link = new.notes.remote.clone();
        let exit = ExitRequest::from(&request);
        let detail = json!({
            "handoff_id": new.handoff_id, "from": new.source_agent_id, "to": new.target_agent_id,
            "state": HandoffState::Active,
        });
        let audited = store.audited(audit::requested(&exit, REQUEST, detail));
        let handoff = match audited.open_handoff(new).await {
            Ok(handoff) => handoff,
            Err(error) => {
                self.release_link(target, link.as_deref());
                let StoreError::HandoffActive(id) = error else { return Err(error.into()) };
                return self.behind(&*store, store.handoff(id).await?, &request).await;
            }
        };
        log_started(tenant, &handoff);
        let run_id = self.announce(&exit, target.name.clone(), &handoff, HandoffTransition::Begun).await?;
        Ok(HandoffStarted::Now { handoff: Box::new(handoff), run_id })
    }

    /// Records the hop of a handoff that its target does not accept.
    async fn record_declined(
        &self,
        store: &dyn TenantStore,
        request: &StartHandoff,
        failure: &Failure,
    ) -> Result<(), Failure> {
        let agents = self.agents(store.tenant());
        let hop = Hop {
            hop_id: Uuid::now_v7(),
            thread_id: request.caller.thread_id,
            run_id: None,
            kind: HopKind::Handoff,
            from: request.source.clone().unwrap_or_else(|| request.fallback.clone()),
            to: request.target.clone(),
            reason: failure.to_string(),
            query_class: classifier::domain(&agents, &request.context_summary),
            outcome: HopOutcome::Declined,
            latency_ms: 0,
            cost: Usd::from_nanos(0),
            at: Timestamp::now(),
            request: classifier::fingerprint(&request.context_summary),
        };
        match store.record_hop(hop).await {
            // There is no conversation yet, so there is nothing to record it in.
            Err(StoreError::ThreadNotFound) => Ok(()),
            recorded => Ok(recorded?),
        }
    }

    /// Rejects or queues a request while a handoff is open, as `on_conflict` says. At most one request is queued per handoff;
    /// further ones are rejected.
    async fn behind(
        &self,
        store: &dyn TenantStore,
        open: HandoffSession,
        request: &StartHandoff,
    ) -> Result<HandoffStarted, Failure> {
        let agents = self.agents(store.tenant());
        let holder = agents.get(&open.target_agent_id);
        let sentence = match holder {
            Some(holder) => messages::occupied_message(holder),
            None => format!("a handoff to `{}` is active on this thread", open.target_agent_id),
        };
        let has_queued =
            open.next.is_some() || open.notes.second.as_ref().is_some_and(SecondRequest::is_queued);
        if request.on_conflict == OnConflict::Reject || has_queued {
            return Err(Failure::HandoffActive(sentence));
        }
        let next = serde_json::to_value(request).map_err(|error| StoreError::Failed(error.to_string()))?;
        let detail = json!({ "to": request.target, "state": "queued" });
        let store = store.audited(audit::requested(&ExitRequest::from(request), REQUEST, detail));
        let is_queued = store.queue_handoff(open.handoff_id, next).await?;
        if is_queued { Ok(HandoffStarted::Queued) } else { Err(Failure::HandoffActive(sentence)) }
    }

    async fn new_handoff(
        &self,
        store: &dyn TenantStore,
        request: &StartHandoff,
        source: AgentName,
    ) -> Result<NewHandoff, Failure> {
        let policy = self.policy(store.tenant());
        let thread = request.caller.thread_id;
        let messages = store.messages(thread, MessageQuery::last(request.recent_messages)).await?;
        // Defaults to the user's last message, not the last answer.
        let asked = messages.iter().rfind(|message| message.message.role == Role::User);
        let summary = match (request.context_summary.trim(), asked) {
            ("", Some(asked)) => text_of(&asked.message.parts),
            ("", None) => request.reason.clone(),
            (summary, _) => summary.to_owned(),
        };
        let summary = match self.agents(store.tenant()).get(&source) {
            Some(giver) => crate::redaction::redact(giver, &summary),
            None => summary,
        };
        let notes = HandoffNotes {
            return_expected: request.return_expected,
            preserve_state: request.preserve_state,
            since: messages.last().map_or(0, |last| last.number) + 1,
            recent: request.recent_messages,
            estimated_seconds: estimate::estimate(store, &request.target).await,
            origin: Some(Box::new(HandoffOrigin {
                opened_in: None,
                query_class: classifier::domain(&self.agents(store.tenant()), &summary),
                request: classifier::fingerprint(&summary),
            })),
            ..HandoffNotes::default()
        };
        Ok(NewHandoff {
            handoff_id: HandoffId::from_uuid(Uuid::now_v7()),
            thread_id: thread,
            user_id: request.caller.user.clone(),
            source_agent_id: source,
            target_agent_id: request.target.clone(),
            context_summary: crate::redaction::tail(&summary, policy.context_max_chars),
            handoff_reason: request.reason.clone(),
            metadata: request.metadata.clone(),
            notes,
            max_open: Some(policy.max_open_handoffs),
            activation: None,
        })
    }

    /// Ends the open handoff for the user or an administrator and returns it. Cancels the holder's active run, so it does not
    /// wait for the holder.
    pub async fn exit_handoff(self: &Arc<Self>, exit: ExitRequest) -> Result<HandoffSession, Failure> {
        let end = if exit.is_administrator { HandoffEnd::Ended } else { HandoffEnd::Left };
        let handoff = self.end_handoff(&exit, EXIT, |handoff| set_ended(handoff, end, None)).await?;
        self.announce(&exit, handoff.source_agent_id.clone(), &handoff, HandoffTransition::Ended).await?;
        Ok(handoff)
    }

    /// Ends the open handoff with the holder's result, from outside of a run.
    pub async fn return_handoff(
        self: &Arc<Self>,
        exit: ExitRequest,
        returned: HandoffResult,
    ) -> Result<HandoffSession, Failure> {
        let end = match returned.status {
            ReturnStatus::Completed => HandoffEnd::Completed,
            ReturnStatus::Cancelled => HandoffEnd::Declined,
            ReturnStatus::Error => HandoffEnd::Failed,
        };
        let change = |handoff: &mut HandoffSession| {
            set_ended(handoff, end, None);
            handoff.result_summary.clone_from(&returned.result_summary);
            handoff.artifacts_created.clone_from(&returned.artifacts_created);
        };
        let handoff = self.end_handoff(&exit, "handoff.return", change).await?;
        self.announce(&exit, handoff.source_agent_id.clone(), &handoff, HandoffTransition::Ended).await?;
        Ok(handoff)
    }

    /// Stores the end of the open handoff and aborts its runs: the active one, if it belongs to the handoff, and those that wait for
    /// a person.
    async fn end_handoff(
        self: &Arc<Self>,
        exit: &ExitRequest,
        action: &str,
        change: impl Fn(&mut HandoffSession) + Send,
    ) -> Result<HandoffSession, Failure> {
        let (tenant, thread) = (&exit.caller.tenant, exit.caller.thread_id);
        let store = self.parts.store.tenant(tenant);
        let Some(open) = self.open_handoff(tenant, thread).await? else {
            return Err(Failure::NoHandoff(NO_HANDOFF));
        };
        let handoff = change_audited(&*store, exit, action, open, change).await?;
        self.release_remote(tenant, &handoff);
        let mut runs = Vec::new();
        if let Some(run) = store.thread(thread, None).await?.active_run
            && is_run_of(&*store, &handoff, run).await?
        {
            runs.push(run);
        }
        for run in runs {
            self.abort(tenant, run).await?;
        }
        // After the active run, which may park meanwhile.
        self.cancel_parked(tenant, &handoff).await?;
        Ok(handoff)
    }

    async fn abort(self: &Arc<Self>, tenant: &TenantId, run: RunId) -> Result<(), Failure> {
        match self.cancel(tenant, run, Cancel::Abort).await {
            Ok(_) | Err(StoreError::NotFound(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    /// Ends the runs of an ended handoff that wait for a person.
    async fn cancel_parked(
        self: &Arc<Self>,
        tenant: &TenantId,
        handoff: &HandoffSession,
    ) -> Result<(), Failure> {
        for run in parked_runs(&*self.parts.store.tenant(tenant), handoff).await? {
            self.abort(tenant, run).await?;
        }
        Ok(())
    }

    /// Reactivates an ended, unfinished handoff with its saved state. Returns the run in which its agent continues the
    /// conversation.
    pub async fn resume_handoff(
        self: &Arc<Self>,
        exit: ExitRequest,
        handoff: HandoffId,
    ) -> Result<(HandoffSession, RunId), Failure> {
        let (tenant, thread) = (&exit.caller.tenant, exit.caller.thread_id);
        let agents = self.agents(tenant);
        let store = self.parts.store.tenant(tenant);
        let kept = store.handoff(handoff).await?;
        if kept.thread_id != thread {
            return Err(StoreError::NotFound("handoff").into());
        }
        let target = agents.get(&kept.target_agent_id);
        let target = target.ok_or_else(|| Failure::NoAgent(kept.target_agent_id.clone()))?;
        if let Some(open) = self.open_handoff(tenant, thread).await? {
            let holder = agents.get(&open.target_agent_id).unwrap_or(target);
            return Err(Failure::HandoffActive(messages::occupied_message(holder)));
        }
        if !is_resumable(target, &kept) {
            return Err(Failure::NoHandoff(
                "it cannot be gone on with: it is done, or what was collected is gone",
            ));
        }
        negotiate(self.models(tenant), target, &exit.rights)?;
        let change = |handoff: &mut HandoffSession| activate(handoff, target, &Map::new());
        let handoff = change_audited(&*store, &exit, "handoff.resume", kept, change).await?;
        let run = self.announce(&exit, target.name.clone(), &handoff, HandoffTransition::Resumed).await?;
        Ok((handoff, run))
    }

    /// Submits the run that announces `change`, answered by `agent`.
    async fn announce(
        self: &Arc<Self>,
        exit: &ExitRequest,
        agent: AgentName,
        handoff: &HandoffSession,
        change: HandoffTransition,
    ) -> Result<RunId, Failure> {
        let agents = self.agents(&exit.caller.tenant);
        let agent = if agents.contains_key(&agent) { agent } else { handoff.target_agent_id.clone() };
        // The run belongs to the thread's owner. An administrator's rights must not extend to that run.
        let rights = if exit.is_administrator { Rights::default() } else { exit.rights.clone() };
        let caller = crate::request::RunCaller { user: handoff.user_id.clone(), ..exit.caller.clone() };
        let request = RunRequest {
            caller,
            agent,
            input: vec![Part::text(format!("The handoff to `{}` has {change}.", handoff.target_agent_id))],
            overrides: Overrides::default(),
            on_busy: OnBusy::Enqueue,
            entry: None,
            task: RunTask::Handoff { handoff_id: handoff.handoff_id, change },
            rights,
            trace: exit.trace.clone(),
            metadata: None,
        };
        Ok(self.submit(request, SubmitOptions::default()).await?.run_id)
    }

    /// Ends the handoff before the message is queued if the message is an exit word, so that the user does not wait for a busy
    /// holder, nor answers one that waits. Reads the store only if the text is an exit word of some agent.
    pub(crate) async fn leave_at_once(self: &Arc<Self>, request: &RunRequest) -> Result<(), Failure> {
        let text = text_of(&request.input);
        let agents = self.agents(&request.caller.tenant);
        let terms = || agents.values().filter_map(|agent| agent.accepts_handoff.as_ref());
        if !matches!(request.task, RunTask::Answer) || !terms().any(|terms| is_exit(&terms.exit_words, &text))
        {
            return Ok(());
        }
        let (tenant, thread) = (&request.caller.tenant, request.caller.thread_id);
        let store = self.parts.store.tenant(tenant);
        let open = match store.thread(thread, Some(&request.caller.user)).await {
            Ok(thread)
                if thread.handoff.is_some()
                    && (thread.active_run.is_some() || has_parked_run(&*store, thread.thread_id).await?) =>
            {
                store.open_handoff_of(thread.thread_id).await?
            }
            _ => return Ok(()),
        };
        let target = open.as_ref().and_then(|open| agents.get(&open.target_agent_id));
        let terms = target.and_then(|target| target.accepts_handoff.as_ref());
        if terms.is_some_and(|terms| is_exit(&terms.exit_words, &text)) {
            let exit = ExitRequest {
                caller: request.caller.clone(),
                is_administrator: false,
                rights: request.rights.clone(),
                trace: request.trace.clone(),
                address: None,
            };
            // Boxed: the future is large and rarely needed, and this function is part of every submission.
            let exit = self.end_handoff(&exit, EXIT, |handoff| set_ended(handoff, HandoffEnd::Left, None));
            match Box::pin(exit).await {
                Ok(_) | Err(Failure::NoHandoff(_)) => {}
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Rejects a message to a named agent while another agent holds the thread exclusively.
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
        let agents = self.agents(store.tenant());
        let holder = agents.get(&open.target_agent_id);
        let is_exclusive =
            |agent: &baton_core::Agent| agent.accepts_handoff.as_ref().is_some_and(|terms| terms.exclusive);
        match holder {
            Some(holder) if is_exclusive(holder) => {
                Err(Failure::HandoffActive(messages::occupied_message(holder)))
            }
            _ => Ok(()),
        }
    }

    /// Starts the handoff that is queued behind `handoff`, if any. The request is removed afterwards, whether or not it could
    /// start.
    pub(crate) async fn start_next(self: &Arc<Self>, store: &Arc<dyn TenantStore>, handoff: HandoffId) {
        let Ok(HandoffSession { state, next: Some(next), thread_id, .. }) = store.handoff(handoff).await
        else {
            return;
        };
        let Ok(request) = serde_json::from_value::<StartHandoff>(next) else { return };
        if state.is_open() {
            return;
        }
        // If the user has started another handoff meanwhile, the request waits behind that one.
        if let Err(failure) = self.start_handoff(request).await {
            tracing::warn!(%thread_id, %failure, "a handoff that waited cannot begin");
        }
        if let Err(error) = store.unqueue_handoff(handoff).await {
            tracing::warn!(%thread_id, %error, "cannot forget a handoff that waited");
        }
    }

    /// Ends the expired handoffs of a tenant on whose threads no run is active, and their runs that wait for a person. Failures are
    /// logged.
    pub(crate) async fn end_expired(
        self: &Arc<Self>,
        store: &Arc<dyn TenantStore>,
    ) -> Result<(), StoreError> {
        for handoff in store.expired_handoffs(MessageQuery::DEFAULT_LIMIT * 10).await? {
            let ended = |handoff: &mut HandoffSession| set_ended(handoff, HandoffEnd::Expired, None);
            let ended = match change_stored(&**store, handoff, ended).await {
                Ok(ended) => {
                    self.release_remote(store.tenant(), &ended);
                    self.cancel_parked(store.tenant(), &ended).await
                }
                Err(failure) => Err(failure),
            };
            if let Err(failure) = ended {
                tracing::warn!(%failure, "cannot end a handoff whose time is over");
            }
        }
        Ok(())
    }
}

/// Whether an active run belongs to a handoff: the holder answers it, or it is the run that opened the handoff. A run whose route
/// is not stored yet belongs to the holder too, unless its message names another agent.
async fn is_run_of(
    store: &dyn TenantStore,
    handoff: &HandoffSession,
    run: RunId,
) -> Result<bool, StoreError> {
    let run = store.run(run).await?;
    if !run.request["task"]["delegate"].is_null() {
        return Ok(false);
    }
    let began_before = run.started_at.is_some_and(|started| started <= handoff.started_at);
    if run.agent == handoff.target_agent_id || began_before {
        return Ok(true);
    }
    Ok(!StoredRequest::names_agent(&run.request) && store.steps(run.run_id).await?.is_empty())
}

/// Whether a run of the thread may wait for a person.
async fn has_parked_run(store: &dyn TenantStore, thread: ThreadId) -> Result<bool, StoreError> {
    let open = store.open_approvals(thread).await?;
    Ok(open.iter().any(|one| !one.request.is_workflow_question()))
}

/// Role and visibility of an input message that the engine wrote, not the user.
pub(crate) fn unsaid() -> (Role, Visibility) {
    (Role::System, Visibility::Internal)
}

impl From<&StartHandoff> for ExitRequest {
    fn from(request: &StartHandoff) -> Self {
        Self {
            caller: request.caller.clone(),
            is_administrator: false,
            rights: request.rights.clone(),
            trace: request.trace.clone(),
            address: request.address.clone(),
        }
    }
}

/// Changes a handoff for a caller, with the audit entry in the same write.
async fn change_audited(
    store: &dyn TenantStore,
    exit: &ExitRequest,
    action: &str,
    known: HandoffSession,
    change: impl Fn(&mut HandoffSession) + Send,
) -> Result<HandoffSession, Failure> {
    let mut changed = known.clone();
    change(&mut changed);
    let detail = json!({
        "handoff_id": changed.handoff_id, "from": changed.source_agent_id, "to": changed.target_agent_id,
        "state": changed.state,
    });
    change_stored(&*store.audited(audit::requested(exit, action, detail)), known, change).await
}

impl Engine {
    /// Discards the saved state of an ended handoff, so that it cannot be resumed. Idempotent. Fails with
    /// [`Failure::HandoffActive`] while the handoff is open.
    pub async fn discard_handoff(
        self: &Arc<Self>,
        exit: &ExitRequest,
        handoff: HandoffId,
    ) -> Result<HandoffSession, Failure> {
        let (tenant, thread) = (&exit.caller.tenant, exit.caller.thread_id);
        // Ends the handoff first if it is overdue.
        self.open_handoff(tenant, thread).await?;
        let store = self.parts.store.tenant(tenant);
        let kept = store.handoff(handoff).await?;
        if kept.thread_id != thread {
            return Err(StoreError::NotFound("handoff").into());
        }
        self.must_have_ended(tenant, &kept)?;
        if !has_state(&kept) {
            return Ok(kept);
        }
        let discarded = change_audited(&*store, exit, "handoff.discard", kept, discard).await?;
        // It can be resumed between the read and the write.
        self.must_have_ended(tenant, &discarded)?;
        Ok(discarded)
    }

    fn must_have_ended(&self, tenant: &TenantId, handoff: &HandoffSession) -> Result<(), Failure> {
        if !handoff.state.is_open() {
            return Ok(());
        }
        let agents = self.all_agents_of(tenant);
        let holder = agents.get(&handoff.target_agent_id);
        let sentence =
            holder.map_or_else(|| "the handoff is active".to_owned(), |one| messages::occupied_message(one));
        Err(Failure::HandoffActive(sentence))
    }
}

fn has_state(handoff: &HandoffSession) -> bool {
    handoff.workflow.is_some() || handoff.notes.preserve_state
}

fn discard(handoff: &mut HandoffSession) {
    if !handoff.state.is_open() {
        handoff.workflow = None;
        handoff.notes.preserve_state = false;
    }
}
