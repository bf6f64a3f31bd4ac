//! `validate_agent`: whether a draft keeps the rules of agent files.

use std::sync::Arc;

use baton_core::tool::ToolFuture;
use baton_core::{CallContext, Tool, ToolError, ToolSpec};
use serde_json::Value;

use crate::agents::{AgentDrafts, DraftArguments, problems};
use crate::schema::arguments;

#[derive(Debug)]
pub struct ValidateAgent {
    spec: ToolSpec,
    drafts: AgentDrafts,
}

impl ValidateAgent {
    pub fn new(drafts: AgentDrafts) -> Self {
        let description = "Checks the draft of an agent by the rules of agent files and by what its creator may give to it. Fails \
                          with a report that has the line and column of everything that must be corrected.";
        let spec = DraftArguments::read_only_spec("validate_agent", description);
        Self { spec, drafts }
    }
}

impl Tool for ValidateAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let drafts = self.drafts.clone();
        Box::pin(async move {
            let name = arguments::<DraftArguments>(input)?.name()?;
            let draft = drafts.find(&context, &name).await?;
            let checked = drafts.check(&context, &name, &draft.text).await?;
            if !checked.is_valid() {
                return Err(ToolError::Execution(problems(&checked)));
            }
            Ok(format!("`{name}` keeps the rules of agent files.").into())
        })
    }
}
