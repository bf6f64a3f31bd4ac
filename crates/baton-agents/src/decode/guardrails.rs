//! `guardrails`: checks of what an agent reads and answers.

use baton_core::agent::{Guard, GuardCheck, Guardrails, PATTERN_BYTES, PiiKind};
use baton_core::choice::Choice as _;

use super::AgentDecoder;
use super::section::{FrontmatterMap, MapSection};
use crate::problem::Rule;
use crate::yaml::{Scalar, YamlNode};

/// The checks, one of which each entry has.
const CHECKS: &[&str] = &["max_length", "deny", "schema", "pii", "judge"];

impl<'a> AgentDecoder<'a> {
    pub(super) fn guardrails(&mut self, head: &FrontmatterMap<'a>) -> Guardrails {
        let section =
            head.get("guardrails").and_then(|node| self.section(node, "`guardrails`", &["input", "output"]));
        let Some(section) = section else { return Guardrails::default() };
        let mut guards = |key: &str| -> Vec<Guard> {
            let items = section.get(key).map(Self::items).unwrap_or_default();
            items.iter().filter_map(|item| self.guard(item)).collect()
        };
        Guardrails { input: guards("input"), output: guards("output") }
    }

    fn guard(&mut self, node: &'a YamlNode) -> Option<Guard> {
        let keys = &["max_length", "deny", "schema", "pii", "judge", "message"];
        let section = self.section(node, "a guardrail", keys)?;
        let found: Vec<&str> = CHECKS.iter().copied().filter(|key| section.get(key).is_some()).collect();
        let [key] = found[..] else {
            let message = format!("a guardrail has one check, and this one has {}", found.len());
            let help = "write one of `max_length`, `deny`, `schema`, `pii` or `judge`, and an entry for each further check";
            self.report(Rule::WrongType, node.span, message, help);
            return None;
        };
        let check = self.guard_check(key, &section)?;
        let message = section.get("message").and_then(|node| self.text(node, "a sentence"));
        Some(Guard { check, message })
    }

    fn guard_check(&mut self, key: &str, section: &MapSection<'a>) -> Option<GuardCheck> {
        let node = section.get(key)?;
        match key {
            "max_length" => self.count(node, 1..=u32::MAX).map(GuardCheck::MaxLength),
            "deny" => self.deny(node),
            "schema" => self.schema(node, "`schema`").map(GuardCheck::Schema),
            "pii" => self.pii(node),
            _ => {
                let text = self.text(node, "the name of an agent")?;
                match self.resolver.resolve(&text) {
                    Ok(judge) => Some(GuardCheck::Judge(judge)),
                    Err(unresolved) => {
                        self.unresolved(&text, node.span, &unresolved);
                        None
                    }
                }
            }
        }
    }

    fn deny(&mut self, node: &'a YamlNode) -> Option<GuardCheck> {
        let mut patterns = Vec::new();
        for item in Self::items(node) {
            let Some(pattern) = self.text(item, "a regular expression") else { continue };
            match regex::RegexBuilder::new(&pattern).size_limit(PATTERN_BYTES).build() {
                Ok(compiled) if compiled.is_match("") => {
                    let message = "the pattern matches an empty text, so that it refuses everything";
                    let help = "write a pattern that needs at least one character";
                    self.report(Rule::InvalidPattern, item.span, message, help);
                }
                Ok(_) => patterns.push(pattern),
                Err(error) => {
                    // The parser draws the place over several lines; the last one says what is wrong.
                    let text = error.to_string();
                    let reason = text.lines().last().unwrap_or_default().trim_start_matches("error: ");
                    let message = format!("this is not a regular expression: {reason}");
                    let help =
                        "correct it; look-around and back-references do not exist, and `(?i)` ignores case";
                    self.report(Rule::InvalidPattern, item.span, message, help);
                }
            }
        }
        (!patterns.is_empty()).then_some(GuardCheck::Deny(patterns))
    }

    /// `true` is every kind.
    fn pii(&mut self, node: &'a YamlNode) -> Option<GuardCheck> {
        if node.scalar().and_then(Scalar::as_bool) == Some(true) {
            return Some(GuardCheck::Pii(PiiKind::ALL.iter().map(|(_, kind)| *kind).collect()));
        }
        let kinds: Vec<PiiKind> = Self::items(node).iter().filter_map(|item| self.choice(item)).collect();
        (!kinds.is_empty()).then_some(GuardCheck::Pii(kinds))
    }
}
