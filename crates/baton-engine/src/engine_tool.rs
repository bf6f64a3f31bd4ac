//! Tools that the engine itself offers to models: calling agents, passing the baton, talking within a team.

use std::fmt;

use baton_core::MessageId;
use baton_core::chat::{ChatMessage, ToolResult};
use baton_core::store::ApprovalPreview;
use baton_core::tool::{ToolError, ToolSpec};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::scope::Scope;

/// A tool that executes inside the run. Unlike a [`baton_core::Tool`], it can invoke other agents and end the session. The agents
/// it invokes record their own steps, so after a crash it is called again.
pub(crate) trait EngineTool: Send + Sync + fmt::Debug {
    fn spec(&self) -> &ToolSpec;

    /// Normalizes the arguments before they are validated against the schema. An error replaces the schema's own message.
    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        Ok(arguments)
    }

    /// The schema of the arguments that a call may have. It may accept more than the model sees.
    fn accepted_parameters(&self) -> &Value {
        &self.spec().parameters
    }

    /// If a successful call ends the session, names what it does, such as the target of a transfer. Two calls of one turn with
    /// the same name are duplicates; with different names they contradict each other.
    fn ends_with(&self, _arguments: &Value) -> Option<String> {
        None
    }

    /// Whether a call can make another agent the speaker without telling the user. The text of such a session is held back.
    fn may_change_speaker(&self) -> bool {
        false
    }

    /// Whether the tool is hidden from the model because a call would be refused. A call that is made anyway returns the reason.
    fn is_hidden(&self) -> bool {
        false
    }

    /// Whether a result is evidence for an answer, as `grounding: required` demands it.
    fn gives_evidence(&self) -> bool {
        false
    }

    /// Whether the output is text of untrusted authors. It is then fenced, after it was shortened.
    fn is_untrusted(&self) -> bool {
        false
    }

    /// The call for the person who approves it. `None`: the arguments are shown.
    fn preview(&self, _arguments: &Value) -> Option<ApprovalPreview> {
        None
    }

    /// Executes the call. An outer error ends the run; the model receives [`ToolOutcome::Refused`].
    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>>;
}

/// The context of a tool call.
#[derive(Debug)]
pub(crate) struct CallSite<'a> {
    /// The scope of the call, with its own cancellation token. It is cancelled at the session's deadline.
    pub(crate) scope: Scope,
    /// The session's messages after its task, including this turn.
    pub(crate) messages: &'a [ChatMessage],
    /// The id of this turn's text, if it was streamed to the user.
    pub(crate) shown: Option<MessageId>,
    /// Results of the other calls of this turn. Empty unless the call ends the session and therefore runs last.
    pub(crate) other_results: &'a [ToolResult],
}

impl CallSite<'_> {
    /// The text that the model wrote beside the calls of this turn.
    pub(crate) fn turn_text(&self) -> &str {
        let replies = self.messages.iter().rev().find_map(|message| match message {
            ChatMessage::Assistant(reply) => Some(reply.text.as_str()),
            _ => None,
        });
        replies.unwrap_or_default()
    }
}

/// The outcome of an engine tool's call.
pub(crate) enum ToolOutcome {
    /// Text for the model.
    Output(String),
    Refused(ToolError),
    /// The session ends. `output` is the result of the call.
    Ended {
        output: String,
        ending: SessionEnding,
    },
}

impl From<Result<String, ToolError>> for ToolOutcome {
    fn from(result: Result<String, ToolError>) -> Self {
        match result {
            Ok(text) => Self::Output(text),
            Err(error) => Self::Refused(error),
        }
    }
}

/// How a tool ended a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionEnding {
    /// The baton was passed. The outcome is that of the receiving agent.
    Passed(Box<Outcome>),
    /// The team's discussion is concluded with this text.
    Concluded(String),
    /// The thread returns to the agent that handed it off.
    Returned,
}
