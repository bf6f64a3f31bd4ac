//! Applies the guardrails of agents: to what they get, to what they answer, and to what they write to an agent that takes over.
//!
//! A violation is recorded as a note, an event and an audit entry, none of which has the text. [`crate::guard`] has the checks.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::{Guard, GuardCheck};
use baton_core::chat::ChatMessage;
use baton_core::event::{EventKind, GuardrailEvent};
use baton_core::message::Visibility;
use baton_core::model::ToolChoice;
use baton_core::store::{StepKind, StepState};
use baton_core::tool::ToolError;
use serde::Deserialize;
use serde_json::json;

use crate::audit;
use crate::engine_tool::ToolOutcome;
use crate::failure::Failure;
use crate::fence::Fence;
use crate::guard::{self, GuardSide, Violation};
use crate::input::{Input, InputSource, text_of};
use crate::invocation;
use crate::journal::Record;
use crate::outcome::{Answer, Outcome, RecordedSession};
use crate::scope::Scope;
use crate::skillset::Skillset;
use crate::stage;
use crate::turn::{self, TurnRequest};
use crate::window::estimate;
use crate::{prompt, structured_output};

/// Checks what the scope's agent gets.
pub(crate) async fn check_input(scope: &Scope, input: &Input) -> Result<Option<Violation>, Failure> {
    let guards = &scope.agent().guardrails.input;
    if guards.is_empty() || input.is_guarded {
        return Ok(None);
    }
    check_text(scope, guards, GuardSide::Input, &input.words()).await
}

/// Checks what `target` would get, before it takes over. The judge's decision is recorded below `place`.
pub(crate) async fn check_target(
    place: &Scope,
    target: &baton_core::agent::Agent,
    input: &Input,
) -> Result<Option<Violation>, Failure> {
    let guards = &target.guardrails.input;
    if guards.is_empty() {
        return Ok(None);
    }
    check_text(&place.at(&format!("to:{}", target.name)), guards, GuardSide::Input, &input.words()).await
}

/// Checks an answer of the scope's agent, given at `place`.
pub(crate) async fn check_output(place: &Scope, text: &str) -> Result<Option<Violation>, Failure> {
    check_text(place, &place.agent().guardrails.output, GuardSide::Output, text).await
}

/// Checks what the scope's agent writes to an agent that takes over, and returns the refusal of its tool call. No schema applies, and
/// no judge decides.
pub(crate) async fn check_brief(place: &Scope, text: &str) -> Result<Option<ToolOutcome>, Failure> {
    let violation = check_question(place, text).await?;
    Ok(violation.map(|violation| {
        let reason = format!("this may not be passed on: {}", violation.reason);
        ToolOutcome::Refused(ToolError::NotPermitted(reason))
    }))
}

/// Checks what the scope's agent asks the user. No schema applies, and no judge decides.
pub(crate) async fn check_question(place: &Scope, text: &str) -> Result<Option<Violation>, Failure> {
    let violation = guard::check_part(&place.agent().guardrails.output, text);
    if let Some(violation) = &violation {
        record(place, GuardSide::Output, violation).await?;
    }
    Ok(violation)
}

/// Checks the user's answer to a question of the scope's agent. No schema applies: it describes whole messages.
pub(crate) async fn check_answer(place: &Scope, text: &str) -> Result<Option<Violation>, Failure> {
    let guards = &place.agent().guardrails.input;
    judged(place, guards, GuardSide::Input, text, guard::check_part(guards, text)).await
}

async fn check_text(
    place: &Scope,
    guards: &[Guard],
    side: GuardSide,
    text: &str,
) -> Result<Option<Violation>, Failure> {
    judged(place, guards, side, text, guard::check(guards, text)).await
}

/// Asks the judges about a text without a violation, and records the violation, if any.
async fn judged(
    place: &Scope,
    guards: &[Guard],
    side: GuardSide,
    text: &str,
    mut violation: Option<Violation>,
) -> Result<Option<Violation>, Failure> {
    if violation.is_none() {
        for guard in guards {
            let GuardCheck::Judge(judge) = &guard.check else { continue };
            if !Box::pin(is_allowed(place, judge, side, text)).await? {
                violation = Some(Violation::new(guard, format!("the judge `{judge}` refused it")));
                break;
            }
        }
    }
    if let Some(violation) = &violation {
        record(place, side, violation).await?;
    }
    Ok(violation)
}

/// The messages of a conversation that the agent's checks allow. A refused message must not reach the model with the next one.
pub(crate) fn allowed_history(scope: &Scope, input: &Input) -> Option<Arc<Vec<ChatMessage>>> {
    let guards = &scope.agent().guardrails.input;
    let is_refused = |message: &ChatMessage| match message {
        ChatMessage::User { parts } => guard::check_part(guards, &text_of(parts)).is_some(),
        ChatMessage::Assistant(_) | ChatMessage::Tool(_) => false,
    };
    if guards.is_empty() || !input.history.iter().any(is_refused) {
        return None;
    }
    Some(Arc::new(input.history.iter().filter(|message| !is_refused(message)).cloned().collect()))
}

/// The failure of an agent that may not work on its input, or whose answer is withheld.
pub(crate) fn failure(agent: &AgentName, side: GuardSide, violation: Violation) -> Failure {
    let Violation { check, reason, message } = violation;
    Failure::Guardrail { agent: agent.clone(), side: side.word(), check, reason: message.unwrap_or(reason) }
}

/// Records a violation, once.
pub(crate) async fn record(place: &Scope, side: GuardSide, violation: &Violation) -> Result<(), Failure> {
    let note = place.at(&format!("guard:{side}"));
    if place.run.recorder.steps.contains_key(note.path()) {
        return Ok(());
    }
    let kind = EventKind::Guardrail(GuardrailEvent {
        side: side.word().to_owned(),
        check: violation.check.clone(),
        reason: violation.reason.clone(),
    });
    let record = Record {
        steps: vec![note.step().build(StepKind::Note, StepState::Finished, violation)?],
        events: vec![place.event(Visibility::Internal, kind)],
        audit: vec![audit::guardrail(place, side.word(), &violation.check)],
        ..Record::default()
    };
    place.run.recorder.journal.commit_soon(record).await;
    Ok(())
}

/// The answer of a judge.
#[derive(Deserialize)]
struct JudgeVerdict {
    allowed: bool,
}

/// Asks a judge, whose decision is recorded as its session. A judge that does not decide refuses.
async fn is_allowed(place: &Scope, judge: &AgentName, side: GuardSide, text: &str) -> Result<bool, Failure> {
    let Some(agent) = place.run.agents.get(judge) else { return Ok(false) };
    let child = invocation::enter_judge(place, agent).await?;
    // What is recorded as its task does not have the text, which may be withheld.
    let task = Input {
        sent: Some(InputSource { by: place.name().clone(), reason: format!("judges the {side}").into() }),
        ..Input::text(format!("Judge a text of {} characters.", text.chars().count()))
    };
    let result = match child.step().finished::<RecordedSession>()? {
        Some(recorded) => recorded.result(),
        None => {
            stage::begin(&child, &task).await?;
            let result = ask(&child, side, text).await.map_err(|failure| child.or_timeout(failure));
            stage::finish(&child, &task, &result).await?;
            result
        }
    };
    match result {
        Ok(outcome) => Ok(verdict(&outcome.answer.text).is_some_and(|verdict| verdict.allowed)),
        Err(failure) if failure.is_fatal(&place.run.control.cancel) => Err(failure),
        // Its budget is that of the agents above, which then close.
        Err(failure @ (Failure::BudgetExhausted { .. } | Failure::Unpriced(_))) => Err(failure),
        Err(failure) => {
            tracing::warn!(agent = %place.name(), %judge, %failure, "a judge did not decide");
            Ok(false)
        }
    }
}

fn verdict(text: &str) -> Option<JudgeVerdict> {
    serde_json::from_str(structured_output::strip_code_fence(text)).ok()
}

async fn ask(child: &Scope, side: GuardSide, text: &str) -> Result<Outcome, Failure> {
    let candidates = child.models().candidates(child.agent())?;
    let system = prompt::render(child, &Skillset::default())?;
    let fence = Fence::new();
    let block = fence.block("text", "## TEXT", text);
    let what = match side {
        GuardSide::Input => "another agent is asked to work on",
        GuardSide::Output => "another agent wants to answer with",
    };
    let message = format!(
        "{}\n\n{block}\n\nThis is what {what}. Decide by your rules whether that is allowed. Answer only with the JSON \
         {{\"allowed\": true}} or {{\"allowed\": false}}.",
        fence.material()
    );
    let messages = [ChatMessage::user(message)];
    let schema = json!({
        "type": "object",
        "properties": { "allowed": { "type": "boolean" } },
        "required": ["allowed"],
        "additionalProperties": false,
    });
    // A judge that quotes the text must not publish it.
    let guards = [Guard { check: GuardCheck::Schema(schema.clone()), message: None }];
    let request = TurnRequest {
        system: &system,
        messages: messages.as_slice().into(),
        tools: &[],
        text_calls: None,
        tool_choice: ToolChoice::None,
        output_schema: Some(&schema),
        guards: &guards,
        input_estimate: estimate::text(&system) + estimate::message(&messages[0]),
        deadline: child.session.bounds.deadline,
        closing: None,
    };
    let taken = turn::run_turn(&child.at("turn:1"), &candidates, request).await?;
    let answer = Answer { turns: 1, ..Answer::without_turn(taken.reply.text) };
    Ok(Outcome { answer, agent: child.name().clone(), is_shown: true, dissent: Vec::new() })
}
