//! `GET /metrics`.

use std::sync::Arc;

use baton_core::event::EventKind;
use baton_core::model::ModelFacts;
use baton_core::usage::Usage;
use baton_core::{AgentName, Event, ModelErrorKind, RunId, SessionId, TenantId, ThreadId, Visibility};
use baton_engine::Observer as _;
use baton_models::scripted::{Scripted, ScriptedTurn};
use baton_server::identity::AuthenticationMode;
use baton_server::metrics::StreamKind;
use jiff::Timestamp;
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use uuid::Uuid;

use super::asked;
use super::openmetrics::Exposition;
use crate::client::Frame;
use crate::person::new_thread;
use crate::site::{Plan, Site};

async fn scraped(site: &Site) -> Exposition {
    let answer = site.get("/metrics").await;
    assert_eq!(
        answer.headers()["content-type"],
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    Exposition::parse(&answer.text().await.unwrap())
}

#[track_caller]
fn is(numbers: &Exposition, expected: &[(&str, f64)]) {
    for (name, value) in expected {
        let found = numbers.value(name);
        assert!(
            (found - value).abs() < 1e-9,
            "{name} is {found}, not {value}: {:#?}",
            numbers.names().collect::<Vec<_>>()
        );
    }
}

/// Who came back, who was left behind, and whom an answer pleased.
#[tokio::test]
async fn listeners_and_opinions_are_counted() {
    const PIECES: usize = 3000;
    let gate = Arc::new(Semaphore::new(0));
    let turn = (0..PIECES).fold(ScriptedTurn::default().until(&gate), |turn, _| turn.say(&"x".repeat(200)));
    let site = Plan::new(&Scripted::default().script("assistant", [turn])).start().await;
    let thread = new_thread();
    let mut reads = site.say(&thread, "Go").await;
    reads.until(|frame| frame.kind() == "RUN_STARTED").await;
    let events = format!("/api/v1/threads/{thread}/events");
    let mut dawdles = site.listen(&events, 0).await;
    gate.add_permits(1);
    reads.all().await;
    let last = dawdles.until(Frame::is_end).await.pop().unwrap().id;
    let _back = site.listen(&events, last).await;
    let answer = site.get(&format!("/api/v1/threads/{thread}/messages?limit=1")).await;
    let answer: Value = answer.json().await.unwrap();
    let message = answer["data"][0]["message_id"].as_str().unwrap();
    let rated = site.post(&format!("/api/v1/messages/{message}/feedback"), &json!({ "rating": -1 })).await;
    assert_eq!(rated.status(), 204);
    let numbers = scraped(&site).await;
    assert!(numbers.value("baton_streams_behind_total") >= 1.0);
    is(&numbers, &[("baton_streams_resumed_total", 1.0), ("baton_feedback_total{rating=\"bad\"}", 1.0)]);
    site.end().await;
}

/// H13: who is asked how often, and for how long they work, is there to be compared.
#[tokio::test]
async fn h13_runs_and_their_agents_are_counted() {
    let model = Scripted::default()
        .script(
            "assistant",
            [
                ScriptedTurn::call("call_agent", &json!({"mission": "Look", "specialist": "helper"})),
                ScriptedTurn::text("Done.").tokens(100, 20),
                ScriptedTurn::call("transfer_to_helper", &json!({"reason": "it knows"})),
                ScriptedTurn::error(ModelErrorKind::InvalidRequest),
            ],
        )
        .script("helper", [ScriptedTurn::text("Found."), ScriptedTurn::text("I answer.")]);
    let site = Plan::new(&model)
        .agent(
            "assistant",
            "---\ndescription: Helps.\nagents: [helper]\ncollaborations: [helper]\n---\nYou help.\n",
        )
        .agent("helper", "---\ndescription: Looks.\n---\nYou look.\n")
        .start()
        .await;
    for _ in 0..3 {
        asked(&site, "Hi", None).await;
    }
    site.app.engine.idle().await;
    let numbers = scraped(&site).await;
    is(
        &numbers,
        &[
            (r#"baton_runs_started_total{agent="assistant"}"#, 3.0),
            (r#"baton_runs_ended_total{agent="assistant",status="completed"}"#, 2.0),
            (r#"baton_runs_ended_total{agent="assistant",status="failed"}"#, 1.0),
            (r#"baton_run_failures_total{code="invalid_request"}"#, 1.0),
            (r#"baton_run_duration_seconds_count{agent="assistant"}"#, 3.0),
            // The answer after the transfer is the helper's.
            (r#"baton_time_to_first_token_seconds_count{agent="assistant"}"#, 1.0),
            (r#"baton_time_to_first_token_seconds_count{agent="helper"}"#, 1.0),
            (r#"baton_sessions_started_total{agent="assistant"}"#, 3.0),
            (r#"baton_sessions_started_total{agent="helper"}"#, 2.0),
            (r#"baton_sessions_ended_total{agent="helper",outcome="ok"}"#, 2.0),
            (r#"baton_sessions_ended_total{agent="assistant",outcome="failed"}"#, 1.0),
            (r#"baton_delegations_total{kind="call",agent="helper"}"#, 1.0),
            (r#"baton_hops_total{kind="transfer"}"#, 1.0),
            ("baton_runs_at_work", 0.0),
        ],
    );
    assert!(
        numbers.names().any(|name| name.starts_with(r#"baton_agent_work_seconds_total{agent="helper"}"#))
    );
    site.end().await;
}

#[tokio::test]
async fn calls_tokens_and_money_are_counted() {
    let model = Scripted::default().script(
        "assistant",
        [
            ScriptedTurn::call("there_is_no_such_tool", &json!({})).tokens(1_000_000, 0),
            ScriptedTurn::text("Done.").tokens(500_000, 500_000),
        ],
    );
    let site = Plan::new(&model).start().await;
    asked(&site, "Hi", None).await;
    let numbers = scraped(&site).await;
    is(
        &numbers,
        &[
            (r#"baton_model_calls_total{provider="scripted",model="m",outcome="ok"}"#, 2.0),
            (r#"baton_model_call_duration_seconds_count{provider="scripted",model="m"}"#, 2.0),
            (r#"baton_tokens_total{provider="scripted",model="m",kind="input"}"#, 1_500_000.0),
            (r#"baton_tokens_total{provider="scripted",model="m",kind="output"}"#, 500_000.0),
            (r#"baton_cost_usd_total{provider="scripted",model="m"}"#, 2.0),
            // What a model makes up is no label.
            (r#"baton_tool_calls_total{tool="unknown",outcome="failed"}"#, 1.0),
        ],
    );
    assert!(!numbers.names().any(|name| name.contains("no_such_tool")));
    assert!(numbers.names().any(|name| name == "baton_store_batches_total"));
    assert!(numbers.value("baton_store_writes_total") >= numbers.value("baton_store_batches_total"));
    site.end().await;
}

#[tokio::test]
async fn a_price_that_is_not_known_is_counted_as_such() {
    let model = Scripted::default()
        .with_facts(ModelFacts::default())
        .script("assistant", [ScriptedTurn::text("Hi.")]);
    let site = Plan::new(&model).start().await;
    asked(&site, "Hi", None).await;
    is(
        &scraped(&site).await,
        &[
            (r#"baton_cost_unknown_total{provider="scripted",model="m"}"#, 1.0),
            (r#"baton_cost_usd_total{provider="scripted",model="m"}"#, 0.0),
        ],
    );
    site.end().await;
}

/// Nobody can make the server remember paths or methods without end.
#[tokio::test]
async fn requests_are_counted_by_route_and_not_by_path() {
    let site = Plan::new(&Scripted::default()).start().await;
    for path in ["/version", "/version?x=1", "/made/up/1", "/made/up/2"] {
        site.get(path).await;
    }
    let odd = reqwest::Method::from_bytes(b"ODD").unwrap();
    site.http.request(odd, site.url("/made/up/3")).send().await.unwrap();
    let numbers = scraped(&site).await;
    is(
        &numbers,
        &[
            (r#"baton_http_requests_total{route="/version",method="GET",status="200"}"#, 2.0),
            (r#"baton_http_requests_total{route="unmatched",method="GET",status="404"}"#, 2.0),
            (r#"baton_http_requests_total{route="unmatched",method="OTHER",status="404"}"#, 1.0),
            (r#"baton_http_request_duration_seconds_count{route="/version",method="GET"}"#, 2.0),
            (r#"baton_problems_total{code="not_found"}"#, 3.0),
        ],
    );
    assert!(!numbers.names().any(|name| name.contains("made/up")));
    site.end().await;
}

#[tokio::test]
async fn listeners_count_while_they_listen() {
    let site = Plan::new(&Scripted::default()).start().await;
    let metrics = &site.app.metrics;
    let (first, second) = (metrics.stream(StreamKind::Sse), metrics.stream(StreamKind::Sse));
    drop(metrics.stream(StreamKind::WebSocket));
    metrics.stream_behind();
    metrics.stream_resumed();
    drop(first);
    is(
        &scraped(&site).await,
        &[
            (r#"baton_streams_open{kind="sse"}"#, 1.0),
            (r#"baton_streams_open{kind="websocket"}"#, 0.0),
            (r#"baton_streams_opened_total{kind="sse"}"#, 2.0),
            ("baton_streams_behind_total", 1.0),
            ("baton_streams_resumed_total", 1.0),
        ],
    );
    drop(second);
    site.end().await;
}

/// A parked run has ended no session: they continue when it is resumed.
#[tokio::test]
async fn parking_cancels_no_session() {
    let site = Plan::new(&Scripted::default()).start().await;
    let run_id = RunId::from_uuid(Uuid::now_v7());
    let session_id = SessionId::root(run_id);
    let happened = [
        EventKind::RunStarted { is_held: false },
        EventKind::SessionStarted { session_id, parent: None, why: None },
        EventKind::RunWaiting {
            interrupts: Vec::new(),
            waits_for: Vec::new(),
            usage: Usage::default(),
            by_agent: Vec::new(),
        },
    ];
    for (seq, kind) in (1..).zip(happened) {
        let event = Event {
            seq,
            thread_id: ThreadId::random(),
            run_id,
            at: Timestamp::now(),
            agent: AgentName::parse("assistant").unwrap(),
            path: "assistant".into(),
            visibility: Visibility::User,
            kind,
        };
        site.app.metrics.on_event(&TenantId::parse("acme").unwrap(), &event);
    }
    let numbers = scraped(&site).await;
    is(
        &numbers,
        &[
            (r#"baton_runs_ended_total{agent="assistant",status="waiting"}"#, 1.0),
            (r#"baton_sessions_started_total{agent="assistant"}"#, 1.0),
        ],
    );
    assert!(!numbers.names().any(|name| name.starts_with("baton_sessions_ended_total")));
    site.end().await;
}

/// Numbers are about all tenants, so they are nobody's by accident.
#[tokio::test]
async fn numbers_are_not_for_everybody() {
    let plan = Plan::new(&Scripted::default())
        .settings(|settings| settings.auth.mode = AuthenticationMode::Required);
    let site = plan.start().await;
    assert_eq!(site.get("/metrics").await.status(), 401);
    let document = baton_server::openapi::document();
    let requirement = baton_server::access::Access::of(&document);
    let expected = baton_server::access::Requirement::Permission("metrics:read".to_owned());
    assert_eq!(
        requirement.route(&reqwest::Method::GET, "/metrics").map(|route| &route.requirement),
        Some(&expected)
    );
    site.end().await;
}

#[tokio::test]
async fn readiness_says_what_it_looked_at() {
    let site = Plan::new(&Scripted::default()).start().await;
    for path in ["/readyz", "/healthz"] {
        let plain: Value = site.get(path).await.json().await.unwrap();
        assert_eq!(plain, json!({ "status": "ready" }));
        let verbose: Value = site.get(&format!("{path}?verbose")).await.json().await.unwrap();
        assert_eq!(verbose["checks"], json!({ "store": "ok", "agents": 1, "runs_at_work": 0 }));
    }
    site.end().await;
    let site = Plan::new(&Scripted::default()).required().start().await;
    let verbose: Value = site.get("/readyz?verbose").await.json().await.unwrap();
    assert_eq!(verbose["checks"], json!({ "store": "ok" }), "without a credential");
    site.end().await;
}

#[test]
fn every_number_is_documented() {
    let documentation = include_str!("../../../../../docs/observability.md");
    let sources =
        [include_str!("../../../src/metrics/families.rs"), include_str!("../../../src/metrics/scrape.rs")];
    let registered = sources.iter().flat_map(|source| source.split("register").skip(1));
    let quoted = registered
        .filter_map(|rest| rest.split_once('(')?.1.trim_start().strip_prefix('"')?.split('"').next());
    let names: Vec<&str> = quoted.collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(
            documentation.contains(&format!("`baton_{name}")),
            "docs/observability.md lacks baton_{name}"
        );
    }
}
