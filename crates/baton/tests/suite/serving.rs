//! What the configuration tells the server.

use std::path::Path;

use baton::project::Project;
use baton::serving::auth_settings;
use baton_server::identity::{Mode, Settings};

fn settings(dir: &Path, config: &str) -> anyhow::Result<Settings> {
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
    assert!(good.mode == Mode::Required && good.tokens.is_some());
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
    assert_eq!(found.mode, Mode::Open);
    assert_eq!(found.roles["auditor"][0].as_str(), "audit:read");
}
