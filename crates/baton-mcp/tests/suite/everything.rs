//! The reference server over stdio.

use std::time::Duration;

use baton_core::ToolError;
use baton_core::agent::McpServer;
use baton_core::media::sniff;
use baton_core::tool::{Effect, Risk};
use baton_mcp::McpSettings;
use serde_json::json;

use crate::support::{
    Tools, context, everything_script, is_running, kill_9, node, own, servers, servers_with, settings,
    until_gone,
};

fn everything() -> McpServer {
    node(&[&everything_script().display().to_string(), "stdio"])
}

#[tokio::test]
async fn tools_are_listed_with_what_a_model_needs() {
    let servers = servers(everything());
    let tools = Tools::of(&servers, "acme").await;
    for name in ["echo", "get-sum", "get-tiny-image", "trigger-long-running-operation"] {
        assert!(tools.names().contains(&name), "{:?}", tools.names());
    }
    let spec = tools.get("get-sum").spec();
    assert_eq!(spec.parameters["type"], "object");
    assert_eq!(spec.parameters["properties"]["a"]["type"], "number");
    assert!(!spec.description.is_empty());
    assert_eq!((spec.effect, spec.risk), (Effect::Writes, Risk::High), "its hints are its own word");
    let trusting = McpSettings { trusted: ["it".to_owned()].into(), ..settings() };
    let servers = servers_with(everything(), trusting);
    let tools = Tools::of(&servers, "acme").await;
    let spec = tools.get("get-sum").spec();
    assert_eq!((spec.effect, spec.risk), (Effect::ReadOnly, Risk::Low));
}

#[tokio::test]
async fn tools_are_called() {
    let servers = servers(everything());
    let tools = Tools::of(&servers, "acme").await;
    assert_eq!(tools.call("echo", json!({ "message": "hi" })).await.unwrap(), "Echo: hi");
    assert!(tools.call("get-sum", json!({ "a": 2, "b": 3 })).await.unwrap().contains('5'));

    let image = tools.get("get-tiny-image").call(json!({}), context("acme")).await.unwrap();
    let [file] = &image.files[..] else { panic!("one image was expected: {image:?}") };
    assert_eq!((sniff(&file.bytes), file.media_type.as_deref()), (Some("image/png"), Some("image/png")));
    let weather = tools.call("get-structured-content", json!({ "location": "Chicago" })).await.unwrap();
    assert_eq!(weather.matches("temperature").count(), 1, "{weather}");
    let resource =
        tools.call("get-resource-reference", json!({ "resourceType": "Text", "resourceId": 1 })).await;
    assert!(resource.as_ref().is_ok_and(|text| text.contains("[resource demo:")), "{resource:?}");

    let refused = tools.call("echo", json!({ "message": 5 })).await.unwrap_err();
    assert!(matches!(refused, ToolError::InvalidArguments(_) | ToolError::Execution(_)), "{refused}");
    assert!(matches!(tools.call("echo", json!([])).await, Err(ToolError::InvalidArguments(_))));
}

#[tokio::test]
async fn a_dropped_call_leaves_the_server_usable() {
    let servers = servers(everything());
    let tools = Tools::of(&servers, "acme").await;
    let long = tools.call("trigger-long-running-operation", json!({ "duration": 3600, "steps": 1 }));
    assert!(tokio::time::timeout(Duration::from_millis(300), long).await.is_err());
    assert_eq!(tools.call("echo", json!({ "message": "still here" })).await.unwrap(), "Echo: still here");
    assert_eq!(servers.process_ids().len(), 1);
}

#[tokio::test]
async fn a_killed_server_is_started_again() {
    let servers = servers(everything());
    let tools = Tools::of(&servers, "acme").await;
    let [first] = servers.process_ids()[..] else { panic!("one process was expected") };
    kill_9(first).await;
    assert_eq!(tools.call("echo", json!({ "message": "again" })).await.unwrap(), "Echo: again");
    let [second] = servers.process_ids()[..] else { panic!("one process was expected") };
    assert_ne!(first, second);
    assert!(is_running(second));
    drop(servers);
    until_gone(second).await;
}

#[tokio::test]
async fn a_call_in_flight_fails_when_the_server_dies() {
    let servers = servers(everything());
    let tools = Tools::of(&servers, "acme").await;
    let call = tools.call("trigger-long-running-operation", json!({ "duration": 3600, "steps": 1 }));
    let [pid] = servers.process_ids()[..] else { panic!("one process was expected") };
    let kill = async {
        // The call has to be on its way; an answer to a later one shows that it is.
        tools.call("echo", json!({ "message": "ping" })).await.unwrap();
        kill_9(pid).await;
    };
    let (failed, ()) = tokio::join!(call, kill);
    let error = failed.unwrap_err();
    assert!(
        matches!(&error, ToolError::Transport(text) if text.contains("may have taken effect")),
        "{error}"
    );
    assert!(error.was_executed());
}

/// D8: every kind of content of a tool's answer, with the type that its server claims; links are read from the server.
#[tokio::test]
async fn d8_files_of_a_server_become_files_of_the_answer() {
    let servers = servers(own("serve"));
    let tools = Tools::of(&servers, "acme").await;
    let made = tools.get("files").call(json!({}), context("acme")).await.unwrap();
    let files: Vec<_> = made.files.iter().map(|file| (file.name.as_deref(), file.bytes.len())).collect();
    let named = [Some("report.csv"), Some("page.png"), Some("linked.pdf")];
    assert_eq!(files, [(None, 8), (None, 12), (named[0], 4), (named[1], 6), (named[2], 8)]);
    assert!(
        made.text.contains("a,b") && made.text.contains("[link to resource fixture://missing (missing)]")
    );
}
