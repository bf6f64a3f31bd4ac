//! Refused operations on a workflow. Models read the messages.

use crate::tool::ToolError;

use super::value::MOST_CHARS;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no value `{key}`{}; the values are {}", meant(.nearest.as_deref()), list(.known))]
    UnknownKey { key: String, known: Vec<String>, nearest: Option<String> },
    #[error("`{key}` is one of {}{}", list(.choices), meant(.nearest.as_deref()))]
    NotAChoice { key: String, choices: Vec<String>, nearest: Option<String> },
    #[error("`{0}` is needed and cannot be empty")]
    Empty(String),
    #[error("`{key}` cannot be {text:?}: that answers another question; ask for the {} itself", .key.replace('_', " "))]
    OnlyYesOrNo { key: String, text: String },
    #[error("`{0}` has more than {MOST_CHARS} characters; give the part that matters")]
    TooLong(String),
    #[error("`{0}` has to be a text")]
    NotAText(String),
    #[error("`{0}` is needed and cannot be left out")]
    Needed(String),
    #[error("`{state}` cannot be left yet: {} is missing", list(.keys))]
    Missing { state: String, keys: Vec<String> },
    #[error("there is no way from `{from}` to `{to}`; {}", onward(.ways))]
    NoWay { from: String, to: String, ways: Vec<String> },
    #[error("several ways lead on from `{from}`: say which with `next`: {}", list(.ways))]
    Undecided { from: String, ways: Vec<String> },
    #[error("this is the first step; there is nothing before it")]
    AtTheBeginning,
    #[error("nothing waits for a confirmation at the moment")]
    NothingToConfirm,
    #[error("the person has to be asked first: {0}")]
    NotConfirmed(String),
    #[error(
        "the person has not answered the question yet. Put it to them in your answer now, and confirm only when they have \
         said yes to it: {0}"
    )]
    NotAsked(String),
    #[error("something has to change first: {0}")]
    Held(String),
    #[error("the tool of `{0}` has to run first")]
    NotReady(String),
}

impl From<Refusal> for ToolError {
    fn from(refusal: Refusal) -> Self {
        Self::InvalidArguments(refusal.to_string())
    }
}

fn meant(nearest: Option<&str>) -> String {
    nearest.map(|one| format!("; did you mean `{one}`?")).unwrap_or_default()
}

fn list(items: &[String]) -> String {
    items.iter().map(|item| format!("`{item}`")).collect::<Vec<_>>().join(", ")
}

fn onward(ways: &[String]) -> String {
    if ways.is_empty() { "it is the last one".to_owned() } else { format!("it leads to {}", list(ways)) }
}
