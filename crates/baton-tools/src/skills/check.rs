//! The rules of Agent Skills.

use std::fmt;
use std::path::Path;

use baton_core::agent::SkillName;
use baton_core::choices;

use super::head::{self, Field, SkillFrontmatter};
use super::{FILE, read_file};

const KEYS: &[&str] = &["name", "description", "license", "compatibility", "metadata", "allowed-tools"];
const MAX_DESCRIPTION_CHARS: usize = 1024;
const MAX_COMPATIBILITY_CHARS: usize = 500;
/// Advice, not a rule: a longer body crowds out the conversation.
const MAX_BODY_LINES: usize = 500;
const MAX_BODY_CHARS: usize = 20_000;

/// Strict for what Baton writes, so that every other tool takes it. Lenient for what others wrote, as long as it can
/// be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillStrictness {
    Strict,
    Lenient,
}

choices! {
    pub enum CheckSeverity {
        Error = "error",
        Warning = "warning",
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillProblem {
    pub severity: CheckSeverity,
    /// One word that never changes its meaning.
    pub rule: &'static str,
    pub message: String,
}

impl fmt::Display for SkillProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]: {}", self.severity, self.rule, self.message)
    }
}

/// Everything that is wrong with the skill in this folder. Without an error it can be used.
pub fn validate(dir: &Path, strictness: SkillStrictness) -> Vec<SkillProblem> {
    // `.` and `a/..` have a name too.
    let real = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let folder = real.file_name().unwrap_or_default().to_string_lossy();
    match read_file(dir) {
        Ok(text) => validate_text(&text, &folder, strictness),
        Err(error) => {
            let message = format!("{FILE} cannot be read: {error}");
            vec![SkillProblem { severity: CheckSeverity::Error, rule: "file", message }]
        }
    }
}

/// The same for a file that is to be put into `folder`.
pub fn validate_text(text: &str, folder: &str, strictness: SkillStrictness) -> Vec<SkillProblem> {
    let mut check = Check { strictness, problems: Vec::new() };
    check.file(text, folder);
    check.problems
}

struct Check {
    strictness: SkillStrictness,
    problems: Vec<SkillProblem>,
}

impl Check {
    fn add(&mut self, severity: CheckSeverity, rule: &'static str, message: impl Into<String>) {
        self.problems.push(SkillProblem { severity, rule, message: message.into() });
    }

    fn error(&mut self, rule: &'static str, message: impl Into<String>) {
        self.add(CheckSeverity::Error, rule, message);
    }

    fn warn(&mut self, rule: &'static str, message: impl Into<String>) {
        self.add(CheckSeverity::Warning, rule, message);
    }

    /// Wrong by the rules, and still usable.
    fn fault(&mut self, rule: &'static str, message: impl Into<String>) {
        let severity = match self.strictness {
            SkillStrictness::Strict => CheckSeverity::Error,
            SkillStrictness::Lenient => CheckSeverity::Warning,
        };
        self.add(severity, rule, message);
    }

    fn file(&mut self, text: &str, folder: &str) {
        let (head, body) = match head::read(text) {
            Ok(parts) => parts,
            Err(error) => return self.error("head", error.to_string()),
        };
        for (key, _) in &head.fields {
            if !KEYS.contains(&key.as_str()) {
                self.fault("key", format!("unknown key `{key}`; only {} are allowed", KEYS.join(", ")));
            }
        }
        self.name(&head, folder);
        self.description(&head);
        self.others(&head);
        self.body(body);
    }

    fn name(&mut self, head: &SkillFrontmatter, folder: &str) {
        let Some(name) = head.text("name").map(str::trim).filter(|name| !name.is_empty()) else {
            return self.fault("name", "`name` is missing or not text");
        };
        if let Err(error) = SkillName::parse(name) {
            self.fault("name", error.to_string());
        }
        if folder != name {
            self.fault(
                "folder",
                format!("the folder is called `{folder}` and the skill `{name}`; they must be the same"),
            );
        }
    }

    fn description(&mut self, head: &SkillFrontmatter) {
        let Some(text) = head.text("description").filter(|text| !text.trim().is_empty()) else {
            return self.error(
                "description",
                "`description` is missing or empty; say what the skill does and when to use it",
            );
        };
        let length = text.chars().count();
        if length > MAX_DESCRIPTION_CHARS {
            self.fault(
                "description",
                format!("`description` has {length} characters; at most {MAX_DESCRIPTION_CHARS} are allowed"),
            );
        }
        if text.contains(['<', '>']) {
            self.fault("description", "`description` contains `<` or `>`");
        }
    }

    fn others(&mut self, head: &SkillFrontmatter) {
        match head.get("compatibility") {
            Some(Field::Text { text, .. }) if text.chars().count() <= MAX_COMPATIBILITY_CHARS => {}
            Some(_) => self.fault(
                "compatibility",
                format!("`compatibility` is a text of at most {MAX_COMPATIBILITY_CHARS} characters"),
            ),
            None => {}
        }
        if head.get("license").is_some_and(|field| field.text().is_none()) {
            self.fault("license", "`license` is a short text");
        }
        if head.get("allowed-tools").is_some_and(|field| field.text().is_none()) {
            self.warn(
                "allowed-tools",
                "`allowed-tools` is one text with spaces between the tools; not every client reads lists",
            );
        }
        match head.get("metadata") {
            Some(Field::Map(entries)) => entries.iter().for_each(|(key, field)| self.metadata(key, field)),
            Some(_) => self.fault("metadata", "`metadata` is a map of texts"),
            None => {}
        }
    }

    fn metadata(&mut self, key: &str, field: &Field) {
        match field {
            Field::Text { text, plain: true } if is_typed(text) => {
                self.warn(
                    "metadata",
                    format!("quote the value of `{key}`: \"{text}\"; without quotes it is not a text"),
                );
            }
            Field::Text { .. } => {}
            _ => self.fault("metadata", format!("the value of `{key}` is not a text")),
        }
    }

    fn body(&mut self, body: &str) {
        let (lines, chars) = (body.lines().count(), body.chars().count());
        if body.trim().is_empty() {
            self.warn("body", "there are no instructions below the head");
        } else if lines > MAX_BODY_LINES || chars > MAX_BODY_CHARS {
            self.warn("body", format!("the instructions have {lines} lines and {chars} characters; move what is rarely needed into files beside it"));
        }
    }
}

/// What YAML reads as a number, a flag or nothing.
fn is_typed(text: &str) -> bool {
    let word = text.to_ascii_lowercase();
    word.parse::<f64>().is_ok()
        || matches!(word.as_str(), "" | "~" | "null" | "true" | "false" | "yes" | "no" | "on" | "off")
}
