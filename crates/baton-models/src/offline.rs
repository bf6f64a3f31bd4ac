//! The model that needs no key and no network: deterministic rules in place of a language model.
//!
//! It does what rules can do: it picks a tool by what the request is about, routes by shared words, fills a required JSON
//! form, and answers by quoting the sentences that fit the question best from what tools and agents returned. It says
//! plainly that no language model is configured.

mod extract;
mod form;
mod words;

use baton_core::chat::{ChatMessage, ToolResult};
use baton_core::message::Part;
use baton_core::model::{Chunk, Finish, Model, ModelFacts, ModelRequest, ReplyStream, ToolChoice};
use baton_core::tool::ToolSpec;
use baton_core::usage::{Price, Tokens};
use baton_core::{ToolCallId, choices};
use futures_util::stream;
use serde_json::{Value, json};

use words::overlap;

/// The provider and its only model, `offline`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Offline;

/// What it does in a turn.
#[derive(Debug, PartialEq)]
enum Move {
    Say(String),
    Call { tool: String, arguments: Value },
}

impl Model for Offline {
    fn provider(&self) -> &'static str {
        "offline"
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        Box::pin(stream::iter(chunks(decide(request), request).into_iter().map(Ok)))
    }

    fn facts(&self, _model: &str) -> ModelFacts {
        ModelFacts { price: Some(Price::FREE), context_window: Some(1_000_000) }
    }
}

/// A text comes word by word, as from any other model.
fn chunks(decided: Move, request: &ModelRequest<'_>) -> Vec<Chunk> {
    let size = |text: &str| (text.len() as u64).div_ceil(4);
    let input_tokens = size(request.system) + request.messages.iter().map(|m| size(&text_of(m))).sum::<u64>();
    let tokens = |output_tokens| Chunk::Tokens(Tokens { input_tokens, output_tokens, ..Tokens::default() });
    match decided {
        Move::Say(text) => {
            let pieces = text.split_inclusive(' ').map(|piece| Chunk::Text(piece.to_owned()));
            pieces.chain([tokens(size(&text)), Chunk::Done(Finish::Stop)]).collect()
        }
        Move::Call { tool, arguments } => {
            let arguments = arguments.to_string();
            let id = ToolCallId::parse(&format!("call_{}", request.messages.len())).expect("a short id");
            vec![
                Chunk::Call { index: 0, id, name: tool, signature: None },
                Chunk::Arguments { index: 0, delta: arguments.clone() },
                tokens(size(&arguments)),
                Chunk::Done(Finish::ToolCalls),
            ]
        }
    }
}

fn text_of(message: &ChatMessage) -> String {
    match message {
        ChatMessage::User { parts } => parts.iter().filter_map(part_text).collect::<Vec<_>>().join("\n"),
        ChatMessage::Assistant(reply) => reply.text.clone(),
        ChatMessage::Tool(result) => result.content.to_string(),
    }
}

fn part_text(part: &Part) -> Option<&str> {
    match part {
        Part::Text { text } => Some(text),
        _ => None,
    }
}

/// The rules, in order of precedence.
fn decide(request: &ModelRequest<'_>) -> Move {
    let question = question(request);
    if let Some(schema) = request.output_schema {
        return Move::Say(form::fill(schema, &question).to_string());
    }
    let results = results_since_question(request);
    if !results.is_empty() {
        return Move::Say(from_results(&question, &results));
    }
    if request.tool_choice == ToolChoice::None {
        return Move::Say(cannot_answer());
    }
    pick(request.tools, &question).unwrap_or_else(|| Move::Say(cannot_answer()))
}

/// What was asked last.
fn question(request: &ModelRequest<'_>) -> String {
    let newest = request.messages.iter().rev().find(|message| matches!(message, ChatMessage::User { .. }));
    newest.map(text_of).unwrap_or_default()
}

/// Results of calls made for the newest user message.
fn results_since_question<'a>(request: &ModelRequest<'a>) -> Vec<&'a ToolResult> {
    let newest =
        request.messages.iter().rev().take_while(|message| !matches!(message, ChatMessage::User { .. }));
    let mut results: Vec<&ToolResult> = newest
        .filter_map(|message| match message {
            ChatMessage::Tool(result) => Some(result),
            _ => None,
        })
        .collect();
    results.reverse();
    results
}

choices! {
    /// Tools with arguments that rules can fill, in the order in which they are considered.
    enum Known {
        Route = "route_to",
        Search = "search_docs",
        Call = "call_agent",
        Delegate = "delegate",
    }
}

/// The tool that fits the question: a transfer whose words are in it, then routing, then looking something up.
fn pick(tools: &[&ToolSpec], question: &str) -> Option<Move> {
    let find = |known: Known| tools.iter().find(|tool| tool.name == known.word());
    let transfers = tools.iter().filter(|tool| tool.name.starts_with("transfer_to_"));
    let best =
        transfers.map(|tool| (overlap(question, &tool.description), tool)).max_by_key(|(score, _)| *score);
    if let Some((score, tool)) = best.filter(|(score, _)| *score >= 2) {
        let reason = format!("{score} words of the request fit");
        return Some(Move::Call { tool: tool.name.clone(), arguments: json!({ "reason": reason }) });
    }
    if let Some(tool) = find(Known::Route) {
        let agent = choose(tool, "agent", question)?;
        let arguments =
            json!({ "agent": agent, "reason": "its description shares the most words with the request" });
        return Some(Move::Call { tool: tool.name.clone(), arguments });
    }
    if let Some(tool) = find(Known::Search) {
        return Some(Move::Call { tool: tool.name.clone(), arguments: json!({ "query": question }) });
    }
    let tool = find(Known::Call)?;
    let mut arguments = json!({ "mission": question });
    if let Some(specialist) = choose(tool, "specialist", question) {
        arguments["specialist"] = specialist.into();
    }
    Some(Move::Call { tool: tool.name.clone(), arguments })
}

/// The allowed value of a parameter whose line in the tool's description shares the most words with the question.
fn choose(tool: &ToolSpec, parameter: &str, question: &str) -> Option<String> {
    let allowed = tool.parameters["properties"][parameter]["enum"].as_array()?;
    let about = |name: &str| {
        let lines = tool.description.lines().filter(|line| line.contains(name));
        overlap(question, &(lines.collect::<Vec<_>>().join(" ") + " " + name))
    };
    // The first of equals: the author's order decides.
    let scored = allowed.iter().filter_map(Value::as_str).map(|name| (about(name), name));
    let best = scored.fold(None, |best: Option<(usize, &str)>, next| match best {
        Some(best) if best.0 >= next.0 => Some(best),
        _ => Some(next),
    });
    best.map(|(_, name)| name.to_owned())
}

fn from_results(question: &str, results: &[&ToolResult]) -> String {
    let found: Vec<&ToolResult> = results.iter().copied().filter(|result| !result.failed).collect();
    if found.is_empty() {
        let errors: Vec<String> = results.iter().map(|r| format!("`{}`: {}", r.name, r.content)).collect();
        return format!("I could not find an answer. {}\n\n{NOTICE}", errors.join("; "));
    }
    let texts: Vec<&str> = found.iter().map(|result| result.content.as_ref()).collect();
    match extract::answer(question, &texts) {
        Some(answer) => format!("{answer}\n\n{NOTICE}"),
        None => format!("I looked, and found nothing that answers this.\n\n{NOTICE}"),
    }
}

const NOTICE: &str = "(No language model is configured; this was put together from the sources by simple rules. Set \
                      `models.default` in baton.toml for real answers.)";

fn cannot_answer() -> String {
    format!("I cannot answer this by myself.\n\n{NOTICE}")
}
