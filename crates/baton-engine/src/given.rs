//! Tools that the engine itself gives to models: calling agents, passing the baton, talking within a team.

use std::fmt;

use baton_core::chat::{ChatMessage, ToolResult};
use baton_core::tool::{ToolError, ToolSpec};
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::scope::Scope;

/// Like a [`baton_core::Tool`], but it works inside the run: it can involve other agents, and end the session. What it does is
/// recorded by those it involves, so after a crash it is simply called again.
pub(crate) trait Given: Send + Sync + fmt::Debug {
    fn spec(&self) -> &ToolSpec;

    /// The arguments as the tool wants to read them, before they are held against its schema, or what is wrong with them in words
    /// that help more than the schema's.
    fn prepare(&self, arguments: Value) -> Result<Value, ToolError> {
        Ok(arguments)
    }

    /// What a call that succeeds does to the session, if it ends it: the baton goes to whom. Two calls of one turn with the same
    /// word are the same pass.
    fn ends_with(&self, _arguments: &Value) -> Option<String> {
        None
    }

    /// Whether a call can make somebody else the speaker without a word to the person: what is said before is then held back.
    fn may_silence(&self) -> bool {
        false
    }

    /// Whether it is kept from the model because a call would be refused. One that comes all the same is told why.
    fn is_hidden(&self) -> bool {
        false
    }

    /// The call in one line, for whoever has to say yes to it.
    fn preview(&self, _arguments: &Value) -> Option<String> {
        None
    }

    /// Does it. An error of the outer kind ends the run, the inner one is told to the model.
    fn call<'a>(&'a self, arguments: Value, site: Site<'a>) -> BoxFuture<'a, Result<Done, Failure>>;
}

/// Where and in the middle of what a call happens.
#[derive(Debug)]
pub(crate) struct Site<'a> {
    /// The place of the call, with a token of its own: cancelled when the session's time is over.
    pub(crate) scope: Scope,
    /// The session's messages after its task, this turn included.
    pub(crate) messages: &'a [ChatMessage],
    /// What the other calls of this turn brought, if this one ends the session and so comes after them.
    pub(crate) beside: &'a [ToolResult],
}

/// What came of a call.
pub(crate) enum Done {
    /// Text for the model.
    Told(String),
    Refused(ToolError),
    /// The session is over. The text is the answer to the call.
    Ended {
        told: String,
        ending: Ending,
    },
}

impl From<Result<String, ToolError>> for Done {
    fn from(result: Result<String, ToolError>) -> Self {
        match result {
            Ok(text) => Self::Told(text),
            Err(error) => Self::Refused(error),
        }
    }
}

/// How a tool ended a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    /// Somebody else had the baton, and this is what they made of it.
    Passed(Box<Outcome>),
    /// The discussion is over.
    Concluded(String),
    /// The thread goes back to whoever gave it away.
    Returned,
}
