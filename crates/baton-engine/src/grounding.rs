//! `grounding: required`: an agent answers from the results of its tools.
//!
//! The first working turn of a session has to call a tool. An answer that comes before any tool has succeeded is held back, and
//! the model is asked again once: with what a search for the question returns if the agent has a tool for that, otherwise with the
//! request to call a tool.

use baton_core::ToolCallId;
use baton_core::agent::Grounding;
use baton_core::chat::ToolCall;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::StepKind;
use serde_json::json;

use crate::failure::Failure;
use crate::models::ModelCandidate;
use crate::scope::Scope;
use crate::toolset::Toolset;

/// The path segment, below its turn, of the note that the model was asked again.
const ASKED_AGAIN: &str = "again";

/// Characters of the question that are searched for.
const MAX_QUERY: usize = 300;

/// What follows an answer without evidence.
#[derive(Debug)]
pub(crate) enum EvidenceRequest {
    /// The engine makes this call in place of the model, whose answer is dropped.
    Search(ToolCall),
    /// A user message that asks the model to call a tool.
    Instruct(String),
}

/// Whether a session still needs evidence before its answer counts.
#[derive(Debug)]
pub(crate) struct EvidenceCheck {
    /// The agent requires evidence, has tools that give it, and none of them has succeeded yet.
    is_open: bool,
    /// Working turns so far.
    turns: u32,
    ask_again: AskAgain,
}

/// Whether the model is asked again if it answers without evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskAgain {
    /// Turned off for the model.
    Never,
    Once,
    Done,
}

impl EvidenceCheck {
    pub(crate) fn new(scope: &Scope, toolset: &Toolset, candidates: &[ModelCandidate]) -> Self {
        let is_required = scope.agent().grounding == Grounding::Required;
        let assists = candidates.first().is_some_and(|first| first.facts.assists.grounding);
        Self {
            is_open: is_required && toolset.evidence_tools().next().is_some(),
            turns: 0,
            ask_again: if assists { AskAgain::Once } else { AskAgain::Never },
        }
    }

    /// Whether the next working turn has to call a tool: the first one, and the one after the model was asked again.
    pub(crate) fn requires_tool(&self) -> bool {
        self.is_open && (self.turns == 0 || self.ask_again == AskAgain::Done)
    }

    /// Whether a text would be withdrawn if it came now, so that it must not be streamed.
    pub(crate) fn holds_text(&self) -> bool {
        self.is_open && self.ask_again == AskAgain::Once
    }

    pub(crate) fn count_turn(&mut self) {
        self.turns += 1;
    }

    /// Notes that the tools with these names succeeded.
    pub(crate) fn add_results<'a>(
        &mut self,
        toolset: &Toolset,
        succeeded: impl IntoIterator<Item = &'a str>,
    ) {
        let mut names = succeeded.into_iter();
        self.is_open &= !names.any(|name| toolset.evidence_tools().any(|tool| tool == name));
    }

    /// Asks the model again after the answer of the turn at `place`, if `may_ask` or if that was recorded before a crash.
    pub(crate) async fn ask_again(
        &mut self,
        place: &Scope,
        toolset: &Toolset,
        question: &str,
        may_ask: bool,
    ) -> Result<Option<EvidenceRequest>, Failure> {
        let note = place.at(ASKED_AGAIN);
        // The tool that was searched with, if any.
        let recorded: Option<Option<String>> = note.step().finished()?;
        if recorded.is_none() && !may_ask {
            return Ok(None);
        }
        self.ask_again = AskAgain::Done;
        let search = match recorded {
            Some(search) => search,
            None => {
                let search = toolset.search_tool().map(str::to_owned).filter(|_| !question.trim().is_empty());
                let text = match &search {
                    Some(tool) => format!("searched with `{tool}`, because the answer had no tool result"),
                    None => "asked again: the answer had no tool result".to_owned(),
                };
                let event = note.event(Visibility::Internal, EventKind::Status { text });
                // Boxed: a record is large, and most sessions write none here.
                Box::pin(note.step().finish(StepKind::Note, &search, vec![event], Vec::new())).await?;
                search
            }
        };
        if let Some(name) = search {
            let query: String = question.trim().chars().take(MAX_QUERY).collect();
            let id = ToolCallId::parse(&format!("search_{}", note.uuid().simple())).expect("a short id");
            let arguments = json!({ "query": query }).to_string();
            return Ok(Some(EvidenceRequest::Search(ToolCall { id, name, arguments, signature: None })));
        }
        let tools: Vec<String> = toolset.evidence_tools().map(|name| format!("`{name}`")).collect();
        Ok(Some(EvidenceRequest::Instruct(format!(
            "No tool result supports this answer. Call one of your tools now ({}), then answer from what it returns. If it \
             returns nothing that helps, say so.",
            tools.join(", ")
        ))))
    }
}
