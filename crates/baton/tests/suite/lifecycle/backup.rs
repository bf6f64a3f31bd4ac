//! Backups that are made while a server works, and restored elsewhere.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;
use uuid::Uuid;

use super::eventually;
use crate::crash::wire::{self, Answer};
use crate::postgres::new_span_id as new_database;
use crate::served::Served;
use crate::{baton, crash, root};

/// Sends messages until `is_over`, each to a new thread, without waiting for the answers.
fn work(served: &Served, is_over: &AtomicBool) {
    while !is_over.load(Ordering::Relaxed) {
        let path = format!("/api/v1/threads/{}/messages", Uuid::new_v4());
        let _stream =
            served.ask("POST", &path, "text/event-stream", &json!({ "content": "Hello" }).to_string());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

/// Makes a backup under load, restores it for a second project, and lets a server complete its runs.
fn restored_under_load(store: &str, other: &str, copy: impl Fn(&Path, &Path)) {
    let base_url = wire::serve(|_| {
        let frames = (0..40).map(|piece| wire::text(&format!("{piece} "))).collect();
        Some(Answer { frames, finish: "stop" })
    });
    let [dir, second] = [store, other].map(|store| crash::project(&base_url, store));
    {
        let served = Served::start(dir.path());
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| work(&served, &is_over));
            eventually("there are threads", || {
                served.get("/api/v1/threads?limit=200")["data"].as_array().unwrap().len() > 5
            });
            copy(dir.path(), second.path());
            is_over.store(true, Ordering::Relaxed);
        });
    }
    let verified = baton(second.path(), &["audit", "verify"]);
    assert_eq!(verified.code, 0, "{}{}", verified.stdout, verified.stderr);
    let served = Served::start(second.path());
    let runs = served.get("/api/v1/runs?limit=200")["data"].as_array().unwrap().len();
    assert!(runs > 5, "{runs} runs");
    eventually("every run ends", || {
        let runs = served.get("/api/v1/runs?limit=200");
        runs["data"].as_array().unwrap().iter().all(|run| run["status"] == "completed")
    });
}

#[test]
fn h16_a_backup_of_sqlite_under_load_is_complete() {
    restored_under_load("sqlite://baton.db", "sqlite://baton.db", |dir, second| {
        let file = second.join("baton.db");
        let made = baton(dir, &["backup", file.to_str().unwrap()]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        let again = baton(dir, &["backup", file.to_str().unwrap()]);
        assert_ne!(again.code, 0, "a file is not overwritten");
    });
}

#[test]
fn h16_a_backup_of_postgres_under_load_is_complete() {
    let [store, other] = [new_database(), new_database()];
    restored_under_load(&store, &other, |dir, _| {
        let bin = Command::new(root().join("scripts/postgres.sh")).arg("bin").output().unwrap();
        let bin = String::from_utf8(bin.stdout).unwrap();
        let tool = |name: &str, args: &[&str]| {
            let ran = Command::new(Path::new(bin.trim()).join(name)).args(args).output().unwrap();
            assert!(ran.status.success(), "{name}: {}", String::from_utf8_lossy(&ran.stderr));
        };
        let dump = dir.join("baton.dump");
        let dump = dump.to_str().unwrap();
        tool("pg_dump", &["--format=custom", "--schema=baton", &format!("--file={dump}"), &store]);
        tool("pg_restore", &[&format!("--dbname={other}"), "--clean", "--if-exists", dump]);
    });
}
