//! Ends a loop of equal tool calls.
//!
//! A small model may ask for the same thing again and again until a limit ends the session. After two turns in a row with the same
//! calls, its next turn may only answer.

use baton_core::chat::ToolCall;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::StepKind;
use serde_json::Value;

use crate::failure::Failure;
use crate::models::ModelCandidate;
use crate::scope::Scope;

/// The path segment, below its turn, of the note that the calls were repeated.
const REPEATED: &str = "repeated";

/// Compares the calls of each turn with those of the turn before.
#[derive(Debug)]
pub(crate) struct RepeatedCalls {
    is_on: bool,
    last: Vec<ComparedCall>,
    /// Whether the last two turns made the same calls.
    is_repeated: bool,
}

/// The name of a tool and its arguments, as JSON if they can be parsed.
#[derive(Debug, PartialEq)]
struct ComparedCall(String, Result<Value, String>);

impl ComparedCall {
    fn new(call: &ToolCall) -> Self {
        let arguments = crate::json::parse(&call.arguments).map_err(|_| call.arguments.clone());
        Self(call.name.clone(), arguments)
    }
}

impl RepeatedCalls {
    pub(crate) fn new(candidates: &[ModelCandidate]) -> Self {
        let is_on = candidates.first().is_some_and(|first| first.facts.assists.repeated_calls);
        Self { is_on, last: Vec::new(), is_repeated: false }
    }

    /// Whether the next turn may only answer.
    pub(crate) fn must_answer(&self) -> bool {
        self.is_repeated
    }

    /// Compares the calls of the turn at `place`, in any order. A repetition is recorded once, also after a crash.
    pub(crate) async fn add(&mut self, place: &Scope, calls: &[ToolCall]) -> Result<(), Failure> {
        if !self.is_on {
            return Ok(());
        }
        let calls: Vec<ComparedCall> = calls.iter().map(ComparedCall::new).collect();
        self.is_repeated = calls.len() == self.last.len()
            && calls.iter().all(|call| self.last.contains(call))
            && self.last.iter().all(|call| calls.contains(call));
        self.last = calls;
        let note = place.at(REPEATED);
        if self.is_repeated && !note.step().is_finished() {
            let text = "answers without tools: two turns in a row made the same calls".to_owned();
            let event = note.event(Visibility::Internal, EventKind::Status { text });
            note.step().finish(StepKind::Note, &(), vec![event], Vec::new()).await?;
        }
        Ok(())
    }
}
