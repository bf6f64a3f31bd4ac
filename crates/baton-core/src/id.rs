//! Id newtypes. A value is valid by construction: `parse` checks it, and deserialization goes through `parse`.

use std::borrow::Borrow;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::hash::fnv1a_32;
use uuid::fmt::Hyphenated;

/// Why a text is not a valid id. The message describes the expected format.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidId {
    #[error(
        "`{0}` is not an agent name: use lower-case letters, digits, `-` and `_`, at most 64 characters, starting with a letter or digit"
    )]
    Agent(String),
    #[error(
        "`{0}` is not a thread id: a thread id is a UUID version 4, such as 550e8400-e29b-41d4-a716-446655440000"
    )]
    Thread(String),
    #[error("`{value}` is not a {what} id: it is a UUID")]
    Uuid { what: &'static str, value: String },
    #[error("a {what} id has 1 to 255 characters and no control characters")]
    Text { what: &'static str },
    #[error("`{0}` is not a session id: it is a run id followed by any number of `:sub_label_1a2b3c4d`")]
    Session(String),
}

/// Implements the traits that all ids share, based on `parse` and `as_str`.
macro_rules! text_id {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.as_str())
            }
        }
        impl Borrow<str> for $name {
            fn borrow(&self) -> &str {
                self.as_str()
            }
        }
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.as_str())
            }
        }
        parsed_id!($name);
    };
}

macro_rules! parsed_id {
    ($name:ident) => {
        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                Self::parse(text)
            }
        }
        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<str>::deserialize(deserializer)?;
                Self::parse(&text).map_err(serde::de::Error::custom)
            }
        }
    };
}

/// The id of an agent: `[a-z0-9][a-z0-9_-]{0,63}`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AgentName(Arc<str>);

impl AgentName {
    pub const MAX_CHARS: usize = 64;

    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let starts_well = text.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
        let all_allowed =
            text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_');
        if starts_well && all_allowed && text.len() <= Self::MAX_CHARS {
            Ok(Self(text.into()))
        } else {
            Err(InvalidId::Agent(text.to_owned()))
        }
    }

    /// The closest valid name: "Code Review!" becomes `code-review`. `None` if no usable character remains.
    pub fn slug(text: &str) -> Option<Self> {
        let mut slug = String::with_capacity(text.len());
        for c in text.chars().flat_map(char::to_lowercase) {
            match c {
                'a'..='z' | '0'..='9' | '_' => slug.push(c),
                _ if slug.is_empty() || slug.ends_with('-') => {}
                _ => slug.push('-'),
            }
        }
        slug.truncate(Self::MAX_CHARS);
        Self::parse(slug.trim_matches(['-', '_'])).ok()
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Name of the tool that asks this agent: `ask_knowledge`.
    pub fn ask_tool(&self) -> String {
        format!("ask_{}", self.0.replace('-', "_"))
    }

    /// Name of the tool that transfers to this agent: `transfer_to_skill_creator`.
    pub fn transfer_tool(&self) -> String {
        format!("transfer_to_{}", self.0.replace('-', "_"))
    }
}
text_id!(AgentName);

macro_rules! uuid_id_traits {
    ($name:ident) => {
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(&self.0, f)
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }
        /// Ids are in every event and row: a `Display` that writes in pieces would be escaped in pieces.
        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                let mut text = [0; Hyphenated::LENGTH];
                serializer.serialize_str(self.0.hyphenated().encode_lower(&mut text))
            }
        }
        parsed_id!($name);
    };
}
/// A conversation. The caller chooses the id: a hyphenated UUID version 4.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(Uuid);

impl ThreadId {
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        // `Uuid` also parses the braced, URN and simple forms; a thread id has one spelling.
        let hyphenated = text.len() == Hyphenated::LENGTH;
        match Uuid::try_parse(text) {
            Ok(id)
                if hyphenated && id.get_version_num() == 4 && id.get_variant() == uuid::Variant::RFC4122 =>
            {
                Ok(Self(id))
            }
            _ => Err(InvalidId::Thread(text.to_owned())),
        }
    }

    pub fn random() -> Self {
        Self(Uuid::new_v4())
    }

    pub fn as_uuid(self) -> Uuid {
        self.0
    }
}
uuid_id_traits!(ThreadId);

/// Implements an id that is a UUID of any version.
macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                Uuid::try_parse(text)
                    .map(Self)
                    .map_err(|_| InvalidId::Uuid { what: $what, value: text.to_owned() })
            }

            /// Pass a UUID version 7 for ids that sort by time.
            pub fn from_uuid(id: Uuid) -> Self {
                Self(id)
            }

            pub fn as_uuid(self) -> Uuid {
                self.0
            }
        }
        uuid_id_traits!($name);
    };
}

uuid_id!(
    /// The processing of one incoming message.
    RunId, "run"
);
impl RunId {
    /// An id that is derived from the run and a path in it, so that it is the same after a crash.
    pub fn uuid_at(self, path: &str) -> Uuid {
        let backwards: String = path.chars().rev().collect();
        let place = u128::from(fnv1a_32(path)) << 32 | u128::from(fnv1a_32(&backwards));
        // Only the low 60 bits change. The version and the variant stay.
        Uuid::from_u128(self.0.as_u128() ^ (place & (u128::MAX >> 68)))
    }
}

uuid_id!(
    /// One message of a thread.
    MessageId, "message"
);
uuid_id!(
    /// A handoff: the lease of a thread to an agent.
    HandoffId, "handoff"
);

macro_rules! short_text_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                let sized = !text.is_empty() && text.chars().count() <= 255;
                if sized && !text.chars().any(char::is_control) {
                    Ok(Self(text.into()))
                } else {
                    Err(InvalidId::Text { what: $what })
                }
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }
        text_id!($name);
    };
}

short_text_id!(
    /// The owner of the data. Taken from a credential, never from a request body or header.
    TenantId, "tenant"
);
short_text_id!(
    /// The person or program that a run acts for.
    UserId, "user"
);
short_text_id!(
    /// One tool call of a turn, as named by the model's provider.
    ToolCallId, "tool call"
);

/// One agent loop within a run: `{run}` for the first, `{parent}:sub_{label}_{8 hex}` for its children.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(Arc<str>);

impl SessionId {
    pub fn root(run: RunId) -> Self {
        let mut text = [0; Hyphenated::LENGTH];
        Self(Arc::from(&*run.as_uuid().hyphenated().encode_lower(&mut text)))
    }

    /// `label` is the agent's name; `nonce` distinguishes calls of the same agent.
    #[must_use]
    pub fn child(&self, label: &AgentName, nonce: u32) -> Self {
        Self(format!("{}:sub_{label}_{nonce:08x}", self.0).into())
    }

    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let mut segments = text.split(':');
        let run_is_valid = segments.next().is_some_and(|run| RunId::parse(run).is_ok());
        if run_is_valid && segments.all(is_child_segment) {
            Ok(Self(text.into()))
        } else {
            Err(InvalidId::Session(text.to_owned()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn parent(&self) -> Option<Self> {
        self.0.rsplit_once(':').map(|(parent, _)| Self(parent.into()))
    }

    /// Nesting depth: 1 for the run's first session.
    pub fn level(&self) -> usize {
        self.0.matches(':').count() + 1
    }
}
text_id!(SessionId);

fn is_child_segment(segment: &str) -> bool {
    let Some((label, nonce)) = segment.strip_prefix("sub_").and_then(|rest| rest.rsplit_once('_')) else {
        return false;
    };
    let is_hex = |b: u8| b.is_ascii_digit() || (b'a'..=b'f').contains(&b);
    AgentName::parse(label).is_ok() && nonce.len() == 8 && nonce.bytes().all(is_hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thread_ids_are_uuid_v4_only() {
        // A3
        assert!(ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").is_ok());
        for bad in [
            "",
            "abc-123",
            "550e8400e29b41d4a716446655440000",
            "{550e8400-e29b-41d4-a716-446655440000}",
            "urn:uuid:550e8400-e29b-41d4-a716-446655440000",
            "550e8400-e29b-11d4-a716-446655440000",
            "550e8400-e29b-71d4-a716-446655440000",
            "550e8400-e29b-41d4-c716-446655440000",
            "00000000-0000-0000-0000-000000000000",
            " 550e8400-e29b-41d4-a716-446655440000",
        ] {
            assert!(ThreadId::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(
            ThreadId::parse("550E8400-E29B-41D4-A716-446655440000").unwrap().to_string(),
            "550e8400-e29b-41d4-a716-446655440000"
        );
    }

    #[test]
    fn agent_names_and_slugs() {
        assert!(AgentName::parse("skill-creator").is_ok());
        assert!(AgentName::parse("9to5_desk").is_ok());
        for bad in ["", "-a", "_a", "Skill", "a b", "ä", &"a".repeat(65)] {
            assert!(AgentName::parse(bad).is_err(), "{bad}");
        }
        let slug = |text| AgentName::slug(text).map(|name| name.to_string());
        assert_eq!(slug("Code Review!").as_deref(), Some("code-review"));
        assert_eq!(slug("  SRE -- Principal "), Some("sre-principal".into()));
        assert_eq!(slug("日本語"), None);
        assert_eq!(slug("_x_"), Some("x".into()));
    }

    #[test]
    fn session_ids_nest() {
        // F9, F14
        let root = SessionId::root(RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap());
        let child = root.child(&AgentName::parse("web_research").unwrap(), 0x1f);
        assert_eq!(child.as_str(), "01890a5d-ac96-774b-bcce-b302099a8057:sub_web_research_0000001f");
        assert_eq!((root.level(), child.level()), (1, 2));
        assert_eq!(child.parent(), Some(root));
        assert_eq!(SessionId::parse(child.as_str()), Ok(child.clone()));
        assert!(SessionId::parse(&format!("{child}:sub_x")).is_err());
        assert!(SessionId::parse("hello").is_err());
    }

    #[test]
    fn deserialising_checks() {
        assert!(serde_json::from_str::<ThreadId>("\"nope\"").is_err());
        assert!(serde_json::from_str::<TenantId>("\"\"").is_err());
        assert_eq!(serde_json::from_str::<AgentName>("\"a\"").unwrap().as_str(), "a");
    }
}
