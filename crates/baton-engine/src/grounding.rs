//! `grounding: required`: an agent answers from the results of its tools.
//!
//! The first working turn of a session has to call a tool. An answer that comes before any tool has succeeded is held back, and
//! the model is asked again once: with what a search for the question returns if the agent has a tool for that, otherwise with the
//! request to call a tool. For small models (`assists.search_first`) the search comes before the first turn.

use baton_core::ToolCallId;
use baton_core::agent::Grounding;
use baton_core::chat::ToolCall;
use baton_core::event::EventKind;
use baton_core::message::Visibility;
use baton_core::store::StepKind;
use serde::Serialize;
use serde_json::json;

use crate::failure::Failure;
use crate::models::ModelCandidate;
use crate::scope::Scope;
use crate::toolset::Toolset;

/// The path segment, below its turn, of the note that the model was asked again.
const ASKED_AGAIN: &str = "again";

/// The path segment, below the turn before it, of the note that the engine searched before the first working turn.
const SEARCHED_FIRST: &str = "first";

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
    /// The engine searches before the first working turn.
    search_first: bool,
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
        let assists = candidates.first().map(|first| first.facts.assists).unwrap_or_default();
        Self {
            is_open: is_required && toolset.evidence_tools().next().is_some(),
            turns: 0,
            ask_again: if assists.grounding { AskAgain::Once } else { AskAgain::Never },
            search_first: assists.search_first,
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

    /// Whether a search may come before the next working turn: only before the first one.
    pub(crate) fn may_search_first(&self) -> bool {
        self.is_open && self.turns == 0
    }

    /// The search before the first working turn, which follows the turn at `place`, if the model needs it and `may_search`, or if it
    /// was recorded before a crash.
    pub(crate) async fn first_search(
        &self,
        place: &Scope,
        toolset: &Toolset,
        question: &str,
        may_search: bool,
    ) -> Result<Option<ToolCall>, Failure> {
        let note = place.at(SEARCHED_FIRST);
        let tool = match note.step().finished::<String>()? {
            Some(recorded) => recorded,
            None if !may_search || !self.search_first => return Ok(None),
            None => {
                let Some(tool) = search_tool(toolset, question) else { return Ok(None) };
                record(&note, &tool, format!("searched with `{tool}` before the first turn")).await?;
                tool
            }
        };
        Ok(Some(search_call(&note, tool, question)))
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
                let search = search_tool(toolset, question);
                let text = match &search {
                    Some(tool) => format!("searched with `{tool}`, because the answer had no tool result"),
                    None => "asked again: the answer had no tool result".to_owned(),
                };
                record(&note, &search, text).await?;
                search
            }
        };
        if let Some(name) = search {
            return Ok(Some(EvidenceRequest::Search(search_call(&note, name, question))));
        }
        let tools: Vec<String> = toolset.evidence_tools().map(|name| format!("`{name}`")).collect();
        Ok(Some(EvidenceRequest::Instruct(format!(
            "No tool result supports this answer. Call one of your tools now ({}), then answer from what it returns. If it \
             returns nothing that helps, say so.",
            tools.join(", ")
        ))))
    }
}

/// The tool that a question can be searched with.
fn search_tool(toolset: &Toolset, question: &str) -> Option<String> {
    toolset.search_tool().map(str::to_owned).filter(|_| !question.trim().is_empty())
}

/// The question once more, after what the first search found: a small model answers what it has read last. Empty if the question
/// contains fenced text, whose marks would appear a second time.
pub(crate) fn question_after_search(question: &str) -> String {
    if question.contains("<<<") {
        return String::new();
    }
    let question = question.trim();
    format!(
        "\n\nThe question is: {question}\nAnswer it from the passages above. If no passage answers it, say so."
    )
}

/// A call that the engine makes in place of the model.
fn search_call(note: &Scope, name: String, question: &str) -> ToolCall {
    let query: String = question.trim().chars().take(MAX_QUERY).collect();
    let id = ToolCallId::parse(&format!("search_{}", note.uuid().simple())).expect("a short id");
    ToolCall { id, name, arguments: json!({ "query": query }).to_string(), signature: None }
}

/// Records a decision of the engine, so that it is the same after a crash, and announces it.
async fn record<T: Serialize + Sync>(note: &Scope, decision: &T, text: String) -> Result<(), Failure> {
    let event = note.event(Visibility::Internal, EventKind::Status { text });
    // Boxed: a record is large, and most sessions write none here.
    Box::pin(note.step().finish(StepKind::Note, decision, vec![event], Vec::new())).await
}
