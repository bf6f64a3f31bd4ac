//! The cases: one TOML file per group, one table per case.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use anyhow::{Context as _, ensure};
use regex::Regex;
use serde::Deserialize;

/// A conversation and what it should lead to.
#[derive(Debug, Clone)]
pub struct Case {
    pub group: String,
    pub name: String,
    /// A folder of `examples/`; `None` for the bundled agents.
    pub example: Option<String>,
    /// The agent that is addressed; `None` for the main agent of the project.
    pub agent: Option<String>,
    /// Documents beside those of the project, by file name.
    pub docs: BTreeMap<String, String>,
    pub messages: Vec<Line>,
    pub expect: Expect,
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "LineEntry")]
pub struct Line {
    pub text: String,
    /// The message is sent only while a handoff is active, at most so often. `None`: once, in any case.
    pub while_held: Option<u32>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum LineEntry {
    Text(String),
    Repeated { text: String, while_held: u32 },
}

impl From<LineEntry> for Line {
    fn from(entry: LineEntry) -> Self {
        match entry {
            LineEntry::Text(text) => Self { text, while_held: None },
            LineEntry::Repeated { text, while_held } => Self { text, while_held: Some(while_held) },
        }
    }
}

/// What a case expects. Every run has to complete. The checks of texts read the last answer and ignore case.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// The agent that gives the last answer.
    pub answered_by: Option<String>,
    /// Agents that complete a session in some run of the case.
    pub agents: Vec<String>,
    /// Agents that get no session.
    pub no_agents: Vec<String>,
    /// Agents other than the addressed one get no session.
    pub alone: bool,
    /// Tools that are called with success.
    pub calls: Vec<String>,
    /// Tools that are not called, with or without success.
    pub no_calls: Vec<String>,
    /// Text arguments of tools do not contain the user's message (K8).
    pub rewrites: bool,
    /// Facts that are in the last answer and in the result of a tool.
    pub grounded: Vec<String>,
    /// Texts that are in the last answer.
    pub contains: Vec<String>,
    pub excludes: Vec<String>,
    pub matches: Vec<Pattern>,
    pub not_matches: Vec<Pattern>,
    /// The last answer is JSON with these keys.
    pub json_keys: Vec<String>,
    /// The agent that holds the thread after the last message. An empty text: no agent does.
    pub holder: Option<String>,
    /// The agent whose handoff has ended as `completed`.
    pub completed_handoff: Option<String>,
    /// Values that the workflow has collected, by key, as they were last seen.
    pub values: BTreeMap<String, Pattern>,
    /// The only skill that exists at the end.
    pub skill: Option<Pattern>,
    /// Most input tokens of the first model call.
    pub input_at_most: Option<u64>,
    /// Least share of the input tokens of the last message's first model call that the provider read from its cache.
    pub cached_at_least: Option<f64>,
}

/// A regular expression that ignores case.
#[derive(Debug, Clone, Deserialize)]
#[serde(try_from = "String")]
pub struct Pattern(pub Regex);

impl TryFrom<String> for Pattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, regex::Error> {
        Regex::new(&format!("(?i){text}")).map(Self)
    }
}

/// As it is written in the case.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_str().trim_start_matches("(?i)"))
    }
}

/// One file. The keys beside `case` are the defaults of its cases.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    example: Option<String>,
    agent: Option<String>,
    #[serde(rename = "case")]
    cases: Vec<CaseEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseEntry {
    name: String,
    example: Option<String>,
    agent: Option<String>,
    #[serde(default)]
    docs: BTreeMap<String, String>,
    say: Said,
    expect: Expect,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Said {
    Once(String),
    Lines(Vec<Line>),
}

/// Reads all cases of a folder, ordered by group, and keeps those that `only` names.
pub fn load(dir: &Path, only: &[String]) -> anyhow::Result<Vec<Case>> {
    let entries = std::fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let mut files: Vec<_> =
        entries.collect::<Result<Vec<_>, _>>()?.iter().map(std::fs::DirEntry::path).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
    files.sort();
    let mut cases = Vec::new();
    for file in files {
        cases.extend(read(&file)?);
    }
    let is_named = |case: &Case, only: &String| *only == case.group || *only == case.id();
    for name in only {
        ensure!(cases.iter().any(|case| is_named(case, name)), "there is no group or case `{name}`");
    }
    cases.retain(|case| only.is_empty() || only.iter().any(|name| is_named(case, name)));
    ensure!(!cases.is_empty(), "{} has no cases", dir.display());
    Ok(cases)
}

fn read(path: &Path) -> anyhow::Result<Vec<Case>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let file: CaseFile = toml::from_str(&text).with_context(|| format!("{} is invalid", path.display()))?;
    let group = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let (example, agent) = (file.example, file.agent);
    let case = |entry: CaseEntry| Case {
        group: group.clone(),
        name: entry.name,
        // A file with an example of its own may still have cases of others.
        example: entry.example.or_else(|| example.clone()),
        agent: entry.agent.or_else(|| agent.clone()),
        docs: entry.docs,
        messages: match entry.say {
            Said::Once(text) => vec![Line { text, while_held: None }],
            Said::Lines(lines) => lines,
        },
        expect: entry.expect,
    };
    Ok(file.cases.into_iter().map(case).collect())
}

impl Case {
    pub fn id(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_cases_are_valid_and_name_what_exists() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let cases = load(&root.join("smoke/cases"), &[]).unwrap();
        assert!(cases.len() >= 60, "{} cases", cases.len());
        for case in &cases {
            let project =
                case.example.as_ref().map_or(root.to_owned(), |name| root.join("examples").join(name));
            let expect = &case.expect;
            let named =
                case.agent.iter().chain(&expect.answered_by).chain(&expect.agents).chain(&expect.no_agents);
            let held =
                expect.holder.iter().chain(&expect.completed_handoff).filter(|agent| !agent.is_empty());
            for agent in named.chain(held) {
                let file = project.join("agents").join(agent).with_extension("md");
                assert!(file.is_file(), "{}: {} is missing", case.id(), file.display());
            }
        }
    }

    #[test]
    fn only_selects_groups_and_cases() {
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
        let ids = |only: &[&str]| {
            let only: Vec<String> = only.iter().map(ToString::to_string).collect();
            load(&dir, &only).map(|cases| cases.iter().map(Case::id).collect::<Vec<_>>())
        };
        assert_eq!(ids(&["routing"]).unwrap().len(), 15);
        assert_eq!(ids(&["team/panel", "chain/low-risk"]).unwrap(), ["chain/low-risk", "team/panel"]);
        assert!(ids(&["rooting"]).unwrap_err().to_string().contains("`rooting`"));
    }
}
