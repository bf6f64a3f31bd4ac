//! The walk: an agent and, recursively, whoever it involves.

use std::panic::resume_unwind;
use std::sync::Arc;

use baton_core::chat::ChatMessage;
use baton_core::event::{EventKind, Source};
use baton_core::message::{Part, Visibility};
use baton_core::store::work::SessionChange;
use baton_core::store::{NewEvent, RunStatus, StepKind, StepState};
use baton_core::{AgentName, MessageId, SessionId};
use futures_util::future::BoxFuture;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument as _;
use uuid::Uuid;

use crate::bounds::Edge;
use crate::failure::Failure;
use crate::journal::Record;
use crate::outcome::{Outcome, Recorded, RecordedEnd};
use crate::patterns::chain::Chain;
use crate::patterns::fence::Rendered;
use crate::patterns::{self, advisors, hops, router, team};
use crate::scope::Scope;
use crate::session::{self, Brief};

/// What an agent is to work on. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Input {
    /// What was said before, as far as it may be seen.
    pub(crate) history: Arc<Vec<ChatMessage>>,
    pub(crate) parts: Arc<Vec<Part>>,
    /// What the parts were made of, if others wrote some of it.
    pub(crate) rendered: Option<Arc<Rendered>>,
    /// What the answer to the person has to look like, if the caller said so.
    pub(crate) output_schema: Option<Arc<Value>>,
    pub(crate) sent: Option<Sent>,
}

/// Who sent an input to an agent, and why.
#[derive(Debug, Clone)]
pub(crate) struct Sent {
    pub(crate) by: AgentName,
    pub(crate) reason: Arc<str>,
}

impl Input {
    /// A text, without anything that was said before.
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { parts: Arc::new(vec![Part::text(text)]), ..Self::default() }
    }

    /// Its words, as an agent that reads only text would see them.
    pub(crate) fn words(&self) -> String {
        words(&self.parts)
    }
}

/// The text of a message, a line for each part.
pub(crate) fn words(parts: &[Part]) -> String {
    let words = parts.iter().filter_map(|part| match part {
        Part::Text { text } => Some(text.as_str()),
        _ => None,
    });
    words.collect::<Vec<_>>().join("\n")
}

/// Runs the scope's agent on `input` and whoever it involves: advisors, its session or its team, those it passes the baton to,
/// and last its own `handoff`. The answer is that of whoever had the baton last; if it is for the person, they have seen it.
pub(crate) fn run(scope: Scope, input: Input) -> BoxFuture<'static, Result<Outcome, Failure>> {
    if scope.is_root() {
        return Box::pin(walk(scope, input));
    }
    // A task of its own, because a stack is not as deep as agents are that involve agents. It ends with whoever waits for it.
    Box::pin(async move {
        match AbortOnDropHandle::new(tokio::spawn(walk(scope, input).in_current_span())).await {
            Ok(result) => result,
            Err(error) if error.is_panic() => resume_unwind(error.into_panic()),
            // The runtime is going down, and nobody will hear of it here.
            Err(_) => std::future::pending().await,
        }
    })
}

async fn walk(scope: Scope, input: Input) -> Result<Outcome, Failure> {
    let mut chain = Chain::new(&scope, &input);
    let mut outcome = chain.first().await?;
    // A loop, because chains may be long.
    while let Some(link) = chain.next(&outcome)? {
        outcome = link.follow().await?;
    }
    show(&scope, &mut outcome).await?;
    Ok(outcome)
}

/// One agent's part, written down when it begins and when it ends. One that ended before a crash is not played again.
pub(crate) async fn recorded(scope: &Scope, input: &Input) -> Result<Outcome, Failure> {
    if scope.is_root() {
        return play(scope, input).await;
    }
    if let Some(recorded) = scope.finished::<Recorded>()? {
        return recorded.result();
    }
    begin(scope, input).await?;
    let result = play(scope, input).await;
    finish(scope, input, &result).await?;
    result
}

async fn play(scope: &Scope, input: &Input) -> Result<Outcome, Failure> {
    if scope.cancel.is_cancelled() {
        return Err(Failure::Cancelled);
    }
    if scope.agent.kind.is_remote() {
        return Err(Failure::Unavailable(scope.name().clone()));
    }
    // What a stage of a chain says is not the answer, or not yet.
    let scope = &if scope.agent.handoff.is_empty() { scope.clone() } else { scope.internal() };
    // Whoever always hands on does not give the answer that the caller described.
    let output_schema = input.output_schema.clone().filter(|_| !scope.agent.always_hands_off());
    let input = &Input { output_schema, ..input.clone() };
    let told = advisors::consult(scope, input).await?;
    if let Some(team) = &scope.agent.team {
        return team::discuss(scope, team, input, &told).await;
    }
    if let Some(router) = &scope.agent.router {
        return router::route(scope, router, input, &told).await;
    }
    let brief = Brief::new(scope, &told, patterns::tools(scope, input));
    Ok(session::hold(scope, brief).await?.outcome(scope))
}

async fn begin(scope: &Scope, input: &Input) -> Result<(), Failure> {
    let sent = input.sent.as_ref();
    if scope.interrupted::<Value>()?.is_some() {
        return Ok(());
    }
    let (session_id, parent) = (scope.session_id.clone(), scope.parent_session());
    tracing::info!(
        thread_id = %scope.run.caller.thread_id, tenant_id = %scope.run.caller.tenant,
        parent = parent.as_ref().map_or("", SessionId::as_str), child = %session_id, agent = %scope.name(),
        hierarchy_level = session_id.level(), "sub_agent_spawned"
    );
    let why = sent.map(|sent| sent.reason.to_string());
    let passed = scope.bounds.edge.and_then(Edge::hop).zip(sent).map(|(by, sent)| {
        let (from, to, reason) = (sent.by.clone(), scope.name().clone(), sent.reason.to_string());
        scope.event_as(Visibility::Internal, EventKind::Passed { by, from, to, reason })
    });
    let begun = json!({ "why": why, "input": input.parts });
    let started = EventKind::SessionStarted { session_id, parent, why };
    let started = scope.event_as(scope.session_visibility(), started);
    let record = Record {
        steps: vec![scope.step(StepKind::Session, StepState::Started, &begun)?],
        events: passed.into_iter().chain([started]).collect(),
        sessions: vec![session_change(scope, RunStatus::Running)],
        ..Record::default()
    };
    scope.run.journal.keep_soon(record).await;
    Ok(())
}

/// Kept before anybody hears of it, so that it never happens again. What ends the whole run is not the end of this part.
async fn finish(scope: &Scope, input: &Input, result: &Result<Outcome, Failure>) -> Result<(), Failure> {
    let sent = input.sent.as_ref();
    let session_id = scope.session_id.clone();
    let (status, kind, end) = match result {
        Ok(outcome) => {
            let end = RecordedEnd::Outcome(Box::new(outcome.clone()));
            (RunStatus::Completed, EventKind::SessionFinished { session_id }, end)
        }
        Err(failure) if failure.ends_the_run(scope) => return Ok(()),
        Err(failure) => {
            let (code, message) = (failure.code().to_owned(), failure.to_string());
            let status =
                if matches!(failure, Failure::Cancelled) { RunStatus::Cancelled } else { RunStatus::Failed };
            let kind = EventKind::SessionFailed { session_id, code: code.clone(), message: message.clone() };
            (status, kind, RecordedEnd::Failure { code, message })
        }
    };
    tracing::info!(
        thread_id = %scope.run.caller.thread_id, child = %scope.session_id, agent = %scope.name(),
        success = result.is_ok(), error = result.as_ref().err().map(Failure::code),
        steps_taken = result.as_ref().map_or(0, |outcome| outcome.answer.turns), "sub_agent_ended"
    );
    let source = (result.is_ok() && !scope.is_for_the_person()).then(|| scope.name().clone());
    if let Some(agent) = source.clone() {
        scope.run.add_source(Source { agent, session_id: scope.session_id.clone() });
    }
    if let Some(sent) = sent {
        hops::remember(scope, sent, result).await?;
    }
    let why = sent.map(|sent| sent.reason.to_string());
    let recorded = Recorded { why, input: input.parts.to_vec(), source, end };
    let record = Record {
        steps: vec![scope.step(StepKind::Session, StepState::Finished, &recorded)?],
        events: vec![scope.event_as(scope.session_visibility(), kind)],
        sessions: vec![session_change(scope, status)],
        ..Record::default()
    };
    scope.run.journal.keep(record).await
}

fn session_change(scope: &Scope, status: RunStatus) -> SessionChange {
    let (session_id, agent) = (scope.session_id.clone(), scope.name().clone());
    SessionChange { session_id, agent, path: scope.path().to_owned(), status, at: Timestamp::now() }
}

/// Shows an answer that was held back until it was certain whose it is.
async fn show(scope: &Scope, outcome: &mut Outcome) -> Result<(), Failure> {
    if outcome.is_shown || !scope.is_for_the_person() {
        return Ok(());
    }
    outcome.is_shown = true;
    let place = scope.at("say");
    if place.is_finished() {
        return Ok(());
    }
    let speaker = scope.run.agents.get(&outcome.agent).unwrap_or(&scope.agent);
    let said = EventKind::TextFinished {
        message_id: MessageId::from_uuid(Uuid::now_v7()),
        speaker: speaker.display_name.clone(),
        text: outcome.answer.text.clone(),
    };
    let event = NewEvent { agent: outcome.agent.clone(), ..place.event_as(Visibility::User, said) };
    place.finish(StepKind::Say, &outcome.answer.text, vec![event], Vec::new()).await
}
