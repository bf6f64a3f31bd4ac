//! `diff_agent`: what saving a draft would change.

use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolSpec};
use serde_json::{Value, json};

use crate::agents::diff::diff;
use crate::agents::{AgentDrafts, DraftArguments};
use crate::schema::{arguments, object};
use crate::write_skill::fence;

#[derive(Debug)]
pub struct DiffAgent {
    spec: ToolSpec,
    drafts: AgentDrafts,
}

impl DiffAgent {
    pub fn new(drafts: AgentDrafts) -> Self {
        let spec = ToolSpec {
            name: "diff_agent".to_owned(),
            description:
                "Shows what saving the draft of an agent would change: the lines that are added and removed."
                    .to_owned(),
            parameters: object(
                json!({"name": {"type": "string", "minLength": 1, "description": "The name of the draft, such as travel-helper"}}),
                &["name"],
            ),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(30),
        };
        Self { spec, drafts }
    }
}

impl Tool for DiffAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let drafts = self.drafts.clone();
        Box::pin(async move {
            let name = arguments::<DraftArguments>(input)?.name()?;
            let draft = drafts.find(&context, &name).await?;
            let lines = diff(draft.replaces.as_deref().unwrap_or_default(), &draft.text);
            let intro = match &draft.replaces {
                None => format!("`{name}` is a new agent. Saving adds:"),
                Some(_) if lines.is_empty() => {
                    return Ok(format!("The draft of `{name}` is as the saved agent.").into());
                }
                Some(_) => format!("Saving changes the agent `{name}`:"),
            };
            let fence = fence(&lines);
            Ok(format!("{intro}\n\n{fence}diff\n{lines}{fence}").into())
        })
    }
}
