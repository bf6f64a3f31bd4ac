//! From `.mcp.json` to a call.

use baton_mcp::{Servers, config};
use serde_json::json;

use crate::support::{TOKEN, Tools, fixture, settings};

#[tokio::test]
async fn a_file_is_enough() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(".mcp.json");
    assert_eq!(config::load(&path).unwrap_err().code(), "mcp_config");

    let args = ["${SCRIPT:-".to_owned() + &fixture("server.mjs") + "}"];
    let server = json!({ "command": "node", "args": args, "env": { "TOKEN": "${SECRET}" }, "trust": false });
    std::fs::write(&path, json!({ "mcpServers": { "it": server } }).to_string()).unwrap();
    let servers = Servers::new(config::load(&path).unwrap(), settings());
    assert_eq!(servers.names(), ["it"]);
    let environment = Tools::of(&servers, "acme").await.call("environment", json!({})).await.unwrap();
    assert!(environment.contains(&format!("\"TOKEN\":\"{TOKEN}\"")), "{environment}");
}
