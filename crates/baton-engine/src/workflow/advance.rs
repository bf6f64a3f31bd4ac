//! `advance_workflow`: the model of a holder fills values and goes on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_core::agent::{Slot, Workflow};
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use futures_util::future::BoxFuture;
use serde_json::{Map, Value, json};

use super::guide::reading::is_yes;
use super::machine::{Machine, Verdict, Waits};
use super::refusal::Refusal;
use super::situation::Situation;
use super::value;
use super::walk::{Happened, Optional, Walk};
use crate::failure::Failure;
use crate::given::{Done, Given, Site};
use crate::handoff::lease::Lease;
use crate::scope::Scope;

const NAME: &str = "advance_workflow";
/// Among the values: the person's answer to the question of a state.
const CONFIRMED: &str = "confirmed";
/// In place of a state: one back.
const BACK: &str = "back";

/// For holders with a workflow.
pub(crate) fn tools(scope: &Scope) -> Vec<Arc<dyn Given>> {
    let (Some(lease), Some(workflow)) = (&scope.lease, &scope.agent.workflow) else { return Vec::new() };
    if workflow.states.is_empty() {
        return Vec::new();
    }
    let spec = ToolSpec {
        name: NAME.to_owned(),
        description: "Records what the person said and goes on in your workflow as far as it can. Give everything that their words \
                      say, several values at once, corrections of earlier ones too. Returns where you are and what to ask next."
            .to_owned(),
        parameters: parameters(workflow),
        effect: Effect::Writes,
        risk: Risk::Low,
        timeout: scope.agent.limits.timeout,
    };
    vec![Arc::new(AdvanceWorkflow { spec, lease: Arc::clone(lease), is_busy: AtomicBool::new(false) })]
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

#[derive(Debug)]
struct AdvanceWorkflow {
    spec: ToolSpec,
    lease: Arc<Lease>,
    /// A call is under way. Two at once would not see each other's values.
    is_busy: AtomicBool,
}

/// Ends being busy, however the call ends.
struct Busy<'a>(&'a AtomicBool);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

/// What a model wants.
#[derive(Debug, Default)]
struct Wish {
    values: BTreeMap<String, String>,
    confirmed: Option<bool>,
    next: Option<String>,
}

impl AdvanceWorkflow {
    async fn advance(&self, arguments: &Value, site: Site<'_>) -> Result<Done, Failure> {
        if self.is_busy.swap(true, Ordering::AcqRel) {
            let text = "another call of this turn is under way; put all values into one call";
            return Ok(Done::Refused(ToolError::InvalidArguments(text.to_owned())));
        }
        let _busy = Busy(&self.is_busy);
        let wish = match Wish::of(arguments) {
            Ok(wish) => wish,
            Err(refusal) => return Ok(Done::Refused(refusal.into())),
        };
        let (place, agent) = (site.scope.at("walk"), Arc::clone(&site.scope.agent));
        match self.walk(&wish, place, &agent).await {
            Err(Failure::NoHandoff(why)) => Ok(Done::Refused(ToolError::NotPermitted(why.to_owned()))),
            other => Ok(other?.into()),
        }
    }

    async fn walk(
        &self,
        wish: &Wish,
        place: Scope,
        agent: &baton_core::agent::Agent,
    ) -> Result<Result<String, ToolError>, Failure> {
        let run = Arc::clone(&place.run);
        let Some(mut walk) = Walk::begin(place, &self.lease, agent).await? else {
            return Ok(Err(ToolError::NotPermitted("there is no workflow".into())));
        };
        let before = walk.machine.clone();
        let asked = |machine: &Machine<'_>| {
            machine.was_asked(run.run_id, run.said_at) && !run.words().trim().is_empty()
        };
        let verdict = wish.confirmed.map(|is_yes| match is_yes {
            true if is_yes_of(&before, &run.words()) => Verdict::Yes,
            true => Verdict::TakenForYes,
            false => Verdict::No,
        });
        let mut refused = None;
        match wish.apply(&mut walk.machine, verdict, asked) {
            Ok(()) => {}
            // What was said is kept, though the walk cannot go where it was to go.
            Err(refusal @ (Refusal::Missing { .. } | Refusal::NotConfirmed(_) | Refusal::NotAsked(_))) => {
                refused = Some(refusal.to_string());
            }
            Err(refusal) => {
                walk.machine = before;
                return Ok(Err(refusal.into()));
            }
        }
        walk.onward(Optional::Left).await?;
        Ok(Ok(told(&walk, refused)))
    }
}

/// Whether the person themselves said yes to what the walk waits for.
fn is_yes_of(machine: &Machine<'_>, words: &str) -> bool {
    matches!(machine.waits(), Waits::Confirm(question) if is_yes(words, question))
}

impl Wish {
    fn of(arguments: &Value) -> Result<Self, Refusal> {
        let mut wish = Self { next: arguments["next"].as_str().map(str::to_owned), ..Self::default() };
        for (key, given) in arguments["values"].as_object().into_iter().flatten() {
            if key == CONFIRMED {
                wish.confirmed = given.as_bool();
            } else {
                let text = value::text(given).ok_or_else(|| Refusal::NotAText(key.clone()))?;
                wish.values.insert(key.clone(), text);
            }
        }
        Ok(wish)
    }

    /// Values first: a correction may make an answer meaningless, and an answer may let the walk go on.
    fn apply(
        &self,
        machine: &mut Machine<'_>,
        verdict: Option<Verdict>,
        was_asked: impl Fn(&Machine<'_>) -> bool,
    ) -> Result<(), Refusal> {
        let has_changed = !machine.take(&self.values)?.is_empty();
        // Whoever says what to change has answered with that; it is put to them again.
        if let Some(verdict) = verdict.filter(|_| !has_changed) {
            match machine.waits() {
                // A no needs no proof.
                Waits::Confirm(question) if verdict != Verdict::No && !was_asked(machine) => {
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
                // Whoever says where to go has made up their mind.
                machine.release();
                if let Waits::Tool(_) = machine.waits() { Ok(()) } else { machine.go(Some(next)) }
            }
            _ if next == BACK || is_before => machine.back(),
            _ => machine.go(Some(next)),
        }
    }
}

/// The answer to the call.
fn told(walk: &Walk<'_>, refused: Option<String>) -> String {
    let situation = Situation::of(&walk.machine);
    let instruction = situation.instruction();
    let mut answer = serde_json::to_value(&situation).unwrap_or_default();
    let ran: Vec<Value> = walk
        .happened
        .iter()
        .filter_map(|one| match one {
            Happened::Entered(_) => None,
            Happened::Ran { tool, text } => Some(json!({ "tool": tool, "returned": text })),
            Happened::Failed { tool, error } => Some(json!({ "tool": tool, "failed": error })),
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

impl Given for AdvanceWorkflow {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    /// Models write values beside `values`, as one text, as lists, and choices in their own spelling.
    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        let Value::Object(mut given) = arguments else { return Ok(arguments) };
        let next =
            given.remove("next").filter(|next| next.as_str().is_some_and(|next| !next.trim().is_empty()));
        let values = match given.remove("values") {
            Some(Value::String(text)) => serde_json::from_str(&text).unwrap_or(Value::String(text)),
            Some(values) => values,
            None => Value::Object(std::mem::take(&mut given)),
        };
        let mut prepared = given;
        if let Some(next) = next {
            prepared.insert("next".to_owned(), next);
        }
        let Value::Object(values) = values else {
            let text = "`values` is an object: a value for each key".to_owned();
            return Err(ToolError::InvalidArguments(text));
        };
        let slots = &self.spec.parameters["properties"]["values"]["properties"];
        let mut spelled = Map::new();
        for (key, given) in values {
            let given =
                if key == CONFIRMED { answer(&given) } else { text(&key, &slots[key.as_str()], given)? };
            if !given.is_null() {
                spelled.insert(key, given);
            }
        }
        prepared.insert("values".to_owned(), Value::Object(spelled));
        Ok(Value::Object(prepared))
    }

    fn call<'a>(&'a self, arguments: Value, site: Site<'a>) -> BoxFuture<'a, Result<Done, Failure>> {
        Box::pin(async move { self.advance(&arguments, site).await })
    }
}

/// A yes or a no, however it is written.
fn answer(given: &Value) -> Value {
    match given.as_str().map(str::to_lowercase).as_deref() {
        Some("yes" | "true" | "y") => json!(true),
        Some("no" | "false" | "n") => json!(false),
        _ => given.clone(),
    }
}

/// A value as a text, and a choice as the schema spells it. Nothing where nothing was said.
fn text(key: &str, schema: &Value, given: Value) -> Result<Value, ToolError> {
    let Some(text) = value::text(&given).map(|text| text.trim().to_owned()) else { return Ok(given) };
    if text.is_empty() {
        return Ok(Value::Null);
    }
    let Some(choices) = schema["enum"].as_array() else { return Ok(json!(text)) };
    let choices: Vec<String> = choices.iter().filter_map(Value::as_str).map(str::to_owned).collect();
    let slot = Slot { key: key.to_owned(), ask: String::new(), choices, required: true };
    Ok(json!(value::checked(&slot, &text)?))
}
