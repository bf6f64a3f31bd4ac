//! `ask_user`: a question to the person.

use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolError, ToolSpec};
use serde_json::{Value, json};

use crate::schema::object;

/// Only the spec matters: the engine recognises calls by the name, parks the run and gives the person's answer as the result.
#[derive(Debug)]
pub struct AskUser {
    spec: ToolSpec,
}

impl Default for AskUser {
    fn default() -> Self {
        let spec = ToolSpec {
            name: "ask_user".to_owned(),
            description: "Asks the person one question and waits for the answer. Use it only when you cannot go on without \
                          knowing, and nothing you have been told or can look up answers it. Give choices when there are \
                          few possible answers."
                .to_owned(),
            parameters: object(
                json!({
                    "question": {"type": "string", "minLength": 1, "description": "One question, in everyday words"},
                    "choices": {"type": "array", "items": {"type": "string"}, "maxItems": 10, "description": "Possible answers. The person may still answer something else"},
                    "schema": {"type": "object", "description": "Only if several values are needed at once: a JSON Schema of the answer, such as {\"type\": \"object\", \"properties\": …}"},
                }),
                &["question"],
            ),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_mins(24 * 60),
        };
        Self { spec }
    }
}

impl Tool for AskUser {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, _: Value, _: Arc<CallContext>) -> ToolFuture {
        let refusal =
            "no user can be asked in this run; go on with the most careful assumption and say what it was";
        Box::pin(async move { Err(ToolError::NotPermitted(refusal.to_owned())) })
    }
}
