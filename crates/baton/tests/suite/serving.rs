//! What the configuration tells the server.

use std::io::Read as _;
use std::path::Path;

use baton::project::Project;
use baton::serving::auth_settings;
use baton_server::identity::{AuthSettings, AuthenticationMode};

use crate::served::Served;

fn settings(dir: &Path, config: &str) -> anyhow::Result<AuthSettings> {
    let file = dir.join("baton.toml");
    std::fs::write(&file, config).unwrap();
    auth_settings(&Project::open(dir, Some(&file), &[]).unwrap())
}

const PUBLIC: &str = "-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEf83OJ3D2xF1Bg8vub9tLe1gHMzV7
6e8Tus9uPHvRVEXH8UTNG72bfocs3+257rn0s2ldbqkLJK2KRiMohYjlrQ==
-----END PUBLIC KEY-----
";

#[test]
fn keys_of_tokens_are_read_where_they_are_needed() {
    let dir = tempfile::tempdir().unwrap();
    let jwt = |rest: &str| {
        format!(
            "[auth]\nmode = 'required'\n[auth.jwt]\nissuer = 'https://id.example'\naudience = 'baton'\n{rest}\n"
        )
    };
    let file = jwt("algorithms = ['ES256']\npublic_key_file = 'keys.pem'");
    let fails = |config: &str| {
        let error = settings(dir.path(), config).unwrap_err();
        format!("{error:#}")
    };
    let missing = fails(&file);
    assert!(missing.contains("[auth.jwt]") && missing.contains("keys.pem"), "{missing}");
    assert!(settings(dir.path(), &file.replace("required", "open")).unwrap().tokens.is_none());
    std::fs::write(dir.path().join("keys.pem"), PUBLIC).unwrap();
    let good = settings(dir.path(), &file).unwrap();
    assert!(good.mode == AuthenticationMode::Required && good.tokens.is_some());
    let other = fails(&file.replace("ES256", "RS256"));
    assert!(other.contains("no public key for RS256"), "{other}");
    std::fs::write(dir.path().join("keys.pem"), PUBLIC.replace("PUBLIC", "PRIVATE")).unwrap();
    assert!(fails(&file).contains("private key"));
    let plain = fails(&jwt("algorithms = ['RS256']\njwks_url = 'http://id.example/keys'"));
    assert!(plain.contains("https"), "{plain}");
    let secret = fails(&jwt("algorithms = ['HS256']"));
    assert!(secret.contains("set BATON_JWT_SECRET"), "{secret}");
}

#[test]
fn roles_of_the_file_are_the_servers() {
    let dir = tempfile::tempdir().unwrap();
    let found = settings(dir.path(), "[auth.roles]\nauditor = ['audit:read']\n").unwrap();
    assert_eq!(found.mode, AuthenticationMode::Open);
    assert_eq!(found.roles["auditor"][0].as_str(), "audit:read");
}

/// `{"sub":"ann","tenant_id":"acme","roles":["viewer"],"iss":"https://id.example","aud":"baton","exp":4102444800}`, signed with the
/// secret below.
const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiJhbm4iLCJ0ZW5hbnRfaWQiOiJhY21lIiwicm9sZXMiOlsidmlld2V\
    yIl0sImlzcyI6Imh0dHBzOi8vaWQuZXhhbXBsZSIsImF1ZCI6ImJhdG9uIiwiZXhwIjo0MTAyNDQ0ODAwfQ.aEGrVNJDlBKsgY1y\
    ZfUjQ1LKHV-cG-VZoONHyIqYb0k";
const SECRET: &str = "a secret that is long enough for HS256";

/// The secret comes from the environment, or from a file that it names.
#[test]
fn a_server_takes_tokens_that_were_signed_with_its_secret() {
    let dir = tempfile::tempdir().unwrap();
    let config = "[auth]\nmode = 'required'\n[auth.jwt]\nissuer = 'https://id.example'\naudience = 'baton'\nalgorithms = ['HS256']\n";
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    std::fs::write(dir.path().join("agents/assistant.md"), "---\ndescription: Helps.\n---\nYou help.\n")
        .unwrap();
    let file = dir.path().join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let other = "another secret that is long enough for it";
    for (name, value, status) in [
        ("BATON_JWT_SECRET", SECRET, "200"),
        ("BATON_JWT_SECRET_FILE", file.to_str().unwrap(), "200"),
        ("BATON_JWT_SECRET", other, "401"),
    ] {
        let served = Served::start_with(dir.path(), &[], &[(name, value)]);
        let accept = format!("*/*\r\nAuthorization: Bearer {TOKEN}");
        let mut answer = String::new();
        served.ask("GET", "/version", &accept, "").read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{name}: {answer}");
    }
}

/// A19: `[store] url` decides where conversations are kept, SQLite or PostgreSQL: a later process finds them, and the registry has the
/// card of every agent.
#[test]
fn a19_conversations_are_kept_in_the_configured_store() {
    const THREAD: &str = "6f9619ff-8b86-4d01-b42d-00c04fc964ff";
    let postgres = crate::postgres::new_span_id();
    for url in ["sqlite://kept/here.db", &postgres] {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(crate::baton(dir.path(), &["init"]).code, 0);
        std::fs::create_dir(dir.path().join("kept")).unwrap();
        let config = dir.path().join("baton.toml");
        let text = std::fs::read_to_string(&config).unwrap();
        std::fs::write(&config, format!("{text}\n[store]\nurl = \"{url}\"\n")).unwrap();
        let messages = format!("/api/v1/threads/{THREAD}/messages");
        let served = Served::start(dir.path());
        let said = served.read("POST", &messages, "application/json", r#"{"content": "Hello there"}"#);
        assert!(said.starts_with("HTTP/1.1 200"), "{url}: {said}");
        let kind = if url.starts_with("sqlite") { "sqlite" } else { "postgres" };
        assert_eq!(served.get("/api/v1/system")["store"]["kind"], kind);
        drop(served);
        assert_eq!(dir.path().join("kept/here.db").exists(), kind == "sqlite");
        let served = Served::start(dir.path());
        let kept = served.get(&messages);
        assert_eq!(kept["data"].as_array().unwrap().len(), 2, "{url}: {kept}");
        assert_eq!(kept["data"][0]["parts"][0]["text"], "Hello there");
        let agents = served.get("/api/v1/agents?all=true");
        for agent in agents["data"].as_array().unwrap() {
            let card = served.get(&format!("/api/v1/agents/{}/card", agent["id"].as_str().unwrap()));
            assert_eq!(card["name"], agent["display_name"]);
        }
    }
}

fn answer(served: &Served, path: &str) -> String {
    let mut answer = String::new();
    served.ask("GET", path, "text/html", "").read_to_string(&mut answer).unwrap();
    answer
}

/// With the page of this build, or with the explanation that there is none.
#[test]
fn page_is_at_the_root_unless_only_the_api_is_wanted() {
    let dir = tempfile::tempdir().unwrap();
    let served = Served::start_with(dir.path(), &["--demo"], &[]);
    let page = answer(&served, "/");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("<!doctype html>"), "{page}");
    let served = Served::start_with(dir.path(), &["--demo", "--no-ui"], &[]);
    let refused = answer(&served, "/");
    assert!(refused.starts_with("HTTP/1.1 404") && refused.contains("/docs lists them"), "{refused}");
    assert!(answer(&served, "/docs").starts_with("HTTP/1.1 200"));
}

#[test]
fn browser_is_opened_and_its_failure_does_not_matter() {
    let dir = tempfile::tempdir().unwrap();
    let opened = dir.path().join("opened");
    // A folder can be made once: it is there when the command has run, with the address in its name.
    let browser = format!("/nonexistent/browser:mkdir -p {}/%s", opened.display());
    let served = Served::start_with(dir.path(), &["--demo", "--open"], &[("BROWSER", &browser)]);
    let expected = opened.join(format!("http://{}", served.address));
    let until = std::time::Instant::now() + crate::served::LONG;
    while !expected.exists() {
        assert!(std::time::Instant::now() < until, "{} was not opened", expected.display());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    let served =
        Served::start_with(dir.path(), &["--demo", "--open"], &[("BROWSER", "/nonexistent/browser")]);
    assert!(answer(&served, "/livez").starts_with("HTTP/1.1 200"));
}
