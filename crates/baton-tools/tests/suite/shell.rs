//! Commands are bounded, and nothing of them stays.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_core::{HumanDuration, Tool};
use baton_tools::process::ProcessSettings;
use baton_tools::shell::Shell;
use serde_json::json;

use crate::{call, context};

async fn run(command: &str, work: &Path) -> String {
    call(&Shell::new(ProcessSettings::default()), json!({"command": command}), work).await.unwrap()
}

/// Whether a process is there and not merely waiting to be buried.
fn is_alive(pid: &str) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = status.rsplit_once(") ").map(|(_, rest)| rest.chars().next());
    !matches!(state, None | Some(Some('Z' | 'X')))
}

/// Ids that a command wrote into a file, once it has written them.
async fn pids(file: &Path, count: usize) -> Vec<String> {
    loop {
        let text = fs::read_to_string(file).unwrap_or_default();
        let pids: Vec<String> = text.lines().map(str::to_owned).collect();
        if pids.len() == count && text.ends_with('\n') {
            return pids;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn gone(pids: &[String]) {
    while pids.iter().any(|pid| is_alive(pid)) {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[tokio::test]
async fn output_and_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(run("echo out; echo err >&2; exit 3", dir.path()).await.lines().next(), Some("exit code 3"));
    assert_eq!(
        run("pwd -P", dir.path()).await,
        format!("exit code 0\n\n{}", dir.path().canonicalize().unwrap().display())
    );
    assert_eq!(run("true", dir.path()).await, "exit code 0, no output");
    assert_eq!(run("kill -TERM $$", dir.path()).await, "ended by signal 15, no output");
    assert_eq!(run("cat", dir.path()).await, "exit code 0, no output", "there is no input");
    assert_eq!(run("printf 'a\\377b'", dir.path()).await, "exit code 0\n\na\u{fffd}b");
    let both = run("echo out; echo err >&2", dir.path()).await;
    assert!(both.contains("out") && both.contains("err"), "{both}");
}

#[tokio::test]
async fn the_environment_is_a_short_list() {
    let dir = tempfile::tempdir().unwrap();
    // Set by cargo for every test.
    assert!(std::env::var("CARGO_MANIFEST_DIR").is_ok());
    let text = run("env | cut -d= -f1 | sort | grep -vE '^(_|SHLVL|PWD|OLDPWD)$'", dir.path()).await;
    assert!(text.lines().skip(2).all(|name| ["PATH", "HOME", "LANG"].contains(&name)), "{text}");
    let settings =
        ProcessSettings { environment: vec!["CARGO_MANIFEST_DIR".to_owned()], ..ProcessSettings::default() };
    let text = call(&Shell::new(settings), json!({"command": "echo $CARGO_MANIFEST_DIR"}), dir.path())
        .await
        .unwrap();
    assert!(text.ends_with("baton-tools"), "{text}");
}

#[tokio::test]
async fn a_flood_is_drained_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let text = run("yes | head -c 100000000; echo done > done", dir.path()).await;
    let (kept, rest) = text.rsplit_once('\n').unwrap();
    assert_eq!(rest, format!("… ({} more bytes were not kept)", 100_000_000 - 1024 * 1024));
    assert!(kept.len() <= 1024 * 1024 + 20);
    assert!(dir.path().join("done").exists(), "the command was not cut off");
}

#[tokio::test]
async fn dropping_the_call_ends_the_whole_group() {
    let dir = tempfile::tempdir().unwrap();
    let tool = Shell::new(ProcessSettings::default());
    let command = "sleep 1000 & echo $! > pids; (sleep 1000; true) & echo $! >> pids; echo $$ >> pids; wait";
    let running = tokio::spawn(tool.call(json!({"command": command}), Arc::new(context(dir.path()))));
    let pids = pids(&dir.path().join("pids"), 3).await;
    assert!(pids.iter().all(|pid| is_alive(pid)));
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    gone(&pids).await;
}

#[tokio::test]
async fn the_background_ends_with_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let text = run("sleep 1000 & echo $! > pids; echo started", dir.path()).await;
    assert_eq!(text, "exit code 0\n\nstarted");
    gone(&pids(&dir.path().join("pids"), 1).await).await;
}

#[tokio::test]
async fn time_is_limited() {
    let dir = tempfile::tempdir().unwrap();
    let settings = ProcessSettings { timeout: HumanDuration::from_millis(500), ..ProcessSettings::default() };
    let error =
        call(&Shell::new(settings), json!({"command": "sleep 1000 & wait"}), dir.path()).await.unwrap_err();
    assert_eq!(error.code(), "timeout");
}

#[tokio::test]
async fn a_missing_folder_is_an_answer() {
    let tool = Shell::new(ProcessSettings::default());
    let error = call(&tool, json!({"command": "true"}), Path::new("/nonexistent")).await.unwrap_err();
    assert_eq!(error.code(), "execution");
}
