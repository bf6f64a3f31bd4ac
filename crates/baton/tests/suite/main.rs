//! Baton as a person uses it: the built command in a folder of files.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod agent_catalog;
mod approvals;
mod architecture;
mod attacks;
mod chat;
mod commands;
mod contention;
mod crash;
mod documents;
mod examples;
mod files;
mod fixtures;
mod hostile_files;
mod interop;
mod journeys;
mod learning;
mod lifecycle;
mod local_models;
mod postgres;
mod profiles;
mod prompts;
mod provider;
mod push;
mod run;
mod sdk;
mod served;
mod serving;
mod signals;
mod skills;
mod smoke;
mod specialists;
mod store_commands;
mod telemetry;
mod terminal;
mod together;
mod transcripts;
mod webhook;

use std::path::{Path, PathBuf};

use assert_cmd::Command;

/// The repository's root.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The path below the root and the text of each Rust file of the workspace.
fn sources() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut open = ["crates", "bench", "smoke"].map(|folder| root().join(folder)).to_vec();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root()).expect("below the root").display().to_string();
                found.push((name, std::fs::read_to_string(&path).expect("a source")));
            }
        }
    }
    found
}

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures")
}

/// What a command printed and how it ended.
struct Ran {
    stdout: String,
    stderr: String,
    code: i32,
}

/// Runs `baton` in `dir` with nothing of the developer's environment that could change what it prints.
fn baton(dir: &Path, args: &[&str]) -> Ran {
    let mut command = Command::new(env!("CARGO_BIN_EXE_baton"));
    let inherited =
        std::env::vars_os().map(|(name, _)| name).filter(|name| name.to_string_lossy().starts_with("BATON_"));
    for name in inherited {
        command.env_remove(name);
    }
    let output = command.current_dir(dir).env("NO_COLOR", "1").args(args).output().expect("baton runs");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("UTF-8");
    let code = output.status.code().expect("an exit code, not a signal");
    Ran { stdout: text(output.stdout), stderr: text(output.stderr), code }
}
