//! `advance_workflow`: the tool with which a holder's model records values and advances its workflow.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_core::agent::{Agent, Slot, Workflow};
use baton_core::chat::{ChatMessage, ToolCall};
use baton_core::store::WORKFLOW_TOOL;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use baton_core::workflow::consent::is_yes;
use baton_core::workflow::{Confirmation, Machine, Refusal, Waits, WorkflowChange, value};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::evidence::{Evidence, ReadValue};
use super::view::WorkflowView;
use super::walk::{OptionalSlots, WorkflowWalk};
use crate::engine_tool::{CallSite, EngineTool, ToolOutcome};
use crate::failure::Failure;
use crate::fence::Fence;
use crate::input::Input;
use crate::lease::HandoffLease;
use crate::scope::Scope;

pub(super) const TOOL_NAME: &str = WORKFLOW_TOOL;
/// Key in `values` for the user's answer to a confirmation question.
const CONFIRMED: &str = "confirmed";
/// Value of `next` that goes back one state.
const BACK: &str = "back";

/// Returns the tool for a holder with a workflow.
pub(crate) fn tools(scope: &Scope, input: &Input) -> Vec<Arc<dyn EngineTool>> {
    let (Some(lease), Some(workflow)) = (&scope.session.lease, &scope.agent().workflow) else {
        return Vec::new();
    };
    if workflow.states.is_empty() {
        return Vec::new();
    }
    let spec = ToolSpec {
        name: TOOL_NAME.to_owned(),
        description: "Records what the person said and goes on in your workflow as far as it can. Give everything that their words \
                      say, several values at once, corrections of earlier ones too. Returns where you are and what to ask next."
            .to_owned(),
        parameters: parameters(workflow),
        effect: Effect::Writes,
        risk: Risk::Low,
        timeout: scope.agent().limits.timeout,
    };
    let candidates = scope.models().candidates(scope.agent()).unwrap_or_default();
    let needs_evidence = candidates.first().is_some_and(|first| first.facts.assists.workflow_evidence);
    let evidence =
        needs_evidence.then(|| said(&scope.run.request.words(), input)).filter(|said| !said.is_empty());
    let lease = Arc::clone(lease);
    vec![Arc::new(AdvanceWorkflow { spec, lease, evidence, is_busy: AtomicBool::new(false) })]
}

/// What the values of this run can come from: the user's message and, if it is a yes, the proposal that it answers.
fn said(words: &str, input: &Input) -> String {
    let last = input.history.iter().rev().find_map(|message| match message {
        ChatMessage::Assistant(reply) if !reply.text.trim().is_empty() => Some(reply.text.as_str()),
        _ => None,
    });
    match last.filter(|last| is_yes(words, last)) {
        Some(proposal) => format!("{words}\n{proposal}"),
        None => words.trim().to_owned(),
    }
}

fn parameters(workflow: &Workflow) -> Value {
    let slots = workflow.states.iter().flat_map(|state| &state.collect);
    let mut values: Map<String, Value> = slots
        .map(|slot| {
            let mut schema = json!({ "type": "string", "description": slot.ask });
            if !slot.choices.is_empty() {
                schema["enum"] = json!(slot.choices);
            }
            (slot.key.clone(), schema)
        })
        .collect();
    if workflow.states.iter().any(|state| state.confirm.is_some()) {
        let description = "What the person answered to the question that they have to say yes to.";
        values.insert(CONFIRMED.to_owned(), json!({ "type": "boolean", "description": description }));
    }
    let states = workflow.states.iter().map(|state| state.name.0.as_str()).chain([BACK]);
    json!({
        "type": "object",
        "properties": {
            "values": { "type": "object", "properties": values, "description": "By key; only what the person said." },
            "next": {
                "type": "string",
                "enum": states.collect::<Vec<_>>(),
                "description": "Only to choose where several ways lead on, to try the same state again, or to go back.",
            },
        },
        "additionalProperties": false,
    })
}

/// Whether a call moves the workflow or records a value. Models also call the tool only to learn where they are.
pub(super) fn records(call: &ToolCall) -> bool {
    let arguments: Value = serde_json::from_str(&call.arguments).unwrap_or_default();
    let is_given = |value: &Value| match value {
        Value::Object(values) => values.values().any(|value| !value.is_null() && *value != json!("")),
        other => !other.is_null() && *other != json!(""),
    };
    call.name == TOOL_NAME && arguments.as_object().is_some_and(|object| object.values().any(is_given))
}

/// The tool `advance_workflow`.
#[derive(Debug)]
struct AdvanceWorkflow {
    spec: ToolSpec,
    lease: Arc<HandoffLease>,
    /// What values have to be in, for models that make them up.
    evidence: Option<String>,
    /// Set during a call. Concurrent calls would overwrite each other's values, so a second one is refused.
    is_busy: AtomicBool,
}

/// RAII guard: clears `is_busy` when the call ends or is cancelled.
struct BusyGuard<'a>(&'a AtomicBool);

impl Drop for BusyGuard<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// Parsed arguments of a call.
#[derive(Debug, Clone, Default)]
struct AdvanceArguments {
    values: BTreeMap<String, String>,
    confirmed: Option<bool>,
    next: Option<String>,
}

impl AdvanceWorkflow {
    async fn advance(&self, arguments: &Value, site: CallSite<'_>) -> Result<ToolOutcome, Failure> {
        if self.is_busy.swap(true, Ordering::AcqRel) {
            let text = "another call of this turn is under way; put all values into one call";
            return Ok(ToolOutcome::Refused(ToolError::InvalidArguments(text.to_owned())));
        }
        let _busy = BusyGuard(&self.is_busy);
        let parsed = match AdvanceArguments::of(arguments) {
            Ok(parsed) => parsed,
            Err(refusal) => return Ok(ToolOutcome::Refused(refusal.into())),
        };
        let (place, agent) = (site.scope.at("walk"), Arc::clone(site.scope.agent()));
        match self.walk(&parsed, place, &agent).await {
            Err(Failure::NoHandoff(why)) => Ok(ToolOutcome::Refused(ToolError::NotPermitted(why.to_owned()))),
            other => Ok(other?.into()),
        }
    }

    async fn walk(
        &self,
        parsed: &AdvanceArguments,
        place: Scope,
        agent: &Agent,
    ) -> Result<Result<String, ToolError>, Failure> {
        let run = Arc::clone(&place.run);
        let Some(mut walk) = WorkflowWalk::begin(place, &self.lease, agent).await? else {
            return Ok(Err(ToolError::NotPermitted("there is no workflow".into())));
        };
        let before = walk.machine.clone();
        let (parsed, made_up) = &match &self.evidence {
            Some(said) => parsed.supported(&walk.machine, agent, said),
            None => (parsed.clone(), Vec::new()),
        };
        if parsed.is_empty() && !made_up.is_empty() {
            return Ok(Err(ToolError::InvalidArguments(made_up_text(made_up, &before))));
        }
        let asked = |machine: &Machine<'_>| {
            machine.was_asked(run.run_id, run.request.said_at) && !run.request.words().trim().is_empty()
        };
        let verdict = parsed.confirmed.map(|is_yes| match is_yes {
            true if is_users_yes(&before, &run.request.words()) => Confirmation::Yes,
            true => Confirmation::TakenForYes,
            false => Confirmation::No,
        });
        let mut refused = (!made_up.is_empty()).then(|| made_up_text(made_up, &before));
        match parsed.apply(&mut walk.machine, verdict, asked) {
            Ok(()) => {}
            // The values are kept although the workflow cannot go where `next` says.
            Err(refusal @ (Refusal::Missing { .. } | Refusal::NotConfirmed(_) | Refusal::NotAsked(_))) => {
                refused = Some(refusal.to_string());
            }
            Err(refusal) => {
                walk.machine = before;
                return Ok(Err(refusal.into()));
            }
        }
        walk.onward(OptionalSlots::Left).await?;
        Ok(Ok(result_text(&walk, refused)))
    }
}

/// Whether the user's own message is a yes to the pending question, as opposed to the model's reading of it.
fn is_users_yes(machine: &Machine<'_>, words: &str) -> bool {
    matches!(machine.waits(), Waits::Confirm(question) if is_yes(words, question))
}

impl AdvanceArguments {
    fn of(arguments: &Value) -> Result<Self, Refusal> {
        let mut parsed = Self { next: arguments["next"].as_str().map(str::to_owned), ..Self::default() };
        for (key, value) in arguments["values"].as_object().into_iter().flatten() {
            if key == CONFIRMED {
                parsed.confirmed = value.as_bool();
            } else {
                let text = value::text(value).ok_or_else(|| Refusal::NotAText(key.clone()))?;
                parsed.values.insert(key.clone(), text);
            }
        }
        Ok(parsed)
    }

    fn is_empty(&self) -> bool {
        self.values.is_empty() && self.confirmed.is_none() && self.next.is_none()
    }

    /// The arguments with only those values that are known already or that `said` contains, and the keys of the others.
    fn supported(&self, machine: &Machine<'_>, agent: &Agent, said: &str) -> (Self, Vec<String>) {
        let triggers = agent.accepts_handoff.as_ref().map_or(&[][..], |terms| &terms.triggers);
        let missing: Vec<&str> = machine.missing().into_iter().map(|slot| slot.key.as_str()).collect();
        let read = self.values.iter().filter_map(|(key, text)| {
            let slot = machine.slot(key)?;
            let may_restate = missing.contains(&key.as_str());
            Some(ReadValue { slot, text: text.clone(), may_restate })
        });
        let found: BTreeMap<String, String> =
            Evidence::new(said, triggers).supported(read.collect()).into_iter().collect();
        let (mut supported, mut made_up) = (Self { values: BTreeMap::new(), ..self.clone() }, Vec::new());
        for (key, text) in &self.values {
            // An unknown key is refused later, with the nearest one.
            let is_known = machine.slot(key).is_none() || machine.data.values.get(key) == Some(text);
            match found.get(key) {
                Some(text) => drop(supported.values.insert(key.clone(), text.clone())),
                None if is_known => drop(supported.values.insert(key.clone(), text.clone())),
                None => made_up.push(key.clone()),
            }
        }
        (supported, made_up)
    }

    /// Applies values, confirmation and `next`, in this order: a correction can void the confirmation, which can unblock `next`.
    fn apply(
        &self,
        machine: &mut Machine<'_>,
        verdict: Option<Confirmation>,
        was_asked: impl Fn(&Machine<'_>) -> bool,
    ) -> Result<(), Refusal> {
        let has_changed = !machine.take(&self.values)?.is_empty();
        // A correction counts as the answer. The question is asked again.
        if let Some(verdict) = verdict.filter(|_| !has_changed) {
            match machine.waits() {
                // An answer requires that the user has seen the question.
                Waits::Confirm(question) if !was_asked(machine) => {
                    return Err(Refusal::NotAsked(question.to_owned()));
                }
                _ => machine.confirm(verdict)?,
            }
        }
        let Some(next) = self.next.as_deref() else { return Ok(()) };
        let is_before = machine.data.trail.last().is_some_and(|before| before == next);
        let leads_there = machine.state().next.iter().any(|way| way.0 == next);
        match next {
            _ if next == machine.name() => {
                machine.release();
                Ok(())
            }
            _ if leads_there => {
                // An explicit `next` decides a pending change.
                machine.release();
                if let Waits::Tool(_) = machine.waits() { Ok(()) } else { machine.go(Some(next)) }
            }
            _ if next == BACK || is_before => machine.back(),
            _ => machine.go(Some(next)),
        }
    }
}

/// Tells the model which values it made up, and what to ask instead.
fn made_up_text(keys: &[String], machine: &Machine<'_>) -> String {
    let asks: Vec<&str> = machine.missing().into_iter().map(|slot| slot.ask.as_str()).take(1).collect();
    format!(
        "the person has not said: {}. Do not make values up; ask for them. {}",
        keys.join(", "),
        asks.join("")
    )
}

/// Fences untrusted tool output, cut to `max_bytes` of JSON. The fence is stored with the result of the call.
fn marked<'t>(tool: &str, text: &'t str, is_untrusted: bool, max_bytes: usize) -> Cow<'t, str> {
    let text = cut(text, max_bytes);
    if is_untrusted { Fence::new().output(tool, &text).into() } else { text }
}

/// Cuts a text to `max_bytes` as a JSON string, so that the result of the call is not shortened later, within a fence.
fn cut(text: &str, max_bytes: usize) -> Cow<'_, str> {
    let size = |c: char| match c {
        '"' | '\\' | '\n' | '\r' | '\t' => 2,
        c if c.is_control() => 6,
        c => c.len_utf8(),
    };
    let mut used = 0;
    let end = text.char_indices().find(|(_, c)| {
        used += size(*c);
        used > max_bytes
    });
    match end {
        Some((end, _)) => format!("{}… [cut: {} bytes in all]", &text[..end], text.len()).into(),
        None => text.into(),
    }
}

/// The result of the call, as JSON.
fn result_text(walk: &WorkflowWalk<'_>, refused: Option<String>) -> String {
    let situation = WorkflowView::of(&walk.machine);
    let instruction = situation.instruction();
    let mut answer = serde_json::to_value(&situation).unwrap_or_default();
    // Half of what a model is shown, because the situation needs room too.
    let max_bytes = walk.place.run.extensions.shown_output_bytes / 2 / walk.changes.len().max(1);
    let ran: Vec<Value> = walk
        .changes
        .iter()
        .filter_map(|one| match one {
            WorkflowChange::Entered(_) => None,
            WorkflowChange::Ran { tool, text, is_untrusted } => {
                Some(json!({ "tool": tool, "returned": marked(tool, text, *is_untrusted, max_bytes) }))
            }
            WorkflowChange::Failed { tool, error, is_untrusted } => {
                Some(json!({ "tool": tool, "failed": marked(tool, error, *is_untrusted, max_bytes) }))
            }
        })
        .collect();
    if !ran.is_empty() {
        answer["ran"] = ran.into();
    }
    if let Some(refused) = refused {
        answer["refused"] = refused.into();
    }
    answer["instruction"] = instruction.into();
    answer.to_string()
}

impl EngineTool for AdvanceWorkflow {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Accepts the spellings that models use: values outside of `values`, `values` as a JSON text, and choices in any case.
    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        let Value::Object(mut object) = arguments else { return Ok(arguments) };
        let next =
            object.remove("next").filter(|next| next.as_str().is_some_and(|next| !next.trim().is_empty()));
        let values = match object.remove("values") {
            Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            Some(values) => values,
            None => Value::Object(std::mem::take(&mut object)),
        };
        let mut prepared = object;
        if let Some(next) = next {
            prepared.insert("next".to_owned(), next);
        }
        let Value::Object(values) = values else {
            let text = "`values` is an object: a value for each key".to_owned();
            return Err(ToolError::InvalidArguments(text));
        };
        let slots = &self.spec.parameters["properties"]["values"]["properties"];
        let mut spelled = Map::new();
        for (key, value) in values {
            let value = if key == CONFIRMED {
                normalize_yes_no(&value)
            } else {
                normalize_value(&key, &slots[key.as_str()], value)?
            };
            if !value.is_null() {
                spelled.insert(key, value);
            }
        }
        prepared.insert("values".to_owned(), Value::Object(spelled));
        Ok(Value::Object(prepared))
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        Box::pin(async move { self.advance(&arguments, site).await })
    }
}

/// Converts common spellings of yes and no to a boolean.
fn normalize_yes_no(value: &Value) -> Value {
    match value.as_str().map(str::to_lowercase).as_deref() {
        Some("yes" | "true" | "y") => json!(true),
        Some("no" | "false" | "n") => json!(false),
        _ => value.clone(),
    }
}

/// Converts a value to text and a choice to the spelling of the schema. Returns null for a blank text.
fn normalize_value(key: &str, schema: &Value, value: Value) -> Result<Value, ToolError> {
    let Some(text) = value::text(&value).map(|text| text.trim().to_owned()) else {
        return Ok(value);
    };
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let Some(choices) = schema["enum"].as_array() else { return Ok(json!(text)) };
    let choices: Vec<String> = choices.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let slot = Slot { key: key.to_owned(), ask: String::new(), choices, required: true };
    Ok(json!(value::checked(&slot, &text)?))
}
