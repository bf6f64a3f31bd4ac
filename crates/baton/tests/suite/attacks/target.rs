//! A server to attack, and clients at different addresses.

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use reqwest::{Client, ClientBuilder};
use serde_json::Value;
use tempfile::TempDir;

use crate::baton;
use crate::served::Served;

/// The address of the attacker, and that of everyone else. Both are loopback.
pub const ATTACKER: Ipv4Addr = Ipv4Addr::new(127, 0, 0, 2);
pub const OTHER: Ipv4Addr = Ipv4Addr::LOCALHOST;

pub const REQUIRED: &str = "[auth]\nmode = \"required\"\n";

/// A folder with one offline agent and this configuration.
pub fn folder(config: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    std::fs::create_dir(dir.path().join("agents")).unwrap();
    std::fs::write(dir.path().join("agents/assistant.md"), "---\ndescription: Helps.\n---\nYou help.\n")
        .unwrap();
    dir
}

/// A new API key.
pub fn key(dir: &Path, tenant: &str, user: &str) -> String {
    let ran = baton(dir, &["keys", "create", "--tenant", tenant, "--user", user, "--role", "admin"]);
    assert_eq!(ran.code, 0, "{}", ran.stderr);
    ran.stdout.trim().to_owned()
}

/// A client at an address.
pub fn client(from: Ipv4Addr) -> ClientBuilder {
    Client::builder().local_address(IpAddr::V4(from)).no_proxy()
}

pub fn url(served: &Served, path: &str) -> String {
    format!("http://{}{path}", served.address)
}

/// The code of a problem, after a check that it says when to come back.
pub async fn refusal(response: reqwest::Response) -> (u16, String) {
    let status = response.status().as_u16();
    if matches!(status, 429 | 503) {
        assert!(response.headers().contains_key("retry-after"), "{:?}", response.headers());
    }
    let problem: Value = response.json().await.unwrap();
    assert!(problem["detail"].as_str().is_some_and(|detail| detail.len() > 20), "{problem}");
    (status, problem["code"].as_str().unwrap().to_owned())
}
