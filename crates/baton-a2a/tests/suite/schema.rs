//! Everything that is written in the form of 0.3 validates against its normative schema.

use baton_a2a::jsonrpc::{self, Method, Request, RequestId};
use baton_a2a::model::{
    Message, Part, PushQuery, Role, SendResult, StreamItem, TaskPushConfig, TaskQuery, TaskState,
};
use baton_a2a::{A2aError, ErrorCode, WireForm, wire};
use serde_json::{Value, json};

use crate::objects;

const SCHEMA: &str = include_str!("../fixtures/a2a-v0.3.0.schema.json");

/// Asserts that a value is an object of a definition.
pub(crate) fn check(definition: &str, value: &Value) {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    schema["$ref"] = json!(format!("#/definitions/{definition}"));
    let validator = jsonschema::validator_for(&schema).unwrap();
    let problems: Vec<String> = validator.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(problems.is_empty(), "{definition}: {problems:?}\n{value:#}");
}

fn id() -> RequestId {
    RequestId::String("1".to_owned())
}

#[test]
fn d10_every_object_of_0_3_validates() {
    let form = WireForm::V03;
    for state in TaskState::ALL {
        check("Task", &form.encode_task(&objects::task(state)));
        check("TaskStatusUpdateEvent", &form.encode_status_update(&objects::status_update(state)));
    }
    for role in [Role::User, Role::Agent, Role::Unknown] {
        check("Message", &form.encode_message(&objects::message(role)));
        check("Message", &form.encode_message(&Message::new("id", role, vec![Part::text("")])));
    }
    check("Artifact", &form.encode_artifact(&objects::artifact()));
    check("TaskArtifactUpdateEvent", &form.encode_artifact_update(&objects::artifact_update()));
    for part in objects::parts() {
        check("Part", &form.encode_part(&part));
    }
    check("Part", &form.encode_part(&Part::data(json!([1]))));
    let config = TaskPushConfig { task_id: "task".to_owned(), config: objects::push_config() };
    check("TaskPushNotificationConfig", &form.encode_task_push_config(&config));
}

#[test]
fn d10_every_request_of_0_3_validates() {
    let form = WireForm::V03;
    let config = TaskPushConfig { task_id: "task".to_owned(), config: objects::push_config() };
    let query = form.encode_task_query(&TaskQuery { id: "task".to_owned(), history_length: Some(1) });
    let push_query = PushQuery { task_id: "task".to_owned(), config_id: Some("config".to_owned()) };
    let send = form.encode_send_params(&objects::send_params());
    let push = form.encode_push_query(&push_query);
    let requests = [
        ("SendMessageRequest", Method::Send, send.clone()),
        ("SendStreamingMessageRequest", Method::Stream, send),
        ("GetTaskRequest", Method::GetTask, query.clone()),
        ("CancelTaskRequest", Method::CancelTask, query.clone()),
        ("TaskResubscriptionRequest", Method::Subscribe, query),
        (
            "SetTaskPushNotificationConfigRequest",
            Method::SetPushConfig,
            form.encode_task_push_config(&config),
        ),
        ("GetTaskPushNotificationConfigRequest", Method::GetPushConfig, push.clone()),
        ("ListTaskPushNotificationConfigRequest", Method::ListPushConfigs, push.clone()),
        ("DeleteTaskPushNotificationConfigRequest", Method::DeletePushConfig, push),
        ("GetAuthenticatedExtendedCardRequest", Method::ExtendedCard, json!({})),
    ];
    for (definition, method, params) in requests {
        let request = Request { id: id(), method: method.name(form).to_owned(), params };
        check(definition, &request.to_json());
    }
}

#[test]
fn d10_every_response_of_0_3_validates() {
    let form = WireForm::V03;
    let task = objects::task(TaskState::InputRequired);
    let results = [SendResult::Task(task.clone()), SendResult::Message(objects::message(Role::Agent))];
    for result in results {
        check("SendMessageResponse", &jsonrpc::success(&id(), form.encode_send_result(&result)));
    }
    let items = [
        StreamItem::Task(task.clone()),
        StreamItem::StatusUpdate(objects::status_update(TaskState::Working)),
        StreamItem::ArtifactUpdate(objects::artifact_update()),
    ];
    for item in items {
        check("SendStreamingMessageResponse", &jsonrpc::success(&id(), form.encode_stream_item(&item)));
    }
    check("GetTaskResponse", &jsonrpc::success(&id(), form.encode_task(&task)));
    let config = TaskPushConfig { task_id: "task".to_owned(), config: objects::push_config() };
    let list = form.encode_push_config_list(&[config]);
    check("ListTaskPushNotificationConfigResponse", &jsonrpc::success(&RequestId::Null, list));
    check("DeleteTaskPushNotificationConfigResponse", &jsonrpc::success(&id(), Value::Null));
    for code in ErrorCode::ALL {
        let error = A2aError { data: Some(json!({ "field": "id" })), ..A2aError::new(*code, code.text()) };
        check("JSONRPCErrorResponse", &jsonrpc::failure(&id(), &error, form));
    }
}

#[test]
fn d11_cards_of_0_3_and_hybrid_cards_validate() {
    for versions in [&["0.3.0"][..], &["1.0"][..], &["1.0", "0.3.0"][..]] {
        let card = objects::card(versions);
        check("AgentCard", &WireForm::V03.encode_card(&card));
        check("AgentCard", &wire::encode_hybrid_card(&card));
    }
}
