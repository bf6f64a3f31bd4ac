//! Attacks on the audit trail of the built server: an action without its entry, a read that leaves no trace, a log full of guesses,
//! and a rewritten database.

use std::path::Path;

use rusqlite::Connection;
use serde_json::{Value, json};

use super::installation::{Installation, THREAD};
use crate::served::Served;

const KEY: (&str, &str) = ("BATON_AUDIT_KEY", "0123456789abcdef0123456789abcdef0123456789abcdef");

/// Fails the insertion of entries with this action, as a crash between an effect and its entry would.
fn fail(dir: &Path, action: &str) {
    let sql = format!(
        "CREATE TRIGGER fault BEFORE INSERT ON audit WHEN NEW.entries LIKE '%\"action\":\"{action}\"%'
         BEGIN SELECT RAISE(ABORT, 'cut'); END"
    );
    database(dir).execute_batch(&sql).unwrap();
}

fn database(dir: &Path) -> Connection {
    let database = Connection::open(dir.join("baton.db")).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    database
}

fn repair(dir: &Path) {
    database(dir).execute_batch("DROP TRIGGER fault").unwrap();
}

/// Whatever the request does is there with its entry, or not at all.
#[test]
fn no_request_changes_anything_without_its_entry() {
    let at = Installation::new("");
    let (ada, admin) = (at.key("acme", "ada", "user"), at.key("acme", "root", "admin"));
    let served = Served::start_with(at.dir(), &[], &[KEY]);
    let answer = at.say(&served, &ada, THREAD, "hello");
    let message = answer["message"]["message_id"].as_str().unwrap().to_owned();
    let thread = format!("/api/v1/threads/{THREAD}");
    let (_, listed) = at.send(&served, &admin, "GET", "/api/v1/keys", None);
    let keys = listed["data"].as_array().unwrap().len();
    let cases = [
        ("thread.rename", &ada, "PATCH", thread.clone(), Some(json!({ "title": "Renamed" }))),
        (
            "feedback.give",
            &ada,
            "POST",
            format!("/api/v1/messages/{message}/feedback"),
            Some(json!({ "rating": 1 })),
        ),
        (
            "key.create",
            &admin,
            "POST",
            "/api/v1/keys".to_owned(),
            Some(json!({ "name": "k", "roles": ["user"] })),
        ),
        ("thread.delete", &ada, "DELETE", thread.clone(), None),
    ];
    for (action, key, method, path, body) in cases {
        fail(at.dir(), action);
        let (status, _) = at.send(&served, key, method, &path, body.as_ref());
        assert!(status >= 500, "{action}: {status}");
        let (_, now) = at.send(&served, &ada, "GET", &thread, None);
        assert_ne!(now["title"], "Renamed", "{action}");
        assert_eq!(now["thread_id"], THREAD, "{action}: it is still there");
        let (_, history) = at.send(&served, &ada, "GET", &format!("{thread}/messages"), None);
        assert!(action != "feedback.give" || !history.to_string().contains("rating"), "{history}");
        let (_, listed) = at.send(&served, &admin, "GET", "/api/v1/keys", None);
        assert_eq!(listed["data"].as_array().unwrap().len(), keys, "{action}");
        assert_eq!(at.trail(&served, &admin, action), Vec::<Value>::new(), "{action}");
        repair(at.dir());
        if action != "thread.rename" {
            let (status, _) = at.send(&served, key, method, &path, body.as_ref());
            assert!(status < 300, "{action}: {status}");
            let entries = at.trail(&served, &admin, action);
            let entry = &entries[0];
            assert_eq!(
                (&entry["address"], &entry["decision"]),
                (&json!("127.0.0.1"), &json!("allowed")),
                "{entry}"
            );
            assert_eq!(entry["trace_id"].as_str().map(str::len), Some(32), "{entry}");
            if action == "key.create" {
                // It counts from now on.
                let (_, listed) = at.send(&served, &admin, "GET", "/api/v1/keys", None);
                let created = listed["data"].as_array().unwrap().last().unwrap()["key_id"].clone();
                let path = format!("/api/v1/keys/{}", created.as_str().unwrap());
                assert_eq!(at.send(&served, &admin, "DELETE", &path, None).0, 200);
                return_to(at.dir(), keys);
            }
        }
    }
}

/// Removes the created key, so that the number of keys is the same for the next case.
fn return_to(dir: &Path, keys: usize) {
    let sql = "DELETE FROM api_keys WHERE name = 'k'";
    database(dir).execute_batch(sql).unwrap();
    let left: i64 = database(dir).query_row("SELECT count(*) FROM api_keys", [], |row| row.get(0)).unwrap();
    assert_eq!(usize::try_from(left).unwrap(), keys);
}

/// Reads of other users' conversations are recorded, once an hour for each, and the reader cannot read if that fails.
#[test]
fn operators_cannot_read_unnoticed() {
    let at = Installation::new("");
    let keys = ["user", "operator", "admin"].map(|role| at.key("acme", &format!("the-{role}"), role));
    let [user, operator, admin] = &keys;
    let served = Served::start_with(at.dir(), &[], &[KEY]);
    let answer = at.say(&served, user, THREAD, "hello");
    let run = answer["run_id"].as_str().unwrap();
    let thread = format!("/api/v1/threads/{THREAD}");
    fail(at.dir(), "thread.read");
    for path in [
        thread.clone(),
        format!("{thread}/messages"),
        format!("{thread}/artifacts"),
        format!("/api/v1/runs/{run}"),
    ] {
        let (status, body) = at.send(&served, operator, "GET", &path, None);
        assert!(status >= 500 && !body.to_string().contains("hello"), "{path}: {status} {body}");
    }
    repair(at.dir());
    for _ in 0..20 {
        assert_eq!(at.send(&served, operator, "GET", &format!("{thread}/messages"), None).0, 200);
        assert_eq!(at.send(&served, operator, "GET", &format!("/api/v1/runs/{run}"), None).0, 200);
        assert_eq!(at.send(&served, user, "GET", &thread, None).0, 200);
    }
    let entries = at.trail(&served, admin, "thread.read");
    assert_eq!(entries.len(), 1, "{entries:?}");
    let entry = &entries[0];
    assert_eq!((&entry["actor"], &entry["thread_id"]), (&json!("the-operator"), &json!(THREAD)));
    assert_eq!((&entry["detail"]["user_id"], &entry["address"]), (&json!("the-user"), &json!("127.0.0.1")));
    assert_eq!(at.send(&served, operator, "GET", "/api/v1/threads", None).0, 200);
    assert_eq!(at.send(&served, operator, "GET", "/api/v1/threads", None).0, 200);
    assert_eq!(at.trail(&served, admin, "thread.list").len(), 1);
}

/// Guessing keys is recorded with its address, and does not fill the trail.
#[test]
fn guessing_is_recorded_and_cannot_fill_the_disk() {
    let at = Installation::new("operators = ['acme']\n");
    let (admin, other) = (at.key("acme", "root", "admin"), at.key("globex", "root", "admin"));
    let mut served = Served::start_with(at.dir(), &[], &[KEY]);
    let guess = format!("baton_{}", "a".repeat(43));
    for _ in 0..30 {
        assert!([401, 429].contains(&at.send(&served, &guess, "GET", "/api/v1/me", None).0));
    }
    let path = "/api/v1/audit?action=auth.fail&trail=installation";
    let (status, found) = at.send(&served, &admin, "GET", path, None);
    assert_eq!(status, 200, "{found}");
    let entries = found["data"].as_array().unwrap();
    assert_eq!(entries.len(), 1, "{found}");
    assert_eq!((&entries[0]["address"], &entries[0]["decision"]), (&json!("127.0.0.1"), &json!("denied")));
    assert!(entries[0]["trace_id"].is_string() && !found.to_string().contains(&guess[6..]), "{found}");
    let (status, refused) = at.send(&served, &other, "GET", path, None);
    assert_eq!(
        (status, &refused["permission"]),
        (403, &json!("system:read")),
        "another tenant's administrator"
    );
    // The repetitions are recorded together when the server ends.
    at.end(&mut served);
    let export = at.baton(&["audit", "export", "--tenant", "_system"], &[KEY]);
    let lines: Vec<Value> = export.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let failures: Vec<&Value> = lines.iter().filter(|entry| entry["action"] == "auth.fail").collect();
    assert_eq!(failures.len(), 2, "{export}");
    assert_eq!(failures[1]["detail"]["repeated"], 29);
    assert!(lines.iter().any(|entry| entry["action"] == "server.start"), "{export}");
}

/// Refusals are recorded, and repeating them does not fill the trail either.
#[test]
fn denials_are_recorded_once_a_minute() {
    let at = Installation::new("");
    let (viewer, admin) = (at.key("acme", "vera", "viewer"), at.key("acme", "root", "admin"));
    let served = Served::start_with(at.dir(), &[], &[KEY]);
    for _ in 0..10 {
        assert_eq!(at.send(&served, &viewer, "GET", "/api/v1/audit", None).0, 403);
    }
    let entries = at.trail(&served, &admin, "permission.refuse");
    assert_eq!(entries.len(), 1, "{entries:?}");
    let (entry, permission) = (&entries[0], &entries[0]["detail"]["permission"]);
    assert_eq!(
        (&entry["actor"], permission, &entry["address"]),
        (&json!("vera"), &json!("audit:read"), &json!("127.0.0.1"))
    );
}

/// Someone with access to the database, but not to the key, rewrites the whole trail with correct hashes.
#[test]
fn a_rewritten_database_is_found() {
    let at = Installation::new("");
    let (ada, admin) =
        (at.key_with("acme", "ada", "user", &[KEY]), at.key_with("acme", "root", "admin", &[KEY]));
    let mut served = Served::start_with(at.dir(), &[], &[KEY]);
    at.say(&served, &ada, THREAD, "hello");
    let (_, verdict) = at.send(&served, &admin, "GET", "/api/v1/audit/verify?full=true", None);
    assert_eq!(verdict["verdict"], "intact", "{verdict}");
    assert!(verdict["seal"]["key_id"].is_string() || verdict["seal"].is_null(), "{verdict}");
    at.end(&mut served);
    let verify = ["audit", "verify", "--full", "--tenant", "acme"];
    assert_eq!(at.run(&verify, &[KEY]).0, 0);
    assert_eq!(at.run(&["audit", "--verify", "--tenant", "acme"], &[KEY]).0, 0, "the form of the contract");
    let (code, _, said) = at.run(&verify, &[]);
    assert!(code == 1 && said.contains("BATON_AUDIT_KEY"), "{said}");
    let (code, _, said) =
        at.run(&["keys", "create", "--tenant", "acme", "--user", "eve", "--role", "admin"], &[]);
    assert!(code == 1 && said.contains("BATON_AUDIT_KEY"), "without the key nothing is written: {said}");
    let forget =
        "DELETE FROM audit; DELETE FROM audit_names; DELETE FROM audit_threads; DELETE FROM audit_chains;
        DELETE FROM audit_seals; DELETE FROM audit_checkpoints; DELETE FROM audit_people";
    database(at.dir()).execute_batch(forget).unwrap();
    for user in ["eve", "mallory"] {
        at.key("acme", user, "user");
    }
    assert_eq!(at.run(&verify, &[]).0, 0, "its hashes are right");
    let (code, _, said) = at.run(&verify, &[KEY]);
    assert!(code == 1 && said.contains("not signed"), "{said}");
}

/// A15: `[retention] audit` removes old entries, also those of the installation. What is left is verified, and any other removal found.
#[test]
fn a15_retention_leaves_a_trail_that_can_be_verified() {
    let at = Installation::new("");
    let ada = at.key_with("acme", "ada", "user", &[KEY]);
    let mut served = Served::start_with(at.dir(), &[], &[KEY]);
    for _ in 0..4 {
        at.say(&served, &ada, THREAD, "hello");
        // A seal is written about once a second.
        std::thread::sleep(std::time::Duration::from_millis(1200));
    }
    at.end(&mut served);
    let verify = ["audit", "verify", "--full", "--tenant", "acme"];
    let before = at.baton(&verify, &[KEY]);
    assert!(!before.contains("removed by retention"), "{before}");

    let config = at.dir().join("baton.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, text + "\n[retention]\naudit = \"1s\"\n").unwrap();
    // The first server would keep the duty of the sweep for an hour.
    database(at.dir()).execute_batch("DELETE FROM duties").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1100));
    let mut served = Served::start_with(at.dir(), &[], &[KEY]);
    let until = std::time::Instant::now() + crate::served::LONG;
    while !at.baton(&verify, &[KEY]).contains("removed by retention") {
        assert!(std::time::Instant::now() < until, "nothing is removed");
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    at.say(&served, &ada, THREAD, "still here");
    at.end(&mut served);
    let listed = at.baton(&["audit", "export", "--tenant", "acme"], &[KEY]);
    let actions: Vec<Value> = listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(actions.iter().any(|entry| entry["action"] == "audit.truncate"), "{listed}");
    assert!(actions[0]["number"].as_u64().unwrap() > 1, "the first entries are gone: {listed}");
    let (code, json, _) = at.run(&["audit", "verify", "--full", "--tenant", "acme", "--json"], &[KEY]);
    let verdict: Value = serde_json::from_str(&json).unwrap();
    assert!(code == 0 && verdict["truncation"]["entries"].as_u64().unwrap() > 3, "{verdict}");

    database(at.dir()).execute_batch("DELETE FROM audit_truncations WHERE tenant = 'acme'").unwrap();
    let (code, _, broken) = at.run(&verify, &[KEY]);
    assert!(code == 1 && broken.contains("missing"), "{broken}");
}
