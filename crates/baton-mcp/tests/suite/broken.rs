//! Servers that do not do what they should.

use baton_core::agent::{McpServer, StdioAccess};
use baton_core::tool::{Effect, Risk};
use baton_core::{HumanDuration, ToolError};
use baton_mcp::{McpError, McpSettings};
use serde_json::json;

use crate::support::{TOKEN, Tools, own, servers, servers_with, settings, tenant};

async fn start_error(server: McpServer, settings: McpSettings) -> String {
    let error = servers_with(server, settings).tools(&tenant("acme"), "it").await.unwrap_err();
    assert_eq!(error.code(), "mcp_start");
    let text = error.to_string();
    assert!(!text.contains(TOKEN), "{text}");
    text
}

fn patient_for(seconds: u64) -> McpSettings {
    McpSettings { start_timeout: HumanDuration::from_secs(seconds), ..settings() }
}

#[tokio::test]
async fn a_server_that_ends_at_once() {
    let error = start_error(own("exit"), settings()).await;
    assert_eq!(
        error,
        "MCP server `it` does not start: it ended with exit status: 3; its last lines on stderr:\n\
         fixture: no database for ***"
    );
}

#[tokio::test]
async fn a_server_that_does_not_exist() {
    let server = McpServer::Stdio {
        command: "baton-no-such-program".into(),
        args: vec![],
        env: [].into(),
        access: StdioAccess::default(),
    };
    let error = start_error(server, settings()).await;
    assert!(error.contains("`baton-no-such-program` cannot be run: No such file"), "{error}");
}

#[tokio::test]
async fn a_server_that_writes_garbage() {
    // A slow machine needs longer to get something out of it.
    for seconds in [1, 4, 16, 64] {
        let error = start_error(own("garbage"), patient_for(seconds)).await;
        assert!(error.len() < 2000, "{error}");
        if error.ends_with("Listening for visitors!") {
            let expected = format!("it did not answer within {}", HumanDuration::from_secs(seconds));
            assert!(error.contains(&(expected + "; its last lines on stdout")), "{error}");
            return;
        }
    }
    panic!("the garbage was never shown");
}

#[tokio::test]
async fn a_server_that_hangs() {
    let error = start_error(own("hang"), patient_for(1)).await;
    assert_eq!(error, "MCP server `it` does not start: it did not answer within 1s");
}

#[tokio::test]
async fn a_server_that_never_starts_rests() {
    let back_off = HumanDuration::from_mins(1);
    let servers = servers_with(own("exit"), McpSettings { back_off, ..settings() });
    for code in ["mcp_start", "mcp_start", "mcp_back_off"] {
        assert_eq!(servers.tools(&tenant("acme"), "it").await.unwrap_err().code(), code);
    }
    let error = servers.tools(&tenant("acme"), "it").await.unwrap_err().to_string();
    assert!(error.contains("failed 2 times in a row") && error.contains("no database for ***"), "{error}");
    // The rest is the tenant's own.
    assert_eq!(servers.tools(&tenant("globex"), "it").await.unwrap_err().code(), "mcp_start");
}

#[tokio::test]
async fn a_missing_variable_is_named() {
    let env = [("TOKEN".to_owned(), "${NOT_SET}".to_owned())].into();
    let server =
        McpServer::Stdio { command: "node".into(), args: vec![], env, access: StdioAccess::default() };
    let error = servers(server).tools(&tenant("acme"), "it").await.unwrap_err();
    assert!(matches!(error, McpError::Variable { .. }));
    assert!(error.to_string().contains("`NOT_SET` is not set"), "{error}");
}

#[tokio::test]
async fn tools_that_cannot_be_used_are_left_out() {
    let trusting = McpSettings { trusted: ["it".to_owned()].into(), ..settings() };
    let servers = servers_with(own("serve"), trusting);
    let tools = Tools::of(&servers, "acme").await;
    let expected = [
        "pid",
        "environment",
        "text",
        "wait",
        "cancelled",
        "grow",
        "crash",
        "child",
        "fail",
        "refuse",
        "files",
    ];
    assert_eq!(tools.names(), expected);
    let hints =
        ["pid", "text", "wait"].map(|name| (tools.get(name).spec().effect, tools.get(name).spec().risk));
    assert_eq!(
        hints,
        [(Effect::ReadOnly, Risk::Low), (Effect::Writes, Risk::Medium), (Effect::Writes, Risk::High)]
    );
}

#[tokio::test]
async fn an_endless_list_ends() {
    let servers = servers(own("loop"));
    assert_eq!(Tools::of(&servers, "acme").await.names(), ["pid"]);
}

#[tokio::test]
async fn failures_are_typed() {
    let servers = servers(own("serve"));
    let tools = Tools::of(&servers, "acme").await;
    assert_eq!(tools.call("fail", json!({})).await, Err(ToolError::Execution("the disk is full".into())));
    let refused = Err(ToolError::InvalidArguments("bytes has to be a number".into()));
    assert_eq!(tools.call("refuse", json!({})).await, refused);
}

#[tokio::test]
async fn a_server_that_crashes_in_a_call() {
    let servers = servers(own("serve"));
    let tools = Tools::of(&servers, "acme").await;
    let error = tools.call("crash", json!({})).await.unwrap_err();
    let expected = "cannot be reached: the connection was closed during the call, which may have taken effect: \
                    it ended with exit status: 7; its last lines on stderr:\nfixture: crashing with ***";
    assert!(error.to_string().starts_with(expected), "{error}");
    tools.pid().await;
}

#[tokio::test]
async fn long_answers_are_cut_and_huge_ones_refused() {
    let servers = servers(own("serve"));
    let tools = Tools::of(&servers, "acme").await;
    let pid = tools.pid().await;
    let text = tools.call("text", json!({ "bytes": 9 * 1024 * 1024 })).await.unwrap();
    assert!(text.len() < 8 * 1024 * 1024 + 200);
    assert!(text.ends_with("[cut: the answer has 9437184 bytes, and these are the first 8388608]"));

    let error = tools.call("text", json!({ "bytes": 100_000_000 })).await.unwrap_err();
    assert!(
        matches!(&error, ToolError::Execution(text) if text.contains("at most 16777216 are read")),
        "{error}"
    );
    assert_eq!(tools.pid().await, pid, "nothing else is disturbed");
}
