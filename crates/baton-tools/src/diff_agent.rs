//! `diff_agent`: what saving a draft would change.

use std::sync::Arc;

use baton_core::tool::ToolFuture;
use baton_core::{CallContext, Tool, ToolSpec};
use serde_json::Value;

use crate::agents::diff::diff;
use crate::agents::{AgentDrafts, DraftArguments};
use crate::schema::arguments;
use crate::write_skill::fence;

#[derive(Debug)]
pub struct DiffAgent {
    spec: ToolSpec,
    drafts: AgentDrafts,
}

impl DiffAgent {
    pub fn new(drafts: AgentDrafts) -> Self {
        let description =
            "Shows what saving the draft of an agent would change: the lines that are added and removed.";
        let spec = DraftArguments::read_only_spec("diff_agent", description);
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
