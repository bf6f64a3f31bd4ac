//! What each step of a run did, as the API shows it.

use std::collections::HashMap;

use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::message::Part;
use baton_core::store::{Hop, RunRecord, SessionRecord, Step, StepKind, StepState};
use baton_core::{AgentName, Reply, SessionId};
use baton_engine::recorded::{RecordedStep, call_of, text_of};
use baton_sanitize::{Mask, sanitize_value};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::hop::HopView;
use super::schema::{moment, words as choice};
use super::usage::UsageView;

/// Everything that a run recorded.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunSteps {
    /// In the order in which they began.
    pub steps: Vec<StepView>,
    /// In the order in which they began. A call that was tried again is there several times with the same `path`.
    pub calls: Vec<CallView>,
    /// Each time that one agent involved another, in the order in which they began.
    pub hops: Vec<HopView>,
}

/// One recorded effect.
#[derive(Debug, Serialize, ToSchema)]
pub struct StepView {
    /// Where in the run, such as `assistant/turn:1/tool:2`.
    pub path: String,
    #[schema(value_type = String)]
    pub session_id: SessionId,
    /// Whose session it is.
    #[schema(value_type = String)]
    pub agent: AgentName,
    #[schema(schema_with = choice::<StepKind>)]
    pub kind: StepKind,
    #[schema(schema_with = choice::<StepState>)]
    pub state: StepState,
    #[schema(schema_with = moment)]
    pub at: Timestamp,
    /// What went in: the arguments of a tool, the text of a session's task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input: Option<Value>,
    /// What came out: `{text, tool_calls}` of a turn, `{name, content, failed}` of a tool, otherwise what the step recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Value>,
}

/// One call of a model or a tool.
#[derive(Debug, Serialize, ToSchema)]
pub struct CallView {
    pub path: String,
    #[schema(value_type = String)]
    pub session_id: SessionId,
    #[schema(value_type = String)]
    pub agent: AgentName,
    pub kind: CallKind,
    /// Of the model or the tool.
    pub name: String,
    /// Of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub provider: Option<String>,
    #[schema(schema_with = moment)]
    pub started_at: Timestamp,
    pub latency_ms: u64,
    #[schema(schema_with = choice::<CallOutcome>)]
    pub outcome: CallOutcome,
    /// The stable code of the error.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<String>,
    pub usage: UsageView,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CallKind {
    Model,
    Tool,
}

/// What the store knows of a run.
#[derive(Debug)]
pub struct StepsOf {
    pub run: RunRecord,
    /// The message that the run is about.
    pub asked: Vec<Part>,
    pub steps: Vec<Step>,
    pub sessions: Vec<SessionRecord>,
    pub rows: Vec<LedgerRow>,
    /// Those of the whole thread.
    pub hops: Vec<Hop>,
}

impl From<StepsOf> for RunSteps {
    fn from(of: StepsOf) -> Self {
        let StepsOf { run, asked, steps, sessions, rows, hops } = of;
        let agents: HashMap<_, _> = sessions.into_iter().map(|one| (one.session_id, one.agent)).collect();
        let agent = |session: &SessionId| agents.get(session).unwrap_or(&run.agent).clone();
        let recorded: Vec<RecordedStep> = steps.iter().map(RecordedStep::of).collect();
        let replies: HashMap<&str, &Reply> = steps.iter().zip(&recorded).filter_map(reply).collect();
        let root = SessionId::root(run.run_id);
        let views = steps.iter().zip(&recorded).map(|(step, recorded)| {
            let input = match recorded {
                RecordedStep::Task(task) if task.is_empty() && step.session_id == root => text(&asked),
                RecordedStep::Task(task) => text(task),
                _ => {
                    call_of(&step.path, |turn| replies.get(turn).copied()).map(|call| parsed(&call.arguments))
                }
            };
            StepView::of(step, agent(&step.session_id), input, output(recorded))
        });
        Self {
            steps: views.collect(),
            calls: rows.into_iter().map(Into::into).collect(),
            hops: hops.into_iter().filter(|hop| hop.run_id == Some(run.run_id)).map(Into::into).collect(),
        }
    }
}

fn reply<'a>((step, recorded): (&'a Step, &'a RecordedStep)) -> Option<(&'a str, &'a Reply)> {
    match recorded {
        RecordedStep::Reply(reply) => Some((&step.path, reply)),
        _ => None,
    }
}

fn text(parts: &[Part]) -> Option<Value> {
    (!parts.is_empty()).then(|| text_of(parts).into())
}

/// Arguments that are no JSON are shown as the model wrote them.
fn parsed(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap_or_else(|_| arguments.into())
}

fn output(recorded: &RecordedStep) -> Option<Value> {
    match recorded {
        RecordedStep::Reply(reply) => {
            let call = |call: &baton_core::ToolCall| json!({ "id": call.id, "name": call.name, "arguments": parsed(&call.arguments) });
            let calls: Vec<Value> = reply.calls.iter().map(call).collect();
            Some(json!({ "text": reply.text, "tool_calls": calls }))
        }
        RecordedStep::Returned(result) => {
            Some(json!({ "name": result.name, "content": result.content, "failed": result.failed }))
        }
        RecordedStep::Text(text) => Some(text.as_str().into()),
        RecordedStep::Data(data) => Some(data.clone()).filter(|data| !data.is_null()),
        RecordedStep::Task(_) | RecordedStep::Unfinished => None,
    }
}

impl StepView {
    fn of(step: &Step, agent: AgentName, input: Option<Value>, output: Option<Value>) -> Self {
        let masked = |value: Value| sanitize_value(&value, Mask::SecretsOnly);
        Self {
            path: step.path.clone(),
            session_id: step.session_id.clone(),
            agent,
            kind: step.kind,
            state: step.state,
            at: step.at,
            input: input.map(masked),
            output: output.map(masked),
        }
    }
}

impl From<LedgerRow> for CallView {
    fn from(row: LedgerRow) -> Self {
        let usage = row.usage().into();
        let (kind, provider, name) = match row.call {
            Called::Model { provider, model } => (CallKind::Model, Some(provider), model),
            Called::Tool { tool } => (CallKind::Tool, None, tool),
        };
        Self {
            path: row.path,
            session_id: row.session_id,
            agent: row.agent,
            kind,
            name,
            provider,
            started_at: row.started_at,
            latency_ms: row.latency_ms,
            outcome: row.outcome,
            error: row.error,
            usage,
        }
    }
}
