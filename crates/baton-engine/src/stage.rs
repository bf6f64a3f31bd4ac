//! The records of one agent's stage in a run: its start and its end.

use baton_core::SessionId;
use baton_core::event::{EventKind, Source};
use baton_core::message::{Message, Visibility};
use baton_core::store::work::SessionChange;
use baton_core::store::{AuditEntry, HopKind, RunStatus, StepKind, StepState};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::audit;
use crate::failure::Failure;
use crate::hops;
use crate::input::{Input, InputSource};
use crate::journal::Record;
use crate::outcome::{Outcome, RecordedSession, RecordedSessionEnd};
use crate::patterns::calling::resume;
use crate::scope::Scope;

/// Records the start, unless an earlier attempt did.
pub(crate) async fn begin(scope: &Scope, input: &Input) -> Result<(), Failure> {
    let sent = input.sent.as_ref();
    if let Some(sent) = sent {
        hops::begin(scope, sent);
    }
    if scope.step().interrupted::<Value>()?.is_some() {
        announce_again(scope, sent.map(|sent| sent.reason.to_string())).await;
        return Ok(());
    }
    let (session_id, parent) = (scope.session.id.clone(), scope.session.id.parent());
    tracing::info!(
        thread_id = %scope.run.caller.thread_id, tenant_id = %scope.run.caller.tenant,
        parent = parent.as_ref().map_or("", SessionId::as_str), child = %session_id, specialist = %scope.name(),
        hierarchy_level = session_id.level(), "sub_agent_spawned"
    );
    let why = sent.map(|sent| sent.reason.to_string());
    let passed = hops::kind(scope).zip(sent).and_then(|(by, sent)| {
        log_start(scope, by, sent);
        let (from, to, reason) = (sent.by.clone(), scope.name().clone(), sent.reason.to_string());
        // A stage that always hands off says nothing to the user, and a hidden agent speaks for the giver.
        let is_mute = scope.agent().always_hands_off() || scope.agent().is_hidden();
        let heard_by = if is_mute { Visibility::Internal } else { scope.visibility() };
        let passed = EventKind::Passed { by, from, to, reason, heard_by };
        by.passes_baton().then(|| scope.event(Visibility::Internal, passed))
    });
    let begun = json!({ "why": why, "input": input.parts });
    let started = EventKind::SessionStarted { session_id, parent, why };
    let started = scope.event(session_visibility(scope), started);
    let record = Record {
        steps: vec![scope.step().build(StepKind::Session, StepState::Started, &begun)?],
        events: passed.into_iter().chain([started]).collect(),
        messages: draft_message(scope, input).into_iter().collect(),
        sessions: vec![session_change(scope, RunStatus::Running)],
        audit: sent
            .and_then(|sent| audit::involved(scope, &sent.by, audit::ALLOWED, None))
            .into_iter()
            .collect(),
        ..Record::default()
    };
    scope.run.recorder.journal.commit_soon(record).await;
    Ok(())
}

/// After the run has waited, its streams begin again, so the session is announced again.
async fn announce_again(scope: &Scope, why: Option<String>) {
    if scope.run.waits.is_resumed() {
        let (session_id, parent) = (scope.session.id.clone(), scope.session.id.parent());
        let started = EventKind::SessionStarted { session_id, parent, why };
        let events = vec![scope.event(session_visibility(scope), started)];
        scope.run.recorder.journal.commit_soon(Record { events, ..Record::default() }).await;
    }
}

/// Records the end before its events are published, so that the stage never runs again. A failure that ends the whole run is not
/// recorded as the end of the stage.
pub(crate) async fn finish(
    scope: &Scope,
    input: &Input,
    result: &Result<Outcome, Failure>,
) -> Result<(), Failure> {
    let session_id = scope.session.id.clone();
    let (status, kind, end) = match result {
        Ok(outcome) => {
            let end = RecordedSessionEnd::Outcome(Box::new(outcome.clone()));
            (RunStatus::Completed, EventKind::SessionFinished { session_id }, end)
        }
        Err(failure) if failure.is_fatal(&scope.run.control.cancel) => return Ok(()),
        Err(failure) => {
            let (code, message) = (failure.code().to_owned(), failure.to_string());
            let is_cancelled = matches!(failure, Failure::Cancelled);
            let status = if is_cancelled { RunStatus::Cancelled } else { RunStatus::Failed };
            (status, EventKind::SessionFailed { session_id, code, message }, RecordedSessionEnd::of(failure))
        }
    };
    log_end(scope, result);
    let is_source = result.is_ok() && !scope.is_user_facing() && !scope.agent().is_hidden();
    let source = is_source.then(|| scope.name().clone());
    if let Some(agent) = source.clone() {
        scope.run.progress.add_source(Source { agent, session_id: scope.session.id.clone() });
    }
    let why = input.sent.as_ref().map(|sent| sent.reason.to_string());
    let recorded = RecordedSession { why, input: input.parts.to_vec(), source, end };
    let record = Record {
        steps: vec![scope.step().build(StepKind::Session, StepState::Finished, &recorded)?],
        events: vec![scope.event(session_visibility(scope), kind)],
        messages: resume::call_message(scope.run.run_id, scope.agent(), input, result)
            .into_iter()
            .chain(internal_message(scope, result))
            .collect(),
        sessions: vec![session_change(scope, status)],
        audit: end_audit_entry(scope, input, result).into_iter().collect(),
        hops: input.sent.as_ref().and_then(|sent| hops::finish(scope, sent, result)).into_iter().collect(),
        ..Record::default()
    };
    scope.run.recorder.journal.commit_soon(record).await;
    Ok(())
}

/// The audit entry for the end of the stage.
fn end_audit_entry(scope: &Scope, input: &Input, result: &Result<Outcome, Failure>) -> Option<AuditEntry> {
    let code = result.as_ref().err().map(Failure::code);
    audit::involved(scope, &input.sent.as_ref()?.by, audit::decision(result), code)
}

/// An answer that is not for the user becomes an internal message of the thread. An answer that another agent gave belongs to
/// that agent.
fn internal_message(scope: &Scope, result: &Result<Outcome, Failure>) -> Option<Message> {
    let outcome = result.as_ref().ok()?;
    let is_behind = !scope.is_user_facing() && outcome.agent == *scope.name();
    is_behind.then(|| outcome.message(scope.run.run_id, Visibility::Internal))
}

/// The draft that is handed on to this stage, as an internal message: it is certain now that the user does not get it. A stage
/// that does not face the user has recorded it already.
fn draft_message(scope: &Scope, input: &Input) -> Option<Message> {
    let draft = input.draft.as_ref().filter(|_| scope.is_user_facing())?;
    Some(draft.message(scope.run.run_id, Visibility::Internal))
}

/// Logs a hop when it is recorded for the first time, so exactly once. A thread handoff is logged when it is opened.
fn log_start(scope: &Scope, by: HopKind, sent: &InputSource) {
    let caller = &scope.run.caller;
    if by == HopKind::Delegation {
        let sanitized = scope.run.agents.get(&sent.by).is_none_or(|giver| giver.sanitize);
        tracing::info!(
            thread_id = %caller.thread_id, source_agent = %sent.by, target_agent = %scope.name(),
            tenant_id = %caller.tenant, sanitized, "Delegation started"
        );
    } else if by.passes_baton() && by != HopKind::Handoff {
        tracing::info!(
            thread_id = %caller.thread_id, tenant_id = %caller.tenant, source_agent = %sent.by,
            target_agent = %scope.name(), handoff_reason = %sent.reason, %by, "Handoff initiated"
        );
    }
}

fn log_end(scope: &Scope, result: &Result<Outcome, Failure>) {
    tracing::info!(
        thread_id = %scope.run.caller.thread_id, child = %scope.session.id, agent = %scope.name(),
        success = result.is_ok(), error = result.as_ref().err().map(Failure::code),
        steps_taken = result.as_ref().map_or(0, |outcome| outcome.answer.turns), "sub_agent_ended"
    );
}

/// The visibility of the session's start and end: as the agent's file says, or else the operator. An agent that speaks to the user is
/// not shown as a sub-agent.
fn session_visibility(scope: &Scope) -> Visibility {
    let is_shown = scope.agent().visible.unwrap_or(scope.run.policy.stream_sub_agent_events);
    if is_shown && !scope.is_user_facing() { Visibility::User } else { Visibility::Internal }
}

fn session_change(scope: &Scope, status: RunStatus) -> SessionChange {
    let (session_id, agent) = (scope.session.id.clone(), scope.name().clone());
    SessionChange { session_id, agent, path: scope.path().to_owned(), status, at: Timestamp::now() }
}
