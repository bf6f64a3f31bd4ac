//! A session's conversation as a model sees it.

use std::iter::Chain;
use std::slice::Iter;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::id::ToolCallId;
use crate::media::FileRef;
use crate::message::{Image, Part};

/// One entry of a session. The roles are common to all providers; adapters only translate their names.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum ChatMessage {
    User { parts: Vec<Part> },
    Assistant(Reply),
    Tool(ToolResult),
}

impl ChatMessage {
    pub fn user(text: impl Into<String>) -> Self {
        Self::User { parts: vec![Part::text(text)] }
    }
}

/// The messages of a model call in two slices: earlier messages, which sessions share, and those the session added. A reply and
/// the results of its calls are in the same slice.
#[derive(Debug, Clone, Copy, Default)]
pub struct Messages<'a> {
    before: &'a [ChatMessage],
    own: &'a [ChatMessage],
}

impl<'a> Messages<'a> {
    pub fn new(before: &'a [ChatMessage], own: &'a [ChatMessage]) -> Self {
        Self { before, own }
    }

    pub fn parts(self) -> (&'a [ChatMessage], &'a [ChatMessage]) {
        (self.before, self.own)
    }

    pub fn iter(self) -> Chain<Iter<'a, ChatMessage>, Iter<'a, ChatMessage>> {
        self.before.iter().chain(self.own)
    }

    pub fn last(self) -> Option<&'a ChatMessage> {
        self.own.last().or_else(|| self.before.last())
    }

    pub fn len(self) -> usize {
        self.before.len() + self.own.len()
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl<'a> From<&'a [ChatMessage]> for Messages<'a> {
    fn from(own: &'a [ChatMessage]) -> Self {
        Self { before: &[], own }
    }
}

impl<'a> IntoIterator for Messages<'a> {
    type Item = &'a ChatMessage;
    type IntoIter = Chain<Iter<'a, ChatMessage>, Iter<'a, ChatMessage>>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// The output of a model in one turn.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reply {
    pub text: String,
    /// Kept apart from the text, and sent back to the provider that created it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<Reasoning>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub calls: Vec<ToolCall>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reasoning {
    pub text: String,
    /// The provider's signature of the text. Some providers refuse the next turn without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolCall {
    pub id: ToolCallId,
    pub name: String,
    /// JSON text exactly as the model wrote it; it may be invalid.
    pub arguments: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
}

/// The result of one call. Every call has one, including failed and refused calls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolResult {
    pub call_id: ToolCallId,
    pub name: String,
    /// Shared by the event, the step and every later turn.
    pub content: Arc<str>,
    pub failed: bool,
    /// The files that the call produced.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<FileRef>,
    /// The pictures among `files`, for models that accept them. Loaded when needed and not stored with the result.
    #[serde(skip)]
    pub images: Vec<Image>,
}

impl ToolResult {
    /// A result that is text.
    pub fn text(
        call_id: ToolCallId,
        name: impl Into<String>,
        content: impl Into<Arc<str>>,
        failed: bool,
    ) -> Self {
        let (name, content) = (name.into(), content.into());
        Self { call_id, name, content, failed, files: Vec::new(), images: Vec::new() }
    }
}
