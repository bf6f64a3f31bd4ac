//! What is wrong with agent files, and what to write instead.

use std::fmt;

use baton_core::choices;
use serde::Serialize;

use crate::source::Location;

choices! {
    pub enum Severity {
        /// The roster cannot be used.
        Error = "error",
        /// It can, but probably not as meant. An error in strict mode.
        Warning = "warning",
        /// Worth knowing, and fine: a key of another tool that Baton does not use.
        Note = "note",
    }
}

/// One finding. The message says what is wrong, `help` what to do about it.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnostic {
    pub severity: Severity,
    pub rule: Rule,
    pub message: String,
    pub help: String,
    #[serde(flatten)]
    pub location: Location,
    /// Other places that matter, such as the first of two files with the same name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub related: Vec<Related>,
}

#[derive(Debug, Clone, Serialize)]
pub struct Related {
    pub message: String,
    #[serde(flatten)]
    pub location: Location,
}

impl Diagnostic {
    pub fn new(rule: Rule, location: Location, message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            severity: rule.severity(),
            rule,
            message: clipped(message.into()),
            help: clipped(help.into()),
            location,
            related: Vec::new(),
        }
    }

    #[must_use]
    pub fn with_severity(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    #[must_use]
    pub fn with_related(mut self, message: impl Into<String>, location: Location) -> Self {
        self.related.push(Related { message: message.into(), location });
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

/// A sentence that repeats what a file says is no longer than a person reads.
fn clipped(mut text: String) -> String {
    const MAX_BYTES: usize = 1_000;
    if text.len() > MAX_BYTES {
        text.truncate(text.floor_char_boundary(MAX_BYTES));
        text.push('…');
    }
    text
}

/// More problems than this in one file are one problem.
pub const MAX_PER_FILE: usize = 1_000;

/// Leaves as many problems of each file as anybody may want, and one that stands for the rest: as severe as the worst
/// of them, so that no error is lost. Problems of one file have to stand together.
pub fn limit_per_file(problems: &mut Vec<Diagnostic>) {
    let mut limited: Vec<Diagnostic> = Vec::with_capacity(problems.len());
    for file in problems.chunk_by(|a, b| a.location.path() == b.location.path()) {
        // A file may have been limited before; what stood for the rest then is part of the rest now.
        let (earlier, own): (Vec<&Diagnostic>, Vec<&Diagnostic>) =
            file.iter().partition(|problem| problem.rule == Rule::TooManyProblems);
        let (kept, rest) = own.split_at(own.len().min(MAX_PER_FILE));
        limited.extend(kept.iter().copied().cloned());
        let rest = || rest.iter().chain(&earlier);
        let Some(worst) = rest().map(|problem| problem.severity).min() else { continue };
        let message = format!("the file has more than {MAX_PER_FILE} problems; the others are left out");
        let place = rest().next().map(|problem| problem.location.clone());
        let problem =
            place.map(|place| Diagnostic::new(Rule::TooManyProblems, place, message, "correct these first"));
        limited.extend(problem.map(|problem| problem.with_severity(worst)));
    }
    *problems = limited;
}

/// `file:line:col: error[rule]: message (help)`, one line, as logs want it.
impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { severity, rule, message, help, location, .. } = self;
        write!(f, "{location}: {severity}[{rule}]: {message} ({help})")
    }
}

macro_rules! rules {
    ($($(#[$doc:meta])* $variant:ident = $word:literal, $severity:ident, $summary:literal;)+) => {
        choices! {
            /// Which rule was broken. The words are stable: editors and CI refer to them.
            pub enum Rule { $($(#[$doc])* $variant = $word,)+ }
        }

        impl Rule {
            /// How bad it is unless the case says otherwise.
            pub fn severity(self) -> Severity {
                match self { $(Self::$variant => Severity::$severity,)+ }
            }

            /// The rule in one sentence.
            pub fn summary(self) -> &'static str {
                match self { $(Self::$variant => $summary,)+ }
            }
        }
    };
}

rules! {
    Unreadable = "unreadable", Error, "A file or folder must be readable.";
    TooLarge = "too-large", Error, "A file is at most 1 MiB and its head at most 64 KiB.";
    NotUtf8 = "not-utf8", Error, "A file is UTF-8 text.";
    NoFrontmatter = "no-frontmatter", Error, "A file starts with frontmatter between two `---` lines.";
    YamlSyntax = "yaml-syntax", Error, "The frontmatter is valid YAML.";
    YamlTooComplex = "yaml-too-complex", Error, "The frontmatter stays within limits of size and nesting.";
    YamlRepaired = "yaml-repaired", Warning, "A value with a colon is quoted.";
    DuplicateKey = "duplicate-key", Error, "A key appears once.";
    UnknownKey = "unknown-key", Warning, "Keys are those of the contract.";
    UnusedKey = "unused-key", Note, "A key of another tool has no effect in Baton.";
    RenamedKey = "renamed-key", Error, "Keys that were renamed use their new name.";
    WrongType = "wrong-type", Error, "A value has the form its key expects.";
    UnknownChoice = "unknown-choice", Error, "A value is one of the words its key allows.";
    OutOfRange = "out-of-range", Error, "A number lies within its limits.";
    InvalidName = "invalid-name", Error, "Names follow their pattern.";
    InvalidVersion = "invalid-version", Error, "A version is `major.minor.patch`.";
    InvalidDuration = "invalid-duration", Error, "A duration is a whole number and a unit.";
    InvalidGlob = "invalid-glob", Error, "A tool glob uses letters, digits, `_`, `-`, `.` and `*`.";
    InvalidTemplate = "invalid-template", Error, "The body is a valid minijinja template.";
    InvalidExpression = "invalid-expression", Error, "A `when` condition is a valid minijinja expression.";
    InvalidSchema = "invalid-schema", Error, "`input_schema`, `output_schema` and the `schema` of a guardrail are valid JSON Schemas.";
    InvalidPattern = "invalid-pattern", Error, "A `deny` pattern is a regular expression that does not match everything.";
    InvalidUrl = "invalid-url", Error, "An address is an http or https URL.";
    InvalidPermission = "invalid-permission", Error, "A permission is `noun:verb`.";
    LiteralSecret = "literal-secret", Error, "Files name secrets and never hold them.";
    UnknownVariable = "unknown-variable", Warning, "Templates use variables that exist.";
    LiteralBody = "literal-body", Note, "A body that is no template of Baton is used as it is.";
    UnmaskedRefused = "unmasked-refused", Warning, "`sanitize: false` needs the operator's permission.";
    SkippedFile = "skipped-file", Warning, "A file of another program that cannot be used is left out.";
    MissingKey = "missing-key", Error, "Required keys are there.";
    UnknownModel = "unknown-model", Warning, "A model is `provider/model` or a configured alias.";
    UnpricedModel = "unpriced-model", Error, "A limit on money needs models whose price is known.";
    UnknownTool = "unknown-tool", Warning, "A tool exists. In a workflow this is an error.";
    UnknownServer = "unknown-server", Warning, "An MCP server is configured.";
    DuplicateName = "duplicate-name", Error, "Two agents never share a name.";
    UnknownAgent = "unknown-agent", Error, "An agent that is referred to exists.";
    AmbiguousAgent = "ambiguous-agent", Error, "A reference means exactly one agent.";
    Cycle = "cycle", Error, "Handoff, router, advisors and team never lead back to where they started.";
    OwnAncestor = "own-ancestor", Error, "A team member or advisor is never its own ancestor.";
    RouterConflict = "router-conflict", Error, "A pure router only routes.";
    NoDestinations = "no-destinations", Error, "A router has somewhere to route to.";
    RouterHolds = "router-holds", Error, "A router does not hold threads.";
    TeamHandoff = "team-handoff", Error, "A team coordinator owns the answer and has no handoff.";
    TeamTooSmall = "team-too-small", Error, "A team has at least two members.";
    NotOrchestratable = "not-orchestratable", Error, "An agent with `can_be_orchestrated: false` is not used by others.";
    TransferClash = "transfer-clash", Error, "Each collaborator gets a transfer tool of its own name.";
    SelfTransfer = "self-transfer", Error, "An agent does not transfer to itself.";
    DuplicateState = "duplicate-state", Error, "A workflow's states have different names.";
    UnknownState = "unknown-state", Error, "A workflow's transitions lead to its own states.";
    UnreachableHandoff = "unreachable-handoff", Error, "An unconditional handoff comes last.";
    UnreachableState = "unreachable-state", Error, "Every workflow state can be reached from the first.";
    SchemaMismatch = "schema-mismatch", Error, "What a chain, a router or an advised agent passes on can satisfy the receiver's `input_schema`.";
    RemoteUnused = "remote-unused", Warning, "A remote agent has its own model, tools and prompt.";
    UnknownMain = "unknown-main", Error, "`agents.main` and `agents.fallback` in baton.toml name agents of the roster.";
    InvalidTenant = "invalid-tenant", Error, "`[tenants.<name>]` in baton.toml names agents and models that exist, with every agent that those need.";
    InvalidMcp = "invalid-mcp", Error, "`.mcp.json` describes MCP servers.";
    NoAgents = "no-agents", Error, "There is at least one agent.";
    TooManyProblems = "too-many-problems", Error, "A file has fewer than a thousand problems.";
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use baton_core::choice::Choice;

    use super::{Diagnostic, MAX_PER_FILE, Rule, Severity, limit_per_file};
    use crate::source::{SourceFile, Span};

    #[test]
    fn many_problems_of_a_file_are_counted_and_no_error_is_lost() {
        let problem = |file: &str, rule: Rule| {
            Diagnostic::new(rule, SourceFile::new(file, "x").locate(Span::default()), "x".repeat(5_000), "x")
        };
        let mut problems: Vec<Diagnostic> =
            (0..MAX_PER_FILE + 4).map(|_| problem("a", Rule::UnusedKey)).collect();
        problems.push(problem("a", Rule::Cycle));
        problems.push(problem("b", Rule::Cycle));
        limit_per_file(&mut problems);
        // Twice is as good as once.
        limit_per_file(&mut problems);
        assert_eq!(problems.len(), MAX_PER_FILE + 2);
        assert!(problems[0].message.len() < 1_010);
        let last = &problems[MAX_PER_FILE];
        assert_eq!((last.severity, last.rule), (Severity::Error, Rule::TooManyProblems));
    }

    #[test]
    fn rule_words_are_unique() {
        let words: BTreeSet<_> = Rule::ALL.iter().map(|(word, _)| word).collect();
        assert_eq!(words.len(), Rule::ALL.len());
    }
}
