//! When servers start, for whom, and when they end.

use std::time::Duration;

use baton_core::HumanDuration;
use baton_core::ToolError;
use baton_mcp::{McpError, McpSettings};
use serde_json::json;

use crate::support::{
    Tools, context, fixture, is_running, node, own, servers, servers_with, settings, tenant, until,
    until_gone,
};

#[tokio::test]
async fn concurrent_first_uses_start_one_process() {
    let servers = servers(own("serve"));
    assert!(servers.process_ids().is_empty(), "nothing starts before it is needed");
    let users = (0..20).map(|_| async { Tools::of(&servers, "acme").await.pid().await });
    let mut pids = futures_util::future::join_all(users).await;
    pids.dedup();
    assert_eq!(pids, servers.process_ids());
}

#[tokio::test]
async fn tenants_have_their_own_processes() {
    let servers = servers(own("serve"));
    let (acme, globex) = (Tools::of(&servers, "acme").await, Tools::of(&servers, "globex").await);
    assert_ne!(acme.pid().await, globex.pid().await);
    let stolen = acme.get("pid").call(json!({}), context("globex")).await;
    assert!(matches!(stolen, Err(ToolError::NotPermitted(_))), "{stolen:?}");
}

#[tokio::test]
async fn an_agent_can_bring_its_own_server() {
    let servers = servers(own("exit"));
    let tools = servers.tools_of(&tenant("acme"), None, "mine", &own("serve")).await.unwrap();
    assert!(tools.iter().any(|tool| tool.spec().name == "mcp:mine/pid"));
    servers.tools_of(&tenant("acme"), None, "mine", &own("serve")).await.unwrap();
    assert_eq!(servers.process_ids().len(), 1);
    // The same name with another description is another server.
    assert!(servers.tools_of(&tenant("acme"), None, "mine", &own("exit")).await.is_err());

    let unknown = servers.tools(&tenant("acme"), "mine").await.unwrap_err();
    assert_eq!(unknown.to_string(), "no MCP server is called `mine`; configured are: it");
}

#[tokio::test]
async fn dropping_ends_everything() {
    let servers = servers(own("serve"));
    let tools = Tools::of(&servers, "acme").await;
    let pid = tools.pid().await;
    let child: u32 = tools.call("child", json!({})).await.unwrap().parse().unwrap();
    assert!(is_running(pid) && is_running(child));
    let call = tools.call("wait", json!({}));
    let dropped = async {
        tools.pid().await;
        drop(servers);
    };
    let (broken, ()) = tokio::join!(call, dropped);
    assert!(matches!(broken, Err(ToolError::Transport(_))), "{broken:?}");
    until_gone(pid).await;
    until_gone(child).await;
    // Tools that are still held start nothing.
    let error = tools.call("pid", json!({})).await.unwrap_err();
    assert_eq!(error.to_string(), "cannot be reached: the MCP servers are shut down; the call was not made");
}

#[tokio::test]
async fn dropping_ends_a_start() {
    let servers = servers(own("hang"));
    let acme = tenant("acme");
    let starting = servers.tools(&acme, "it");
    assert!(tokio::time::timeout(Duration::from_millis(300), starting).await.is_err());
    drop(servers);
    // A process that was not yet known to anybody has no id to look for; its whole command line has.
    until("no fixture is left", async || !someone_runs("server.mjs\0hang")).await;
}

/// Whether a child of this very process has such a command line. Other tests have children, too.
fn someone_runs(needle: &str) -> bool {
    let children = std::fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(1)?.parse().ok());
        parent == Some(std::process::id())
    });
    children
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok())
        .any(|line| line.contains(needle))
}

#[tokio::test]
async fn shutdown_waits_for_the_end() {
    let servers = servers(own("serve"));
    let tools = Tools::of(&servers, "acme").await;
    let pid = tools.pid().await;
    servers.shutdown().await;
    assert!(!is_running(pid));
    assert_eq!(servers.tools(&tenant("acme"), "it").await.unwrap_err(), McpError::Stopped);
}

#[tokio::test]
async fn an_idle_server_is_stopped_and_comes_back() {
    let idle_timeout = HumanDuration::from_millis(100);
    let servers = servers_with(own("serve"), McpSettings { idle_timeout, ..settings() });
    let tools = Tools::of(&servers, "acme").await;
    let pid = tools.pid().await;
    until_gone(pid).await;
    assert_ne!(tools.pid().await, pid);
}

#[tokio::test]
async fn a_tenant_has_no_more_processes_than_it_may() {
    let described = |number: &str| node(&[&fixture("server.mjs"), "serve", number]);
    let servers = servers_with(own("serve"), McpSettings { max_processes: 2, ..settings() });
    let of = async |number: &str| {
        let tools = servers.tools_of(&tenant("acme"), None, "it", &described(number)).await?;
        Ok::<_, McpError>(Tools { tenant: "acme", tools })
    };
    let first = of("first").await.unwrap();
    let second = of("second").await.unwrap();
    let (first_pid, second_pid) = (first.pid().await, second.pid().await);
    let refused = of("third").await.map(drop).unwrap_err();
    assert_eq!(refused, McpError::TooMany { server: "it".to_owned(), most: 2 });
    // Another tenant has its own.
    assert_ne!(Tools::of(&servers, "other").await.pid().await, first_pid);
    // A server without users is stopped to make room.
    drop(first);
    assert_ne!(of("third").await.unwrap().pid().await, first_pid);
    until_gone(first_pid).await;
    assert_eq!(second.pid().await, second_pid);
}

#[tokio::test]
async fn a_busy_server_is_not_idle() {
    let idle_timeout = HumanDuration::from_millis(20);
    let servers = servers_with(own("serve"), McpSettings { idle_timeout, ..settings() });
    let tools = Tools::of(&servers, "acme").await;
    let wait = tools.call("wait", json!({}));
    assert!(tokio::time::timeout(Duration::from_millis(500), wait).await.is_err(), "the call was ended");
}

#[tokio::test]
async fn a_changed_list_is_read_again() {
    let servers = servers(own("serve"));
    let tools = Tools::of(&servers, "acme").await;
    assert!(!tools.names().contains(&"grown"));
    tools.call("grow", json!({})).await.unwrap();
    until("the new tool is listed", async || Tools::of(&servers, "acme").await.names().contains(&"grown"))
        .await;
    assert_eq!(servers.process_ids().len(), 1);
}

#[tokio::test]
async fn a_dropped_call_is_cancelled_at_the_server() {
    let servers = servers(own("serve"));
    let tools = Tools::of(&servers, "acme").await;
    let wait = tools.call("wait", json!({}));
    assert!(tokio::time::timeout(Duration::from_millis(300), wait).await.is_err());
    until("the server knows", async || tools.call("cancelled", json!({})).await.unwrap() != "[]").await;
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_cancelled() {
    let call_timeout = HumanDuration::from_millis(300);
    let servers = servers_with(own("serve"), McpSettings { call_timeout, ..settings() });
    let tools = Tools::of(&servers, "acme").await;
    assert_eq!(tools.call("wait", json!({})).await, Err(ToolError::Timeout(call_timeout)));
    // Any call may take too long here, on a slow machine.
    until("the server knows", async || {
        tools.call("cancelled", json!({})).await.is_ok_and(|text| text != "[]")
    })
    .await;
}

#[tokio::test]
async fn only_what_is_given_reaches_the_environment() {
    let servers = servers(own("serve"));
    let tools = Tools::of(&servers, "acme").await;
    let environment: serde_json::Value =
        serde_json::from_str(&tools.call("environment", json!({})).await.unwrap()).unwrap();
    assert_eq!(environment["TOKEN"], crate::support::TOKEN);
    assert!(environment["PATH"].is_string());
    for missing in ["LEAKED", "CARGO_MANIFEST_DIR", "SECRET"] {
        assert!(environment[missing].is_null(), "{missing}");
    }
    assert!(!format!("{servers:?} {:?}", tools.tools).contains(crate::support::TOKEN));
}
