//! The end of data: erasing a user, retention, limits of stored bytes, backup and restore.

mod backup;
mod lost_commit;
mod search;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use uuid::Uuid;

use crate::baton;
use crate::postgres::new_span_id as new_database;
use crate::served::{LONG, Served};
use search::Search;

const TENANT: &str = "acme";
/// The user who is erased, and what only they wrote.
const BOB: &str = "bob-quokka-4711";
const SECRET: &str = "bob-saw-a-purple-okapi";

/// A project with this store and these other settings, in which every request needs a key.
fn project(store: &str, more: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    std::fs::write(dir.path().join("agents/assistant.md"), "---\ndescription: Helps.\n---\nYou help.\n")
        .unwrap();
    let config = format!("[store]\nurl = \"{store}\"\n[auth]\nmode = \"required\"\n{more}");
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    dir
}

/// Someone with a key.
struct Client<'s> {
    served: &'s Served,
    key: String,
}

impl<'s> Client<'s> {
    fn new(served: &'s Served, dir: &Path, user: &str, role: &str) -> Self {
        let made = baton(dir, &["keys", "create", "--tenant", TENANT, "--user", user, "--role", role]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        Self { served, key: made.stdout.trim().to_owned() }
    }

    fn send(&self, method: &str, path: &str, kind: &str, body: &str) -> (u16, String) {
        let address = &self.served.address;
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(LONG)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAccept: application/json, application/x-ndjson\r\nContent-Type: {kind}\r\n\
             Authorization: Bearer {}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.key,
            body.len()
        )
        .unwrap();
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text).into_owned();
        let status = text.split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or_default();
        (status, text.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }

    fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let (status, text) = self.send(method, path, "application/json", &body);
        (status, serde_json::from_str(&text).unwrap_or(Value::String(text)))
    }

    fn get(&self, path: &str) -> Value {
        let (status, value) = self.ask("GET", path, &Value::Null);
        assert_eq!(status, 200, "{path}: {value}");
        value
    }

    /// Sends a message to a new thread and waits for the answer. Returns the thread.
    fn say(&self, text: &str) -> String {
        let thread = Uuid::new_v4().to_string();
        let (status, answer) =
            self.ask("POST", &format!("/api/v1/threads/{thread}/messages"), &json!({ "content": text }));
        assert_eq!(status, 200, "{answer}");
        thread
    }

    fn upload(&self, thread: &str, text: &str) -> (u16, String) {
        let field = |head: &str, body: &str| {
            format!("--edge\r\nContent-Disposition: form-data; {head}\r\n\r\n{body}\r\n")
        };
        let body = field("name=\"thread_id\"", thread)
            + &field("name=\"file\"; filename=\"notes.txt\"\r\nContent-Type: text/plain", text)
            + "--edge--\r\n";
        self.send("POST", "/api/v1/artifacts", "multipart/form-data; boundary=edge", &body)
    }

    fn threads_of(&self, user: &str) -> usize {
        self.get(&format!("/api/v1/threads?limit=200&user_id={user}"))["data"].as_array().unwrap().len()
    }
}

/// Sums by agent, model and day: those by user have a pseudonym after an erasure.
fn usage(root: &Client<'_>) -> Vec<Value> {
    ["agent", "model", "day"].map(|by| root.get(&format!("/api/v1/usage?by={by}"))["data"].clone()).to_vec()
}

fn eventually(what: &str, mut is_true: impl FnMut() -> bool) {
    let deadline = Instant::now() + LONG;
    while !is_true() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// One erasure is in the trail, with who asked for it from where. A user cannot erase themselves.
fn check_erasure_is_audited(root: &Client<'_>) {
    let (status, refused) = root.ask("DELETE", "/api/v1/users/root", &Value::Null);
    assert!(status == 409 && refused.to_string().contains("another administrator"), "{refused}");
    let erasures = root.get("/api/v1/audit?action=user.erase");
    let erasures = erasures["data"].as_array().unwrap();
    assert_eq!(erasures.len(), 2, "{erasures:?}");
    let requested = erasures.iter().find(|entry| entry["decision"] == "requested").unwrap();
    let (actor, address) = (&requested["actor"], &requested["address"]);
    assert_eq!((actor, address), (&json!("root"), &json!("127.0.0.1")), "{requested}");
}

/// H9: nothing of one of three users is left in any table or file, what the others have is, and all sums are as before.
fn erasing_one_of_three(store: &str) {
    let dir = project(store, "");
    let before;
    let ada_thread;
    {
        let served = Served::start(dir.path());
        let root = Client::new(&served, dir.path(), "root", "admin");
        let [ada, bob, carol] =
            ["ada", BOB, "carol"].map(|user| Client::new(&served, dir.path(), user, "user"));
        ada_thread = ada.say("Hello from ada");
        carol.say("Hello from carol");
        let thread = bob.say(SECRET);
        bob.say(&format!("Once more: {SECRET}"));
        assert_eq!(bob.upload(&thread, SECRET).0, 201);
        let messages = bob.get(&format!("/api/v1/threads/{thread}/messages"));
        let answer = messages["data"][1]["message_id"].as_str().unwrap().to_owned();
        let rating = json!({ "rating": 1, "comment": SECRET });
        assert!(bob.ask("POST", &format!("/api/v1/messages/{answer}/feedback"), &rating).0 < 300);
        before = usage(&root);
        assert!(before[0][0]["runs"].as_u64().unwrap() >= 4, "{before:?}");
        let trail = root.get(&format!("/api/v1/audit?actor={BOB}"));
        assert!(!trail["data"].as_array().unwrap().is_empty(), "{trail}");
        assert_eq!(trail["data"][0]["actor"], BOB);

        let found = Search::of(dir.path(), store).find(&[BOB, SECRET]);
        assert!(found.len() >= 5, "the search finds what is there: {found:?}");
        let (status, exported) =
            root.send("GET", &format!("/api/v1/users/{BOB}/export"), "application/json", "");
        assert_eq!(status, 200);
        assert!(exported.contains(SECRET) && exported.contains("\"type\":\"end\""), "{exported}");
        assert!(exported.contains("content_base64") && !exported.contains("Hello from ada"));
        assert_eq!(ada.ask("DELETE", &format!("/api/v1/users/{BOB}"), &Value::Null).0, 403);
        assert_eq!(ada.ask("GET", &format!("/api/v1/users/{BOB}/export"), &Value::Null).0, 403);

        let (status, erased) = root.ask("DELETE", &format!("/api/v1/users/{BOB}"), &Value::Null);
        assert_eq!((status, &erased["status"]), (200, &json!("completed")), "{erased}");
        assert_eq!(usage(&root), before);
        let by_user = root.get("/api/v1/usage?by=user").to_string();
        assert!(by_user.contains("erased-") && !by_user.contains(BOB), "{by_user}");
        assert_eq!(root.get("/api/v1/audit/verify")["verdict"], "intact");
        assert_eq!(root.get(&format!("/api/v1/audit?actor={BOB}"))["data"], json!([]));
        check_erasure_is_audited(&root);
        eventually("the key is gone", || bob.ask("GET", "/api/v1/threads", &Value::Null).0 == 401);
    }
    let found = Search::of(dir.path(), store).find(&[BOB, SECRET]);
    assert_eq!(found, [""; 0], "something is left");

    let served = Served::start(dir.path());
    let root = Client::new(&served, dir.path(), "root", "admin");
    assert_eq!(usage(&root), before, "after a restart");
    let kept = root.get(&format!("/api/v1/threads/{ada_thread}/messages"));
    assert!(kept.to_string().contains("Hello from ada"), "{kept}");
    Client::new(&served, dir.path(), BOB, "user").say("I am back");
    assert_eq!(root.threads_of(BOB), 1, "a later message is new data");
}

#[test]
fn h9_erasing_one_of_three_users_leaves_nothing_on_sqlite() {
    erasing_one_of_three("sqlite://baton.db");
}

#[test]
fn h9_erasing_one_of_three_users_leaves_nothing_on_postgres() {
    erasing_one_of_three(&new_database());
}

/// The server is killed while it erases a user with many threads, and completes it when it is back.
fn a_killed_erasure_is_completed(store: &str) {
    let dir = project(store, "");
    let mut served = Served::start(dir.path());
    let threads = 40;
    let before;
    {
        let root = Client::new(&served, dir.path(), "root", "admin");
        let bob = Client::new(&served, dir.path(), BOB, "user");
        for _ in 0..threads {
            bob.say(SECRET);
        }
        before = usage(&root);
        std::thread::scope(|scope| {
            scope.spawn(|| root.ask("DELETE", &format!("/api/v1/users/{BOB}"), &Value::Null));
            eventually("the erasure begins", || root.threads_of(BOB) < threads);
            rustix::process::kill_process(
                rustix::process::Pid::from_child(&served.child),
                rustix::process::Signal::KILL,
            )
            .unwrap();
        });
    }
    served.child.wait().unwrap();
    drop(served);
    {
        let served = Served::start(dir.path());
        let root = Client::new(&served, dir.path(), "root", "admin");
        eventually("the erasure is completed", || {
            root.get("/api/v1/audit?action=user.erase").to_string().contains("completed")
        });
        assert_eq!(usage(&root), before);
    }
    let found = Search::of(dir.path(), store).find(&[BOB, SECRET]);
    assert_eq!(found, [""; 0], "something is left");
}

#[test]
fn h9_an_erasure_survives_kill_9_on_sqlite() {
    a_killed_erasure_is_completed("sqlite://baton.db");
}

#[test]
fn h9_an_erasure_survives_kill_9_on_postgres() {
    a_killed_erasure_is_completed(&new_database());
}

/// Otherwise the next server waits until the lease of the process that swept last is over.
fn forget_sweep(dir: &Path) {
    let file = rusqlite::Connection::open(dir.join("baton.db")).unwrap();
    file.execute("DELETE FROM duties", []).unwrap();
}

/// A server sweeps when it starts. What one tenant keeps shorter is gone, what another keeps is there.
#[test]
fn h9_threads_are_kept_as_long_as_their_tenant_says() {
    let dir = project("sqlite://baton.db", "");
    let before;
    {
        let served = Served::start(dir.path());
        let root = Client::new(&served, dir.path(), "root", "admin");
        root.say("Hello");
        before = usage(&root);
    }
    std::thread::sleep(Duration::from_millis(20));
    let config = dir.path().join("baton.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(
        &config,
        text.clone() + "[retention]\nthreads = \"1ms\"\n[tenants.acme.retention]\nthreads = \"forever\"\n",
    )
    .unwrap();
    forget_sweep(dir.path());
    {
        let served = Served::start(dir.path());
        let root = Client::new(&served, dir.path(), "root", "admin");
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(root.threads_of("root"), 1, "its tenant keeps it forever");
    }
    std::fs::write(&config, text + "[tenants.acme.retention]\nthreads = \"1ms\"\n").unwrap();
    forget_sweep(dir.path());
    let served = Served::start(dir.path());
    let root = Client::new(&served, dir.path(), "root", "admin");
    eventually("the thread expires", || root.threads_of("root") == 0);
    assert_eq!(usage(&root), before, "costs stay");
    let trail = root.get("/api/v1/audit?action=thread.delete");
    assert_eq!(trail["data"][0]["decision"], "expired", "{trail}");
}

/// More is refused until something is deleted.
#[test]
fn a_user_who_stored_too_much_has_to_delete_something() {
    let dir = project("sqlite://baton.db", "[limits]\nmax_stored_bytes_per_user = 20000\n");
    let served = Served::start(dir.path());
    let [ada, bob] = ["ada", "bob"].map(|user| Client::new(&served, dir.path(), user, "user"));
    let thread = ada.say("Hello");
    assert_eq!(ada.upload(&thread, &"a".repeat(15_000)).0, 201);
    let (status, refused) = ada.upload(&thread, &"b".repeat(15_000));
    assert!(status == 413 && refused.contains("storage_full") && refused.contains("delete"), "{refused}");
    let long = json!({ "content": "c".repeat(15_000) });
    let (status, refused) = ada.ask("POST", &format!("/api/v1/threads/{thread}/messages"), &long);
    assert_eq!((status, &refused["code"]), (413, &json!("storage_full")), "{refused}");
    let elsewhere = bob.say("Hello");
    assert_eq!(bob.upload(&elsewhere, &"b".repeat(15_000)).0, 201, "others have their own limit");
    assert_eq!(ada.ask("DELETE", &format!("/api/v1/threads/{thread}"), &Value::Null).0, 204);
    let thread = Uuid::new_v4().to_string();
    eventually("there is space again", || ada.upload(&thread, &"b".repeat(15_000)).0 == 201);
}
