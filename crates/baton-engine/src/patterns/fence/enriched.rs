//! A message made of what was asked and what others wrote about it.

use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::Agent;
use baton_core::message::Part;

use super::Fence;
use crate::patterns::handover::{shared, shared_parts, tail};
use crate::policy::EnrichFormat;
use crate::run::{Input, words};

const REQUEST: &str = "## ORIGINAL USER REQUEST";

/// What was asked comes first, whole and unchanged; what others wrote follows, block by block; what is not text stays behind it.
#[derive(Debug, Clone)]
pub(crate) struct Enriched {
    asked: Vec<Part>,
    blocks: Vec<Block>,
    /// What the engine says to whoever gets it, and to nobody they pass it on to.
    instruction: Option<String>,
}

#[derive(Debug, Clone)]
struct Block {
    kind: Written,
    by: AgentName,
    text: String,
}

/// What it is that another agent wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// The answer of the stage before.
    Answer,
    Advice,
    /// Why there is no advice.
    Failure,
    /// Why the baton is passed on.
    Reason,
    /// What a giver adds for whoever gets the baton.
    Note,
    Context,
    /// What was said before.
    Summary,
    /// What a giver said, asked tools and heard from them.
    Transcript,
    /// What a giver found out.
    Work,
    /// What was said in a team.
    Post,
    /// What somebody brought who was asked the same.
    Result,
    /// Why there is no result.
    NoResult,
}

impl Written {
    fn word(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Advice => "advice",
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

    /// The heading over all blocks of its kind.
    fn group(self) -> &'static str {
        match self {
            Self::Answer => "## ANSWER SO FAR",
            Self::Advice | Self::Failure => "## ANALYSIS GATHERED",
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
            Self::Failure => format!("### From {by} (no advice)"),
            Self::NoResult => format!("### From {by} (no result)"),
        }
    }

    /// Whether only the next one who gets the baton is meant, and nobody after them.
    fn is_for_one(self) -> bool {
        matches!(self, Self::Reason | Self::Note | Self::Context | Self::Transcript)
    }
}

/// A message, and the parts that were made of it. They belong together only as long as nobody replaced the parts.
#[derive(Debug)]
pub(crate) struct Rendered {
    message: Enriched,
    parts: Arc<Vec<Part>>,
}

impl Enriched {
    /// What an input is made of. A message that was enriched before is not wrapped as a whole: what others wrote would stand where
    /// the request stands.
    pub(crate) fn of(input: &Input) -> Self {
        match &input.rendered {
            Some(rendered) if Arc::ptr_eq(&rendered.parts, &input.parts) => rendered.message.clone(),
            _ => Self { asked: input.parts.to_vec(), blocks: Vec::new(), instruction: None },
        }
    }

    #[must_use]
    pub(crate) fn with(mut self, kind: Written, by: &AgentName, text: String) -> Self {
        self.blocks.push(Block { kind, by: by.clone(), text });
        self
    }

    /// The same, unless there is nothing to read in it.
    #[must_use]
    pub(crate) fn with_any(self, kind: Written, by: &AgentName, text: String) -> Self {
        if text.trim().is_empty() { self } else { self.with(kind, by, text) }
    }

    /// The same with what the engine says itself. It stands outside of all blocks.
    #[must_use]
    pub(crate) fn with_instruction(self, text: String) -> Self {
        Self { instruction: Some(text), ..self }
    }

    /// Says that `parts` were made of it, in words that were chosen elsewhere.
    pub(crate) fn behind(self, parts: &Arc<Vec<Part>>) -> Arc<Rendered> {
        Arc::new(Rendered { message: self, parts: Arc::clone(parts) })
    }

    /// For the one after whoever got it: without what was written for them alone.
    #[must_use]
    pub(crate) fn onward(mut self) -> Self {
        self.blocks.retain(|block| !block.kind.is_for_one());
        self
    }

    /// Without anything of a kind.
    #[must_use]
    pub(crate) fn without(mut self, kind: Written) -> Self {
        self.blocks.retain(|block| block.kind != kind);
        self
    }

    /// All work comes last, the newest at the end, and together it has at most `most` characters: the oldest goes.
    #[must_use]
    pub(crate) fn with_work(self, by: &AgentName, text: String, most: usize) -> Self {
        let mut message = self.with_any(Written::Work, by, text);
        let (work, mut blocks): (Vec<Block>, Vec<Block>) =
            message.blocks.into_iter().partition(|block| block.kind == Written::Work);
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

    /// As `giver` gives it to somebody else.
    #[must_use]
    pub(crate) fn shared(mut self, giver: &Agent) -> Self {
        self.instruction = None;
        self.asked = shared_parts(giver, &self.asked);
        for block in &mut self.blocks {
            block.text = shared(giver, &block.text);
        }
        self
    }

    /// The words of what was asked.
    pub(crate) fn request(&self) -> String {
        words(&self.asked)
    }

    /// Replaces what `input` is about. A mere request needs no marks.
    pub(crate) fn render(self, format: EnrichFormat, input: Input) -> Input {
        if self.blocks.is_empty() && self.instruction.is_none() {
            return Input { parts: Arc::new(self.asked), rendered: None, ..input };
        }
        let attached = self.asked.iter().filter(|part| !matches!(part, Part::Text { .. })).cloned();
        let text = Part::text(self.text(&Fence::of(format)));
        let parts = Arc::new(std::iter::once(text).chain(attached).collect());
        let rendered = Some(self.behind(&parts));
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
