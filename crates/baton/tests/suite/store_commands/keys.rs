//! API keys, as an operator makes and takes them back.

use std::path::Path;

use baton_core::{Store, TenantId};
use baton_server::identity::key::Digest;
use serde_json::Value;

use super::{database, json, ok};
use crate::{Ran, baton};

fn folder(config: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    dir
}

fn create(dir: &Path, args: &[&str]) -> Ran {
    baton(dir, &[&["keys", "create"], args].concat())
}

/// Whose key the server would say it is.
fn owner(dir: &Path, key: &str) -> Option<(TenantId, String)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let store = baton_store::open("sqlite://baton.db", dir).await.unwrap();
        let found = store.key(&Digest::of(key).hex()).await.unwrap();
        store.close().await.unwrap();
        found.map(|(tenant, key)| (tenant, key.user_id.to_string()))
    })
}

#[test]
fn a_key_is_printed_alone_and_kept_as_a_hash() {
    let dir = folder("[auth]\nmode = 'required'\n");
    let made =
        create(dir.path(), &["--tenant", "acme", "--user", "ann", "--role", "user", "--role", "viewer"]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let key = made.stdout.strip_suffix('\n').unwrap();
    assert!(key.starts_with("baton_") && key.len() == 49 && !key.contains(char::is_whitespace), "{key}");
    assert!(
        made.stderr.contains("not shown again") && !made.stderr.contains("baton.toml"),
        "{}",
        made.stderr
    );
    assert_eq!(owner(dir.path(), key), Some((TenantId::parse("acme").unwrap(), "ann".to_owned())));

    let files =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| std::fs::read(entry.unwrap().path()).unwrap());
    let secret = &key.as_bytes()[12..];
    assert!(files.into_iter().all(|file| !file.windows(secret.len()).any(|part| part == secret)));

    let list = json(dir.path(), &["keys", "list"]);
    let listed = &list["data"][0];
    let id = listed["key_id"].as_str().unwrap();
    assert_eq!(
        *listed,
        json!({"tenant_id": "acme", "key_id": id, "user_id": "ann", "name": "", "roles": ["user", "viewer"], "prefix": &key[..12],
            "created_at": listed["created_at"], "revoked_at": null})
    );
    let table = ok(dir.path(), &["keys", "list"]);
    for part in [id, &key[..12], "acme", "ann", "user, viewer"] {
        assert!(table.contains(part), "{part}\n{table}");
    }
    assert!(!table.contains(&key[..16]), "{table}");
}

#[test]
fn a_revoked_key_is_nobodys() {
    let dir = folder("");
    let made = create(dir.path(), &["--user", "ann", "--role", "admin"]);
    assert!(made.stderr.contains("mode = \"required\""), "{}", made.stderr);
    let other = create(dir.path(), &["--tenant", "acme", "--user", "bob", "--role", "viewer"]).stdout;
    let key = made.stdout.trim();
    let list = json(dir.path(), &["keys", "list", "--user", "ann"]);
    let id = list["data"][0]["key_id"].as_str().unwrap().to_owned();
    let elsewhere = baton(dir.path(), &["keys", "revoke", &id, "--tenant", "acme"]);
    assert_eq!((elsewhere.code, elsewhere.stdout.as_str()), (1, ""));
    assert!(elsewhere.stderr.contains("API key not found"), "{}", elsewhere.stderr);
    let said = ok(dir.path(), &["keys", "revoke", &id]);
    assert_eq!(said, format!("revoked key {id} ({}…) of ann in default\n", &key[..12]));
    assert_eq!(owner(dir.path(), key), None);
    assert!(owner(dir.path(), other.trim()).is_some(), "nobody else's");
    assert!(ok(dir.path(), &["keys", "revoke", &id]).contains("was revoked before"));
    let list = json(dir.path(), &["keys", "list", "--tenant", "default"]);
    assert!(list["data"][0]["revoked_at"].is_string(), "{list}");
}

/// H16
#[test]
fn keys_are_on_the_audit_trail() {
    let dir = folder("");
    let key = create(dir.path(), &["--user", "ann", "--role", "admin"]).stdout;
    let id = json(dir.path(), &["keys", "list"])["data"][0]["key_id"].as_str().unwrap().to_owned();
    ok(dir.path(), &["keys", "revoke", &id]);
    let trail = json(dir.path(), &["audit"]);
    let entries: Vec<(&Value, &Value)> =
        trail["data"].as_array().unwrap().iter().map(|entry| (&entry["action"], &entry["actor"])).collect();
    assert_eq!(entries, [(&json!("key.create"), &json!("system")), (&json!("key.revoke"), &json!("system"))]);
    assert_eq!(trail["data"][0]["detail"]["user_id"], "ann");
    assert!(!trail.to_string().contains(&key[..16]));
    assert!(ok(dir.path(), &["audit", "--verify"]).starts_with("intact: 2 entries"));
}

#[test]
fn a_role_has_to_be_one() {
    let dir = folder("[auth.roles]\nauditor = ['audit:read']\n");
    for args in
        [&["--user", "ann", "--role", "Admin"][..], &["--user", "ann", "--role", "user", "--role", ""]]
    {
        let refused = create(dir.path(), args);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
        let roles = "use admin, auditor, builder, operator, user, viewer";
        assert!(refused.stderr.contains(roles), "{}", refused.stderr);
    }
    for args in [&["--user", "ann"][..], &["--role", "user"], &["--user", "", "--role", "user"]] {
        assert_eq!(create(dir.path(), args).code, 2, "{args:?}");
    }
    assert!(!dir.path().join("baton.db").exists(), "nothing was made");
    assert_eq!(create(dir.path(), &["--user", "ann", "--role", "auditor"]).code, 0);
    let bad = folder("[auth.roles]\nauditor = ['audit']\n");
    let refused = create(bad.path(), &["--user", "ann", "--role", "auditor"]);
    assert_eq!(refused.code, 3);
    assert!(
        refused.stderr.contains("line 2") && refused.stderr.contains("`audit` is not a permission"),
        "{}",
        refused.stderr
    );
}

#[test]
fn a_key_is_named_by_its_id_or_the_beginning_of_it() {
    let dir = folder("");
    let none = baton(dir.path(), &["keys", "list"]);
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.as_str()), (0, "", "nothing was kept yet\n"));
    create(dir.path(), &["--user", "ann", "--role", "user"]);
    create(dir.path(), &["--user", "bob", "--role", "user"]);
    let list = json(dir.path(), &["keys", "list"]);
    let ids: Vec<&str> = (0..2).map(|at| list["data"][at]["key_id"].as_str().unwrap()).collect();
    let sql = "UPDATE api_keys SET key_id = ?1 WHERE key_id = ?2";
    let near = format!("{}{}", &ids[0][..9], &ids[1][9..]);
    database(dir.path()).execute(sql, [&near, ids[1]]).unwrap();
    let several = baton(dir.path(), &["keys", "revoke", &ids[0][..9]]);
    assert_eq!(several.code, 1);
    assert!(several.stderr.contains("the beginning of several"), "{}", several.stderr);
    assert!(ok(dir.path(), &["keys", "revoke", &near]).contains("of bob"));
    assert_eq!(baton(dir.path(), &["keys", "revoke", "nonsense"]).code, 2);
    let unknown = baton(dir.path(), &["keys", "revoke", "00000000-0000-4000-8000-000000000000"]);
    assert_eq!(unknown.code, 1, "{}", unknown.stderr);
}
