//! `read_output`: more of an output that was too long.

use std::sync::Arc;

use baton_core::tool::{Effect, Risk, ToolFuture};
use baton_core::{CallContext, HumanDuration, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::offload::offload;
use crate::outputs::{Outputs, SHOWN_BYTES, Slice};
use crate::schema::{arguments, object};

/// With its first line a page stays below what is shown at once, or reading would itself give a handle.
const MAX_BYTES: usize = SHOWN_BYTES - 1024;
const DEFAULT_BYTES: usize = 8 * 1024;

#[derive(Debug)]
pub struct ReadOutput {
    spec: ToolSpec,
    outputs: Outputs,
}

#[derive(Debug, Deserialize)]
struct Arguments {
    handle: String,
    offset: Option<usize>,
    limit: Option<usize>,
}

impl ReadOutput {
    pub fn new(outputs: Outputs) -> Self {
        let spec = ToolSpec {
            name: "read_output".to_owned(),
            description: "Reads more of a tool's output that was too long to be shown at once. The shortened output ends with \
                          the handle and the offset to read on from. Handles hold until the run ends."
                .to_owned(),
            parameters: object(
                json!({
                    "handle": {"type": "string", "minLength": 1, "description": "The handle, such as out_1f0c…"},
                    "offset": {"type": "integer", "minimum": 0, "description": "The byte to begin with. Default 0"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": MAX_BYTES, "description": "How many bytes to read. Default 8192"},
                }),
                &["handle"],
            ),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(30),
        };
        Self { spec, outputs }
    }
}

impl Tool for ReadOutput {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let outputs = self.outputs.clone();
        Box::pin(async move {
            let Arguments { handle, offset, limit } = arguments(input)?;
            let limit = limit.unwrap_or(DEFAULT_BYTES).clamp(1, MAX_BYTES);
            let text = offload(move |_| {
                let found = outputs.read(&context, &handle, offset.unwrap_or(0), limit);
                let slice =
                    found.ok_or_else(|| ToolError::Execution(format!("there is no output `{handle}`")))?;
                slice.map(|slice| shown(&slice)).map_err(|error| ToolError::Execution(error.to_string()))
            });
            Ok(text.await?.into())
        })
    }
}

fn shown(slice: &Slice) -> String {
    let Slice { text, start, end, total } = slice;
    let next = if end < total { format!("read on with offset {end}") } else { "this is the end".to_owned() };
    format!("Bytes {start} to {end} of {total}; {next}.\n\n{text}")
}
