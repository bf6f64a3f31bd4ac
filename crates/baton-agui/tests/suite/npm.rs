//! The same streams as the real client of AG-UI sees them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use baton_agui::{AguiEvent, Detail};
use baton_core::MessageId;
use baton_core::event::{Event, EventKind};
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::joining::{growing, history, joined, kept, middle};
use crate::stories::Story;
use crate::{heard, projection, stories};

const STORIES: usize = 150;
/// Those that are joined everywhere: what that costs grows with the square of their length.
const JOINED: usize = 25;
const LONGEST_JOINED: usize = 60;

fn here() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Where `scripts/setup.sh test` puts the packages.
fn packages() -> PathBuf {
    let folder = here().join("../../target/npm/agui");
    let is_there = folder.join("node_modules/@ag-ui/client").is_dir();
    assert!(is_there, "the AG-UI client is not installed: run scripts/setup.sh test");
    folder.canonicalize().unwrap()
}

/// Gives lines to a script, and back what it says.
fn node(script: &str, input: &str) -> String {
    let mut node = Command::new("node")
        .arg(here().join("tests/fixtures").join(script))
        .arg(packages())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("Node.js, which scripts/setup.sh test asks for");
    let mut stdin = node.stdin.take().unwrap();
    // A check that fails ends before it has read everything.
    let _ = stdin.write_all(input.as_bytes());
    drop(stdin);
    let output = node.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim().to_owned()
}

fn told(count: usize) -> Vec<Story> {
    let mut runner = TestRunner::deterministic();
    (0..count).map(|_| stories::story().new_tree(&mut runner).unwrap().current()).collect()
}

/// Every event satisfies its schema of `@ag-ui/core`, and `@ag-ui/client` accepts their order.
#[test]
fn the_npm_client_accepts_every_stream() {
    let mut input = String::new();
    for story in told(STORIES) {
        for detail in [Detail::Person, Detail::Trace] {
            input += &format!("{}\n", serde_json::to_string(&heard(&story, detail)).unwrap());
        }
    }
    assert_eq!(node("check.mjs", &input), (2 * STORIES).to_string());
}

/// Wherever somebody comes into a run, their client has the same messages and state at its end as one that was there all the time.
#[test]
fn joining_client_has_the_same_state_as_a_connected_one() {
    let (mut input, mut joins) = (String::new(), 0);
    let stories = told(STORIES).into_iter().filter(|story| story.events.len() <= LONGEST_JOINED);
    for story in stories.take(JOINED) {
        for detail in [Detail::Person, Detail::Trace] {
            let (events, kept) = (&story.events, kept(&story.events));
            let remembered =
                |events: &[Event], at: usize| Joined::with(joined(detail, &events[..at], &[], &events[at..]));
            let runs = [
                run(detail, events, |at| remembered(events, at)),
                run(detail, events, |at| late(detail, events, at)),
                run(detail, &kept, |at| remembered(&kept, at)),
            ];
            for run in runs {
                joins += run["joined"].as_array().unwrap().len();
                input += &format!("{run}\n");
            }
        }
    }
    assert_eq!(node("join.mjs", &input), joins.to_string());
}

/// What somebody heard, and how their client may differ from one that was there.
struct Joined {
    told: Vec<AguiEvent>,
    lost: Vec<String>,
    in_order: bool,
}

impl Joined {
    fn with(told: Vec<AguiEvent>) -> Self {
        Self { told, lost: Vec::new(), in_order: true }
    }
}

/// From what is kept and what is growing. Thoughts that were over are not kept, nor is what was begun first.
fn late(detail: Detail, events: &[Event], at: usize) -> Joined {
    let (seen, rest) = events.split_at(at);
    let growing = growing(seen);
    let thought = |event: &Event| match &event.kind {
        EventKind::Reasoning { message_id, .. } => Some(*message_id),
        _ => None,
    };
    let is_over = |id: &MessageId| !growing.iter().any(|text| text.message_id == *id);
    let lost = seen.iter().filter_map(thought).filter(is_over).map(|id| id.to_string()).collect();
    Joined { told: joined(detail, &kept(seen), &growing, rest), lost, in_order: false }
}

/// A run and all that joined it, each after one of its kept events. What all heard at the end is written once.
fn run(detail: Detail, events: &[Event], join: impl Fn(usize) -> Joined) -> Value {
    let mut projection = projection(detail);
    let whole: Vec<AguiEvent> = events.iter().flat_map(|event| projection.project(event)).collect();
    let cuts = middle(events).filter(|at| events[at - 1].kind.is_kept());
    let joined = cuts.map(join).map(|Joined { told, lost, in_order }| {
        let same = whole.iter().rev().zip(told.iter().rev()).take_while(|(a, b)| a == b).count();
        let head = &told[..told.len() - same];
        json!({ "head": head, "from": whole.len() - same, "lost": lost, "inOrder": in_order })
    });
    json!({ "history": history(), "joined": joined.collect::<Vec<_>>(), "whole": whole })
}
