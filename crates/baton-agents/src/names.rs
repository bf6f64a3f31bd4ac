//! What every agent is called: the index that references are resolved against.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::AgentName;
use baton_core::choice::snake_case;

use crate::files;
use crate::frontmatter::Document;
use crate::problem::{Problem, Rule};
use crate::source::Span;
use crate::yaml::Node;

/// An agent's own name, as its file gives it.
#[derive(Debug, Clone)]
pub struct Identity {
    pub id: AgentName,
    pub display_name: String,
    /// Where the name stands, or the top of the file when it comes from the file's name.
    pub span: Span,
}

/// Reads who an agent is. `None` means that no id can be made, which is reported.
pub fn identify(document: &Document, problems: &mut Vec<Problem>) -> Option<Identity> {
    let text_of = |key: &str| {
        let entry = document.entries().find(|entry| snake_case(&entry.key) == key)?;
        let text = entry.value.scalar()?.text.trim();
        (!text.is_empty()).then_some((text, &entry.value))
    };
    let name = text_of("name");
    let display_name = text_of("display_name").map(|(text, _)| text.to_owned());
    match name {
        Some((text, node)) if AgentName::parse(text).is_ok() => {
            let id = AgentName::parse(text).ok()?;
            let display_name = display_name.unwrap_or_else(|| title(&id));
            Some(Identity { id, display_name, span: node.span })
        }
        // A name with spaces or capitals is what people see; the file's name is the id.
        Some((text, node)) if is_display_name(text) => {
            let id = id_from_file(document, node.span, problems)?;
            Some(Identity {
                id,
                display_name: display_name.unwrap_or_else(|| text.to_owned()),
                span: node.span,
            })
        }
        Some((text, node)) => {
            problems.push(invalid_name(document, text, node));
            None
        }
        None => {
            let top = document.top().span;
            let id = id_from_file(document, top, problems)?;
            let display_name = display_name.unwrap_or_else(|| title(&id));
            Some(Identity { id, display_name, span: top })
        }
    }
}

fn is_display_name(text: &str) -> bool {
    text.chars().any(|c| c.is_uppercase() || c == ' ')
        && text.chars().count() <= 120
        && !text.contains(char::is_control)
}

fn id_from_file(document: &Document, span: Span, problems: &mut Vec<Problem>) -> Option<AgentName> {
    let stem = files::stem(&document.source.path);
    let id = AgentName::slug(&stem);
    if id.is_none() {
        problems.push(Problem::new(
            Rule::InvalidName,
            document.locate(span),
            format!("no agent name can be made of the file name `{stem}`"),
            "add `name:` with lower-case letters, digits, `-` and `_`, or rename the file",
        ));
    }
    id
}

fn invalid_name(document: &Document, text: &str, node: &Node) -> Problem {
    let help = AgentName::slug(text).map_or_else(
        || "use lower-case letters, digits, `-` and `_`".to_owned(),
        |slug| format!("write `name: {slug}`"),
    );
    let message = format!(
        "`{}` is not an agent name: lower-case letters, digits, `-` and `_`, at most 64, starting with a letter or digit",
        shortened(text)
    );
    Problem::new(Rule::InvalidName, document.locate(node.span), message, help)
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(80) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// `skill-creator` → `Skill Creator`.
fn title(id: &AgentName) -> String {
    let words = id.as_str().split(['-', '_']).filter(|word| !word.is_empty());
    let titled = words.map(|word| word[..1].to_uppercase() + &word[1..]);
    titled.collect::<Vec<_>>().join(" ")
}

/// All names of a roster.
#[derive(Debug, Default)]
pub struct Names {
    ids: BTreeSet<AgentName>,
    /// Ids by everything they are also called, spelt alike.
    spoken: BTreeMap<AgentName, BTreeSet<AgentName>>,
}

/// Why a reference does not point to one agent.
#[derive(Debug, PartialEq, Eq)]
pub enum Unresolved {
    Unknown { nearest: Vec<AgentName> },
    Ambiguous(Vec<AgentName>),
}

impl Names {
    pub fn of<'a>(identities: impl IntoIterator<Item = &'a Identity>) -> Self {
        let mut names = Self::default();
        for Identity { id, display_name, .. } in identities {
            names.ids.insert(id.clone());
            for spoken in [canonical(id.as_str()), canonical(display_name)].into_iter().flatten() {
                names.spoken.entry(spoken).or_default().insert(id.clone());
            }
        }
        names
    }

    pub fn contains(&self, id: &AgentName) -> bool {
        self.ids.contains(id)
    }

    /// Finds the agent that `text` means: its id, or its id or display name in another spelling
    /// (`SRE Principal`, `sre_principal`).
    pub fn resolve(&self, text: &str) -> Result<AgentName, Unresolved> {
        if let Some(id) = self.ids.get(text) {
            return Ok(id.clone());
        }
        match canonical(text).and_then(|spoken| self.spoken.get(&spoken)) {
            Some(ids) if ids.len() == 1 => Ok(ids.first().expect("one").clone()),
            Some(ids) => Err(Unresolved::Ambiguous(ids.iter().cloned().collect())),
            None => Err(Unresolved::Unknown { nearest: self.nearest(text) }),
        }
    }

    /// At most three names that `text` may have been meant as, best first.
    pub fn nearest(&self, text: &str) -> Vec<AgentName> {
        let text = text.to_lowercase();
        let candidates = self.ids.iter().map(AgentName::as_str);
        let nearest = nearest(&text, candidates, |len| (len / 3).clamp(2, 8));
        nearest.into_iter().take(3).filter_map(|name| self.ids.get(name).cloned()).collect()
    }
}

/// One spelling for what people would say is the same name.
fn canonical(text: &str) -> Option<AgentName> {
    AgentName::slug(&text.replace('_', "-"))
}

/// Candidates within `allowed(length)` edits of `text`, nearest first.
pub fn nearest<'a>(
    text: &str,
    candidates: impl Iterator<Item = &'a str>,
    allowed: impl Fn(usize) -> usize,
) -> Vec<&'a str> {
    let length = text.chars().count();
    let limit = allowed(length);
    // Nothing that long is a misspelling, and the distance costs the product of both lengths.
    if length > 80 {
        return Vec::new();
    }
    let close = candidates
        .filter(|candidate| candidate.len().abs_diff(length) <= limit)
        .map(|candidate| (strsim::osa_distance(text, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit);
    let mut close: Vec<_> = close.collect();
    close.sort_unstable();
    close.into_iter().map(|(_, candidate)| candidate).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let identity = |id: &str, display_name: &str| Identity {
            id: AgentName::parse(id).unwrap(),
            display_name: display_name.to_owned(),
            span: Span::default(),
        };
        Names::of(&[
            identity("research", "Research"),
            identity("sre_principal", "SRE Principal Engineer"),
            identity("a", "Same"),
            identity("b", "Same"),
        ])
    }

    #[test]
    fn references_resolve_by_any_spelling() {
        let resolve = |text: &str| names().resolve(text).map(|id| id.to_string());
        assert_eq!(resolve("research").unwrap(), "research");
        assert_eq!(resolve("sre-principal").unwrap(), "sre_principal");
        assert_eq!(resolve("SRE Principal Engineer").unwrap(), "sre_principal");
        assert!(matches!(resolve("same"), Err(Unresolved::Ambiguous(ids)) if ids.len() == 2));
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        // G16
        let nearest = |text: &str| names().nearest(text).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(nearest("reserch"), ["research"]);
        assert_eq!(nearest("Research"), ["research"]);
        assert!(nearest("weather").is_empty());
        assert!(nearest(&"x".repeat(100_000)).is_empty());
    }
}
