//! What is written in a form is read from it unchanged.

use baton_a2a::model::{
    Artifact, Content, ListQuery, Message, Part, PushQuery, Role, SendResult, StreamItem, TaskList,
    TaskPushConfig, TaskQuery, TaskState,
};
use baton_a2a::{WireForm, wire};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::objects;

#[test]
fn tasks_and_updates_survive_each_form() {
    for form in WireForm::ALL {
        for state in TaskState::ALL {
            let items = [
                StreamItem::Task(objects::task(state)),
                StreamItem::Message(objects::message(Role::Agent)),
                StreamItem::StatusUpdate(objects::status_update(state)),
                StreamItem::ArtifactUpdate(objects::artifact_update()),
            ];
            for item in items {
                let json = form.encode_stream_item(&item);
                assert_eq!(form.decode_stream_item(&json), Ok(item), "{form:?} {json}");
            }
        }
        let result = SendResult::Task(objects::task(TaskState::Completed));
        assert_eq!(form.decode_send_result(&form.encode_send_result(&result)), Ok(result));
        let result = SendResult::Message(objects::message(Role::Agent));
        assert_eq!(form.decode_send_result(&form.encode_send_result(&result)), Ok(result));
    }
}

#[test]
fn requests_survive_each_form() {
    for form in WireForm::ALL {
        let params = objects::send_params();
        assert_eq!(form.decode_send_params(&form.encode_send_params(&params)), Ok(params));
        let config = TaskPushConfig { task_id: "task".to_owned(), config: objects::push_config() };
        assert_eq!(
            form.decode_task_push_config(&form.encode_task_push_config(&config), None),
            Ok(config.clone())
        );
        let list = form.encode_push_config_list(std::slice::from_ref(&config));
        assert_eq!(form.decode_push_config_list(&list), Ok(vec![config]));
        let query = TaskQuery { id: "task".to_owned(), history_length: Some(0) };
        assert_eq!(form.decode_task_query(&form.encode_task_query(&query)), Ok(query));
        let query = PushQuery { task_id: "task".to_owned(), config_id: Some("config".to_owned()) };
        assert_eq!(form.decode_push_query(&form.encode_push_query(&query)), Ok(query));
    }
}

#[test]
fn lists_of_tasks_survive() {
    let form = WireForm::V10;
    let query = ListQuery {
        context_id: Some("context".to_owned()),
        state: Some(TaskState::Working),
        page_size: Some(10),
        page_token: Some("token".to_owned()),
        history_length: Some(1),
        changed_after: Some("2026-02-03T04:05:06.789Z".parse().unwrap()),
        include_artifacts: true,
    };
    assert_eq!(form.decode_list_query(&form.encode_list_query(&query)), Ok(query));
    let list = TaskList {
        tasks: vec![objects::task(TaskState::Working)],
        next_page_token: String::new(),
        page_size: 1,
        total_size: 1,
    };
    let json = form.encode_task_list(&list);
    assert_eq!(json["nextPageToken"], "");
    assert_eq!(form.decode_task_list(&json), Ok(list));
}

#[test]
fn references_to_tasks_survive_where_the_form_has_them() {
    let message = Message { reference_task_ids: vec!["other".to_owned()], ..objects::message(Role::User) };
    for form in [WireForm::V03, WireForm::V10] {
        assert_eq!(
            form.decode_message(&form.encode_message(&message)).unwrap().reference_task_ids,
            ["other"]
        );
    }
}

#[test]
fn data_of_1_0_that_is_no_object_becomes_one_in_0_3() {
    let part = Part::data(json!([1, 2]));
    assert_eq!(WireForm::V10.decode_part(&WireForm::V10.encode_part(&part)), Ok(part.clone()));
    assert_eq!(WireForm::V03.encode_part(&part)["data"], json!({ "value": [1, 2] }));
    assert_eq!(WireForm::V03Rest.encode_part(&part)["data"]["data"], json!({ "value": [1, 2] }));
}

/// Whether a number, or a name, is written differently does not matter: 0.3 has two states for cancelled tasks.
#[test]
fn cancelled_is_spelled_as_each_form_demands() {
    assert_eq!(WireForm::V03.encode_state(TaskState::Canceled), "canceled");
    assert_eq!(WireForm::V03Rest.encode_state(TaskState::Canceled), "TASK_STATE_CANCELLED");
    assert_eq!(WireForm::V10.encode_state(TaskState::Canceled), "TASK_STATE_CANCELED");
}

fn json_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
    ];
    let keys = prop_oneof![
        "[a-z_]{1,8}",
        prop::sample::select(vec![
            "kind",
            "parts",
            "content",
            "message",
            "status",
            "text",
            "file",
            "data",
            "messageId",
            "taskId",
            "task",
            "statusUpdate",
            "artifact",
            "role",
            "configuration",
            "url",
            "capabilities",
            "skills",
            "securitySchemes",
        ])
        .prop_map(str::to_owned),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys.clone(), inner), 0..6)
                .prop_map(|members| members.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn text_and_bytes_survive(text in ".{0,40}", bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let artifact = Artifact::new("id", vec![Part::text(text), Part::new(Content::Bytes(bytes))]);
        for form in WireForm::ALL {
            prop_assert_eq!(form.decode_artifact(&form.encode_artifact(&artifact)), Ok(artifact.clone()));
        }
    }

    #[test]
    fn no_json_makes_a_reader_panic(value in json_value()) {
        for form in WireForm::ALL {
            let _ = form.decode_stream_item(&value);
            let _ = form.decode_send_params(&value);
            let _ = form.decode_task_push_config(&value, None);
            let _ = form.decode_push_config_list(&value);
            let _ = form.decode_list_query(&value);
            let _ = form.decode_task_list(&value);
        }
        let _ = wire::decode_card(&value);
        let _ = baton_a2a::A2aError::from_rest(500, &value);
    }
}
