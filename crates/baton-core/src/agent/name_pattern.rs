//! Names of agents in which `*` stands for anything.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::tool::ToolPattern;
use crate::id::AgentName;

/// The name of an agent, or a glob such as `support-*`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct AgentPattern(ToolPattern);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not the name of an agent or a glob: only `a`-`z`, `0`-`9`, `_`, `-` and the wildcard `*` are allowed"
)]
pub struct InvalidAgentPattern(String);

impl AgentPattern {
    pub fn parse(text: &str) -> Result<Self, InvalidAgentPattern> {
        let is_allowed =
            |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || matches!(b, b'_' | b'-' | b'*');
        let pattern = ToolPattern::parse(text).ok().filter(|_| text.bytes().all(is_allowed));
        pattern.map(Self).ok_or_else(|| InvalidAgentPattern(text.to_owned()))
    }

    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it names one agent.
    pub fn is_exact(&self) -> bool {
        self.0.is_exact()
    }

    pub fn matches(&self, name: &AgentName) -> bool {
        self.0.matches(name.as_str())
    }
}

impl TryFrom<String> for AgentPattern {
    type Error = InvalidAgentPattern;

    fn try_from(text: String) -> Result<Self, InvalidAgentPattern> {
        Self::parse(&text)
    }
}

impl From<AgentPattern> for String {
    fn from(pattern: AgentPattern) -> Self {
        pattern.0.into()
    }
}

impl fmt::Display for AgentPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_names() {
        let matches = |pattern: &str, name: &str| {
            AgentPattern::parse(pattern).unwrap().matches(&AgentName::parse(name).unwrap())
        };
        assert!(matches("support", "support") && !matches("support", "support-2"));
        assert!(matches("support*", "support-2") && matches("*", "a") && !matches("x-*", "a"));
        for wrong in ["", "Support", "a b", "mcp:a/b", "a.b"] {
            assert!(AgentPattern::parse(wrong).is_err(), "{wrong}");
        }
    }
}
