//! All agents of a set of folders, read and validated together.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::{AgentName, choices};

use crate::check;
use crate::decode::{self, Decoded, KeySpans};
use crate::files;
use crate::format::{self, FileFormat};
use crate::frontmatter::{self, AgentDocument};
use crate::graph::{Edge, Graph};
use crate::known::{KnownNames, OnError};
use crate::names::{self, AgentIdentity, NameTable, Resolver};
use crate::problem::{self, Diagnostic, Rule, Severity};
use crate::source::{Location, SourceFile, Span};

choices! {
    pub enum Strictness {
        /// Warnings are reported.
        Lenient = "lenient",
        /// Warnings are errors.
        Strict = "strict",
    }
}

/// Everything that could be read, valid or not, with everything that is wrong with it.
#[derive(Debug)]
pub struct RosterDraft {
    agents: BTreeMap<AgentName, RosterEntry>,
    edges: Vec<Edge>,
    /// Where each agent's edges are in `edges`.
    edges_by_agent: BTreeMap<AgentName, std::ops::Range<usize>>,
    problems: Vec<Diagnostic>,
    files: usize,
    names: NameTable,
    formats: BTreeMap<PathBuf, FileFormat>,
}

/// An agent together with the file it comes from.
#[derive(Debug)]
pub struct RosterEntry {
    pub agent: Arc<Agent>,
    pub spans: KeySpans,
    source: Arc<SourceFile>,
}

impl RosterEntry {
    pub fn path(&self) -> &Path {
        &self.source.path
    }

    pub fn locate(&self, span: Span) -> Location {
        self.source.locate(span)
    }
}

impl RosterDraft {
    /// Reads all agent files below `dirs`. Never fails: what is wrong is in [`RosterDraft::problems`].
    pub fn read(dirs: &[PathBuf], known: &KnownNames) -> Self {
        let mut problems = Vec::new();
        let paths = files::discover(dirs, &mut problems);
        let mut sources = Vec::with_capacity(paths.len());
        for path in &paths {
            match files::read(path) {
                Ok(source) => sources.push(source),
                Err(problem) => problems.push(problem),
            }
        }
        if paths.is_empty() && problems.is_empty() {
            problems.push(nothing_found(dirs));
        }
        let mut draft = Self::parse(&sources, known, problems);
        draft.files = paths.len();
        draft
    }

    /// The same from texts that are already in memory.
    pub fn parse(sources: &[Arc<SourceFile>], known: &KnownNames, problems: Vec<Diagnostic>) -> Self {
        if known.on_error == OnError::Refuse {
            return Self::parse_all(sources, known, problems);
        }
        let mut draft = Self::parse_all(sources, known, problems.clone());
        // Without a file, others may refer to an agent that is not there.
        let (mut used, mut reports) = (sources.to_vec(), Vec::new());
        loop {
            let broken = draft.broken_foreign_files();
            if broken.is_empty() {
                break;
            }
            let of_broken = |problem: &Diagnostic| broken.contains(problem.location.path());
            draft.problems.retain(of_broken);
            reports.extend(skipped_reports(&draft.problems));
            used.retain(|source| !broken.contains(&source.path));
            draft = Self::parse_all(&used, known, problems.clone());
        }
        draft.files = sources.len();
        draft.problems.extend(reports);
        draft.sort_problems();
        draft
    }

    fn parse_all(sources: &[Arc<SourceFile>], known: &KnownNames, mut problems: Vec<Diagnostic>) -> Self {
        let mut documents: Vec<(AgentDocument, AgentIdentity)> = Vec::with_capacity(sources.len());
        let mut formats = BTreeMap::new();
        for (nth, source) in sources.iter().enumerate() {
            let Some(document) = frontmatter::parse(source, &mut problems) else {
                formats.insert(source.path.clone(), format::of_unreadable(source, known));
                continue;
            };
            let format = format::of(&document, known);
            formats.insert(source.path.clone(), format);
            let identity = names::identify(&document, format, nth, &mut problems);
            documents.push((document, identity));
        }
        // Of two agents with one name, the one of Baton is used.
        documents.sort_by_key(|(_, identity)| identity.format == FileFormat::Foreign);
        let names = NameTable::of(documents.iter().map(|(_, identity)| identity));
        let mut draft = Self {
            agents: BTreeMap::new(),
            edges: Vec::new(),
            edges_by_agent: BTreeMap::new(),
            problems,
            files: sources.len(),
            names: NameTable::default(),
            formats,
        };
        let resolver = Resolver::new(&names);
        let mut decoded: Vec<Decoded> = documents
            .iter()
            .map(|(document, identity)| decode::decode(document, identity, &resolver, known))
            .collect();
        decode::call_everyone(&mut decoded, &documents);
        for ((document, identity), decoded) in documents.iter().zip(decoded) {
            draft.add(document, identity, decoded);
        }
        draft.names = names;
        draft.problems.extend(check::check(&draft));
        draft.sort_problems();
        draft
    }

    /// Files of other programs with errors. A file that tells nothing of its program is taken for one of those around it: in the
    /// nearest folder upwards that has any.
    fn broken_foreign_files(&self) -> BTreeSet<PathBuf> {
        let errors = self.problems.iter().filter(|problem| problem.is_error());
        let paths: BTreeSet<&Path> = errors.map(|problem| problem.location.path()).collect();
        let foreign_folders = self.foreign_folders();
        let is_foreign = |path: &Path| match self.formats.get(path) {
            Some(FileFormat::Common) => {
                path.ancestors().skip(1).find_map(|folder| foreign_folders.get(folder)).is_some_and(|is| *is)
            }
            format => format == Some(&FileFormat::Foreign),
        };
        paths.into_iter().filter(|path| is_foreign(path)).map(Path::to_owned).collect()
    }

    /// Folders with files that tell of their program, and whether none of these, also further down, is Baton's.
    fn foreign_folders(&self) -> BTreeMap<&Path, bool> {
        let mut folders = BTreeMap::new();
        let told = self.formats.iter().filter(|(_, format)| **format != FileFormat::Common);
        for (path, format) in told {
            for folder in path.ancestors().skip(1) {
                *folders.entry(folder).or_insert(true) &= *format == FileFormat::Foreign;
            }
        }
        folders
    }

    fn add(&mut self, document: &AgentDocument, identity: &AgentIdentity, decoded: Decoded) {
        self.problems.extend(decoded.problems);
        if let Some(first) = self.agents.get(&identity.id) {
            let problem = Diagnostic::new(
                Rule::DuplicateName,
                document.locate(identity.span),
                format!("two agents are called `{}`: here and in {}", identity.id, first.path().display()),
                "rename one of them, with `name:` or by its file name",
            );
            let at = first.spans.get("name").unwrap_or_default();
            self.problems.push(problem.with_related("the other one", first.locate(at)));
            return;
        }
        let start = self.edges.len();
        self.edges.extend(decoded.edges);
        self.edges_by_agent.insert(identity.id.clone(), start..self.edges.len());
        let source = Arc::clone(&document.source);
        self.agents.insert(
            identity.id.clone(),
            RosterEntry { agent: Arc::new(decoded.agent), spans: decoded.spans, source },
        );
    }

    fn sort_problems(&mut self) {
        self.problems.sort_by(|a, b| {
            let key = |p: &Diagnostic| (p.location.span.start, p.rule);
            a.location.path().cmp(b.location.path()).then_with(|| key(a).cmp(&key(b)))
        });
        problem::limit_per_file(&mut self.problems);
    }

    pub fn agents(&self) -> impl Iterator<Item = &RosterEntry> {
        self.agents.values()
    }

    /// For a caller that restricts agents. Names must not change.
    pub fn agents_mut(&mut self) -> impl Iterator<Item = &mut RosterEntry> {
        self.agents.values_mut()
    }

    pub fn agent(&self, name: &AgentName) -> Option<&RosterEntry> {
        self.agents.get(name)
    }

    pub fn names(&self) -> &NameTable {
        &self.names
    }

    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    pub fn edges_of(&self, name: &AgentName) -> impl Iterator<Item = &Edge> {
        self.edges_by_agent.get(name).map(|range| &self.edges[range.clone()]).unwrap_or_default().iter()
    }

    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// The error, if any, that is reported at exactly this place.
    pub fn problem_at(&self, location: &Location) -> Option<&Diagnostic> {
        let at = self.problems.partition_point(|problem| problem.location.path() < location.path());
        let in_file =
            self.problems[at..].iter().take_while(|problem| problem.location.path() == location.path());
        in_file.filter(|problem| problem.is_error()).find(|problem| problem.location.span == location.span)
    }

    /// How many files were looked at.
    pub fn files(&self) -> usize {
        self.files
    }

    /// Turns warnings into errors.
    #[must_use]
    pub fn with_strictness(mut self, strictness: Strictness) -> Self {
        if strictness == Strictness::Strict {
            for problem in self.problems.iter_mut().filter(|problem| problem.severity == Severity::Warning) {
                problem.severity = Severity::Error;
            }
        }
        self
    }

    /// A roster that can be used, unless something is wrong.
    pub fn finish(self) -> Result<Roster, Rejected> {
        if self.problems.iter().any(Diagnostic::is_error) {
            return Err(Rejected { problems: self.problems });
        }
        let graph = Graph::of(&self, None);
        let sources =
            self.agents.iter().map(|(name, entry)| (name.clone(), Arc::clone(&entry.source))).collect();
        let agents = self.agents.into_iter().map(|(name, entry)| (name, entry.agent)).collect();
        Ok(Roster { agents, sources, names: self.names, graph, problems: self.problems })
    }
}

/// The problems of files that are left out: none refuses the others, and each file has one that says so.
fn skipped_reports(problems: &[Diagnostic]) -> Vec<Diagnostic> {
    let mut reports = Vec::with_capacity(problems.len());
    for file in problems.chunk_by(|a, b| a.location.path() == b.location.path()) {
        let Some(first) = file.iter().find(|problem| problem.is_error()) else { continue };
        let top = Location { span: Span::default(), ..first.location.clone() };
        let help =
            "correct what is reported; `on_error = \"refuse\"` in `[agents]` of baton.toml makes it an error";
        let message = "this file of another program cannot be used and is left out";
        reports.push(Diagnostic::new(Rule::SkippedFile, top, message, help));
        reports.extend(file.iter().cloned().map(|problem| {
            let severity = if problem.is_error() { Severity::Warning } else { problem.severity };
            problem.with_severity(severity)
        }));
    }
    reports
}

fn nothing_found(dirs: &[PathBuf]) -> Diagnostic {
    let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
    let source = SourceFile::new(dirs.first().map_or("", String::as_str), "");
    Diagnostic::new(
        Rule::NoAgents,
        source.locate(Span::default()),
        format!("no agent files in {}", dirs.join(", ")),
        "add a Markdown file with frontmatter, or run `baton init`",
    )
}

/// Why a set of files is no roster: every problem, not only the first.
#[derive(Debug, thiserror::Error)]
#[error("{}", summary(.problems))]
pub struct Rejected {
    pub problems: Vec<Diagnostic>,
}

fn summary(problems: &[Diagnostic]) -> String {
    let errors: Vec<String> =
        problems.iter().filter(|problem| problem.is_error()).map(ToString::to_string).collect();
    format!("the agent files have {} errors:\n{}", errors.len(), errors.join("\n"))
}

/// A valid set of agents. Immutable: a reload makes a new one, and whoever holds the old one keeps it.
#[derive(Debug)]
pub struct Roster {
    agents: BTreeMap<AgentName, Arc<Agent>>,
    sources: BTreeMap<AgentName, Arc<SourceFile>>,
    names: NameTable,
    graph: Graph,
    problems: Vec<Diagnostic>,
}

impl Roster {
    pub fn load(dirs: &[PathBuf], known: &KnownNames, strictness: Strictness) -> Result<Self, Rejected> {
        RosterDraft::read(dirs, known).with_strictness(strictness).finish()
    }

    pub fn get(&self, name: &AgentName) -> Option<&Arc<Agent>> {
        self.agents.get(name)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Arc<Agent>> {
        self.agents.values()
    }

    pub fn len(&self) -> usize {
        self.agents.len()
    }

    pub fn is_empty(&self) -> bool {
        self.agents.is_empty()
    }

    /// Names that a wrong one may have been meant as.
    pub fn nearest(&self, text: &str) -> Vec<AgentName> {
        self.names.nearest(text)
    }

    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Where an agent was read from.
    pub fn file(&self, name: &AgentName) -> Option<&Path> {
        self.sources.get(name).map(|source| source.path.as_path())
    }

    /// The files of all agents, by the names of the agents.
    pub fn sources(&self) -> impl Iterator<Item = &Arc<SourceFile>> {
        self.sources.values()
    }

    /// Warnings and notes; a roster has no errors.
    pub fn problems(&self) -> &[Diagnostic] {
        &self.problems
    }

    /// Those of one agent's file.
    pub fn problems_of(&self, name: &AgentName) -> impl Iterator<Item = &Diagnostic> {
        let file = self.file(name);
        self.problems.iter().filter(move |problem| Some(problem.location.path()) == file)
    }
}
