//! The checks of guardrails that need no model, on a whole text and on one that is still growing.

use std::sync::Arc;

use baton_core::agent::{Guard, GuardCheck, PATTERN_BYTES, PiiKind};
use baton_core::choices;
use baton_sanitize::Kind;
use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::compile_cache::{self, CompileCache};
use crate::json;
use crate::structured_output::strip_code_fence;

/// A pattern whose matches may be longer holds back the whole text.
const MAX_HELD_BYTES: usize = 4 * 1024;
/// Bytes around a match that `\b` and `$` look at.
const LOOK_AROUND_BYTES: usize = 4;
/// Places in a JSON text that are named in a refusal.
const MAX_PLACES: usize = 8;

static PATTERNS: CompileCache<DenyPattern> = CompileCache::new();

choices! {
    /// What a guardrail checks.
    pub(crate) enum GuardSide {
        Input = "input",
        Output = "output",
    }
}

/// A check that failed. It never repeats the text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Violation {
    /// The key of the check in the agent's file.
    pub(crate) check: String,
    /// A clause whose subject is the text: `it is longer than 100 characters`.
    pub(crate) reason: String,
    /// The sentence of the agent's file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl Violation {
    pub(crate) fn new(guard: &Guard, reason: impl Into<String>) -> Self {
        Self { check: guard.check.key().to_owned(), reason: reason.into(), message: guard.message.clone() }
    }

    /// The answer to a user whose message is refused, or in place of an answer that is withheld.
    pub(crate) fn for_user(&self, side: GuardSide) -> String {
        if let Some(message) = &self.message {
            return message.clone();
        }
        match side {
            GuardSide::Input => format!("I cannot work on this message: {}.", self.reason),
            GuardSide::Output => format!("I cannot give this answer: {}.", self.reason),
        }
    }
}

/// A regular expression and the longest text that it matches.
#[derive(Debug)]
struct DenyPattern {
    regex: Regex,
    /// In bytes. `None` if matches may have any length.
    longest: Option<usize>,
}

fn compiled(pattern: &str) -> Option<Arc<DenyPattern>> {
    // The agent's file was validated; a pattern of other origin that does not compile refuses nothing.
    let compile = || -> Result<DenyPattern, String> {
        let regex = RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).build();
        let syntax = regex_syntax::parse(pattern).map_err(|error| error.to_string())?;
        let longest = syntax.properties().maximum_len();
        Ok(DenyPattern { regex: regex.map_err(|error| error.to_string())?, longest })
    };
    PATTERNS.get(pattern, compile).ok()
}

/// The first check that `text` does not pass. Judges are left out.
pub(crate) fn check(guards: &[Guard], text: &str) -> Option<Violation> {
    guards.iter().find_map(|guard| Some(Violation::new(guard, reason(&guard.check, text)?)))
}

/// Like [`check`], for a text that is not the answer itself: no schema applies.
pub(crate) fn check_part(guards: &[Guard], text: &str) -> Option<Violation> {
    let mut guards = guards.iter().filter(|guard| !matches!(guard.check, GuardCheck::Schema(_)));
    guards.find_map(|guard| Some(Violation::new(guard, reason(&guard.check, text)?)))
}

/// Whether an agent decides on the text.
pub(crate) fn has_judge(guards: &[Guard]) -> bool {
    guards.iter().any(|guard| matches!(guard.check, GuardCheck::Judge(_)))
}

fn reason(check: &GuardCheck, text: &str) -> Option<String> {
    match check {
        GuardCheck::MaxLength(most) => {
            let is_longer = text.chars().nth(*most as usize).is_some();
            is_longer.then(|| format!("it is longer than {most} characters"))
        }
        GuardCheck::Deny(patterns) => {
            let matches = |pattern: &String| compiled(pattern).is_some_and(|deny| deny.regex.is_match(text));
            let at = patterns.iter().position(matches)?;
            Some(format!("it matches the deny pattern {} of {}", at + 1, patterns.len()))
        }
        GuardCheck::Schema(schema) => schema_reason(schema, text),
        GuardCheck::Pii(kinds) => {
            let found = baton_sanitize::kinds(text);
            let kind = kinds.iter().find(|kind| found.contains(&sanitized(**kind)))?;
            let what = match kind {
                PiiKind::Email => "an e-mail address",
                PiiKind::Card => "a card number",
                PiiKind::Secret => "a secret",
            };
            Some(format!("it contains {what}"))
        }
        GuardCheck::Judge(_) => None,
    }
}

fn sanitized(kind: PiiKind) -> Kind {
    match kind {
        PiiKind::Email => Kind::Email,
        PiiKind::Card => Kind::Card,
        PiiKind::Secret => Kind::Secret,
    }
}

/// Names the places and not the values, which are part of the text.
fn schema_reason(schema: &Value, text: &str) -> Option<String> {
    let Ok(value) = json::parse(strip_code_fence(text)) else { return Some("it is not JSON".to_owned()) };
    let Ok(validator) = compile_cache::validator(schema) else {
        return Some("its schema is not valid".to_owned());
    };
    let errors = validator.iter_errors(&value).take(MAX_PLACES);
    let places: Vec<String> = errors.map(|error| format!("`{}`", error.instance_path())).collect();
    let places = places.join(", ");
    (!places.is_empty()).then(|| format!("it does not satisfy the required JSON Schema at {places}"))
}

/// How much of a growing text may be published.
#[derive(Debug)]
pub(crate) struct OutputGuard<'a> {
    guards: &'a [Guard],
    /// Bytes at the end of the text that are held back. `None` holds all of it.
    held: Option<usize>,
    /// Bytes that were looked at, and how many characters they are.
    seen: (usize, usize),
    /// Whether a check has failed, so that nothing more is published.
    is_blocked: bool,
}

impl<'a> OutputGuard<'a> {
    /// `None` without guards.
    pub(crate) fn new(guards: &'a [Guard]) -> Option<Self> {
        let held = guards
            .iter()
            .map(|guard| held_bytes(&guard.check))
            .try_fold(0, |most, held| Some(most.max(held?)));
        let held = held.filter(|held| *held <= MAX_HELD_BYTES);
        (!guards.is_empty()).then_some(Self { guards, held, seen: (0, 0), is_blocked: false })
    }

    /// Whether an agent decides on the text.
    pub(crate) fn has_judge(&self) -> bool {
        has_judge(self.guards)
    }

    /// Returns how many bytes of the text may be published, given all of it so far. Looks only at what is new and at the bytes that
    /// were held back before.
    pub(crate) fn publishable(&mut self, text: &str) -> usize {
        let Some(held) = self.held.filter(|_| !self.is_blocked) else { return 0 };
        let (bytes, characters) = self.seen;
        let characters = characters + text[bytes..].chars().count();
        let from = text.floor_char_boundary(bytes.saturating_sub(held));
        self.is_blocked = self.guards.iter().any(|guard| match &guard.check {
            GuardCheck::MaxLength(most) => characters > *most as usize,
            GuardCheck::Deny(patterns) => patterns.iter().any(|pattern| {
                compiled(pattern).is_some_and(|deny| deny.regex.find_at(text, from).is_some())
            }),
            _ => false,
        });
        self.seen = (text.len(), characters);
        if self.is_blocked { 0 } else { text.floor_char_boundary(text.len().saturating_sub(held)) }
    }

    /// The check that the whole text does not pass. A text beside tool calls is not the answer.
    pub(crate) fn violation(&self, text: &str, is_answer: bool) -> Option<Violation> {
        if is_answer { check(self.guards, text) } else { check_part(self.guards, text) }
    }
}

/// Bytes at the end of a text that a check needs to decide on what precedes them. `None` if it needs the whole text.
fn held_bytes(check: &GuardCheck) -> Option<usize> {
    match check {
        GuardCheck::MaxLength(_) => Some(0),
        GuardCheck::Deny(patterns) => patterns.iter().try_fold(0, |most, pattern| {
            let longest = compiled(pattern)?.longest?;
            Some(most.max(longest + LOOK_AROUND_BYTES))
        }),
        GuardCheck::Schema(_) | GuardCheck::Pii(_) | GuardCheck::Judge(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn guard(check: GuardCheck) -> Guard {
        Guard { check, message: None }
    }

    fn deny(patterns: &[&str]) -> Guard {
        guard(GuardCheck::Deny(patterns.iter().map(ToString::to_string).collect()))
    }

    #[test]
    fn each_check_says_what_is_wrong_without_the_text() {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
        for (check, bad, good, said) in [
            (GuardCheck::MaxLength(3), "äöüß", "äöü", "longer than 3 characters"),
            (GuardCheck::Deny(vec!["x".into(), "(?i)hunter2".into()]), "HUNTER2", "hunter", "pattern 2 of 2"),
            (GuardCheck::Schema(schema), r#"{"n": "hunter2"}"#, r#"{"n": 1}"#, "at `/n`"),
            (GuardCheck::Pii(vec![PiiKind::Email]), "ada@example.com", "Ada", "an e-mail address"),
        ] {
            let violation = super::check(&[guard(check.clone())], bad).unwrap();
            assert!(
                violation.reason.contains(said) && !violation.reason.contains("hunter2"),
                "{violation:?}"
            );
            assert_eq!(super::check(&[guard(check)], good), None);
        }
        let card = guard(GuardCheck::Pii(vec![PiiKind::Card]));
        assert_eq!(check(&[card], "ada@example.com"), None, "only the kinds that are listed");
    }

    #[test]
    fn text_streams_as_far_as_the_checks_allow() {
        let guards = [deny(&["secret"])];
        let mut held = OutputGuard::new(&guards).unwrap();
        assert_eq!(held.publishable("This is no "), 1);
        assert_eq!(held.publishable("This is no sec"), 4);
        assert_eq!(held.publishable("This is no secret"), 0);
        assert_eq!(held.publishable("This is no secret at all, really"), 0, "nothing after a match");
        for whole in [deny(&["a.*b"]), guard(GuardCheck::Pii(vec![PiiKind::Email]))] {
            let guards = [whole];
            assert_eq!(OutputGuard::new(&guards).unwrap().publishable(&"x".repeat(10_000)), 0);
        }
        let guards = [guard(GuardCheck::MaxLength(4))];
        let mut short = OutputGuard::new(&guards).unwrap();
        assert_eq!((short.publishable("äöüß"), short.publishable("äöüß!")), (8, 0));
    }

    proptest! {
        /// However a text is cut into deltas, no byte of a match is ever published.
        #[test]
        fn matches_are_never_published(
            parts in proptest::collection::vec("[a-cä ]{0,6}|key-[0-9]{0,4}", 0..20)
        ) {
            let guards = [deny(&["key-[0-9]{3}", r"\bab\b", "cc$"])];
            let mut growing = OutputGuard::new(&guards).unwrap();
            let (mut text, mut published) = (String::new(), 0);
            for part in parts {
                text.push_str(&part);
                published = published.max(growing.publishable(&text));
                prop_assert!(text.is_char_boundary(published));
            }
            for pattern in ["key-[0-9]{3}", r"\bab\b", "cc$"] {
                let found = Regex::new(pattern).unwrap().find(&text).map(|found| found.start());
                prop_assert!(found.is_none_or(|start| published <= start), "{text:?} up to {published}");
            }
        }
    }
}
