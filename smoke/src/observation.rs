//! What a case led to.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::api::{Run, Session, Step, Steps};

/// Everything that the checks of a case look at.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Observation {
    pub messages: Vec<MessageResult>,
    /// The agent that holds the thread after the last message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holder: Option<String>,
    /// State of the workflow when it was last seen.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workflow_state: Option<String>,
    /// Values of the workflow when it was last seen.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub values: BTreeMap<String, String>,
    /// Agents whose handoff has ended as `completed`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub completed_handoffs: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skills: Vec<String>,
}

/// One message and its run.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct MessageResult {
    pub text: String,
    pub status: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<String>,
    pub answer: String,
    pub sessions: Vec<SessionResult>,
    pub tool_calls: Vec<ToolUse>,
    /// In the order in which they began.
    pub model_calls: Vec<ModelCall>,
    /// From sending the message to the first text or tool call of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_token_ms: Option<u64>,
    pub total_ms: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionResult {
    pub agent: String,
    pub status: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolUse {
    pub agent: String,
    pub tool: String,
    pub arguments: Value,
    /// `None` if the call has no result, for example because it passed the baton.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    pub failed: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelCall {
    pub input_tokens: u64,
    pub cached_tokens: u64,
    pub output_tokens: u64,
}

impl MessageResult {
    pub fn add_run(&mut self, run: Run) {
        self.status = run.status;
        self.answered_by = run.answered_by;
        self.answer = run.answer.unwrap_or_default();
        self.error = run.error.map(|error| format!("{}: {}", error.code, error.message));
        flatten(run.sessions, &mut self.sessions);
    }

    pub fn add_steps(&mut self, steps: &Steps) {
        let models = steps.calls.iter().filter(|call| call.kind == "model");
        self.model_calls = models
            .map(|call| ModelCall {
                input_tokens: call.usage.input_tokens,
                cached_tokens: call.usage.cached_tokens,
                output_tokens: call.usage.output_tokens,
            })
            .collect();
        self.tool_calls = tool_uses(&steps.steps);
    }
}

fn flatten(sessions: Vec<Session>, into: &mut Vec<SessionResult>) {
    for session in sessions {
        into.push(SessionResult { agent: session.agent, status: session.status });
        flatten(session.sessions, into);
    }
}

/// The tool calls of all turns. The result of call N of the turn at `path` is the step at `path/tool:N`. Results without such a call
/// are of calls that the engine made in place of the model.
fn tool_uses(steps: &[Step]) -> Vec<ToolUse> {
    let is_result = |step: &&Step| step.kind == "tool" && step.output["name"].is_string();
    let mut results: BTreeMap<&str, &Step> =
        steps.iter().filter(is_result).map(|step| (step.path.as_str(), step)).collect();
    let mut uses = Vec::new();
    for turn in steps.iter().filter(|step| step.kind == "turn") {
        for (at, call) in turn.output["tool_calls"].as_array().into_iter().flatten().enumerate() {
            let result = results.remove(format!("{}/tool:{}", turn.path, at + 1).as_str());
            uses.push(tool_use(&turn.agent, call, result));
        }
    }
    uses.extend(results.into_values().map(|step| tool_use(&step.agent, &step.output, Some(step))));
    uses
}

/// `call` has the name of the tool and, if the model made it, the arguments.
fn tool_use(agent: &str, call: &Value, result: Option<&Step>) -> ToolUse {
    let output = result.map_or(&Value::Null, |step| &step.output);
    ToolUse {
        agent: agent.to_owned(),
        tool: call["name"].as_str().unwrap_or_default().to_owned(),
        arguments: call["arguments"].clone(),
        output: output["content"].as_str().map(str::to_owned),
        failed: output["failed"] == true,
    }
}

impl Observation {
    pub fn last(&self) -> Option<&MessageResult> {
        self.messages.last()
    }

    pub fn last_answer(&self) -> &str {
        self.last().map_or("", |message| &message.answer)
    }

    pub fn tool_calls(&self) -> impl Iterator<Item = &ToolUse> {
        self.messages.iter().flat_map(|message| &message.tool_calls)
    }

    pub fn sessions(&self) -> impl Iterator<Item = &SessionResult> {
        self.messages.iter().flat_map(|message| &message.sessions)
    }

    pub fn model_calls(&self) -> impl Iterator<Item = &ModelCall> {
        self.messages.iter().flat_map(|message| &message.model_calls)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tool_calls_get_the_results_of_their_steps() {
        let step = |path: &str, kind: &str, output: Value| Step {
            path: path.to_owned(),
            agent: "a".to_owned(),
            kind: kind.to_owned(),
            output,
        };
        let call = |name: &str| json!({ "id": "1", "name": name, "arguments": {} });
        let steps = [
            step("a/turn:1", "turn", json!({ "text": "", "tool_calls": [call("x"), call("y")] })),
            step("a/turn:1/tool:2", "tool", json!({ "name": "y", "content": "42", "failed": true })),
            step("a/turn:0/tool:1", "tool", json!({ "name": "search", "content": "43", "failed": false })),
        ];
        let uses = tool_uses(&steps);
        let seen = uses.iter().map(|one| (one.tool.as_str(), one.output.as_deref(), one.failed));
        assert_eq!(
            seen.collect::<Vec<_>>(),
            [("x", None, false), ("y", Some("42"), true), ("search", Some("43"), false)]
        );
    }
}
