//! Errors on JSON-RPC and REST, and how both are read.

use baton_a2a::{A2aError, ErrorCode, WireForm};
use serde_json::json;

#[test]
fn errors_survive_each_form() {
    for code in ErrorCode::ALL {
        for form in WireForm::ALL {
            let error = A2aError::new(*code, "what happened");
            let read = A2aError::from_json_rpc(&error.to_json_rpc(form));
            assert_eq!((read.code, read.message.as_str()), (*code, "what happened"), "{form:?}");
            let read = A2aError::from_rest(code.http_status(form), &error.to_rest(form));
            assert_eq!((read.code, read.message.as_str()), (*code, "what happened"), "{form:?}");
        }
    }
}

#[test]
fn a_rest_error_of_0_3_has_a_member_for_each_client() {
    let body = A2aError::new(ErrorCode::TaskNotFound, "Task not found").to_rest(WireForm::V03Rest);
    let expected = json!({
        "code": -32001, "message": "Task not found", "type": "TaskNotFoundError", "error": "TaskNotFoundError",
    });
    assert_eq!(body, expected);
}

#[test]
fn an_error_of_1_0_carries_its_reason() {
    let body = A2aError::new(ErrorCode::TaskNotFound, "Task not found").to_rest(WireForm::V10);
    assert_eq!(body["error"]["status"], "NOT_FOUND");
    assert_eq!(body["error"]["details"][0]["reason"], "TASK_NOT_FOUND");
    assert_eq!(body["error"]["details"][0]["domain"], "a2a-protocol.org");
}

#[test]
fn an_error_without_a_known_body_is_read_from_its_status() {
    assert_eq!(A2aError::from_rest(404, &json!("gone")).code, ErrorCode::MethodNotFound);
    assert_eq!(A2aError::from_rest(422, &json!({ "detail": [] })).code, ErrorCode::InvalidParams);
    assert_eq!(A2aError::from_rest(503, &json!(null)).code, ErrorCode::Other(503));
}
