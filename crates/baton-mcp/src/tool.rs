//! A tool of an MCP server, as a model calls it.

use std::fmt;
use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, ProducedFile, Tool, ToolError, ToolSpec, TraceParent};
use rmcp::model::{CallToolRequestParams, JsonObject, RequestParamsMeta as _, ToolAnnotations};
use serde_json::Value;

use crate::client::McpClient;
use crate::content;

/// Linked resources that are read for one answer.
const MAX_LINKS: usize = 4;

/// What a server says about one of its tools.
pub(crate) struct ToolOffer {
    /// As the server knows it.
    name: String,
    spec: ToolSpec,
}

impl ToolOffer {
    /// `None` when the tool cannot be called: its name is empty, or its arguments are not an object.
    pub fn new(
        server: &str,
        tool: &rmcp::model::Tool,
        timeout: HumanDuration,
        is_trusted: bool,
    ) -> Option<Self> {
        let name = tool.name.to_string();
        let parameters = parameters(&tool.input_schema).filter(|_| !name.is_empty());
        let Some(parameters) = parameters else {
            tracing::warn!(server, name, "left out a tool of an MCP server: it takes no object");
            return None;
        };
        let description = tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default();
        let (effect, risk) = effect(tool.annotations.as_ref().filter(|_| is_trusted));
        let spec = ToolSpec {
            name: format!("mcp:{server}/{name}"),
            description: description.to_owned(),
            parameters,
            effect,
            risk,
            timeout,
        };
        Some(Self { name, spec })
    }
}

/// From the hints of a server that the operator trusts. They are the server's own word, so those of others do not count: the worst
/// is assumed, as it is without hints.
fn effect(hints: Option<&ToolAnnotations>) -> (Effect, Risk) {
    let read_only = hints.and_then(|hints| hints.read_only_hint).unwrap_or(false);
    let destructive = hints.is_none_or(ToolAnnotations::is_destructive);
    match (read_only, destructive) {
        (true, _) => (Effect::ReadOnly, Risk::Low),
        (false, false) => (Effect::Writes, Risk::Medium),
        (false, true) => (Effect::Writes, Risk::High),
    }
}

/// The schema with `type: object`, which some servers leave out.
fn parameters(schema: &JsonObject) -> Option<Value> {
    let is_object = match schema.get("type") {
        None => true,
        Some(Value::String(kind)) => kind == "object",
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "object"),
        Some(_) => false,
    };
    let mut schema = schema.clone();
    schema.insert("type".to_owned(), "object".into());
    is_object.then_some(Value::Object(schema))
}

pub struct McpTool {
    offer: Arc<ToolOffer>,
    client: Arc<McpClient>,
}

impl McpTool {
    pub(crate) fn new(offer: Arc<ToolOffer>, client: Arc<McpClient>) -> Self {
        Self { offer, client }
    }

    fn request(&self, arguments: Value, context: &CallContext) -> Result<CallToolRequestParams, ToolError> {
        if !self.client.serves(context) {
            return Err(ToolError::NotPermitted("this tool belongs to another tenant or thread".to_owned()));
        }
        let is_full = context.storage_left == Some(0);
        if is_full && self.client.has_workspace() && self.offer.spec.effect == Effect::Writes {
            let reason = "the storage of the user or tenant is full; delete files or conversations first";
            return Err(ToolError::Limit(reason.to_owned()));
        }
        let request = traced(CallToolRequestParams::new(self.offer.name.clone()), context.trace.as_ref());
        match arguments {
            Value::Object(arguments) => Ok(request.with_arguments(arguments)),
            Value::Null => Ok(request),
            _ => Err(ToolError::InvalidArguments("the arguments have to be an object".to_owned())),
        }
    }
}

/// The call as part of a trace, which servers find in `_meta`.
fn traced(mut request: CallToolRequestParams, trace: Option<&TraceParent>) -> CallToolRequestParams {
    if let Some(trace) = trace {
        request.set_traceparent(&trace.to_string());
        if let Some(state) = trace.state() {
            request.set_tracestate(state);
        }
    }
    request
}

impl Tool for McpTool {
    fn spec(&self) -> &ToolSpec {
        &self.offer.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call(&self, arguments: Value, context: Arc<CallContext>) -> ToolFuture {
        let request = self.request(arguments, &context);
        let (client, limit) = (Arc::clone(&self.client), self.offer.spec.timeout);
        Box::pin(async move {
            let result = client.call(request?, limit).await?;
            if result.is_error == Some(true) {
                return Err(ToolError::Execution(content::text(&result)));
            }
            let mut output = content::output(&result);
            for link in content::links(&result).take(MAX_LINKS) {
                let contents = client.read(&link.uri).await;
                let files = contents.iter().filter_map(content::resource_file);
                let is_for_user = content::is_link_for_user(link);
                output.files.extend(files.map(|file| ProducedFile { is_for_user, ..file }));
            }
            Ok(output)
        })
    }
}

impl fmt::Debug for McpTool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("McpTool").field(&self.offer.spec.name).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn offer(tool: Value) -> Option<ToolSpec> {
        let tool = serde_json::from_value(tool).unwrap();
        ToolOffer::new("a", &tool, HumanDuration::from_secs(1), true).map(|offer| offer.spec)
    }

    #[test]
    fn hints_of_a_server_that_is_not_trusted_do_not_count() {
        let annotations = json!({ "readOnlyHint": true, "destructiveHint": false });
        let tool = json!({ "name": "b", "inputSchema": {}, "annotations": annotations });
        let tool = serde_json::from_value(tool).unwrap();
        let spec = ToolOffer::new("a", &tool, HumanDuration::from_secs(1), false).unwrap().spec;
        assert_eq!((spec.effect, spec.risk), (Effect::Writes, Risk::High));
    }

    #[test]
    fn hints_decide_effect_and_risk() {
        for (hints, expected) in [
            (json!(null), (Effect::Writes, Risk::High)),
            (json!({}), (Effect::Writes, Risk::High)),
            (json!({ "destructiveHint": false }), (Effect::Writes, Risk::Medium)),
            (json!({ "readOnlyHint": true, "destructiveHint": true }), (Effect::ReadOnly, Risk::Low)),
        ] {
            let spec =
                offer(json!({ "name": "b", "title": "B", "inputSchema": {}, "annotations": hints })).unwrap();
            assert_eq!((spec.effect, spec.risk), expected);
            assert_eq!((spec.name.as_str(), spec.description.as_str()), ("mcp:a/b", "B"));
            assert_eq!(spec.parameters, json!({ "type": "object" }));
        }
    }

    #[test]
    fn only_objects_are_arguments() {
        assert!(offer(json!({ "name": "b", "inputSchema": { "type": ["object", "null"] } })).is_some());
        for schema in [json!({ "type": "string" }), json!({ "type": 1 }), json!({ "type": ["array"] })] {
            assert!(offer(json!({ "name": "b", "inputSchema": schema })).is_none());
        }
        assert!(offer(json!({ "name": "", "inputSchema": {} })).is_none());
    }

    #[test]
    fn a_call_carries_its_trace() {
        let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let trace = TraceParent::parse(parent).unwrap().with_state("vendor=1");
        let call = |trace| serde_json::to_value(traced(CallToolRequestParams::new("a"), trace)).unwrap();
        assert_eq!(call(Some(&trace))["_meta"], json!({ "traceparent": parent, "tracestate": "vendor=1" }));
        assert_eq!(call(None), json!({ "name": "a" }));
    }
}
