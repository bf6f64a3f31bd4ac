//! A tool as OpenAI describes it. Ollama took over the same form.

use baton_core::ToolSpec;
use serde::Serialize;
use serde_json::Value;

use crate::tool_names::ToolNames;

#[derive(Serialize)]
pub(crate) struct FunctionTool<'a> {
    r#type: &'static str,
    function: FunctionSpec<'a>,
}

#[derive(Serialize)]
struct FunctionSpec<'a> {
    name: &'a str,
    description: &'a str,
    parameters: &'a Value,
}

impl<'a> FunctionTool<'a> {
    pub fn of(tool: &'a ToolSpec, names: &'a ToolNames) -> Self {
        let name = names.wire(&tool.name);
        let function = FunctionSpec { name, description: &tool.description, parameters: &tool.parameters };
        Self { r#type: "function", function }
    }
}
