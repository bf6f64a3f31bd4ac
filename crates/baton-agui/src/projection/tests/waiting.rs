//! A run that waits for a decision and continues.

use baton_core::SessionId;
use baton_core::event::ApprovalEvent;
use baton_core::store::{ApprovalOutcome, ApprovalPreview, ApprovalRequest};
use uuid::Uuid;

use super::*;

const CHILD: &str = "assistant/turn:1/tool:1/call:worker";

fn request() -> ApprovalRequest {
    let (path, agent) = (format!("{CHILD}/turn:1/tool:1"), AgentName::parse("worker").unwrap());
    ApprovalRequest {
        preview: ApprovalPreview { heading: "Use the tool write_file".to_owned(), fields: Vec::new() },
        ..ApprovalRequest::of_call(&path, agent, "write_file", json!({ "path": "a" }))
    }
}

fn child(kind: EventKind) -> Event {
    Event { path: CHILD.into(), agent: AgentName::parse("worker").unwrap(), ..event(Visibility::User, kind) }
}

/// F21: the person sees the approval with the path of the sub-agent. The run ends with the interrupt, after its sub-agents were
/// suspended, and begins again with the same ids.
#[test]
fn f21_waiting_run_ends_with_its_interrupts_and_begins_again() {
    let session = SessionId::root(event(Visibility::User, EventKind::RunResumed { is_held: false }).run_id)
        .child(&AgentName::parse("worker").unwrap(), 1);
    let started = || EventKind::SessionStarted { session_id: session.clone(), parent: None, why: None };
    let asked = ApprovalEvent { request: request(), outcome: ApprovalOutcome::pending() };
    let waiting = EventKind::RunWaiting {
        interrupts: vec![request()],
        waits_for: vec![request().approval_id],
        usage: Usage::default(),
        by_agent: Vec::new(),
    };
    let events = [
        event(Visibility::User, EventKind::RunStarted { is_held: false }),
        child(started()),
        child(EventKind::Approval(Box::new(asked))),
        event(Visibility::User, waiting),
        event(Visibility::User, EventKind::RunResumed { is_held: false }),
        child(started()),
        child(EventKind::SessionFinished { session_id: session.clone() }),
    ];
    let mut projection = Projection::new(Detail::Person);
    let sent: Vec<Value> = events
        .iter()
        .flat_map(|event| projection.project(event))
        .map(|event| serde_json::to_value(event).unwrap())
        .collect();
    let types: Vec<&str> = sent.iter().filter_map(|event| event["type"].as_str()).collect();
    let first = [
        "RUN_STARTED",
        "STATE_SNAPSHOT",
        "SUBAGENT_STARTED",
        "CUSTOM",
        "SUBAGENT_FINISHED",
        "CUSTOM",
        "RUN_FINISHED",
    ];
    let second = ["RUN_STARTED", "STATE_SNAPSHOT", "SUBAGENT_STARTED", "SUBAGENT_FINISHED"];
    assert_eq!(types, [&first[..], &second[..]].concat());
    let approval = &sent[3];
    assert_eq!((&approval["name"], approval.get("subagentRunId")), (&json!("baton.approval"), None));
    let value = &approval["value"];
    assert_eq!(
        (&value["kind"], &value["status"], &value["agent"]),
        (&json!("tool"), &json!("pending"), &json!("worker"))
    );
    assert_eq!(sent[4]["outcome"], json!({ "type": "suspended", "interruptIds": [Uuid::nil()] }));
    let interrupt = &sent[6]["outcome"]["interrupts"][0];
    assert_eq!(
        (&sent[6]["outcome"]["type"], &interrupt["reason"]),
        (&json!("interrupt"), &json!("tool_call"))
    );
    assert_eq!(interrupt["metadata"]["baton"]["path"], request().path);
    assert_eq!(interrupt["expiresAt"], "1970-01-01T00:00:00Z");
    assert_eq!(interrupt["responseSchema"]["required"], json!(["approved"]));
}
