//! The reference server over streamable HTTP.

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use baton_core::agent::McpServer;
use baton_core::{HumanDuration, ToolError};
use baton_mcp::{McpSettings, Servers};
use serde_json::json;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};

use crate::support::{TOKEN, Tools, everything_script, fixture, servers_with, settings, tenant, until};

/// The server of the npm package on a loopback port, and what it says. Ends with its value.
struct Everything {
    child: Child,
    port: u16,
    said: Arc<Mutex<Vec<String>>>,
}

impl Everything {
    /// On any free port when `port` is 0.
    async fn start(port: u16) -> Self {
        let mut child = Command::new("node")
            .args(["--import", &fixture("loopback.mjs")])
            .arg(everything_script())
            .arg("streamableHttp")
            .env("PORT", port.to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let said = Arc::new(Mutex::new(Vec::new()));
        tokio::spawn(follow(child.stdout.take().unwrap(), Arc::clone(&said)));
        tokio::spawn(follow(child.stderr.take().unwrap(), Arc::clone(&said)));
        let mut server = Self { child, port: 0, said };
        until("the server listens", async || server.count("fixture: port ") > 0).await;
        let announced = server
            .said
            .lock()
            .unwrap()
            .iter()
            .find_map(|line| line.strip_prefix("fixture: port ")?.parse().ok());
        server.port = announced.unwrap();
        server
    }

    fn count(&self, start: &str) -> usize {
        self.said.lock().unwrap().iter().filter(|line| line.starts_with(start)).count()
    }

    fn client(&self) -> Servers {
        let url = format!("http://127.0.0.1:{}/mcp", self.port);
        let headers = [("X-Test".to_owned(), "Bearer ${SECRET}".to_owned())].into();
        let back_off = HumanDuration::from_millis(0);
        servers_with(McpServer::Http { url, headers }, McpSettings { back_off, ..settings() })
    }

    async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }
}

async fn follow(source: impl AsyncRead + Unpin, said: Arc<Mutex<Vec<String>>>) {
    let mut lines = BufReader::new(source).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        said.lock().unwrap().push(line);
    }
}

#[tokio::test]
async fn tools_are_listed_and_called() {
    let everything = Everything::start(0).await;
    let servers = everything.client();
    let (acme, globex) = (Tools::of(&servers, "acme").await, Tools::of(&servers, "globex").await);
    assert!(acme.names().contains(&"get-sum"));
    assert_eq!(acme.call("echo", json!({ "message": "hi" })).await.unwrap(), "Echo: hi");
    assert!(globex.call("get-sum", json!({ "a": 2, "b": 3 })).await.unwrap().contains('5'));
    assert_eq!(everything.count("Session initialized"), 2, "every tenant has a session of its own");
    assert!(everything.count(&format!("fixture: POST x-test=Bearer {TOKEN}")) > 0);
    assert_eq!(everything.count("fixture: POST x-test=undefined"), 0);
    assert!(servers.process_ids().is_empty());

    servers.shutdown().await;
    until("both sessions are given back", async || everything.count("Received session termination") == 2)
        .await;
}

#[tokio::test]
async fn a_dropped_call_is_cancelled() {
    let everything = Everything::start(0).await;
    let servers = everything.client();
    let tools = Tools::of(&servers, "acme").await;
    let posts = everything.count("fixture: POST");
    let long = tools.call("trigger-long-running-operation", json!({ "duration": 3600, "steps": 1 }));
    let received = until("the call has arrived", async || everything.count("fixture: POST") > posts);
    tokio::select! {
        result = long => panic!("{result:?}"),
        () = received => {}
    }
    until("the cancellation has arrived", async || everything.count("fixture: POST") > posts + 1).await;
    assert_eq!(tools.call("echo", json!({ "message": "still here" })).await.unwrap(), "Echo: still here");
}

#[tokio::test]
async fn a_restarted_server_gets_a_new_session() {
    let everything = Everything::start(0).await;
    let servers = everything.client();
    let tools = Tools::of(&servers, "acme").await;
    assert!(tools.call("echo", json!({ "message": "1" })).await.is_ok());
    let port = everything.port;
    everything.kill().await;

    // Back before anybody noticed: the old session is unknown there, and the call is made in a new one.
    let everything = Everything::start(port).await;
    assert_eq!(tools.call("echo", json!({ "message": "2" })).await.unwrap(), "Echo: 2");
    everything.kill().await;

    let error = tools.call("echo", json!({ "message": "3" })).await.unwrap_err();
    assert!(
        matches!(&error, ToolError::Transport(text) if text.ends_with("the call was not made")),
        "{error}"
    );
    let everything = Everything::start(port).await;
    assert_eq!(tools.call("echo", json!({ "message": "4" })).await.unwrap(), "Echo: 4");
    everything.kill().await;
}

#[tokio::test]
async fn a_call_in_flight_fails_when_the_server_dies() {
    let everything = Everything::start(0).await;
    let servers = everything.client();
    let tools = Tools::of(&servers, "acme").await;
    let posts = everything.count("fixture: POST");
    let call = tools.call("trigger-long-running-operation", json!({ "duration": 3600, "steps": 1 }));
    let kill = async {
        until("the call has arrived", async || everything.count("fixture: POST") > posts).await;
        everything.kill().await;
    };
    let (failed, ()) = tokio::join!(call, kill);
    let error = failed.unwrap_err();
    assert!(
        matches!(&error, ToolError::Transport(text) if text.contains("may have taken effect")),
        "{error}"
    );
}

async fn start_error(url: &str, headers: &[(&str, &str)], settings: McpSettings) -> String {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let server = McpServer::Http { url: url.to_owned(), headers };
    let error = servers_with(server, settings).tools(&tenant("acme"), "it").await.unwrap_err();
    assert_eq!(error.code(), "mcp_start");
    let text = error.to_string();
    assert!(!text.contains(TOKEN), "{text}");
    text
}

#[tokio::test]
async fn a_server_that_cannot_be_reached() {
    for (url, expected) in [
        ("http://127.0.0.1:1/${SECRET}", "error sending request for url (http://127.0.0.1:1/***)"),
        ("ftp://127.0.0.1/", "has to start with `http:` or `https:`"),
        ("not a url", "its URL is not valid"),
    ] {
        let error = start_error(url, &[], settings()).await;
        assert!(error.contains(expected), "{error}");
    }
    let error = start_error("http://127.0.0.1:1/", &[("bad name", "x")], settings()).await;
    assert!(error.ends_with("`bad name` is not a header name"), "{error}");
    let error = start_error("http://127.0.0.1:1/", &[("x", "${SECRET}\n")], settings()).await;
    assert!(error.contains("the value of header `x` has characters"), "{error}");
}

#[tokio::test]
async fn a_server_that_does_not_answer() {
    // Connections are made by the system and never accepted.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", listener.local_addr().unwrap());
    let start_timeout = HumanDuration::from_secs(1);
    let error = start_error(&url, &[], McpSettings { start_timeout, ..settings() }).await;
    assert_eq!(error, "MCP server `it` does not start: it did not answer within 1s");
}
