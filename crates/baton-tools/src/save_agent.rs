//! `save_agent`: a draft becomes an agent of the tenant.

use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use crate::agents::{AgentDrafts, AgentSaved, DraftArguments};
use crate::schema::{arguments, object};

#[derive(Debug)]
pub struct SaveAgent {
    spec: ToolSpec,
    drafts: AgentDrafts,
}

impl SaveAgent {
    pub fn new(drafts: AgentDrafts) -> Self {
        let spec = ToolSpec {
            name: "save_agent".to_owned(),
            description: "Saves the draft of an agent, so that it can be used from now on. Needs the permission agent:write. \
                          Refused when the draft breaks the rules or the agent was changed meanwhile. Saving again changes \
                          nothing. Call it only after the person confirmed."
                .to_owned(),
            parameters: object(
                json!({"name": {"type": "string", "minLength": 1, "description": "The name of the draft, such as travel-helper"}}),
                &["name"],
            ),
            effect: Effect::Repeatable,
            risk: Risk::Medium,
            timeout: HumanDuration::from_secs(30),
        };
        Self { spec, drafts }
    }
}

impl Tool for SaveAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let drafts = self.drafts.clone();
        Box::pin(async move {
            let name = arguments::<DraftArguments>(input)?.name()?;
            let text = match drafts.save(&context, &name).await? {
                AgentSaved::Now => format!("Saved the agent `{name}`. It can be used from now on."),
                AgentSaved::Before => format!("The agent `{name}` was saved before. It can be used."),
            };
            Ok(ToolOutput::from(text).with_artifact(name.as_str()))
        })
    }
}
