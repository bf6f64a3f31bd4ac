//! What a turn is about: the question, what others wrote, and what has been done about it so far.

use std::borrow::Cow;

use baton_core::chat::{ChatMessage, ToolCall, ToolResult};
use baton_core::message::{IncludedParts, Part, parts_to_text};
use baton_core::model::ModelRequest;
use baton_core::tool::ToolSpec;
use serde_json::Value;

use super::blocks::{self, Block};
use super::instruction::Instruction;
use super::skills;

/// A request, read.
#[derive(Debug)]
pub(super) struct Situation<'a> {
    pub(super) request: &'a ModelRequest<'a>,
    /// What the agent's author wrote for it.
    pub(super) system: &'a str,
    /// Skills that it has, each with when it fits.
    pub(super) skills: Vec<(&'a str, String)>,
    /// What is asked, without the words of anybody else.
    pub(super) question: String,
    /// What others wrote.
    pub(super) material: Vec<Block>,
    /// What the engine says around it.
    pub(super) around: String,
    /// What was done since the question.
    pub(super) done: Vec<Done<'a>>,
    /// What the engine wants of this turn in particular.
    pub(super) instruction: Option<Instruction>,
    /// Whether it said something before the question.
    pub(super) has_spoken: bool,
}

/// A call and its answer.
#[derive(Debug)]
pub(super) struct Done<'a> {
    pub(super) result: Cow<'a, ToolResult>,
    pub(super) arguments: Value,
}

impl<'a> Situation<'a> {
    pub(super) fn of(request: &'a ModelRequest<'a>) -> Self {
        let messages = request.messages;
        let is_task =
            |message: &ChatMessage| is_user(message) && Instruction::of(&text_of(message)).is_none();
        let tasks = messages.iter().enumerate().filter(|(_, message)| is_task(message));
        let at = tasks.last().map_or(0, |(at, _)| at);
        let newest = messages.iter().rfind(|message| is_user(message)).map(text_of).unwrap_or_default();
        let marked = messages.iter().nth(at).map(|task| blocks::parse(&text_of(task))).unwrap_or_default();
        // Whoever takes part in a discussion was told the question when it began.
        let asked = messages.iter().take(at + 1).filter_map(question).last();
        let (system, skills) = skills::parted(request.system);
        Self {
            request,
            system,
            skills,
            question: asked.unwrap_or_default(),
            material: marked.blocks.into_iter().filter(|block| block.what != "request").collect(),
            around: marked.around,
            done: done(messages.iter().skip(at)),
            instruction: Instruction::of(&newest),
            has_spoken: messages.iter().take(at).any(|message| matches!(message, ChatMessage::Assistant(_))),
        }
    }

    pub(super) fn tool(&self, name: &str) -> Option<&'a ToolSpec> {
        self.request.tools.iter().find(|tool| tool.name == name).copied()
    }

    /// What was asked before, the newest first.
    pub(super) fn earlier_questions(&self) -> impl Iterator<Item = String> + '_ {
        let earlier = self.request.messages.iter().filter(|message| is_user(message)).filter_map(question);
        let mut earlier: Vec<String> = earlier.collect();
        earlier.reverse();
        let newest = earlier.iter().position(|one| *one == self.question).map_or(0, |at| at + 1);
        earlier.into_iter().skip(newest)
    }

    pub(super) fn has_called(&self, name: &str) -> bool {
        self.done.iter().any(|done| done.result.name == name)
    }

    /// Blocks of these kinds.
    pub(super) fn blocks<'b>(&'b self, kinds: &'b [&str]) -> impl Iterator<Item = &'b Block> {
        self.material.iter().filter(move |block| kinds.contains(&block.what.as_str()))
    }
}

/// What a message asks: the block `request`, or else the parts that are not the engine's.
fn question(message: &ChatMessage) -> Option<String> {
    let ChatMessage::User { parts } = message else { return None };
    let blocks = blocks::parse(&text_of(message)).blocks;
    if let Some(request) = blocks.into_iter().find(|block| block.what == "request") {
        return Some(request.text);
    }
    let asked: Vec<&str> =
        parts.iter().filter_map(part_text).filter(|text| !is_from_the_engine(text)).collect();
    let asked = asked.join("\n").trim().to_owned();
    (!asked.is_empty()).then_some(asked)
}

/// Parts with marked blocks say first what the marks mean.
fn is_from_the_engine(text: &str) -> bool {
    text.lines().next().is_some_and(|line| line.contains("Blocks between <") && line.contains("material"))
}

fn is_user(message: &ChatMessage) -> bool {
    matches!(message, ChatMessage::User { .. })
}

/// Calls with their results, in order.
fn done<'a>(messages: impl Iterator<Item = &'a ChatMessage> + Clone) -> Vec<Done<'a>> {
    let calls: Vec<&ToolCall> = messages
        .clone()
        .filter_map(|message| match message {
            ChatMessage::Assistant(reply) => Some(&reply.calls),
            _ => None,
        })
        .flatten()
        .collect();
    let results = messages.filter_map(|message| match message {
        ChatMessage::Tool(result) => Some(result),
        _ => None,
    });
    let arguments = |result: &ToolResult| {
        let call = calls.iter().find(|call| call.id == result.call_id);
        call.and_then(|call| serde_json::from_str(&call.arguments).ok()).unwrap_or_default()
    };
    results.map(|result| Done { arguments: arguments(result), result: unmarked(result) }).collect()
}

/// The result without the marks that the engine puts around what others wrote.
fn unmarked(result: &ToolResult) -> Cow<'_, ToolResult> {
    match blocks::parse(&result.content).blocks.as_slice() {
        [output] if output.what == "output" && is_from_the_engine(&result.content) => {
            Cow::Owned(ToolResult { content: output.text.as_str().into(), ..result.clone() })
        }
        _ => Cow::Borrowed(result),
    }
}

pub(super) fn text_of(message: &ChatMessage) -> String {
    match message {
        ChatMessage::User { parts } => parts_to_text(parts, IncludedParts::Text),
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
