//! A roster of files together with agents that are kept elsewhere, such as in a store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::known::{KnownNames, OnError};
use crate::problem::Diagnostic;
use crate::roster::{Roster, RosterDraft};
use crate::source::SourceFile;

/// A roster with further agents, and those of them that cannot be used.
#[derive(Debug)]
pub struct Extended {
    pub roster: Roster,
    pub left_out: Vec<LeftOut>,
}

/// A further agent that cannot be used, with the reasons.
#[derive(Debug)]
pub struct LeftOut {
    pub path: PathBuf,
    pub problems: Vec<Diagnostic>,
}

impl Roster {
    /// The same agents and those of `further`. A further agent with an error, or one that makes another file invalid, is left out:
    /// the agents of this roster stay valid in any case. Returns `None` if they are not valid under `known`.
    pub fn extended(&self, further: &[Arc<SourceFile>], known: &KnownNames) -> Option<Extended> {
        let known = KnownNames { on_error: OnError::Refuse, ..known.clone() };
        let (mut used, mut left_out) = (further.to_vec(), Vec::new());
        loop {
            let draft = self.draft_with(&used, &known);
            if !has_errors(&draft) {
                return Some(Extended { roster: draft.finish().ok()?, left_out });
            }
            let broken = broken(&draft, &used);
            // An error in a file of this roster is not caused by the text of one further agent alone.
            if broken.is_empty() {
                used = self.compatible(&used, &known, &mut left_out)?;
                continue;
            }
            for path in &broken {
                left_out.push(LeftOut { path: path.clone(), problems: problems_of(&draft, path) });
            }
            // Without it, others may refer to an agent that is not there.
            used.retain(|source| !broken.contains(&source.path));
        }
    }

    /// All agent files of this roster and `further`, read together.
    pub fn draft_with(&self, further: &[Arc<SourceFile>], known: &KnownNames) -> RosterDraft {
        let sources: Vec<Arc<SourceFile>> = self.sources().chain(further).cloned().collect();
        RosterDraft::parse(&sources, known, Vec::new())
    }

    /// Those that leave the files of this roster valid. Returns `None` if these are not valid alone.
    fn compatible(
        &self,
        further: &[Arc<SourceFile>],
        known: &KnownNames,
        left_out: &mut Vec<LeftOut>,
    ) -> Option<Vec<Arc<SourceFile>>> {
        if has_errors(&self.draft_with(&[], known)) {
            return None;
        }
        let mut used = Vec::with_capacity(further.len());
        self.add_compatible(further, known, &mut used, left_out);
        Some(used)
    }

    /// Adds those of `group` that leave the files of this roster valid. Bisects: `k` of `n` agents that are left out are found by about
    /// `2 k log n` parses, at most `2 n`.
    fn add_compatible(
        &self,
        group: &[Arc<SourceFile>],
        known: &KnownNames,
        used: &mut Vec<Arc<SourceFile>>,
        left_out: &mut Vec<LeftOut>,
    ) {
        let before = used.len();
        used.extend_from_slice(group);
        let problems = errors_elsewhere(&self.draft_with(used, known), used);
        if problems.is_empty() {
            return;
        }
        used.truncate(before);
        if let [source] = group {
            left_out.push(LeftOut { path: source.path.clone(), problems });
            return;
        }
        let (first, second) = group.split_at(group.len() / 2);
        self.add_compatible(first, known, used, left_out);
        self.add_compatible(second, known, used, left_out);
    }
}

fn has_errors(draft: &RosterDraft) -> bool {
    draft.problems().iter().any(Diagnostic::is_error)
}

/// Errors in files that are not among `further`.
fn errors_elsewhere(draft: &RosterDraft, further: &[Arc<SourceFile>]) -> Vec<Diagnostic> {
    let paths: BTreeSet<&Path> = further.iter().map(|source| source.path.as_path()).collect();
    let errors = draft.problems().iter().filter(|problem| problem.is_error());
    errors.filter(|problem| !paths.contains(problem.location.path())).cloned().collect()
}

/// The further files with errors.
fn broken(draft: &RosterDraft, further: &[Arc<SourceFile>]) -> BTreeSet<PathBuf> {
    let errors = draft.problems().iter().filter(|problem| problem.is_error());
    let paths: BTreeSet<&Path> = errors.map(|problem| problem.location.path()).collect();
    further.iter().map(|source| &source.path).filter(|path| paths.contains(path.as_path())).cloned().collect()
}

fn problems_of(draft: &RosterDraft, path: &Path) -> Vec<Diagnostic> {
    draft.problems().iter().filter(|problem| problem.location.path() == path).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roster(files: &[(&str, &str)]) -> Roster {
        let sources: Vec<_> = files.iter().map(|(path, text)| SourceFile::new(*path, *text)).collect();
        RosterDraft::parse(&sources, &KnownNames::default(), Vec::new()).finish().unwrap()
    }

    fn further(name: &str, head: &str) -> Arc<SourceFile> {
        let text =
            format!("---\nname: {name}\ndisplay_name: The {name}\ndescription: Helps.\n{head}---\nHelp.\n");
        SourceFile::new(format!("further/{name}.md"), text)
    }

    fn names(roster: &Roster) -> Vec<&str> {
        roster.iter().map(|agent| agent.name.as_str()).collect()
    }

    const FILES: &[(&str, &str)] = &[
        ("a.md", "---\nname: a\ndisplay_name: A\ndescription: First.\nagents: [b]\n---\nYou are a.\n"),
        ("b.md", "---\nname: b\ndisplay_name: B\ndescription: Second.\n---\nYou are b.\n"),
    ];

    /// A broken one, one with a name of a file, and those that need them are left out; the others are used.
    #[test]
    fn k2_broken_or_conflicting_agent_never_disables_the_rest() {
        let base = roster(FILES);
        let all = [
            further("a", ""),
            further("broken", "agents: [nobody]\n"),
            further("fine", "agents: [b]\n"),
            further("needs-broken", "agents: [broken]\n"),
            further("uses-fine", "agents: [fine]\n"),
        ];
        let extended = base.extended(&all, &KnownNames::default()).unwrap();
        assert_eq!(names(&extended.roster), ["a", "b", "fine", "uses-fine"]);
        let left: Vec<_> = extended.left_out.iter().map(|left| left.path.to_str().unwrap()).collect();
        assert_eq!(left, ["further/a.md", "further/broken.md", "further/needs-broken.md"]);
        let why = extended.left_out[1].problems[0].to_string();
        assert!(why.starts_with("further/broken.md:5:10: error[unknown-agent]"), "{why}");
        assert_eq!(extended.roster.get(&"a".parse().unwrap()).unwrap().description, "First.");
    }

    /// A further agent whose display name makes a reference of a file ambiguous.
    #[test]
    fn k2_agent_that_breaks_a_file_is_left_out() {
        let base = roster(&[
            (
                "a.md",
                "---\nname: a\ndisplay_name: A\ndescription: First.\nagents: [Second One]\n---\nYou are a.\n",
            ),
            ("b.md", "---\nname: b\ndisplay_name: Second One\ndescription: Second.\n---\nYou are b.\n"),
        ]);
        let text = "---\nname: thief\ndisplay_name: Second One\ndescription: Steals.\n---\nSteal.\n";
        let all = [SourceFile::new("further/thief.md", text), further("fine", "")];
        let extended = base.extended(&all, &KnownNames::default()).unwrap();
        assert_eq!(names(&extended.roster), ["a", "b", "fine"]);
        assert_eq!(extended.left_out.len(), 1);
    }

    /// Found by bisection, wherever they are. The others are used, also those that refer to a later one.
    #[test]
    fn k2_agents_that_break_a_file_are_found_among_many() {
        let base = roster(&[
            (
                "a.md",
                "---\nname: a\ndisplay_name: A\ndescription: First.\nagents: [Second One]\n---\nYou are a.\n",
            ),
            ("b.md", "---\nname: b\ndisplay_name: Second One\ndescription: Second.\n---\nYou are b.\n"),
        ]);
        for thieves in [vec![0], vec![3, 4], vec![1, 8, 9], (0..10).collect()] {
            let all: Vec<_> = (0..10)
                .map(|number| {
                    let name = format!("c{number}");
                    if thieves.contains(&number) {
                        let text = format!(
                            "---\nname: {name}\ndisplay_name: Second One\ndescription: Steals.\n---\nSteal.\n"
                        );
                        return SourceFile::new(format!("further/{name}.md"), text);
                    }
                    let next = (number + 1..10).find(|next| !thieves.contains(next));
                    further(&name, &next.map(|next| format!("agents: [c{next}]\n")).unwrap_or_default())
                })
                .collect();
            let extended = base.extended(&all, &KnownNames::default()).unwrap();
            assert_eq!(extended.roster.len(), 2 + 10 - thieves.len(), "{thieves:?}");
            let left: Vec<_> = extended.left_out.iter().map(|left| left.path.to_str().unwrap()).collect();
            let expected: Vec<_> = thieves.iter().map(|number| format!("further/c{number}.md")).collect();
            assert_eq!(left, expected);
            assert!(extended.left_out.iter().all(|left| !left.problems.is_empty()));
        }
    }
}
