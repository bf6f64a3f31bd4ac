//! Attacks on the identity of callers of the built server: keys that allow more than they should, keys that outlive their time,
//! administrators who look beyond their tenant, and a revoked key of an issuer that cannot be reached.

use serde_json::{Value, json};

use super::installation::{Installation, THREAD};
use crate::served::Served;

const KEYS: &str = "/api/v1/keys";

fn create(at: &Installation, served: &Served, key: &str, body: &Value) -> (u16, Value) {
    at.send(served, key, "POST", KEYS, Some(body))
}

/// A key never allows more than its roles, its scopes and its creator.
#[test]
fn keys_cannot_exceed_roles_scopes_or_their_creator() {
    let roles = "[auth.roles]\nclerk = ['admin:keys', 'thread:read']\n";
    let at = Installation::new(roles);
    let (admin, clerk) = (at.key("acme", "root", "admin"), at.key("acme", "carl", "clerk"));
    let user = at.key("acme", "ada", "user");
    let served = Served::start(at.dir());
    assert_eq!(create(&at, &served, &user, &json!({ "name": "mine", "roles": ["admin"] })).0, 403);

    let (status, refused) = create(&at, &served, &clerk, &json!({ "name": "more", "roles": ["admin"] }));
    assert_eq!((status, &refused["permission"]), (403, &json!("admin:*")), "{refused}");
    let (status, refused) = create(&at, &served, &clerk, &json!({ "name": "more", "roles": ["user"] }));
    assert_eq!(status, 403, "{refused}");
    let limited = json!({ "name": "less", "roles": ["user"], "scopes": ["thread:read"] });
    let (status, created) = create(&at, &served, &clerk, &limited);
    assert_eq!(status, 201, "what the creator has may be passed on: {created}");
    let for_another =
        json!({ "name": "less", "user_id": "root", "roles": ["user"], "scopes": ["thread:read"] });
    let (status, refused) = create(&at, &served, &clerk, &for_another);
    assert_eq!((status, &refused["permission"]), (403, &json!("admin:*")), "not in the name of others");

    let reader = created["key"].as_str().unwrap();
    assert_eq!(at.send(&served, reader, "GET", "/api/v1/threads", None).0, 200);
    let message = format!("/api/v1/threads/{THREAD}/messages");
    let (status, refused) = at.send(&served, reader, "POST", &message, Some(&json!({ "content": "hi" })));
    assert_eq!((status, &refused["permission"]), (403, &json!("thread:write")), "a scope limits the roles");
    let beyond = json!({ "name": "x", "roles": ["viewer"], "scopes": ["thread:read", "admin:*"] });
    let (status, refused) = create(&at, &served, &admin, &beyond);
    assert_eq!((status, &refused["errors"][0]["pointer"]), (400, &json!("/scopes/1")), "{refused}");
    let (status, refused) = create(&at, &served, &admin, &json!({ "name": "x", "roles": ["root"] }));
    assert_eq!((status, &refused["errors"][0]["pointer"]), (400, &json!("/roles/0")), "{refused}");
}

/// The secret is shown once, and a tenant's administrator manages the keys of that tenant only.
#[test]
fn keys_belong_to_their_tenant_and_are_shown_once() {
    let at = Installation::new("");
    let (acme, globex) = (at.key("acme", "root", "admin"), at.key("globex", "root", "admin"));
    let served = Served::start(at.dir());
    let body = json!({ "name": "nightly export", "user_id": "bot", "roles": ["user"] });
    let (status, created) = create(&at, &served, &acme, &body);
    assert_eq!(status, 201, "{created}");
    let (secret, id) = (created["key"].as_str().unwrap(), created["key_id"].as_str().unwrap());
    let (_, me) = at.send(&served, secret, "GET", "/api/v1/me", None);
    assert_eq!((&me["tenant_id"], &me["user_id"]), (&json!("acme"), &json!("bot")));

    let (_, listed) = at.send(&served, &acme, "GET", KEYS, None);
    let names: Vec<&Value> = listed["data"].as_array().unwrap().iter().map(|key| &key["name"]).collect();
    assert!(
        names.contains(&&json!("nightly export")) && !listed.to_string().contains(&secret[12..]),
        "{listed}"
    );
    let (_, foreign) = at.send(&served, &globex, "GET", KEYS, None);
    assert!(!foreign.to_string().contains(id) && foreign["data"].as_array().unwrap().len() == 1, "{foreign}");
    assert_eq!(at.send(&served, &globex, "DELETE", &format!("{KEYS}/{id}"), None).0, 404);
    assert_eq!(at.send(&served, secret, "GET", "/api/v1/me", None).0, 200, "it still works");

    let (status, revoked) = at.send(&served, &acme, "DELETE", &format!("{KEYS}/{id}"), None);
    assert_eq!((status, &revoked["status"]), (200, &json!("revoked")));
    let until = std::time::Instant::now() + crate::served::LONG;
    while at.send(&served, secret, "GET", "/api/v1/me", None).0 != 401 {
        assert!(std::time::Instant::now() < until, "a revoked key still works");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let audited = at.trail(&served, &acme, "key.revoke");
    assert_eq!(audited[0]["detail"]["key_id"], id, "{audited:?}");
}

/// A key stops working at its time, also one that was used a moment before.
#[test]
fn keys_expire() {
    let at = Installation::new("");
    let args = ["keys", "create", "--tenant", "acme", "--user", "ada", "--role", "user", "--name", "short"];
    let key = at.baton(&[&args[..], &["--expires", "90d", "--scope", "thread:read"]].concat(), &[]);
    let key = key.trim().to_owned();
    let served = Served::start(at.dir());
    assert_eq!(at.send(&served, &key, "GET", "/api/v1/threads", None).0, 200);
    let database = rusqlite::Connection::open(at.dir().join("baton.db")).unwrap();
    database.busy_timeout(std::time::Duration::from_secs(30)).unwrap();
    database.execute_batch("UPDATE api_keys SET expires_at = 1 WHERE name = 'short'").unwrap();
    let until = std::time::Instant::now() + crate::served::LONG;
    while at.send(&served, &key, "GET", "/api/v1/threads", None).0 != 401 {
        assert!(std::time::Instant::now() < until, "an expired key still works");
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let listed: Value = serde_json::from_str(&at.baton(&["keys", "list", "--json"], &[])).unwrap();
    let short = &listed["data"][0];
    assert_eq!((&short["name"], &short["scopes"]), (&json!("short"), &json!(["thread:read"])), "{listed}");
    let past = [&args[..], &["--expires", "2020-01-01T00:00"]].concat();
    assert_eq!(at.run(&past, &[]).0, 2);
    let more = [&args[..], &["--scope", "audit:read"]].concat();
    assert_eq!(at.run(&more, &[]).0, 2, "the role does not grant it");
    let system = ["keys", "create", "--tenant", "_system", "--user", "eve", "--role", "admin"];
    assert_eq!(at.run(&system, &[]).0, 2, "the installation's own trail has no users");
}

/// A key of limited time cannot be exchanged for one that lasts longer.
#[test]
fn keys_do_not_outlive_their_creator() {
    let at = Installation::new("");
    let args =
        ["keys", "create", "--tenant", "acme", "--user", "root", "--role", "admin", "--expires", "90d"];
    let admin = at.baton(&args, &[]).trim().to_owned();
    let served = Served::start(at.dir());
    let later = json!({ "name": "later", "roles": ["user"], "expires_at": "2999-01-01T00:00:00Z" });
    let (status, refused) = create(&at, &served, &admin, &later);
    assert_eq!((status, &refused["errors"][0]["pointer"]), (400, &json!("/expires_at")), "{refused}");
    let (status, created) = create(&at, &served, &admin, &json!({ "name": "same", "roles": ["user"] }));
    assert_eq!(status, 201, "{created}");
    let (_, listed) = at.send(&served, &admin, "GET", KEYS, None);
    let creator = &listed["data"][0];
    assert_eq!(created["expires_at"], creator["expires_at"], "{listed}");
    let audited = at.trail(&served, &admin, "key.create");
    let with = audited.iter().find(|entry| entry["detail"]["name"] == "same").unwrap();
    assert_eq!(
        (&with["actor"], &with["detail"]["created_with"]),
        (&json!("root"), &creator["key_id"]),
        "{audited:?}"
    );
}

/// When a key was used is stored, but not by each request.
#[test]
fn the_last_use_of_a_key_is_stored() {
    let at = Installation::new("");
    let key = at.key("acme", "root", "admin");
    let mut served = Served::start(at.dir());
    assert_eq!(at.send(&served, &key, "GET", "/api/v1/me", None).0, 200);
    at.end(&mut served);
    let listed: Value = serde_json::from_str(&at.baton(&["keys", "list", "--json"], &[])).unwrap();
    assert!(listed["data"][0]["last_used_at"].is_string(), "{listed}");
}

/// Numbers of all tenants are for those who operate the installation, and no role of a tenant gives them.
#[test]
fn an_administrator_sees_nothing_beyond_the_tenant() {
    let at = Installation::new("operators = ['ops']\n[auth.roles]\nspy = ['metrics:read', 'system:*']\n");
    let (admin, spy) = (at.key("acme", "root", "admin"), at.key("acme", "sid", "spy"));
    let (operator, reader) = (at.key("ops", "olga", "admin"), at.key("ops", "rita", "viewer"));
    let served = Served::start(at.dir());
    at.say(&served, &admin, THREAD, "hello");
    for (key, status) in [(&admin, 403), (&spy, 403), (&reader, 403), (&operator, 200)] {
        assert_eq!(at.send(&served, key, "GET", "/metrics", None).0, status);
        assert_eq!(at.send(&served, key, "GET", "/api/v1/audit?trail=installation", None).0, status);
    }
    let (_, me) = at.send(&served, &admin, "GET", "/api/v1/me", None);
    let permissions = me["permissions"].to_string();
    assert!(permissions.contains("admin:keys") && !permissions.contains("metrics:read"), "{permissions}");
    let (_, system) = at.send(&served, &admin, "GET", "/api/v1/system", None);
    let (_, whole) = at.send(&served, &operator, "GET", "/api/v1/system", None);
    assert!(system.get("active_runs").is_none() && whole["active_runs"].is_number(), "{system} {whole}");
}

/// `--tenant` chooses whose data commands read.
#[test]
fn commands_read_the_tenant_they_are_told() {
    let at = Installation::new("");
    let ada = at.key("acme", "ada", "user");
    let mut served = Served::start(at.dir());
    let answer = at.say(&served, &ada, THREAD, "hello");
    at.end(&mut served);
    let run = answer["run_id"].as_str().unwrap();
    for (args, found) in [
        (&["threads", "list"][..], THREAD),
        (&["threads", "show", THREAD, "--json"], "\"tenant_id\": \"acme\""),
        (&["runs", "list"], run),
        (&["runs", "show", run, "--json"], run),
        (&["sessions", "list"], run),
        (&["usage"], "assistant"),
        (&["audit", "--json"], "message.send"),
        (&["audit", "export"], "message.send"),
    ] {
        let theirs = at.run(&[args, &["--tenant", "acme"]].concat(), &[]);
        assert!(theirs.0 == 0 && theirs.1.contains(found), "{args:?}: {theirs:?}");
        let (_, stdout, _) = at.run(args, &[]);
        assert!(!stdout.contains(found), "{args:?} shows another tenant's data: {stdout}");
    }
    for args in [&["approvals", "list"][..], &["patterns"], &["handoff", "show"], &["skills", "list"]] {
        let code = at.run(&[args, &["--tenant", "acme"]].concat(), &[]).0;
        assert_ne!(code, 2, "{args:?} takes --tenant");
    }
    let remote = ["approvals", "list", "--tenant", "acme", "--server", "http://127.0.0.1:1"];
    assert_eq!(at.run(&remote, &[]).0, 2, "the key decides there");
}
