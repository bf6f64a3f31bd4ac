//! What comes in, and what is said about it when it is wrong.

use baton_models::scripted::Scripted;
use serde_json::{Value, json};

use crate::doors::doors;
use crate::guards::problem;
use crate::site::{Plan, Site};

async fn site() -> Site {
    Plan::new(&Scripted::default()).doors(doors()).start().await
}

async fn send(site: &Site, path: &str, body: impl Into<reqwest::Body>) -> reqwest::Response {
    let request = site.http.post(site.url(path)).header("content-type", "application/json");
    request.body(body).send().await.unwrap()
}

#[tokio::test]
async fn bodies_are_taken_as_they_should_be_or_refused_with_the_place() {
    let site = site().await;
    assert_eq!(send(&site, "/test/order", r#"{"count": 3, "note": "soon"}"#).await.status(), 200);
    let deep = format!(r#"{{"count": 1, "metadata": {}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let cases: [(&str, &[u8]); 9] = [
        ("/colour", br#"{"count": 1, "colour": "red"}"#),
        ("", b"{}"),
        ("/count", br#"{"count": 300}"#),
        ("/note", br#"{"count": 1, "note": "far too long"}"#),
        ("/metadata", br#"{"count": 1, "metadata": 1e999}"#),
        ("", b""),
        ("", b"{\"count\": 1, \"note\": \"\xff\"}"),
        ("", b"{\"count\": 1} true"),
        ("/count", br#"{"count": 1, "count": 2}"#),
    ];
    for (pointer, body) in cases {
        let refused = send(&site, "/test/order", body.to_vec()).await;
        assert_eq!(refused.status(), 400, "{}", String::from_utf8_lossy(body));
        let problem = problem(refused).await;
        assert_eq!(problem["code"], "invalid_request");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{problem}");
    }
    let refused = send(&site, "/test/order", deep).await;
    assert_eq!(refused.status(), 400);
    assert!(problem(refused).await["errors"][0]["detail"].as_str().unwrap().contains("recursion limit"));
    site.end().await;
}

#[tokio::test]
async fn only_json_is_taken() {
    let site = site().await;
    for media in ["text/plain", "application/x-www-form-urlencoded", "application/json; charset=utf-16"] {
        let request = site.http.post(site.url("/test/order")).header("content-type", media);
        let refused = request.body(r#"{"count": 1}"#).send().await.unwrap();
        assert_eq!(refused.status(), 415, "{media}");
        assert_eq!(problem(refused).await["code"], "unsupported_media_type");
    }
    site.end().await;
}

#[tokio::test]
async fn parameters_and_ids_that_are_wrong_are_named() {
    let site = site().await;
    assert_eq!(site.get("/test/list?limit=7").await.text().await.unwrap(), "Some(Limit(7))");
    for (query, name) in
        [("limits=7", "limits"), ("limit=x", "limit"), ("limit=1&limit=2", "limit"), ("%ff=1", "\u{fffd}")]
    {
        let refused = site.get(&format!("/test/list?{query}")).await;
        assert_eq!(refused.status(), 400, "{query}");
        assert_eq!(problem(refused).await["errors"][0]["pointer"], name);
    }
    let known = uuid::Uuid::new_v4();
    assert_eq!(
        site.get(&format!("/test/threads/{known}/of/x")).await.text().await.unwrap(),
        known.to_string()
    );
    let other_version = uuid::Uuid::now_v7().to_string();
    for wrong in ["x", "%ff", "%00", "..%2f..", &other_version, &known.simple().to_string()[1..]] {
        let refused = site.get(&format!("/test/threads/{wrong}/of/x")).await;
        assert_eq!(refused.status(), 400, "{wrong}");
        assert_eq!(problem(refused).await["code"], "invalid_thread_id");
    }
    for wrong in ["x", "%ff", "%00"] {
        let refused = site.get(&format!("/test/runs/{wrong}")).await;
        assert_eq!(refused.status(), 404, "{wrong}");
        assert_eq!(problem(refused).await["detail"], "run not found");
    }
    site.end().await;
}

#[tokio::test]
async fn a_request_with_a_key_can_be_recognised_again() {
    let site = site().await;
    let ask = async |key: &str, body: &Value| {
        let request = site.http.post(site.url("/test/repeat")).header("Idempotency-Key", key);
        request.json(body).send().await.unwrap()
    };
    let without: Value = site.post("/test/repeat", &json!({"count": 1})).await.json().await.unwrap();
    assert_eq!(without["idempotency"], Value::Null);
    let first: Value = ask("a", &json!({"count": 1})).await.json().await.unwrap();
    let again: Value = ask("a", &json!({"count": 1})).await.json().await.unwrap();
    let other: Value = ask("a", &json!({"count": 2})).await.json().await.unwrap();
    assert_eq!(first["idempotency"][0], "a");
    assert_eq!(first["idempotency"][1], again["idempotency"][1]);
    assert_ne!(first["idempotency"][1], other["idempotency"][1]);
    let until: jiff::Timestamp = first["idempotency"][2].as_str().unwrap().parse().unwrap();
    let hours = (until - jiff::Timestamp::now()).total(jiff::Unit::Hour).unwrap();
    assert!((23.0..=24.0).contains(&hours), "{hours}");
    for wrong in ["", "a b", &"x".repeat(256)] {
        let refused = ask(wrong, &json!({"count": 1})).await;
        assert_eq!(refused.status(), 400, "{wrong}");
        assert_eq!(problem(refused).await["errors"][0]["pointer"], "Idempotency-Key");
    }
    site.end().await;
}
