//! Requests as official clients send them, and what is refused.

use baton_a2a::WireForm;
use baton_a2a::model::{Content, Role, StreamItem, TaskState};
use serde_json::{Value, json};

fn refusal(form: WireForm, params: &Value) -> String {
    form.decode_send_params(params).unwrap_err().to_string()
}

fn message(message: &Value) -> Value {
    json!({ "message": message })
}

#[test]
fn a_rest_request_in_snake_case_with_request_is_read() {
    let params = WireForm::V03Rest
        .decode_send_params(&json!({
            "request": {
                "message_id": "m", "context_id": "c", "task_id": "t", "role": "ROLE_USER",
                "content": [
                    { "text": "hello" },
                    { "file": { "file_with_uri": "https://example.com/a", "mime_type": "text/plain", "name": "a" } },
                    { "data": { "data": { "k": 1.0 } } },
                ],
            },
            "configuration": { "accepted_output_modes": ["text/plain"], "history_length": 2, "blocking": true },
        }))
        .unwrap();
    assert_eq!(params.message.context_id.as_deref(), Some("c"));
    assert_eq!(params.message.parts[1].content, Content::Uri("https://example.com/a".to_owned()));
    assert_eq!(params.message.parts[1].media_type.as_deref(), Some("text/plain"));
    assert_eq!(params.message.parts[2].as_data(), Some(&json!({ "k": 1.0 })));
    assert_eq!(params.configuration.history_length, Some(2));
    assert!(params.configuration.blocking);
}

#[test]
fn a_rest_request_may_have_kinds_and_parts() {
    let params = WireForm::V03Rest
        .decode_send_params(&message(&json!({
            "kind": "message", "messageId": "m", "role": "user",
            "parts": [{ "kind": "data", "data": { "data": 1 } }, { "kind": "file", "file": { "bytes": "aGk=" } }],
        })))
        .unwrap();
    assert_eq!(params.message.parts[0].as_data(), Some(&json!({ "data": 1 })));
    assert_eq!(params.message.parts[1].content, Content::Bytes(b"hi".to_vec()));
    assert!(!params.configuration.blocking, "absent on REST means false");
}

#[test]
fn kind_of_a_message_may_be_absent_but_not_that_of_a_part() {
    let with = |part: Value| message(&json!({ "messageId": "m", "role": "user", "parts": [part] }));
    assert!(
        WireForm::V03.decode_send_params(&with(json!({ "kind": "text", "text": "hi", "new": 1 }))).is_ok()
    );
    assert_eq!(
        refusal(WireForm::V03, &with(json!({ "text": "hi" }))),
        "message.parts[0] must be a text, file or data part"
    );
    assert_eq!(
        refusal(WireForm::V03, &with(json!({ "kind": "hologram" }))),
        "message.parts[0] must be a text, file or data part"
    );
    assert_eq!(
        refusal(WireForm::V10, &with(json!({}))),
        "message.parts[0] must be a text, file or data part"
    );
    let broken = json!({ "kind": "file", "file": { "bytes": "%%" } });
    assert_eq!(refusal(WireForm::V03, &with(broken)), "message.parts[0].file.bytes must be base64");
}

#[test]
fn a_message_needs_an_id_a_role_and_parts() {
    let parts = json!([{ "kind": "text", "text": "hi" }]);
    for (broken, problem) in [
        (json!({ "role": "user", "parts": parts }), "message.messageId is required"),
        (json!({ "messageId": "m", "parts": parts }), "message.role must be user or agent"),
        (json!({ "messageId": "m", "role": "king", "parts": parts }), "message.role must be user or agent"),
        (json!({ "messageId": "m", "role": "user", "parts": [] }), "message.parts must not be empty"),
        (json!({ "messageId": "m", "role": "user", "parts": {} }), "message.parts must be an array"),
        (json!({ "messageId": 5, "role": "user", "parts": parts }), "message.messageId must be a string"),
        (json!("text"), "message must be an object"),
    ] {
        assert_eq!(refusal(WireForm::V03, &message(&broken)), problem);
    }
    assert_eq!(refusal(WireForm::V03, &json!({})), "message is required");
}

#[test]
fn history_length_must_not_be_negative() {
    let query =
        |length: Value| WireForm::V03.decode_task_query(&json!({ "id": "t", "historyLength": length }));
    assert_eq!(query(json!(1.0)).unwrap().history_length, Some(1));
    assert_eq!(query(Value::Null).unwrap().history_length, None);
    for wrong in [json!(-1), json!(1.5), json!("many"), json!([])] {
        assert!(query(wrong.clone()).is_err(), "{wrong}");
    }
}

#[test]
fn a_push_config_of_rest_has_two_forms() {
    let config = json!({ "url": "https://example.com", "token": "t" });
    let named = json!({ "name": "tasks/T/pushNotificationConfigs/C", "pushNotificationConfig": config });
    let wrapped = json!({ "parent": "tasks/T", "config_id": "C", "config": {
        "name": "", "push_notification_config": config } });
    for body in [named, wrapped.clone()] {
        let read = WireForm::V03Rest.decode_task_push_config(&body, Some("T")).unwrap();
        assert_eq!((read.task_id.as_str(), read.config.url.as_str()), ("T", "https://example.com"));
    }
    let read = WireForm::V03Rest.decode_task_push_config(&wrapped, None).unwrap();
    assert_eq!((read.task_id.as_str(), read.config.id.as_deref()), ("T", Some("C")));
}

#[test]
fn values_of_newer_versions_do_not_end_a_stream() {
    let item = WireForm::V03.decode_stream_item(&json!({
        "kind": "status-update", "taskId": "t", "contextId": "c", "future": true,
        "status": { "state": "daydreaming", "timestamp": "yesterday",
            "message": { "role": "oracle", "messageId": "m", "parts": [{ "kind": "hologram" }] } },
    }));
    let StreamItem::StatusUpdate(update) = item.unwrap() else { panic!("an update") };
    assert_eq!(update.status.state, TaskState::Unknown);
    assert_eq!(update.status.timestamp, None);
    let message = update.status.message.unwrap();
    assert_eq!(message.role, Role::Unknown);
    assert!(matches!(message.parts[0].content, Content::Unknown(_)));
    assert_eq!(WireForm::V03.decode_stream_item(&json!({ "kind": "sunrise" })), Ok(StreamItem::Unknown));
    assert_eq!(WireForm::V10.decode_stream_item(&json!({ "sunrise": {} })), Ok(StreamItem::Unknown));
}

#[test]
fn a_list_has_1_to_100_tasks_on_a_page() {
    for wrong in [
        json!({ "pageSize": 0 }),
        json!({ "pageSize": 101 }),
        json!({ "status": "asleep" }),
        json!({ "statusTimestampAfter": "soon" }),
    ] {
        assert!(WireForm::V10.decode_list_query(&wrong).is_err(), "{wrong}");
    }
    assert!(WireForm::V10.decode_list_query(&json!({ "status": "TASK_STATE_UNSPECIFIED" })).is_ok());
}
