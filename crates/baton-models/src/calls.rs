//! The tool calls of one reply.

use baton_core::{Chunk, ToolCallId};

use crate::fault::ModelFault;
use crate::tool_names::ToolNames;

/// More calls in one reply are a provider gone wild.
const MAX_CALLS: usize = 128;

/// Gives every call its own number, counted here: what the wire counts with can be anything.
#[derive(Debug)]
pub(crate) struct CallNumbers {
    names: ToolNames,
    open: Vec<CallSlot>,
}

#[derive(Debug)]
struct CallSlot {
    wire_index: Option<u64>,
    id: ToolCallId,
    has_arguments: bool,
}

impl CallNumbers {
    pub fn new(names: ToolNames) -> Self {
        Self { names, open: Vec::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }

    /// Begins a call and returns its number. An id that is missing, unusable or taken is replaced by `call_<number>`.
    pub fn begin(
        &mut self,
        wire_index: Option<u64>,
        id: Option<&str>,
        name: &str,
        signature: Option<String>,
        ready: &mut Vec<Chunk>,
    ) -> Result<u32, ModelFault> {
        if self.open.len() == MAX_CALLS {
            return Err(ModelFault::malformed(format!("more than {MAX_CALLS} tool calls in one reply")));
        }
        if name.is_empty() {
            return Err(ModelFault::malformed("a tool call without a name"));
        }
        let index = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        let given = id.and_then(|id| ToolCallId::parse(id).ok());
        let is_taken = |id: &ToolCallId| self.open.iter().any(|call| call.id == *id);
        let id = given.filter(|id| !is_taken(id)).map_or_else(|| generated(index), Ok)?;
        self.open.push(CallSlot { wire_index, id: id.clone(), has_arguments: false });
        ready.push(Chunk::Call { index, id, name: self.names.own(name).to_owned(), signature });
        Ok(index)
    }

    /// The newest call with this number on the wire; without a number, the newest of all.
    pub fn find(&self, wire_index: Option<u64>) -> Option<u32> {
        let newest = match wire_index {
            Some(_) => self.open.iter().rposition(|call| call.wire_index == wire_index),
            None => self.open.len().checked_sub(1),
        };
        newest.and_then(|at| u32::try_from(at).ok())
    }

    pub fn id(&self, index: u32) -> Option<&str> {
        self.open.get(index as usize).map(|call| call.id.as_str())
    }

    pub fn arguments(&mut self, index: u32, delta: String, ready: &mut Vec<Chunk>) {
        if let Some(call) = self.open.get_mut(index as usize).filter(|_| !delta.is_empty()) {
            call.has_arguments = true;
            ready.push(Chunk::Arguments { index, delta });
        }
    }

    /// Some providers say nothing where others say `{}`.
    pub fn complete(&mut self, ready: &mut Vec<Chunk>) {
        for (index, call) in (0..).zip(&mut self.open) {
            if !std::mem::replace(&mut call.has_arguments, true) {
                ready.push(Chunk::Arguments { index, delta: "{}".to_owned() });
            }
        }
    }
}

fn generated(index: u32) -> Result<ToolCallId, ModelFault> {
    ToolCallId::parse(&format!("call_{index}")).map_err(|error| ModelFault::malformed(error.to_string()))
}
