//! The data parts and parameters of the handoff extension.

use baton_a2a::card::Extension;
use baton_a2a::extension::{
    ExtensionParams, HandoffAccept, HandoffCapability, HandoffOutcome, HandoffPart, HandoffRequest,
    HandoffReturn, RecentMessage, URI,
};
use baton_a2a::model::{Message, Part, Role};
use serde_json::{Value, json};

use crate::objects;

#[test]
fn c_3_a_handoff_request_has_its_type_and_recent_messages() {
    let request = HandoffRequest {
        thread_id: "t".to_owned(),
        source_agent_id: "assistant".to_owned(),
        target_agent_id: "skill-creator".to_owned(),
        context_summary: "The user wants a skill.".to_owned(),
        conversation_history_count: 1,
        recent_messages: vec![RecentMessage {
            role: "user".to_owned(),
            content: "create a skill".to_owned(),
        }],
        handoff_reason: "create skill".to_owned(),
        preserve_state: true,
        return_expected: true,
        ..HandoffRequest::default()
    };
    let part = HandoffPart::Request(request.clone()).to_part();
    let data = part.as_data().unwrap();
    assert_eq!(data["type"], "handoff");
    assert_eq!(data["conversation_history_count"], 1);
    assert_eq!(data["recent_messages"][0]["content"], "create a skill");
    assert_eq!(HandoffPart::from_part(&part), Some(HandoffPart::Request(request)));
}

#[test]
fn c_4_and_c_5_answers_survive() {
    let accept =
        HandoffAccept { accepted: true, estimated_duration_seconds: Some(60), ..HandoffAccept::default() };
    let returned = HandoffReturn {
        outcome: HandoffOutcome::Cancelled,
        result_summary: Some("stopped".to_owned()),
        artifacts_created: vec!["skill".to_owned()],
        ..HandoffReturn::default()
    };
    for part in [HandoffPart::Accept(accept), HandoffPart::Return(returned)] {
        let message = Message::new("m", Role::Agent, vec![Part::text("hi"), part.to_part()]);
        assert_eq!(HandoffPart::find(&message), Some(part));
    }
}

#[test]
fn values_of_others_are_understood() {
    let read = |data: Value| HandoffPart::from_part(&Part::data(data));
    let outcome = |name: &str| match read(json!({ "type": "handoff_return", "completion_status": name })) {
        Some(HandoffPart::Return(returned)) => returned.outcome,
        other => panic!("{other:?}"),
    };
    assert_eq!(outcome("completed"), HandoffOutcome::Completed);
    assert_eq!(outcome("error"), HandoffOutcome::Failed);
    assert_eq!(outcome("evaporated"), HandoffOutcome::Failed);
    assert_eq!(read(json!({ "type": "something" })), None);
    assert_eq!(read(json!([1])), None);
}

#[test]
fn c_21_parameters_have_the_documented_defaults() {
    let declared = ExtensionParams::default().declare();
    assert_eq!(
        declared.params["handoff"],
        json!({
            "supports_handoff": false, "handoff_triggers": [], "workflow_states": [],
            "requires_exclusive_control": true, "max_session_duration_seconds": 3600,
        })
    );
    assert_eq!(
        declared.params["orchestration"],
        json!({
            "can_orchestrate": false, "can_be_orchestrated": true,
            "strategies": ["parallel", "sequential"], "max_concurrent_delegations": 5,
        })
    );
}

#[test]
fn c_22_parameters_are_read_from_a_card() {
    let mut card = objects::card(&["0.3.0"]);
    let params = ExtensionParams {
        handoff_support: true,
        stateful_workflows: true,
        handoff: HandoffCapability {
            supports_handoff: true,
            handoff_triggers: ["create skill", "build skill", "new skill"].map(str::to_owned).to_vec(),
            ..HandoffCapability::default()
        },
        ..ExtensionParams::default()
    };
    card.capabilities.extensions = vec![params.declare()];
    assert_eq!(ExtensionParams::of(&card), Some(params));
    let Value::Object(broken) = json!({ "handoff_support": "yes", "handoff": 5 }) else { panic!() };
    card.capabilities.extensions = vec![Extension { params: broken, ..ExtensionParams::default().declare() }];
    assert_eq!(ExtensionParams::of(&card), Some(ExtensionParams::default()));
    card.capabilities.extensions.clear();
    assert_eq!(ExtensionParams::of(&card), None, "{URI} is not declared");
}
