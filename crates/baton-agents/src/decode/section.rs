//! Maps whose keys are taken by name; whatever nobody knows is reported.

use baton_core::choice::snake_case;

use super::AgentDecoder;
use crate::format::FileFormat;
use crate::keys::{self, AgentKey};
use crate::names::{nearest, shortened};
use crate::problem::{Diagnostic, Rule, Severity};
use crate::source::Span;
use crate::yaml::{YamlEntry, YamlNode, YamlValue};

/// The top level of a frontmatter, by canonical key.
pub(super) struct FrontmatterMap<'a> {
    entries: Vec<(&'static str, &'a YamlEntry)>,
}

impl<'a> FrontmatterMap<'a> {
    /// The value of a key; an empty value is as good as none.
    pub(super) fn get(&self, key: &str) -> Option<&'a YamlNode> {
        self.find(key).map(|entry| &entry.value).filter(|node| !node.is_null())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.find(key).is_some_and(|entry| !entry.value.is_null())
    }

    /// Leaves out keys that have no effect, so that nothing is said about their values.
    pub(super) fn remove(&mut self, keys: &[&str]) {
        self.entries.retain(|(name, _)| !keys.contains(name));
    }

    fn find(&self, key: &str) -> Option<&'a YamlEntry> {
        self.entries.iter().find(|(name, _)| *name == key).map(|(_, entry)| *entry)
    }

    pub(super) fn spans(&self) -> Vec<(String, Span)> {
        let filled = self.entries.iter().filter(|(_, entry)| !entry.value.is_null());
        filled.map(|(name, entry)| ((*name).to_owned(), entry.key_span)).collect()
    }
}

impl<'a> AgentDecoder<'a> {
    /// Sorts the keys of the file into known ones and the rest, which is reported.
    pub(super) fn head(&mut self) -> FrontmatterMap<'a> {
        let mut head = FrontmatterMap { entries: Vec::new() };
        for entry in self.document.entries() {
            self.classify(entry, &mut head);
            self.no_duplicates(&entry.value);
        }
        head
    }

    fn classify(&mut self, entry: &'a YamlEntry, head: &mut FrontmatterMap<'a>) {
        let span = entry.key_span;
        match keys::lookup(&snake_case(&entry.key)) {
            Some(AgentKey::Own(name) | AgentKey::Foreign(name)) => match head.find(name) {
                Some(first) => self.duplicate(entry, first),
                None => head.entries.push((name, entry)),
            },
            Some(AgentKey::Unused { of }) => self.report(
                Rule::UnusedKey,
                span,
                format!("`{}` is a key of {of} and has no effect in Baton", entry.key),
                "nothing to do; the file still works in the other tool",
            ),
            Some(AgentKey::Renamed { to }) => self.report(
                Rule::RenamedKey,
                span,
                format!("`{}` is called `{to}`", entry.key),
                format!("write `{to}:` instead"),
            ),
            None => self.unknown_key(&entry.key, span, &keys::meant()),
        }
    }

    fn duplicate(&mut self, entry: &YamlEntry, first: &YamlEntry) {
        let problem = Diagnostic::new(
            Rule::DuplicateKey,
            self.document.locate(entry.key_span),
            format!("the key `{}` appears twice", entry.key),
            "keep one of them",
        );
        let first = self.document.locate(first.key_span);
        self.problems.push(problem.with_related("first here", first));
    }

    /// Exact repetitions in maps below the top level.
    fn no_duplicates(&mut self, node: &'a YamlNode) {
        match &node.value {
            YamlValue::Scalar(_) => {}
            YamlValue::List(items) => items.iter().for_each(|item| self.no_duplicates(item)),
            YamlValue::Map(entries) => {
                let mut seen = std::collections::HashMap::new();
                for entry in entries {
                    if let Some(first) = seen.insert(entry.key.as_str(), entry) {
                        self.duplicate(entry, first);
                    }
                    self.no_duplicates(&entry.value);
                }
            }
        }
    }

    /// A slip of the pen is an error, because the key was meant to do something. Candidates come with what to write.
    fn unknown_key(
        &mut self,
        key: &str,
        span: Span,
        candidates: &(impl Iterator<Item = (&'static str, &'static str)> + Clone),
    ) {
        let near = nearest(&snake_case(key), candidates.clone().map(|(name, _)| name), |_| 2);
        let near = near.first().and_then(|near| candidates.clone().find(|(name, _)| name == near));
        let key = shortened(key);
        let location = self.document.locate(span);
        let problem = match near {
            Some((_, near)) => Diagnostic::new(
                Rule::UnknownKey,
                location,
                format!("unknown key `{key}`; did you mean `{near}`?"),
                format!("write `{near}:` instead"),
            )
            .with_severity(if self.may_be_foreign(near) {
                Severity::Warning
            } else {
                Severity::Error
            }),
            None => Diagnostic::new(
                Rule::UnknownKey,
                location,
                format!("unknown key `{key}`"),
                "remove it; docs/agent-files.md lists all keys",
            ),
        };
        self.problems.push(problem);
    }

    /// In a file of another program, a key that only resembles one of ours is a key of its own, unless it restricts the agent.
    fn may_be_foreign(&self, near: &str) -> bool {
        let restricts =
            ["disallowed_tools", "permission", "permission_mode", "read_only", "readonly", "tools"];
        self.format == FileFormat::Foreign && !restricts.contains(&near)
    }

    /// Reads a map that has exactly these keys. `None` when the value is no map, which is reported.
    pub(super) fn section(
        &mut self,
        node: &'a YamlNode,
        what: &str,
        keys: &'static [&'static str],
    ) -> Option<MapSection<'a>> {
        let YamlValue::Map(entries) = &node.value else {
            self.report(
                Rule::WrongType,
                node.span,
                format!("{what} is {}, and has to be a map", node.describe()),
                format!("write it as a map with the keys {}", listed(keys)),
            );
            return None;
        };
        let mut known: Vec<(&'static str, &'a YamlEntry)> = Vec::new();
        for entry in entries {
            let snake = snake_case(&entry.key);
            match keys.iter().find(|key| **key == snake) {
                Some(key) => match known.iter().find(|(name, first)| name == key && first.key != entry.key) {
                    Some((_, first)) => self.duplicate(entry, first),
                    None => known.push((key, entry)),
                },
                None => self.unknown_section_key(entry, what, keys),
            }
        }
        Some(MapSection { entries: known, span: node.span })
    }

    fn unknown_section_key(&mut self, entry: &YamlEntry, what: &str, keys: &'static [&'static str]) {
        let snake = snake_case(&entry.key);
        if nearest(&snake, keys.iter().copied(), |_| 2).is_empty() {
            let message = format!("{what} has no key `{}`", shortened(&entry.key));
            self.report(Rule::UnknownKey, entry.key_span, message, format!("it may have {}", listed(keys)));
        } else {
            self.unknown_key(&entry.key, entry.key_span, &keys.iter().map(|key| (*key, *key)));
        }
    }
}

fn listed(keys: &[&str]) -> String {
    keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
}

/// A map below the top level.
pub(super) struct MapSection<'a> {
    entries: Vec<(&'static str, &'a YamlEntry)>,
    pub(super) span: Span,
}

impl<'a> MapSection<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&'a YamlNode> {
        debug_assert!(!key.is_empty());
        let entry = self.entries.iter().find(|(name, _)| *name == key).map(|(_, entry)| *entry);
        entry.map(|entry| &entry.value).filter(|node| !node.is_null())
    }
}
