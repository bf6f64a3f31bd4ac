//! Fills a holder's workflow when its model ends a turn without `advance_workflow`.
//!
//! A yes to the pending question is read from the user's own words. Otherwise the model fills in a form with the open values (JSON
//! Schema), and what the message does not contain ([`Evidence`]) is dropped. The engine then answers itself, with the question that
//! the workflow's file has. If there is nothing to record, the model's answer stays; the question is added if it asks none.
//!
//! A holder's text is not streamed while it may be replaced. Every call is a recorded turn with a ledger row, and the walk is
//! recorded at `…/turn:2/values`, so a crash repeats nothing.

use std::sync::Arc;

use baton_core::agent::{Agent, Slot, StateName};
use baton_core::chat::{ChatMessage, ToolCall, ToolResult};
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::model::ToolChoice;
use baton_core::store::StepKind;
use baton_core::workflow::consent::{bare, is_plain_yes};
use baton_core::workflow::{Confirmation, Machine, Waits, label, value};
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::evidence::{Evidence, ReadValue, lower_words};
use super::walk::{OptionalSlots, WorkflowWalk};
use super::{advance, reply, view};
use crate::failure::Failure;
use crate::models::ModelCandidate;
use crate::scope::Scope;
use crate::turn::{self, TurnRequest};
use crate::window::estimate;
use crate::{json, structured_output};

/// The path segment, below its turn, of the walk that the engine makes in place of the model.
const PLACE: &str = "values";

/// Whether a session's answer may come before its workflow has recorded the message.
#[derive(Debug)]
pub(crate) struct WorkflowCheck {
    /// The agent holds the thread with a workflow, the help is on, and the model has recorded nothing yet.
    is_open: bool,
    /// Whether the engine speaks after a small model has recorded values. Such models call the tool again and again.
    speaks: bool,
    /// What the engine says now.
    answer: Option<String>,
    /// Whether the next turn has to be a text, because a call has failed.
    must_speak: bool,
}

impl WorkflowCheck {
    pub(crate) fn new(scope: &Scope, candidates: &[ModelCandidate]) -> Self {
        let assists = candidates.first().map(|first| first.facts.assists);
        let is_small = assists.is_some_and(|assists| assists.workflow_evidence);
        let assists = assists.is_some_and(|assists| assists.workflow_values);
        let has_workflow =
            scope.agent().workflow.as_ref().is_some_and(|workflow| !workflow.states.is_empty());
        // The words last: most sessions have no workflow, and they would be copied for nothing.
        let is_open = assists
            && has_workflow
            && scope.session.lease.is_some()
            && scope.agent().output_schema.is_none()
            && !scope.run.request.words().trim().is_empty();
        Self { is_open, speaks: is_open && is_small, answer: None, must_speak: false }
    }

    /// Whether a text may be replaced if it comes now, so that it must not be streamed.
    pub(crate) fn holds_text(&self) -> bool {
        self.is_open
    }

    /// Notes the calls of a turn. A call of `advance_workflow` that recorded nothing does not count.
    pub(crate) fn add_results(&mut self, scope: &Scope, calls: &[ToolCall], results: &[ToolResult]) {
        let has_advanced =
            |(call, result): (&ToolCall, &ToolResult)| !result.failed && advance::records(call);
        self.is_open &= !calls.iter().zip(results).any(has_advanced);
        let is_advance = |call: &ToolCall| call.name == advance::TOOL_NAME;
        if !self.speaks || calls.is_empty() || !calls.iter().all(is_advance) {
            return;
        }
        match results {
            [result] if !result.failed && !self.is_open => {
                let machine = view::machine(scope, scope.agent());
                self.answer = machine.map(|machine| reply::after_call(&machine, &calls[0], result));
            }
            _ => self.must_speak = true,
        }
    }

    /// What the engine says in place of another turn of the model.
    pub(crate) fn take_answer(&mut self) -> Option<String> {
        self.answer.take()
    }

    /// Whether the next turn may not call tools.
    pub(crate) fn must_speak(&self) -> bool {
        self.must_speak
    }
}

/// What a call of the session's model needs.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SessionModel<'a> {
    pub(crate) candidates: &'a [ModelCandidate],
    /// The session's system prompt.
    pub(crate) system: &'a str,
    pub(crate) deadline: Instant,
    /// What the agent said before the user's message.
    pub(crate) last_answer: Option<&'a str>,
}

/// Records what the user's message says, after the turn at `turn` has answered `said` without doing so. Returns the answer to give
/// instead, if there is one. Does nothing unless `may_read`, or if it was begun before a crash.
pub(crate) async fn complete_turn(
    turn: &Scope,
    model: SessionModel<'_>,
    said: &str,
    may_read: bool,
) -> Result<Option<String>, Failure> {
    let place = turn.at(PLACE);
    if let Some(answer) = place.step().finished()? {
        return Ok(answer);
    }
    let (Some(lease), agent) = (&turn.session.lease, Arc::clone(turn.agent())) else { return Ok(None) };
    let waits_for_user = view::machine(turn, &agent).is_some_and(|machine| needs_user(&machine.waits()));
    let may_begin = may_read && waits_for_user;
    if !may_begin && !place.step().is_recorded() {
        return Ok(None);
    }
    let Some(walk) = WorkflowWalk::begin(place.clone(), lease, &agent).await? else { return Ok(None) };
    let mut extraction = Extraction { place: &place, model, agent: &agent, walk, notes: Vec::new() };
    let answer = extraction.run(said).await?;
    let status = |text: &String| place.event(Visibility::Internal, EventKind::Status { text: text.clone() });
    let events = extraction.notes.iter().map(status).collect();
    place.step().finish(StepKind::Note, &answer, events, Vec::new()).await?;
    Ok(answer)
}

/// Whether the workflow cannot go on without the user, or without a choice that the model has to make.
fn needs_user(waits: &Waits<'_>) -> bool {
    matches!(waits, Waits::Values(_) | Waits::Confirm(_) | Waits::Change(_) | Waits::Choice(_))
}

/// One walk that the engine makes in place of the model.
struct Extraction<'a> {
    place: &'a Scope,
    model: SessionModel<'a>,
    agent: &'a Agent,
    walk: WorkflowWalk<'a>,
    /// What happened, for readers of traces.
    notes: Vec<String>,
}

impl Extraction<'_> {
    async fn run(&mut self, said: &str) -> Result<Option<String>, Failure> {
        let words = self.place.run.request.words();
        let is_confirmed = self.confirm(&words);
        let recorded = if is_confirmed { Vec::new() } else { self.read_values(&words).await? };
        let has_chosen = self.advance(is_confirmed || !recorded.is_empty()).await?;
        if !is_confirmed && recorded.is_empty() && !has_chosen {
            let Some(question) = reply::question(&self.walk.machine).filter(|_| !said.contains('?')) else {
                return Ok(None);
            };
            self.notes.push("the question of the workflow was added to the answer".to_owned());
            return Ok(Some(format!("{}\n\n{question}", said.trim_end())));
        }
        Ok(Some(reply::text(&self.walk.machine, &recorded, &self.walk.changes)))
    }

    /// Takes the user's own yes, if the message before it asked the question of the workflow. A yes to any other question that the
    /// agent asked is left to the model.
    fn confirm(&mut self, words: &str) -> bool {
        let run = &self.place.run;
        let said_before = bare(self.model.last_answer.unwrap_or_default());
        let machine = &mut self.walk.machine;
        let is_asked =
            matches!(machine.waits(), Waits::Confirm(question) if said_before.contains(&bare(question)));
        let is_yes = is_asked
            && is_plain_yes(words)
            && machine.was_asked(run.run_id, run.request.said_at)
            && machine.confirm(Confirmation::Yes).is_ok();
        if is_yes {
            self.notes.push("the user's yes was recorded without a call of advance_workflow".to_owned());
        }
        is_yes
    }

    /// Lets the model read the values from the message, and records those that the message contains. Returns their keys.
    async fn read_values(&mut self, words: &str) -> Result<Vec<String>, Failure> {
        let slots = readable_slots(&self.walk.machine, words);
        if slots.is_empty() {
            return Ok(Vec::new());
        }
        let form = Form::new(&self.walk.machine, &slots);
        let Some(filled) = self.ask("read", &form.system, &form.message(words), &form.schema).await? else {
            return Ok(Vec::new());
        };
        let triggers = self.agent.accepts_handoff.as_ref().map_or(&[][..], |terms| &terms.triggers);
        let evidence = Evidence::new(words, triggers);
        let missing: Vec<&str> =
            self.walk.machine.missing().into_iter().map(|slot| slot.key.as_str()).collect();
        let read = slots.iter().filter_map(|slot| read_value(slot, &filled, &missing)).collect();
        let mut recorded = Vec::new();
        // One by one: a value that the workflow refuses does not affect the others.
        for (key, text) in evidence.supported(read) {
            let has_changed = |keys: Vec<String>| !keys.is_empty();
            if self.walk.machine.take(&[(key.clone(), text)].into()).is_ok_and(has_changed) {
                recorded.push(key);
            }
        }
        let found = if recorded.is_empty() { "none".to_owned() } else { recorded.join(", ") };
        self.notes.push(format!("values read from the message without a call of advance_workflow: {found}"));
        Ok(recorded)
    }

    /// Goes on as far as possible. Returns whether the model has chosen a state.
    async fn advance(&mut self, has_changed: bool) -> Result<bool, Failure> {
        if !has_changed {
            return Ok(false);
        }
        self.walk.onward(OptionalSlots::Left).await?;
        let Waits::Choice(ways) = self.walk.machine.waits() else { return Ok(false) };
        let Some(next) = self.choose(ways).await? else { return Ok(false) };
        if self.walk.machine.go(Some(&next)).is_err() {
            return Ok(false);
        }
        self.notes.push(format!("the model chose the next state: {next}"));
        self.walk.onward(OptionalSlots::Left).await?;
        Ok(true)
    }

    /// Asks the model which of several states comes next. `None` if the user's message does not decide it.
    async fn choose(&self, ways: &[StateName]) -> Result<Option<String>, Failure> {
        const UNDECIDED: &str = "none";
        let names: Vec<&str> = ways.iter().map(|way| way.0.as_str()).chain([UNDECIDED]).collect();
        let schema = json!({
            "type": "object",
            "properties": { "next": { "type": "string", "enum": names } },
            "required": ["next"],
            "additionalProperties": false,
        });
        let values = &self.walk.machine.data.values;
        let one_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        let known: String =
            values.iter().map(|(key, text)| format!("- {key}: {}\n", one_line(text))).collect();
        let question = format!(
            "Known so far:\n{known}\nThe person's message: {}\n\nWhich step of your workflow comes next by your rules? Answer with \
             a JSON object whose only field `next` is one of: {}. Use {UNDECIDED} if the message does not decide it.",
            one_line(&self.place.run.request.words()),
            names.join(", ")
        );
        let system = self.model.system;
        let filled = self.ask("choose", system, &question, &schema).await?;
        let next = filled.and_then(|filled| filled.get("next")?.as_str().map(str::to_owned));
        Ok(next.filter(|next| next != UNDECIDED))
    }

    /// Makes one model call for a JSON object. Returns `None` if the model does not answer or answers with something else: what is
    /// missing is then asked for.
    async fn ask(
        &self,
        segment: &str,
        system: &str,
        message: &str,
        schema: &Value,
    ) -> Result<Option<Map<String, Value>>, Failure> {
        let place = self.place.at(segment).internal();
        let messages = [ChatMessage::user(message)];
        let request = TurnRequest {
            system,
            messages: messages[..].into(),
            tools: &[],
            text_calls: None,
            tool_choice: ToolChoice::Auto,
            output_schema: Some(schema),
            guards: &[],
            input_estimate: estimate::text(system) + estimate::message(&messages[0]),
            deadline: self.model.deadline,
            closing: None,
        };
        match Box::pin(turn::run_turn(&place, self.model.candidates, request)).await {
            Ok(taken) => Ok(object_in(&taken.reply.text)),
            Err(
                failure @ (Failure::Model(_) | Failure::DeadlineReached | Failure::BudgetExhausted { .. }),
            ) => {
                tracing::warn!(agent = %place.name(), %failure, "the values of a workflow could not be read");
                Ok(None)
            }
            Err(failure) => Err(failure),
        }
    }
}

/// Words by which a message says that something recorded before is to be different.
const CORRECTION_WORDS: &[&str] =
    &["actually", "change", "correct", "correction", "instead", "not", "rather", "replace", "wrong"];

/// The slots to look for in a message: those without a value in this state and in later ones, and those that the message corrects by
/// name. If no value is missing, all of them, because the message may correct any.
fn readable_slots<'a>(machine: &Machine<'a>, words: &str) -> Vec<&'a Slot> {
    let message = lower_words(words);
    let is_correction = message.iter().any(|word| CORRECTION_WORDS.contains(&word.as_str()));
    let is_named = |slot: &Slot| slot.key.split('_').all(|part| message.iter().any(|word| word == part));
    let is_complete = machine.missing().is_empty();
    let is_readable = |slot: &&Slot| {
        is_complete || !machine.data.values.contains_key(&slot.key) || (is_correction && is_named(slot))
    };
    machine.keys().into_iter().filter_map(|key| machine.slot(key)).filter(is_readable).collect()
}

fn read_value<'a>(slot: &'a Slot, filled: &Map<String, Value>, missing: &[&str]) -> Option<ReadValue<'a>> {
    let text = value::text(filled.get(&slot.key)?)?;
    let text = value::checked(slot, &text).ok()?;
    let may_restate = missing.contains(&slot.key.as_str());
    Some(ReadValue { slot, text, may_restate })
}

/// The JSON object of a reply. Models without structured output write text around it.
fn object_in(reply: &str) -> Option<Map<String, Value>> {
    let text = structured_output::strip_code_fence(reply);
    let object = json::parse(text).ok().or_else(|| {
        let (first, last) = (text.find('{')?, text.rfind('}')?);
        json::parse(text.get(first..=last)?).ok()
    });
    match object? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// The form that the model fills in.
struct Form {
    system: String,
    schema: Value,
    /// What the user was asked last.
    asked: Option<String>,
}

impl Form {
    fn new(machine: &Machine<'_>, slots: &[&Slot]) -> Self {
        let field = |slot: &&Slot| {
            let mut schema = json!({ "type": ["string", "null"] });
            if !slot.choices.is_empty() {
                let choices = slot.choices.iter().map(|choice| json!(choice)).chain([Value::Null]);
                schema["enum"] = choices.collect();
            }
            (slot.key.clone(), schema)
        };
        let fields: Map<String, Value> = slots.iter().map(field).collect();
        let keys: Vec<&str> = slots.iter().map(|slot| slot.key.as_str()).collect();
        let lines: String = slots.iter().map(|slot| line(slot)).collect();
        let system = format!(
            "You fill in a form from one message of a person. Reply with a JSON object that has exactly these \
             fields:\n{lines}\nCopy the person's own words into each field that the message answers. Use null for every field that \
             the message does not answer. Most messages answer only one or two fields. Never make up a value."
        );
        let schema = json!({
            "type": "object", "properties": fields, "required": keys, "additionalProperties": false,
        });
        // The first message of a conversation answers no question.
        let is_begun = !machine.data.values.is_empty() || !machine.data.trail.is_empty();
        Self { system, schema, asked: reply::question(machine).filter(|_| is_begun) }
    }

    fn message(&self, words: &str) -> String {
        let asked = self.asked.as_ref().map(|asked| format!("The person was asked: {asked}\n"));
        format!("{}The person's message:\n{words}", asked.unwrap_or_default())
    }
}

fn line(slot: &Slot) -> String {
    let choices = if slot.choices.is_empty() {
        String::new()
    } else {
        format!(" One of: {}.", slot.choices.join(", "))
    };
    format!(
        "- {}: {}{choices}\n",
        slot.key,
        if slot.ask.is_empty() { label(&slot.key) } else { slot.ask.clone() }
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_found_in_text() {
        let found = |text: &str| object_in(text).map(|object| Value::Object(object).to_string());
        assert_eq!(found("```json\n{\"a\": \"b\"}\n```").as_deref(), Some("{\"a\":\"b\"}"));
        assert_eq!(found("Sure: {\"a\": null} as you asked").as_deref(), Some("{\"a\":null}"));
        assert_eq!((found("[1]"), found("Sure!"), found("} {")), (None, None, None));
    }
}
