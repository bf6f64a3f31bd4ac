//! The same streams as the real client of AG-UI sees them.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use baton_agui::Detail;
use proptest::strategy::{Strategy as _, ValueTree as _};
use proptest::test_runner::TestRunner;

use crate::{heard, stories};

const STORIES: usize = 150;

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

/// Every event satisfies its schema of `@ag-ui/core`, and `@ag-ui/client` accepts their order.
#[test]
fn the_npm_client_accepts_every_stream() {
    let mut runner = TestRunner::deterministic();
    let mut input = String::new();
    for _ in 0..STORIES {
        let story = stories::story().new_tree(&mut runner).unwrap().current();
        for detail in [Detail::Person, Detail::Trace] {
            input += &format!("{}\n", serde_json::to_string(&heard(&story, detail)).unwrap());
        }
    }
    let mut node = Command::new("node")
        .arg(here().join("tests/fixtures/check.mjs"))
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
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), (2 * STORIES).to_string());
}
