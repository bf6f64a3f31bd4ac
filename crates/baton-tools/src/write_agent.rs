//! `write_agent`: a draft of an agent from what a person said.

use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolOutput, ToolSpec};
use serde_json::{Value, json};

use crate::agents::AgentDrafts;
use crate::agents::draft::{AgentOutline, AgentWishes};
use crate::schema::{arguments, object, texts};
use crate::write_skill::fence;

#[derive(Debug)]
pub struct WriteAgent {
    spec: ToolSpec,
    drafts: AgentDrafts,
}

impl WriteAgent {
    pub fn new(drafts: AgentDrafts) -> Self {
        let spec = ToolSpec {
            name: "write_agent".to_owned(),
            description: "Writes a draft of an agent file from what was collected, and returns the file. Writing the same name \
                          again replaces the draft. The name of a created agent changes it; that of an agent of a file is \
                          refused. Nothing is active before save_agent."
                .to_owned(),
            parameters: object(parameters(), &["name", "purpose"]),
            effect: Effect::Repeatable,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(30),
        };
        Self { spec, drafts }
    }
}

fn parameters() -> Value {
    json!({
        "name": {"type": "string", "minLength": 1, "description": "What the agent is called, such as Travel Helper; it becomes travel-helper"},
        "purpose": {"type": "string", "minLength": 1, "description": "What the agent does and for whom, in one or two sentences"},
        "instructions": texts("Rules and steps for its work; a list, or one text with a line for each"),
        "tools": texts("Names of the tools that it may use, such as search_docs"),
        "collaborators": texts("Names of the agents that it may ask, such as knowledge"),
        "examples": texts("Messages that people would send to it; a list, or one text with a line for each"),
    })
}

impl Tool for WriteAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let drafts = self.drafts.clone();
        Box::pin(async move {
            let outline = AgentOutline::new(&arguments::<AgentWishes>(input)?)?;
            let (name, file) = (&outline.name, outline.file());
            let is_change = drafts.write(&context, name, file.clone()).await?;
            let (what, fence) = (if is_change { "Changed draft" } else { "Draft" }, fence(&file));
            let text =
                format!("{what} of the agent `{name}`, not saved yet:\n\n{fence}markdown\n{file}{fence}");
            Ok(ToolOutput::from(text).with_artifact(name.as_str()))
        })
    }
}
