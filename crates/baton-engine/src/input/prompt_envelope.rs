//! A prompt made of the user's request and the text that other agents wrote about it.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::Agent;
use baton_core::message::{IncludedParts, Part, parts_to_text};

use super::{Input, text_of};
use crate::fence::Fence;
use crate::policy::EnrichFormat;
use crate::redaction::{redact, redact_parts, tail};

const REQUEST: &str = "## ORIGINAL USER REQUEST";

/// A message for an agent: the unchanged request first, then a fenced block for each text of another agent, then the non-text
/// parts of the request.
#[derive(Debug, Clone)]
pub(crate) struct PromptEnvelope {
    asked: Vec<Part>,
    blocks: Vec<Block>,
    /// Instruction of the engine for the receiver only. Not passed on to further agents.
    instruction: Option<String>,
}

/// A text of another agent within an envelope.
#[derive(Debug, Clone)]
struct Block {
    kind: BlockKind,
    by: AgentName,
    text: String,
}

/// The kind of a block. Decides its heading and who receives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockKind {
    /// The answer of the previous chain stage.
    Answer,
    Advice,
    /// Advice that the time limit of the advisor cut off.
    PartialAdvice,
    /// The reason why an advisor gave no advice.
    Failure,
    /// The reason of a transfer.
    Reason,
    /// A note of the giver for the receiver.
    Note,
    Context,
    /// A summary of the conversation.
    Summary,
    /// Text, tool calls and tool results of the giver's session.
    Transcript,
    /// Text and tool results of the giver's session, without its tool calls.
    Work,
    /// A post on a team's channel.
    Post,
    /// The result of a sub-agent in a delegation.
    Result,
    /// The reason why a sub-agent has no result.
    NoResult,
}

impl BlockKind {
    fn word(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Advice => "advice",
            Self::PartialAdvice => "partial-advice",
            Self::Failure | Self::NoResult => "failure",
            Self::Reason => "reason",
            Self::Note => "note",
            Self::Context => "context",
            Self::Summary => "summary",
            Self::Transcript => "transcript",
            Self::Work => "work",
            Self::Post => "post",
            Self::Result => "result",
        }
    }

    /// The heading over consecutive blocks of the same group.
    fn group(self) -> &'static str {
        match self {
            Self::Answer => "## ANSWER SO FAR",
            Self::Advice | Self::PartialAdvice | Self::Failure => "## ANALYSIS GATHERED",
            Self::Reason | Self::Note | Self::Context => "## PASSED ON TO YOU",
            Self::Summary => "## CONVERSATION SO FAR",
            Self::Transcript | Self::Work => "## WORK SO FAR",
            Self::Post => "## SAID IN THE TEAM",
            Self::Result | Self::NoResult => "## RESULTS GATHERED",
        }
    }

    fn heading(self, by: &AgentName) -> String {
        match self {
            Self::Answer | Self::Advice | Self::Work | Self::Post | Self::Result => format!("### From {by}"),
            Self::Reason => format!("### Why, from {by}"),
            Self::Note => format!("### Note from {by}"),
            Self::Context => format!("### Context from {by}"),
            Self::Summary => format!("### Summary by {by}"),
            Self::Transcript => format!("### Transcript of {by}"),
            Self::PartialAdvice => format!("### From {by} (partial: cut off by its time limit)"),
            Self::Failure => format!("### From {by} (no advice)"),
            Self::NoResult => format!("### From {by} (no result)"),
        }
    }

    /// Whether the block is addressed to the next receiver only.
    fn is_single_receiver(self) -> bool {
        matches!(self, Self::Reason | Self::Note | Self::Context | Self::Transcript)
    }
}

/// An envelope together with the parts it was rendered to. Valid only while an [`Input`] still has these parts; compared by
/// pointer.
#[derive(Debug)]
pub(crate) struct RenderedPrompt {
    message: PromptEnvelope,
    parts: Arc<Vec<Part>>,
}

impl PromptEnvelope {
    /// Recovers the envelope of an input, or starts a new one from its parts. A rendered message is never wrapped again as a
    /// request, because its blocks would then count as the request.
    pub(crate) fn of(input: &Input) -> Self {
        match &input.rendered {
            Some(rendered) if Arc::ptr_eq(&rendered.parts, &input.parts) => rendered.message.clone(),
            _ => Self { asked: input.parts.to_vec(), blocks: Vec::new(), instruction: None },
        }
    }

    #[must_use]
    pub(crate) fn with(mut self, kind: BlockKind, by: &AgentName, text: String) -> Self {
        self.blocks.push(Block { kind, by: by.clone(), text });
        self
    }

    /// Like [`PromptEnvelope::with`], but skips a blank text.
    #[must_use]
    pub(crate) fn with_any(self, kind: BlockKind, by: &AgentName, text: String) -> Self {
        if text.trim().is_empty() { self } else { self.with(kind, by, text) }
    }

    /// Adds an instruction of the engine, which is rendered after all blocks and outside of them.
    #[must_use]
    pub(crate) fn with_instruction(self, text: String) -> Self {
        Self { instruction: Some(text), ..self }
    }

    /// Associates the envelope with parts that were rendered elsewhere.
    pub(crate) fn rendered_as(self, parts: &Arc<Vec<Part>>) -> Arc<RenderedPrompt> {
        Arc::new(RenderedPrompt { message: self, parts: Arc::clone(parts) })
    }

    /// Drops the blocks that were addressed to the previous receiver only.
    #[must_use]
    pub(crate) fn for_next_receiver(mut self) -> Self {
        self.blocks.retain(|block| !block.kind.is_single_receiver());
        self
    }

    /// Drops all blocks of a kind.
    #[must_use]
    pub(crate) fn without(mut self, kind: BlockKind) -> Self {
        self.blocks.retain(|block| block.kind != kind);
        self
    }

    /// Adds a work block. Work blocks come last, oldest first, and have at most `most` characters together; the oldest are cut.
    #[must_use]
    pub(crate) fn with_work(self, by: &AgentName, text: String, most: usize) -> Self {
        let mut message = self.with_any(BlockKind::Work, by, text);
        let (work, mut blocks): (Vec<Block>, Vec<Block>) =
            message.blocks.into_iter().partition(|block| block.kind == BlockKind::Work);
        let (mut left, mut kept) = (most, Vec::new());
        for block in work.into_iter().rev() {
            if left > 0 {
                let count = block.text.chars().count();
                kept.push(Block { text: tail(&block.text, left), ..block });
                left = left.saturating_sub(count);
            }
        }
        blocks.extend(kept.into_iter().rev());
        message.blocks = blocks;
        message
    }

    /// Redacts the request and all blocks as `giver`'s file says, and drops the instruction.
    #[must_use]
    pub(crate) fn redacted_by(mut self, giver: &Agent) -> Self {
        self.instruction = None;
        self.asked = redact_parts(giver, &self.asked);
        for block in &mut self.blocks {
            block.text = redact(giver, &block.text);
        }
        self
    }

    /// The text of the request.
    pub(crate) fn request(&self) -> String {
        text_of(&self.asked)
    }

    /// The text that the receiver's `input_schema` describes: the answer of the stage before, or else the request.
    pub(crate) fn subject(&self) -> String {
        let answer = self.blocks.iter().rev().find(|block| block.kind == BlockKind::Answer);
        answer.map_or_else(
            || parts_to_text(&self.asked, IncludedParts::TextAndData),
            |block| block.text.clone(),
        )
    }

    /// Replaces the parts of `input`. A request without blocks and instruction is not fenced.
    pub(crate) fn render(self, format: EnrichFormat, input: Input) -> Input {
        if self.blocks.is_empty() && self.instruction.is_none() {
            return Input { parts: Arc::new(self.asked), rendered: None, ..input };
        }
        let attached = self.asked.iter().filter(|part| !matches!(part, Part::Text { .. })).cloned();
        let text = Part::text(self.text(&Fence::of(format)));
        let parts = Arc::new(std::iter::once(text).chain(attached).collect());
        let rendered = Some(self.rendered_as(&parts));
        Input { parts, rendered, ..input }
    }

    fn text(&self, fence: &Fence) -> String {
        let mut texts = vec![fence.rule(), fence.block("request", REQUEST, &self.request())];
        let mut group = "";
        for Block { kind, by, text } in &self.blocks {
            if group != kind.group() {
                group = kind.group();
                texts.extend(fence.heading(group));
            }
            texts.push(fence.block_by(kind.word(), &kind.heading(by), by, text));
        }
        texts.extend(self.instruction.clone());
        texts.join("\n\n")
    }
}
