//! What every agent is called: the index that references are resolved against.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use baton_core::AgentName;
use baton_core::choice::snake_case;

use crate::files;
use crate::format::FileFormat;
use crate::frontmatter::AgentDocument;
use crate::problem::{Diagnostic, Rule};
use crate::source::Span;

/// An agent's own name, as its file gives it.
#[derive(Debug, Clone)]
pub struct AgentIdentity {
    pub id: AgentName,
    pub display_name: String,
    /// Where the name stands, or the top of the file when it comes from the file's name.
    pub span: Span,
    pub format: FileFormat,
}

/// Reads who an agent is. A name that cannot be one is reported, and the file's name stands in for it, so that the
/// rest of the file is still looked at; `nth` tells files apart that have no usable name either.
pub fn identify(
    document: &AgentDocument,
    format: FileFormat,
    nth: usize,
    problems: &mut Vec<Diagnostic>,
) -> AgentIdentity {
    let name = text_of(document, "name", problems);
    let display_name = text_of(document, "display_name", problems).map(|(text, _)| text);
    let span = name.as_ref().map_or_else(|| document.top().span, |(_, span)| *span);
    if let Some(id) = name.as_ref().and_then(|(text, _)| AgentName::parse(text).ok()) {
        let display_name = display_name.unwrap_or_else(|| title(&id));
        return AgentIdentity { id, display_name, span, format };
    }
    let from_file = AgentName::slug(&files::stem(&document.source.path));
    let from_name = name.as_ref().and_then(|(text, _)| foreign_name(text, format));
    match &name {
        _ if from_name.is_some() => {}
        Some((text, span)) if !is_display_name(text) => problems.push(invalid_name(document, text, *span)),
        _ if from_file.is_none() => problems.push(no_name(document, span)),
        // A name with spaces or capitals is what people see; the file's name is the id.
        _ => {}
    }
    let id = from_name.or(from_file).unwrap_or_else(|| unnamed(nth));
    let display_name = display_name.or(name.map(|(text, _)| shortened(&text))).unwrap_or_else(|| title(&id));
    AgentIdentity { id, display_name, span, format }
}

/// The id for a name of another program that is none here, such as `speckit.plan`. The name itself stays what people see.
fn foreign_name(text: &str, format: FileFormat) -> Option<AgentName> {
    let is_foreign = format == FileFormat::Foreign && !is_display_name(text) && !text.contains('/');
    AgentName::slug(text).filter(|_| is_foreign)
}

fn text_of(document: &AgentDocument, key: &str, problems: &mut Vec<Diagnostic>) -> Option<(String, Span)> {
    let entry = document.entries().find(|entry| snake_case(&entry.key) == key)?;
    let Some(scalar) = entry.value.scalar() else {
        let message = format!("`{key}` is {}, and has to be text", entry.value.describe());
        let location = document.locate(entry.value.span);
        problems.push(Diagnostic::new(
            Rule::WrongType,
            location,
            message,
            format!("write `{key}: …` with one text"),
        ));
        return None;
    };
    let text = scalar.text.trim();
    (!text.is_empty() && !entry.value.is_null()).then(|| (text.to_owned(), entry.value.span))
}

fn unnamed(nth: usize) -> AgentName {
    AgentName::parse(&format!("unnamed-{nth}")).expect("a valid name")
}

fn is_display_name(text: &str) -> bool {
    text.chars().any(|c| c.is_uppercase() || c == ' ')
        && text.chars().count() <= 120
        && !text.contains(char::is_control)
}

fn no_name(document: &AgentDocument, span: Span) -> Diagnostic {
    Diagnostic::new(
        Rule::InvalidName,
        document.locate(span),
        format!("no agent name can be made of the file name `{}`", files::stem(&document.source.path)),
        "add `name:` with lower-case letters, digits, `-` and `_`, or rename the file",
    )
}

fn invalid_name(document: &AgentDocument, text: &str, span: Span) -> Diagnostic {
    let help = AgentName::slug(text).map_or_else(
        || "use lower-case letters, digits, `-` and `_`".to_owned(),
        |slug| format!("write `name: {slug}`"),
    );
    let message = format!(
        "`{}` is not an agent name: lower-case letters, digits, `-` and `_`, at most 64, starting with a letter or digit",
        shortened(text)
    );
    Diagnostic::new(Rule::InvalidName, document.locate(span), message, help)
}

/// A name as messages repeat it.
pub(crate) fn shortened(text: &str) -> String {
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
pub struct NameTable {
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

/// How many agents a reference that could mean any of them is told to mean.
const MAX_AMBIGUOUS: usize = 8;

impl NameTable {
    pub fn of<'a>(identities: impl IntoIterator<Item = &'a AgentIdentity>) -> Self {
        let mut names = Self::default();
        for AgentIdentity { id, display_name, .. } in identities {
            names.ids.insert(id.clone());
            for spoken in [canonical(id.as_str()), canonical(display_name)].into_iter().flatten() {
                names.spoken.entry(spoken).or_default().insert(id.clone());
            }
        }
        names
    }

    pub fn resolve(&self, text: &str) -> Result<AgentName, Unresolved> {
        self.resolve_with(text, |text| self.nearest(text))
    }

    fn resolve_with(
        &self,
        text: &str,
        suggest: impl FnOnce(&str) -> Vec<AgentName>,
    ) -> Result<AgentName, Unresolved> {
        if let Some(id) = self.ids.get(text) {
            return Ok(id.clone());
        }
        match canonical(text).and_then(|spoken| self.spoken.get(&spoken)) {
            Some(ids) if ids.len() == 1 => Ok(ids.first().expect("one").clone()),
            Some(ids) => Err(Unresolved::Ambiguous(ids.iter().take(MAX_AMBIGUOUS).cloned().collect())),
            None => Err(Unresolved::Unknown { nearest: suggest(text) }),
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

/// Resolves the references of a whole load. Each unknown name is compared with all others once, and no more than a few
/// are: a roster with thousands of them has one cause, and comparing each would take longer than everything else.
#[derive(Debug)]
pub struct Resolver<'a> {
    pub names: &'a NameTable,
    suggested: RefCell<HashMap<String, Vec<AgentName>>>,
}

const MAX_SUGGESTED: usize = 200;

impl<'a> Resolver<'a> {
    pub fn new(names: &'a NameTable) -> Self {
        Self { names, suggested: RefCell::default() }
    }

    pub fn resolve(&self, text: &str) -> Result<AgentName, Unresolved> {
        self.names.resolve_with(text, |text| {
            let mut suggested = self.suggested.borrow_mut();
            match suggested.get(text) {
                Some(nearest) => nearest.clone(),
                None if suggested.len() < MAX_SUGGESTED => {
                    let nearest = self.names.nearest(text);
                    suggested.insert(text.to_owned(), nearest.clone());
                    nearest
                }
                None => Vec::new(),
            }
        })
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
    let letters_of_text = letters(text);
    let close = candidates
        .filter(|candidate| candidate.len().abs_diff(length) <= limit)
        // An edit takes away one kind of letter and adds another at most, so what differs in more than that is
        // farther away. Much cheaper than the distance itself.
        .filter(|candidate| (letters(candidate) ^ letters_of_text).count_ones() as usize <= 2 * limit)
        .map(|candidate| (strsim::osa_distance(text, candidate), candidate))
        .filter(|(distance, _)| *distance <= limit);
    let mut close: Vec<_> = close.collect();
    close.sort_unstable();
    close.into_iter().map(|(_, candidate)| candidate).collect()
}

/// Which letters a text holds, one bit each.
fn letters(text: &str) -> u64 {
    text.chars().fold(0, |letters, c| letters | 1 << (u32::from(c) % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> NameTable {
        let identity = |id: &str, display_name: &str| AgentIdentity {
            id: AgentName::parse(id).unwrap(),
            display_name: display_name.to_owned(),
            span: Span::default(),
            format: FileFormat::Common,
        };
        NameTable::of(&[
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

    #[test]
    fn suggestions_are_made_for_a_few_and_kept() {
        let names = names();
        let resolver = Resolver::new(&names);
        let nearest = |text: &str| match resolver.resolve(text) {
            Err(Unresolved::Unknown { nearest }) => nearest.len(),
            other => panic!("{other:?}"),
        };
        assert_eq!(nearest("reserch"), 1);
        for at in 0..MAX_SUGGESTED {
            nearest(&format!("unknown-{at}"));
        }
        assert_eq!((nearest("reserch"), nearest("researh")), (1, 0));
    }
}
