//! Finishes a handoff: the holder returns the thread, the user is notified, and the source agent continues. Read [`start_return`]
//! first, then [`finish_in_run`] (the holder returned in this run) and [`acknowledge_end`] (it ended otherwise).

use std::sync::Arc;

use baton_core::agent::{Agent, Return};
use baton_core::message::Part;
use baton_core::store::{HandoffEnd, HandoffSession, HandoffState, LastTopic, NotifiedParty};
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::bounds::InvocationKind;
use crate::engine_tool::{CallSite, EngineTool, SessionEnding, ToolOutcome};
use crate::failure::Failure;
use crate::fence::Fence;
use crate::guardrails;
use crate::handoff::start::HandoffOffer;
use crate::handoff::{conflict, holder_run, messages};
use crate::input::{BlockKind, PromptEnvelope};
use crate::input::{Input, InputSource};
use crate::intent::is_greeting;
use crate::invocation;
use crate::lease::{self, HandoffLease};
use crate::outcome::Answer;
use crate::outcome::Outcome;
use crate::redaction::{head, redact, tail};
use crate::routing::is_resumable;
use crate::run::{self, show};
use crate::scope::Scope;
use crate::workflow;

/// Maximum length of a result summary, in characters.
const MAX_SUMMARY_CHARS: usize = 2000;
const MAX_ARTIFACTS: usize = 50;
const COMPLETE_TOOL: &str = "complete_handoff";
const DECLINE_TOOL: &str = "decline_handoff";

/// Returns `complete_handoff` and `decline_handoff` for a holder; `complete_handoff` is absent if the agent never returns.
pub(crate) fn return_tools(scope: &Scope) -> Vec<Arc<dyn EngineTool>> {
    let Some(lease) = &scope.session.lease else { return Vec::new() };
    let never_returns =
        scope.agent().accepts_handoff.as_ref().is_some_and(|terms| terms.returns == Return::Never);
    let complete = (!never_returns).then(|| ReturnThread::completed(scope, lease));
    complete
        .into_iter()
        .chain([ReturnThread::declined(scope, lease)])
        .map(|tool| Arc::new(tool) as _)
        .collect()
}

/// Marks the handoff as returning, with its result. A second call in the same run does nothing. If the process dies before the
/// end is committed, the resumed run or [`lease::overdue_end`] completes it.
pub(crate) async fn start_return(
    scope: &Scope,
    lease: &HandoffLease,
    end: HandoffEnd,
    summary: &str,
    artifacts: &[String],
) {
    let run = scope.run.run_id;
    if lease.session().notes.ended_in == Some(run) {
        return;
    }
    let summary = head(&redact(scope.agent(), summary.trim()), MAX_SUMMARY_CHARS);
    let given_back = |handoff: &mut HandoffSession| {
        handoff.state = HandoffState::Returning;
        handoff.notes.end = Some(end);
        handoff.notes.ended_in = Some(run);
        handoff.result_summary = (!summary.is_empty()).then(|| summary.clone());
        handoff.artifacts_created = artifacts.iter().take(MAX_ARTIFACTS).cloned().collect();
    };
    lease::commit_change(&scope.run, lease, given_back).await;
}

/// Tool with which the holder returns the thread, as completed or as declined.
#[derive(Debug)]
struct ReturnThread {
    spec: ToolSpec,
    end: HandoffEnd,
    lease: Arc<HandoffLease>,
    /// The agent, if its workflow has to be done first: small models give up at once and call it a result.
    must_be_done: Option<Arc<Agent>>,
}

#[derive(Debug, Deserialize)]
struct ReturnArguments {
    #[serde(default, alias = "reason")]
    result_summary: String,
    #[serde(default)]
    artifacts: Vec<String>,
}

impl ReturnArguments {
    /// All that the holder writes to the source agent.
    fn text(&self) -> String {
        format!("{}\n{}", self.result_summary, self.artifacts.join("\n"))
    }
}

impl ReturnThread {
    fn completed(scope: &Scope, lease: &Arc<HandoffLease>) -> Self {
        let description = "Gives the conversation back because your work with the person is done. Call it once the person has what \
                           they came for. They are then informed that they are back with the agent that sent them.";
        let parameters = json!({
            "type": "object",
            "properties": {
                "result_summary": { "type": "string", "minLength": 1, "description": "The result, in one or two sentences." },
                "artifacts": { "type": "array", "items": { "type": "string" }, "description": "Names of what was made." },
            },
            "required": ["result_summary"],
            "additionalProperties": false,
        });
        Self::new(scope, lease, COMPLETE_TOOL, description, parameters, HandoffEnd::Completed)
    }

    fn declined(scope: &Scope, lease: &Arc<HandoffLease>) -> Self {
        let description = "Gives the conversation back without a result, because the request is not yours or cannot be done. What \
                           was collected so far is kept.";
        let parameters = json!({
            "type": "object",
            "properties": { "reason": { "type": "string", "minLength": 1, "description": "Why, in one sentence." } },
            "required": ["reason"],
            "additionalProperties": false,
        });
        Self::new(scope, lease, DECLINE_TOOL, description, parameters, HandoffEnd::Declined)
    }

    fn new(
        scope: &Scope,
        lease: &Arc<HandoffLease>,
        name: &str,
        description: &str,
        parameters: Value,
        end: HandoffEnd,
    ) -> Self {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: description.to_owned(),
            parameters,
            effect: Effect::Writes,
            risk: Risk::Low,
            timeout: scope.agent().limits.timeout,
        };
        let candidates = scope.models().candidates(scope.agent()).unwrap_or_default();
        let is_checked = candidates.first().is_some_and(|first| first.facts.assists.workflow_evidence);
        let must_be_done = is_checked && end == HandoffEnd::Completed && scope.agent().workflow.is_some();
        let must_be_done = must_be_done.then(|| Arc::clone(scope.agent()));
        Self { spec, end, lease: Arc::clone(lease), must_be_done }
    }

    fn is_too_early(&self) -> bool {
        let state = self.lease.workflow();
        let is_done =
            |agent: &Arc<Agent>| state.as_ref().is_some_and(|state| workflow::is_done(agent, state));
        self.must_be_done.as_ref().is_some_and(|agent| !is_done(agent))
    }
}

impl EngineTool for ReturnThread {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn ends_with(&self, _arguments: &Value) -> Option<String> {
        Some(self.spec.name.clone())
    }

    fn is_hidden(&self) -> bool {
        self.is_too_early()
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        Box::pin(async move {
            let Ok(parsed) = serde_json::from_value::<ReturnArguments>(arguments) else {
                return Ok(ToolOutcome::Refused(ToolError::InvalidArguments(
                    "state the result in one sentence".into(),
                )));
            };
            if self.is_too_early() {
                return Ok(ToolOutcome::Refused(ToolError::NotPermitted(
                    "your workflow is not done; go on with it, or call `decline_handoff` if the person does not want it".into(),
                )));
            }
            if let Some(refused) = guardrails::check_brief(&site.scope, &parsed.text()).await? {
                return Ok(refused);
            }
            start_return(&site.scope, &self.lease, self.end, &parsed.result_summary, &parsed.artifacts).await;
            let output = "The conversation returns to the agent that gave it to you.".to_owned();
            Ok(ToolOutcome::Ended { output, ending: SessionEnding::Returned })
        })
    }
}

/// Completes a return in the same run. In order: the holder's last answer is committed, the user is notified, and the source
/// agent answers, by model if there is a result to report and with a fixed sentence otherwise.
pub(crate) async fn finish_in_run(
    scope: &Scope,
    lease: &Arc<HandoffLease>,
    outcome: Outcome,
    input: Input,
) -> Result<Outcome, Failure> {
    holder_run::commit_answer(scope, &outcome).await?;
    return_thread(scope, lease).await?;
    let handoff = lease.session();
    if !handoff.notes.return_expected {
        holder_run::mark_announced(scope, lease, NotifiedParty::Agent).await;
        return Ok(outcome);
    }
    let source = scope.run.agents.get(&handoff.source_agent_id);
    let offer = conflict::paused_offer(scope, lease).await?;
    let spoken = match source {
        Some(source) if needs_model(scope, &handoff) => {
            match invocation::enter(scope, source, InvocationKind::Return).await {
                Ok(child) => {
                    let input = end_notice_input(scope, &handoff, offer.as_deref(), &input);
                    Some(run::run(child, input).await)
                }
                Err(_) => None,
            }
        }
        _ => None,
    };
    acknowledge(scope, lease, &handoff, offer.as_deref(), spoken).await
}

/// Completes a return within the tool call that started the handoff. The text is the result of that call; the caller continues.
pub(crate) async fn finish_in_call(scope: &Scope, lease: &Arc<HandoffLease>) -> Result<String, Failure> {
    return_thread(scope, lease).await?;
    holder_run::mark_announced(scope, lease, NotifiedParty::Agent).await;
    let handoff = lease.session();
    // The holder, or a tool that it ran, wrote the result.
    let fence = Fence::new();
    let note = fence.block("note", "The result:", &result_note(scope, &handoff));
    Ok(format!("The conversation is yours again.\n{}\n{note}", fence.material()))
}

/// Announces the return, ends the lease and announces the end, in this order.
pub(crate) async fn return_thread(scope: &Scope, lease: &Arc<HandoffLease>) -> Result<(), Failure> {
    messages::announce_returning(scope, &lease.session()).await?;
    if lease.session().state == HandoffState::Returning {
        let end = lease.session().notes.end.unwrap_or(HandoffEnd::Completed);
        lease::commit_end(&scope.run, lease, end).await;
    }
    messages::announce_ended(scope, &lease.session(), String::new()).await?;
    holder_run::mark_announced(scope, lease, NotifiedParty::Person).await;
    Ok(())
}

/// Announces the end of a handoff that its holder did not return in this run: it ended outside of a run, by an exit word, or by
/// a failure. The scope's agent holds the thread again and answers, unless its return is not expected: then there is no answer.
pub(crate) async fn acknowledge_end(
    scope: &Scope,
    lease: &Arc<HandoffLease>,
    input: Input,
) -> Result<Outcome, Failure> {
    let handoff = lease.session();
    messages::announce_ended(scope, &handoff, messages::returning_message(&scope.run.agents, &handoff))
        .await?;
    holder_run::mark_announced(scope, lease, NotifiedParty::Person).await;
    if !handoff.notes.return_expected {
        holder_run::mark_announced(scope, lease, NotifiedParty::Agent).await;
        return Ok(Outcome::nothing(scope.name()));
    }
    let is_its_own = scope.name() == &handoff.source_agent_id;
    let offer = conflict::paused_offer(scope, lease).await?;
    let spoken = if is_its_own && needs_model(scope, &handoff) {
        let input = end_notice_input(scope, &handoff, offer.as_deref(), &input);
        Some(run::run(scope.clone(), input).await)
    } else {
        None
    };
    acknowledge(scope, lease, &handoff, offer.as_deref(), spoken).await
}

/// Returns the source agent's answer or, if it gave none, a fixed sentence. `offer` asks whether to resume the handoff that was
/// paused for this one. Records that the agent knows of the end, and whether the answer contains the offer.
async fn acknowledge(
    scope: &Scope,
    lease: &Arc<HandoffLease>,
    handoff: &HandoffSession,
    offer: Option<&str>,
    spoken: Option<Result<Outcome, Failure>>,
) -> Result<Outcome, Failure> {
    let outcome = match spoken {
        Some(Ok(outcome)) => outcome,
        Some(Err(failure)) if failure.is_fatal(&scope.run.control.cancel) => return Err(failure),
        _ => {
            let text = messages::acknowledged_message(&scope.run.agents, handoff);
            let text = offer.map_or_else(|| text.clone(), |offer| format!("{text} {offer}"));
            show_answer(scope, fixed_answer(scope, lease, text)).await?
        }
    };
    holder_run::mark_announced(scope, lease, NotifiedParty::Agent).await;
    if offer.is_some_and(|offer| outcome.answer.text.contains(offer)) {
        lease::commit_change(&scope.run, lease, |handoff| handoff.notes.topic = LastTopic::Question).await;
    }
    Ok(outcome)
}

/// Whether the source agent answers with its model: the handoff has a result, and the agent is not driven by a workflow guide.
fn needs_model(scope: &Scope, handoff: &HandoffSession) -> bool {
    let has_result = matches!(handoff.notes.end, Some(HandoffEnd::Completed | HandoffEnd::Declined));
    let source = scope.run.agents.get(&handoff.source_agent_id);
    has_result && source.is_some_and(|source| scope.run.models.guide(source).is_none())
}

/// Builds the input with which the source agent acknowledges the end of the handoff.
fn end_notice_input(scope: &Scope, handoff: &HandoffSession, offer: Option<&str>, input: &Input) -> Input {
    let name = scope.run.agents.get(&handoff.target_agent_id).map(|target| target.display_name.as_str());
    let name = name.unwrap_or(handoff.target_agent_id.as_str());
    let instruction = format!(
        "The conversation is yours again: {name} had it, and the note has the result. The person has just been informed that they are \
         back with you. In one or two sentences, acknowledge the result by its name, and offer a natural next step. Do not repeat \
         the work, and do not pass the conversation on.{}",
        offer
            .map(|offer| format!(" Other work of the person is paused: end with the question \"{offer}\""))
            .unwrap_or_default()
    );
    let sent =
        Some(InputSource { by: handoff.target_agent_id.clone(), reason: "the handoff has ended".into() });
    let message = PromptEnvelope::of(input)
        .with(BlockKind::Note, &handoff.target_agent_id, result_note(scope, handoff))
        .with_instruction(instruction);
    let told = Input { history: Arc::clone(&input.history), sent, ..Input::default() };
    message.render(scope.run.policy.enrich_format, told)
}

/// Formats end, reason, result and artifacts of a handoff for a prompt, one per line.
pub(crate) fn result_note(scope: &Scope, handoff: &HandoffSession) -> String {
    let end = handoff.notes.end.map_or("ended", HandoffEnd::word);
    let mut lines = vec![format!("State: {end}"), format!("It was about: {}", handoff.handoff_reason)];
    lines.extend(handoff.result_summary.as_ref().map(|summary| format!("Result: {summary}")));
    if !handoff.artifacts_created.is_empty() {
        lines.push(format!("Made: {}", handoff.artifacts_created.join(", ")));
    }
    let target = scope.run.agents.get(&handoff.target_agent_id);
    if target.is_some_and(|target| is_resumable(target, handoff)) {
        lines.push(
            "It is not done, and what was collected is kept: the person can say \"continue\".".to_owned(),
        );
    }
    lines.join("\n")
}

/// Asks the user whether to resume an expired handoff. Returns `None` unless the message is a mere greeting, the handoff is
/// resumable, and its end has not been reported yet.
pub(crate) async fn welcome_back(
    scope: &Scope,
    lease: Option<&Arc<HandoffLease>>,
    input: &Input,
) -> Result<Option<Outcome>, Failure> {
    let Some(lease) = lease else { return Ok(None) };
    let handoff = lease.session();
    let target = scope.run.agents.get(&handoff.target_agent_id);
    let is_news =
        handoff.notes.end == Some(HandoffEnd::Expired) && handoff.notes.told != NotifiedParty::Agent;
    if !is_news
        || !target.is_some_and(|target| is_resumable(target, &handoff))
        || !is_greeting(&input.words())
    {
        return Ok(None);
    }
    messages::announce_ended(scope, &handoff, messages::returning_message(&scope.run.agents, &handoff))
        .await?;
    let sentence = messages::welcome_back_message(&scope.run.agents, &handoff);
    let outcome = show_answer(scope, fixed_answer(scope, lease, sentence)).await?;
    let asked = |handoff: &mut HandoffSession| {
        (handoff.notes.told, handoff.notes.topic) = (NotifiedParty::Agent, LastTopic::Question);
    };
    lease::commit_change(&scope.run, lease, asked).await;
    Ok(Some(outcome))
}

/// Adds a note about the ended handoff to the input, once. Returns `input` unchanged if the scope's agent knows of the end.
pub(crate) async fn with_end_notice(
    scope: &Scope,
    lease: Option<&Arc<HandoffLease>>,
    input: Input,
) -> Result<Input, Failure> {
    let Some(lease) = lease else { return Ok(input) };
    let handoff = lease.session();
    let place = scope.at("news");
    let is_known = handoff.notes.told == NotifiedParty::Agent && !place.step().is_finished();
    if is_known {
        // The user was asked whether to resume and has changed the subject.
        lease::commit_change(&scope.run, lease, |handoff| handoff.notes.topic = LastTopic::Other).await;
        return Ok(input);
    }
    let target = scope.run.agents.get(&handoff.target_agent_id);
    let is_expired = handoff.notes.end == Some(HandoffEnd::Expired);
    let is_offered = is_expired && target.is_some_and(|target| is_resumable(target, &handoff));
    let sentence = if is_offered {
        messages::welcome_back_message(&scope.run.agents, &handoff)
    } else {
        messages::returning_message(&scope.run.agents, &handoff)
    };
    if handoff.notes.told == NotifiedParty::Nobody {
        messages::announce_ended(scope, &handoff, sentence).await?;
    }
    if !place.step().is_finished() {
        place.step().finish(baton_core::store::StepKind::Note, &(), Vec::new(), Vec::new()).await?;
    }
    let topic = if is_offered { LastTopic::Question } else { LastTopic::Other };
    let told = |handoff: &mut HandoffSession| {
        (handoff.notes.told, handoff.notes.topic) = (NotifiedParty::Agent, topic);
    };
    lease::commit_change(&scope.run, lease, told).await;
    let message = PromptEnvelope::of(&input).with(
        BlockKind::Note,
        &handoff.target_agent_id,
        result_note(scope, &handoff),
    );
    let told = Input { parts: Arc::default(), rendered: None, ..input.clone() };
    Ok(message.render(scope.run.policy.enrich_format, told))
}

/// Builds the input of an agent that a trigger selected: the user's message, redacted and cut to `context_max_chars`.
pub(crate) fn trigger_input(scope: &Scope, input: &Input, offer: &HandoffOffer) -> Input {
    let giver = scope.agent();
    let sent = Some(InputSource { by: giver.name.clone(), reason: offer.reason.as_str().into() });
    let text = tail(&redact(giver, &input.words()), scope.run.policy.context_max_chars);
    Input {
        history: Arc::clone(&input.history),
        parts: Arc::new(vec![Part::text(text)]),
        sent,
        ..Input::default()
    }
}

/// Answer of the source agent with a fixed text, without a model turn.
pub(crate) fn fixed_answer(scope: &Scope, lease: &HandoffLease, text: String) -> Outcome {
    let source = lease.session().source_agent_id;
    let agent = if scope.run.agents.contains_key(&source) { source } else { scope.name().clone() };
    Outcome { answer: Answer::without_turn(text), agent, is_shown: false, dissent: Vec::new() }
}

async fn show_answer(scope: &Scope, mut outcome: Outcome) -> Result<Outcome, Failure> {
    // A path of its own, because the holder's answer may have been shown at the scope's own path.
    show(&scope.at("back"), &mut outcome).await?;
    Ok(outcome)
}
