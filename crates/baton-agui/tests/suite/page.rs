//! Event logs for the tests of the web page.
//!
//! Every log is projected as the server does it and compared with the files in `ui/src/thread/fixtures`, which the tests of the page's
//! reducer read. To write them again: `UPDATE_FIXTURES=1 cargo test -p baton-agui --test suite page`.
//!
//! The logs are the engine's own (its snapshots), whole threads with handoffs (`tests/fixtures/threads`), and generated ones.

mod log;
mod resume;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use baton_agui::{AgentProfile, AgentProfiles, AguiEvent, Detail, Projection};
use baton_core::event::Event;
use baton_core::message::Message;
use baton_core::{AgentName, RunId};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

use crate::stories;

/// A thread: its runs' events in order, and the messages that began them.
struct Log {
    events: Vec<Event>,
    questions: Vec<Message>,
}

const GENERATED: usize = 12;
const LONGEST_GENERATED: usize = 60;
/// Where rejoining is recorded: such a file grows with the square of the events, so these are a few that differ.
const RESUMED: [(&str, Detail); 7] = [
    ("thread-cancelled-then-failed", Detail::Trace),
    ("thread-delegation-cut-and-partly-failed", Detail::Trace),
    ("thread-handoff-cancelled-and-again", Detail::Person),
    ("thread-handoff-completed", Detail::Person),
    ("thread-handoff-failed", Detail::Person),
    ("generated-06", Detail::Trace),
    ("generated-11", Detail::Trace),
];

#[test]
fn fixtures_of_the_page_match_the_projection() {
    let folder = here().join("../../ui/src/thread/fixtures");
    let wanted = fixtures();
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        write(&folder, &wanted);
    }
    let found = read(&folder);
    let differing: BTreeSet<&String> = wanted
        .keys()
        .chain(found.keys())
        .filter(|name| wanted.get(*name).map(String::as_str) != found.get(*name).map(String::as_str))
        .collect();
    assert!(
        differing.is_empty(),
        "ui/src/thread/fixtures is out of date: {differing:?}\n\
         If the projection changed on purpose, write them again, then run the page's tests (npm test in ui):\n\
         UPDATE_FIXTURES=1 cargo test -p baton-agui --test suite page"
    );
}

/// File names and contents.
fn fixtures() -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for (name, log) in logs() {
        for detail in [Detail::Person, Detail::Trace] {
            let events: Vec<AguiEvent> =
                frames(&log.events, detail).into_iter().map(|(_, event)| event).collect();
            files.insert(format!("{name}.{detail}.json"), array(&events));
            if RESUMED.contains(&(name.as_str(), detail)) {
                files.insert(format!("{name}.{detail}.resumed.json"), resume::recorded(&log, detail));
            }
        }
    }
    files
}

fn logs() -> BTreeMap<String, Log> {
    let mut logs = BTreeMap::new();
    for (name, text) in texts(&here().join("../baton-engine/tests/suite/snapshots"), "snap") {
        if let Some(text) = log::of_snapshot(&text) {
            let name = name.trim_start_matches("suite__").replace("__", "-").replace('_', "-");
            logs.insert(format!("engine-{name}"), log::parse(&text));
        }
    }
    for (name, text) in texts(&here().join("tests/fixtures/threads"), "log") {
        logs.insert(format!("thread-{name}"), log::parse(&text));
    }
    let mut runner = TestRunner::deterministic();
    let stories = std::iter::repeat_with(|| stories::story().new_tree(&mut runner).unwrap().current());
    let short = stories.filter(|story| (8..=LONGEST_GENERATED).contains(&story.events.len()));
    for (at, story) in short.take(GENERATED).enumerate() {
        let questions = vec![log::question(0, story.events[0].run_id, "Go")];
        // No engine goes on after the end of a run.
        let end = story.events.iter().position(|event| event.kind.is_end()).unwrap();
        let events = story.events[..=end].to_vec();
        logs.insert(format!("generated-{:02}", at + 1), Log { events, questions });
    }
    logs
}

/// Like the server's stream: each run by its own projection, each event with the number to come back with.
fn frames(events: &[Event], detail: Detail) -> Vec<(u64, AguiEvent)> {
    let mut view = View::new(detail);
    events.iter().flat_map(|event| view.show(event)).collect()
}

struct View {
    detail: Detail,
    run: Option<(RunId, Projection)>,
}

impl View {
    fn new(detail: Detail) -> Self {
        Self { detail, run: None }
    }

    fn projection(&mut self, run: RunId) -> &mut Projection {
        if self.run.as_ref().is_none_or(|(current, _)| *current != run) {
            self.run = Some((run, Projection::new(self.detail).with_profiles(profiles())));
        }
        &mut self.run.as_mut().unwrap().1
    }

    /// A kept event may become several: only the last carries its number.
    fn show(&mut self, event: &Event) -> Vec<(u64, AguiEvent)> {
        let told = self.projection(event.run_id).project(event);
        let last = told.len().saturating_sub(1);
        let before = event.seq - u64::from(event.kind.is_kept());
        told.into_iter()
            .enumerate()
            .map(|(at, one)| (if at == last { event.seq } else { before }, one))
            .collect()
    }
}

fn profiles() -> AgentProfiles {
    let face = |display_name: &str, color: &str, exitable| AgentProfile {
        display_name: display_name.to_owned(),
        color: Some(color.to_owned()),
        exitable,
        mode: exitable.then(|| "[Skill Creation Mode]".to_owned()),
    };
    let name = |text| AgentName::parse(text).unwrap();
    let maker = face("Skill Creation Assistant", "orange", true);
    [(name("a"), face("Assistant", "blue", false)), (name("maker"), maker)].into_iter().collect()
}

/// A JSON array with an event a line.
fn array(events: &[AguiEvent]) -> String {
    let lines: Vec<String> = events.iter().map(|event| serde_json::to_string(event).unwrap()).collect();
    if lines.is_empty() { "[]\n".to_owned() } else { format!("[\n{}\n]\n", lines.join(",\n")) }
}

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// The files of a folder with this extension, by their names without it.
fn texts(folder: &Path, extension: &str) -> BTreeMap<String, String> {
    let files = read(folder).into_iter();
    files
        .filter_map(|(name, text)| Some((name.strip_suffix(&format!(".{extension}"))?.to_owned(), text)))
        .collect()
}

fn read(folder: &Path) -> BTreeMap<String, String> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeMap::new() };
    let files = entries.map(Result::unwrap).filter(|entry| entry.path().is_file());
    files
        .map(|file| (file.file_name().into_string().unwrap(), fs::read_to_string(file.path()).unwrap()))
        .collect()
}

fn write(folder: &Path, wanted: &BTreeMap<String, String>) {
    fs::create_dir_all(folder).unwrap();
    for name in read(folder).keys().filter(|name| !wanted.contains_key(*name)) {
        fs::remove_file(folder.join(name)).unwrap();
    }
    for (name, text) in wanted {
        fs::write(folder.join(name), text).unwrap();
    }
}
