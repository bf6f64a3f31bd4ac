//! The envelope: order of checks, ids, methods.

use baton_a2a::jsonrpc::{self, Method, Request, RequestId};
use baton_a2a::{ErrorCode, WireForm};
use serde_json::json;

fn refused(body: &str) -> (i64, serde_json::Value) {
    let refused = Request::parse(body.as_bytes()).unwrap_err();
    (refused.error.code.number(), (&refused.id).into())
}

#[test]
fn d10_json_is_checked_before_the_envelope() {
    assert_eq!(refused("{"), (-32700, json!(null)));
    assert_eq!(refused("\u{0}"), (-32700, json!(null)));
    assert_eq!(refused("[]"), (-32600, json!(null)));
    assert_eq!(refused("1"), (-32600, json!(null)));
    assert_eq!(refused(r#"{"jsonrpc":"1.0","id":7,"method":"x"}"#), (-32600, json!(7)));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":"a"}"#), (-32600, json!("a")));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":{},"method":"x"}"#), (-32600, json!(null)));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1.5,"method":"x"}"#), (-32600, json!(null)));
    assert_eq!(refused(r#"{"jsonrpc":"2.0","id":1,"method":"x","params":5}"#), (-32602, json!(1)));
}

#[test]
fn an_absent_id_is_null() {
    let request = Request::parse(br#"{"jsonrpc":"2.0","method":"tasks/get"}"#).unwrap();
    assert_eq!(request.id, RequestId::Null);
    assert_eq!(request.params, json!({}));
}

#[test]
fn every_method_has_a_name_in_both_versions() {
    for name in ["message/send", "tasks/resubscribe", "agent/getAuthenticatedExtendedCard"] {
        let (method, form) = Method::parse(name).unwrap();
        assert_eq!((form, method.name(form)), (WireForm::V03, name));
        assert_eq!(Method::parse(method.name(WireForm::V10)), Some((method, WireForm::V10)));
    }
    assert_eq!(Method::parse("tasks/explode"), None);
}

#[test]
fn a_response_is_a_result_or_an_error() {
    let id = RequestId::Number(7.into());
    assert_eq!(jsonrpc::success(&id, json!(null)), json!({ "jsonrpc": "2.0", "id": 7, "result": null }));
    assert_eq!(jsonrpc::read_response(&json!({ "result": null })), Ok(json!(null)));
    let error = jsonrpc::read_response(&json!({ "error": { "code": -32001, "message": "m" } })).unwrap_err();
    assert_eq!(error.code, ErrorCode::TaskNotFound);
    assert_eq!(jsonrpc::read_response(&json!({})).unwrap_err().code, ErrorCode::InvalidAgentResponse);
}
