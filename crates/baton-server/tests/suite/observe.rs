//! What those see who watch the server: numbers, traces, and one line for each request.

mod lines;
mod numbers;
pub mod openmetrics;

use axum::Router;
use axum::body::Body;
use axum::extract::Request;
use axum::middleware::from_fn_with_state;
use axum::routing::get;
use baton_core::message::Part;
use baton_core::store::OnBusy;
use baton_core::{AgentName, Rights, TenantId, ThreadId, TraceParent, UserId};
use baton_engine::{Overrides, RunCaller, RunRequest, RunResult};
use baton_models::scripted::{Scripted, ScriptedTurn};
use tower::ServiceExt as _;

use crate::observe::lines::Lines;
use crate::site::{Plan, Site};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const FROM: &str = "00f067aa0ba902b7";

/// A message to `assistant`, and what came of it.
async fn asked(site: &Site, text: &str, trace: Option<TraceParent>) -> RunResult {
    let request = RunRequest {
        caller: RunCaller {
            tenant: TenantId::parse("default").unwrap(),
            user: UserId::parse("local").unwrap(),
            thread_id: ThreadId::random(),
        },
        agent: AgentName::parse("assistant").unwrap(),
        input: vec![Part::text(text)],
        overrides: Overrides::default(),
        on_busy: OnBusy::Enqueue,
        entry: None,
        rights: Rights::all(),
        trace,
        metadata: None,
        task: baton_engine::RunTask::Answer,
    };
    site.app.engine.start(request).await.unwrap().finish().await
}

/// The trace of an answer: its id and the server's span in it.
fn traced(answer: &reqwest::Response) -> (String, String) {
    let header = answer.headers()["traceparent"].to_str().unwrap();
    assert!(TraceParent::parse(header).is_ok(), "{header}");
    assert_eq!(answer.headers()["x-trace-id"], header[3..35]);
    (header[3..35].to_owned(), header[36..52].to_owned())
}

async fn sent(site: &Site, headers: &[(&str, &str)]) -> reqwest::Response {
    let request = headers
        .iter()
        .fold(site.http.get(site.url("/version")), |request, (name, value)| request.header(*name, *value));
    request.send().await.unwrap()
}

#[tokio::test]
async fn a_request_goes_on_with_its_callers_trace() {
    let site = Plan::new(&Scripted::default()).start().await;
    let given = format!("00-{TRACE}-{FROM}-01");
    let (trace, span) = traced(&sent(&site, &[("traceparent", &given)]).await);
    assert_eq!(trace, TRACE);
    assert_ne!(span, FROM, "the answer is from a span of the server's own");
    let (_, again) = traced(&sent(&site, &[("traceparent", &given)]).await);
    assert_ne!(span, again);
    site.end().await;
}

/// What cannot be understood, or is said twice, is as if nothing had been said.
#[tokio::test]
async fn a_request_without_a_trace_begins_one() {
    let site = Plan::new(&Scripted::default()).start().await;
    let given = format!("00-{TRACE}-{FROM}-01");
    let mut seen = std::collections::BTreeSet::new();
    for headers in
        [vec![], vec![("traceparent", "00-zz")], vec![("traceparent", &*given), ("traceparent", &*given)]]
    {
        let answer = sent(&site, &headers).await;
        assert!(answer.headers()["traceparent"].to_str().unwrap().ends_with("-01"), "others may record it");
        seen.insert(traced(&answer).0);
    }
    assert!(seen.len() == 3 && !seen.contains(TRACE), "{seen:?}");
    site.end().await;
}

#[tokio::test]
async fn a_problem_is_found_under_the_same_trace() {
    let site = Plan::new(&Scripted::default()).start().await;
    let answer = site.get("/api/v1/nothing").await;
    let (trace, _) = traced(&answer);
    let problem: serde_json::Value = answer.json().await.unwrap();
    assert_eq!(problem["trace_id"], trace);
    site.end().await;
}

/// G19: neither the query, nor the path, nor a header is in the log; ids are.
#[tokio::test]
async fn g19_each_request_is_one_line_without_anything_private() {
    let (lines, _listening) = Lines::listen();
    let site = Plan::new(&Scripted::default()).start().await;
    let request =
        site.http.get(site.url("/version?password=hunter2")).header("authorization", "Bearer s3cret");
    let (trace, _) = traced(&request.send().await.unwrap());
    site.get("/api/v1/threads/jane@example.com/nothing").await;
    site.get("/livez").await;
    site.end().await;
    let all = lines.all();
    let answered: Vec<&String> = all.iter().filter(|line| line.contains("INFO answered")).collect();
    assert_eq!(answered.len(), 2, "a probe that finds nothing wrong is not worth a line: {all:#?}");
    for part in [
        "method=GET",
        "route=/version",
        "status=200",
        "duration_ms=",
        "tenant_id=default",
        "user_id=local",
        &trace,
    ] {
        assert!(answered[0].contains(part), "{part} in {}", answered[0]);
    }
    assert!(answered[1].contains("route=unmatched status=404"), "{}", answered[1]);
    for secret in ["hunter2", "s3cret", "jane"] {
        assert!(!all.concat().contains(secret), "{secret}");
    }
}

/// The server's span stands between the caller's and that of the run.
#[tokio::test]
async fn a_request_and_its_run_are_spans_of_one_trace() {
    let (lines, _listening) = Lines::listen();
    let model = Scripted::default().script("assistant", [ScriptedTurn::text("Hello.")]);
    let site = Plan::new(&model).start().await;
    let given = format!("00-{TRACE}-{FROM}-01");
    let (_, server) = traced(&sent(&site, &[("traceparent", &given)]).await);
    let trace = TraceParent::parse(&format!("00-{TRACE}-{server}-01")).unwrap();
    asked(&site, "Hi", Some(trace)).await;
    site.end().await;
    let number = |hex: &str| u64::from_str_radix(hex, 16).unwrap().to_string();
    let request = lines.span("GET /version");
    assert_eq!(request["baton.trace"], format!("00-{TRACE}-{server}-01"));
    assert_eq!((&request["baton.parent"], &*request["otel.kind"]), (&number(FROM), "server"));
    assert_eq!(request["http.response.status_code"], "200");
    let run = lines.span("invoke_workflow assistant");
    assert_eq!(run["baton.parent"], number(&server));
    assert!(run["baton.trace"].starts_with(&format!("00-{TRACE}-")), "{run:?}");
    let chat = lines.span("chat m");
    let told = format!("00-{TRACE}-{:016x}-01", chat["baton.span"].parse::<u64>().unwrap());
    assert_eq!(
        model.asked()[0].traceparent.as_deref(),
        Some(&*told),
        "the provider is told of the call's own span"
    );
}

/// A stream is not over when its answer begins. Whoever reads the log sees how long it really was.
#[tokio::test]
async fn a_stream_is_logged_when_it_has_ended() {
    let (lines, _listening) = Lines::listen();
    let site = Plan::new(&Scripted::default()).start().await;
    let endless = || async {
        let first = futures_util::stream::once(async { Ok::<_, std::io::Error>("data: x\n\n") });
        let rest = futures_util::stream::pending();
        Body::from_stream(futures_util::StreamExt::chain(first, rest))
    };
    let layer = from_fn_with_state(site.app.clone(), baton_server::trace::layer);
    let router = Router::new().route("/stream/{id}", get(endless)).layer(layer);
    let request = Request::get("/stream/7").body(Body::empty()).unwrap();
    let answer = router.oneshot(request).await.unwrap();
    let mut body = answer.into_body().into_data_stream();
    assert_eq!(futures_util::StreamExt::next(&mut body).await.unwrap().unwrap(), "data: x\n\n");
    let ended =
        || lines.all().into_iter().filter(|line| line.contains("route=/stream/{id} status=200")).count();
    assert_eq!(ended(), 0);
    drop(body);
    assert_eq!(ended(), 1);
    site.end().await;
}

/// Nobody waits for the answer any more, and that is on record too.
#[tokio::test]
async fn a_request_that_is_given_up_is_logged() {
    let (lines, _listening) = Lines::listen();
    let site = Plan::new(&Scripted::default()).start().await;
    let layer = from_fn_with_state(site.app.clone(), baton_server::trace::layer);
    let router = Router::new().route("/slow", get(std::future::pending::<()>)).layer(layer);
    let request = Request::get("/slow").body(Body::empty()).unwrap();
    let mut asking = Box::pin(router.oneshot(request));
    assert!(futures_util::poll!(&mut asking).is_pending());
    drop(asking);
    assert!(
        lines.all().iter().any(|line| line.contains("left before there was an answer")),
        "{:?}",
        lines.all()
    );
    site.end().await;
}
