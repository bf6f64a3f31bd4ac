//! `read_output`: more of an output that was too long.

use std::sync::Arc;

use baton_core::store::{OutputHandle, OutputSlice};
use baton_core::tool::{Effect, Risk, SHOWN_OUTPUT_BYTES, ToolFuture};
use baton_core::{CallContext, HumanDuration, Store, StoreError, Tool, ToolError, ToolSpec};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::schema::{arguments, object};

/// With its first line a page stays below what is shown at once, or reading would itself give a handle.
const MAX_BYTES: usize = SHOWN_OUTPUT_BYTES - 1024;
const DEFAULT_BYTES: usize = 8 * 1024;
/// The bytes of a character after its first.
const CHARACTER_END: usize = 3;

#[derive(Debug)]
pub struct ReadOutput {
    spec: ToolSpec,
    store: Arc<dyn Store>,
}

#[derive(Debug, Deserialize)]
struct ReadOutputArguments {
    handle: String,
    offset: Option<u64>,
    limit: Option<usize>,
}

impl ReadOutput {
    pub fn new(store: Arc<dyn Store>) -> Self {
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
        Self { spec, store }
    }
}

impl Tool for ReadOutput {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call(&self, input: Value, context: Arc<CallContext>) -> ToolFuture {
        let store = self.store.tenant(&context.tenant);
        Box::pin(async move {
            let ReadOutputArguments { handle, offset, limit } = arguments(input)?;
            let limit = limit.unwrap_or(DEFAULT_BYTES).clamp(1, MAX_BYTES);
            let unknown = || ToolError::Execution(format!("there is no output `{handle}`"));
            let known = OutputHandle::parse(&handle).filter(|known| known.belongs_to(&context.session_id));
            let known = known.ok_or_else(unknown)?;
            let bytes = u32::try_from(limit + CHARACTER_END).unwrap_or(u32::MAX);
            match store.output_slice(context.run_id, known, offset.unwrap_or(0), bytes).await {
                Ok(slice) => Ok(Page::of(&slice, limit).shown().into()),
                Err(StoreError::NotFound(_)) => Err(unknown()),
                Err(error) => Err(ToolError::Execution(error.to_string())),
            }
        })
    }
}

/// Whole characters of an output. It begins and ends between them.
#[derive(Debug, PartialEq, Eq)]
struct Page {
    text: String,
    /// Where it begins and ends, in bytes.
    start: u64,
    end: u64,
    total: u64,
}

impl Page {
    /// About `limit` bytes. The slice has [`CHARACTER_END`] bytes more if the output has, to finish a character.
    fn of(slice: &OutputSlice, limit: usize) -> Self {
        let OutputSlice { bytes, offset, size } = slice;
        let is_inside = |byte: &u8| byte & 0xc0 == 0x80;
        let skipped = bytes.iter().take_while(|byte| is_inside(byte)).count();
        let mut end = bytes.len().min(skipped.max(limit));
        while bytes.get(end).is_some_and(is_inside) {
            end += 1;
        }
        let text = String::from_utf8_lossy(&bytes[skipped..end]).into_owned();
        Self { text, start: offset + skipped as u64, end: offset + end as u64, total: *size }
    }

    fn shown(&self) -> String {
        let Self { text, start, end, total } = self;
        let next =
            if end < total { format!("read on with offset {end}") } else { "this is the end".to_owned() };
        format!("Bytes {start} to {end} of {total}; {next}.\n\n{text}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_begin_and_end_between_characters() {
        let whole = "🎷".repeat(50);
        for offset in 0..=whole.len() {
            for limit in 1..=9 {
                let end = whole.len().min(offset + limit + CHARACTER_END);
                let bytes = whole.as_bytes()[offset..end].to_vec();
                let slice = OutputSlice { bytes, offset: offset as u64, size: whole.len() as u64 };
                let page = Page::of(&slice, limit);
                let (start, end) = (usize::try_from(page.start).unwrap(), usize::try_from(page.end).unwrap());
                assert_eq!(whole.get(start..end), Some(page.text.as_str()), "{offset} {limit}");
                assert!(end > offset || offset > whole.len() - 4, "{offset} {limit}");
            }
        }
    }
}
