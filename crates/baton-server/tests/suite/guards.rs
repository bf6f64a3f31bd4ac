//! What is refused before anybody looks at it, and how.

use std::num::NonZeroU32;
use std::time::Duration;

use baton_models::scripted::Scripted;
use baton_server::identity::AuthenticationMode;
use http::{Method, StatusCode};
use reqwest::Response;
use serde_json::{Value, json};

use crate::doors::{Gate, ON_PURPOSE, doors, with_gate};
use crate::site::{Plan, Site};
use crate::wire::{Wire, exchange};

fn plan() -> Plan {
    Plan::new(&Scripted::default()).doors(doors())
}

/// The problem, after a look at what every problem has.
pub async fn problem(response: Response) -> Value {
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let trace = response.headers()["x-trace-id"].to_str().unwrap().to_owned();
    let status = response.status().as_u16();
    let problem: Value = response.json().await.unwrap();
    assert_eq!(problem["status"], status);
    assert_eq!(problem["trace_id"], trace);
    problem
}

async fn request(site: &Site, method: Method, path: &str) -> Response {
    site.http.request(method, site.url(path)).send().await.unwrap()
}

#[tokio::test]
async fn browsers_are_told_what_not_to_do_with_answers() {
    let site = plan().start().await;
    for path in ["/livez", "/nowhere", "/test/threads/x/of/y", "/test/panic"] {
        let answer = site.get(path).await;
        let headers = answer.headers();
        assert_eq!(headers["x-content-type-options"], "nosniff", "{path}");
        assert_eq!(headers["x-frame-options"], "DENY");
        assert_eq!(headers["referrer-policy"], "no-referrer");
        assert_eq!(headers["content-security-policy"], "default-src 'none'; frame-ancestors 'none'");
        assert_eq!(headers["cross-origin-resource-policy"], "same-origin");
        assert_eq!(headers["cache-control"], "no-store");
    }
    let page = site.get("/test/page").await;
    assert_eq!(page.headers()["content-security-policy"], "default-src 'self'");
    assert_eq!(site.get("/test/stream").await.headers()["cache-control"], "no-cache, no-transform");
    site.end().await;
}

#[tokio::test]
async fn a_handler_that_panics_is_an_internal_error_and_nothing_else() {
    let site = plan().start().await;
    for _ in 0..3 {
        let answer = site.get("/test/panic").await;
        assert_eq!(answer.status(), 500);
        let problem = problem(answer).await;
        assert_eq!(problem["code"], "internal");
        assert!(!problem.to_string().contains(ON_PURPOSE) && !problem.to_string().contains("hunter2"));
    }
    assert_eq!(site.get("/livez").await.status(), 200);
    site.end().await;
}

#[tokio::test]
async fn methods_that_a_route_does_not_have_are_answered_with_those_it_has() {
    let site = plan().start().await;
    let refused = request(&site, Method::DELETE, "/livez").await;
    assert_eq!(refused.status(), 405);
    assert_eq!(refused.headers()["allow"], "GET,HEAD");
    assert_eq!(problem(refused).await["code"], "method_not_allowed");
    let asked = request(&site, Method::OPTIONS, "/test/order").await;
    assert_eq!(asked.status(), 204);
    assert_eq!(asked.headers()["allow"], "POST");
    assert!(!asked.headers().contains_key("access-control-allow-origin"));
    let head = request(&site, Method::HEAD, "/livez").await;
    assert_eq!(head.status(), 200);
    let length = head.headers()["content-length"].to_str().unwrap().to_owned();
    assert!(head.bytes().await.unwrap().is_empty());
    assert_eq!(site.get("/livez").await.bytes().await.unwrap().len().to_string(), length);
    let missing = request(&site, Method::HEAD, "/nowhere").await;
    assert_eq!(missing.status(), 404);
    assert!(missing.bytes().await.unwrap().is_empty());
    for odd in ["TRACE", "CONNECT", "PROPFIND", "get"] {
        let answer = exchange(
            site.address,
            format!("{odd} /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"),
        );
        assert!(answer.await.starts_with("HTTP/1.1 40"), "{odd}");
    }
    site.end().await;
}

#[tokio::test]
async fn urls_and_headers_have_a_limit() {
    let site = plan().start().await;
    let long = site.get(&format!("/livez?{}", "x".repeat(9000))).await;
    assert_eq!(long.status(), 414);
    assert_eq!(problem(long).await["code"], "uri_too_long");
    let large =
        site.http.get(site.url("/livez")).header("x-large", "y".repeat(33 << 10)).send().await.unwrap();
    assert_eq!(large.status(), 431);
    assert_eq!(problem(large).await["code"], "headers_too_large");
    // What is far beyond that is refused without a word, and without reading it.
    let flood =
        format!("GET /livez HTTP/1.1\r\nHost: localhost\r\nx-large: {}\r\n\r\n", "y".repeat(500 << 10));
    assert!(exchange(site.address, flood).await.starts_with("HTTP/1.1 431"));
    let many: String = (0..200).map(|number| format!("x-{number}: y\r\n")).collect();
    let many = format!("GET /livez HTTP/1.1\r\nHost: localhost\r\n{many}\r\n");
    assert!(exchange(site.address, many).await.starts_with("HTTP/1.1 431"));
    site.end().await;
}

#[tokio::test]
async fn bodies_have_a_limit_whatever_they_say_about_themselves() {
    let small = |plan: Plan| {
        plan.settings(|settings| {
            settings.limits.max_body_bytes = 1000;
            settings.limits.max_upload_bytes = 100_000;
        })
    };
    let site = small(plan()).start().await;
    let send = |path: &str, body: reqwest::Body| site.http.post(site.url(path)).body(body).send();
    for size in [1001, 2_000_000] {
        let refused = send("/test/order", vec![b' '; size].into()).await.unwrap();
        assert_eq!(refused.status(), 413);
        let problem = problem(refused).await;
        assert_eq!((&problem["code"], &problem["max_bytes"]), (&json!("payload_too_large"), &json!(1000)));
    }
    assert_eq!(send("/test/file", vec![0; 100_000].into()).await.unwrap().text().await.unwrap(), "100000");
    assert_eq!(send("/test/file", vec![0; 100_001].into()).await.unwrap().status(), 413);
    // Without a length there is only counting.
    let chunk = format!("200\r\n{}\r\n", "z".repeat(512)).repeat(3);
    let head = "POST /test/order HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert!(exchange(site.address, format!("{head}{chunk}")).await.starts_with("HTTP/1.1 413"));
    site.end().await;
}

#[tokio::test]
async fn nobody_sends_what_will_be_refused_anyway() {
    let site = plan().start().await;
    let ask = |length: usize| {
        format!(
            "POST /test/order HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\
         Expect: 100-continue\r\n\r\n"
        )
    };
    assert!(exchange(site.address, ask(2_000_000)).await.starts_with("HTTP/1.1 413"));
    let mut wire = Wire::connect(site.address).await;
    wire.send(ask(11)).await;
    wire.until("HTTP/1.1 100 Continue\r\n\r\n").await;
    wire.send(r#"{"count":1}"#).await;
    wire.until("HTTP/1.1 200 OK").await;
    site.end().await;
}

#[tokio::test]
async fn a_body_that_does_not_come_is_not_waited_for() {
    let site =
        plan().settings(|settings| settings.limits.read_timeout = Duration::from_millis(300)).start().await;
    let begin = "POST /test/order HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";
    let answer = exchange(site.address, begin).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("request_timeout"), "{answer}");
    site.end().await;
}

#[tokio::test]
async fn an_answer_that_does_not_begin_is_not_waited_for_unless_it_is_a_run() {
    let gate = Gate::closed();
    let quick =
        |plan: Plan| plan.settings(|settings| settings.limits.request_timeout = Duration::from_millis(200));
    let site = quick(plan().doors(with_gate(gate.clone()))).start().await;
    let run = tokio::spawn(site.http.post(site.url("/test/run")).send());
    let late = site.get("/test/hang").await;
    assert_eq!(late.status(), 503);
    assert_eq!(late.headers()["retry-after"], "1");
    assert_eq!(problem(late).await["code"], "timed_out");
    gate.open();
    assert_eq!(run.await.unwrap().unwrap().text().await.unwrap(), "done");
    site.end().await;
}

#[tokio::test]
async fn a_tenant_that_asks_too_often_is_told_when_to_come_back() {
    let two = NonZeroU32::new(2).unwrap();
    let site = plan().settings(|settings| settings.limits.requests_per_minute = two).start().await;
    let first = site.get("/version").await;
    assert_eq!(first.headers()["ratelimit-policy"], "\"tenant\";q=2;w=60");
    assert_eq!(first.headers()["ratelimit"], "\"tenant\";r=1;t=30");
    assert_eq!(site.get("/version").await.headers()["ratelimit"], "\"tenant\";r=0;t=60");
    let refused = site.get("/version").await;
    assert_eq!(refused.status(), 429);
    let pause: u64 = refused.headers()["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((1..=31).contains(&pause), "{pause}");
    assert_eq!(refused.headers()["ratelimit"], format!("\"tenant\";r=0;t={pause}"));
    assert_eq!(problem(refused).await["code"], "rate_limited");
    // Whether the server lives may be asked as often as one likes.
    for _ in 0..10 {
        let live = site.get("/livez").await;
        assert_eq!(live.status(), 200);
        assert!(!live.headers().contains_key("ratelimit"));
    }
    site.end().await;
}

#[tokio::test]
async fn who_nobody_knows_is_refused_before_the_body_is_read() {
    let site = plan().settings(|settings| settings.auth.mode = AuthenticationMode::Required).start().await;
    let begin =
        "POST /test/file HTTP/1.1\r\nHost: elsewhere.example\r\nContent-Length: 100000\r\n\r\nonly so much";
    let answer = exchange(site.address, begin).await;
    assert!(answer.starts_with("HTTP/1.1 401"), "{answer}");
    assert!(answer.contains("www-authenticate: Bearer"));
    assert!(!answer.contains("ratelimit"));
    // Routes for all read none: the rest of this body never comes.
    for path in ["/livez", "/readyz"] {
        let begin =
            format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100000\r\n\r\nonly so much");
        let answer = exchange(site.address, begin).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    site.end().await;
}

const ALLOWED: &str = "https://app.example.com";

async fn preflight(site: &Site, origin: &str) -> Response {
    site.http
        .request(Method::OPTIONS, site.url("/test/order"))
        .header("origin", origin)
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,idempotency-key")
        .send()
        .await
        .unwrap()
}

#[tokio::test]
async fn pages_of_other_origins_may_read_answers_only_when_allowed() {
    let site =
        plan().settings(|settings| settings.allowed_origins = vec![ALLOWED.parse().unwrap()]).start().await;
    let told = preflight(&site, ALLOWED).await;
    assert_eq!(told.status(), 200);
    let list = |name: &str| told.headers()[name].to_str().unwrap().to_ascii_lowercase();
    assert_eq!(list("access-control-allow-origin"), ALLOWED);
    assert!(list("access-control-allow-methods").contains("delete"));
    for header in ["authorization", "last-event-id", "idempotency-key", "traceparent", "content-type"] {
        assert!(list("access-control-allow-headers").contains(header), "{header}");
    }
    let answer = site.http.get(site.url("/nowhere")).header("origin", ALLOWED).send().await.unwrap();
    assert_eq!(answer.headers()["access-control-allow-origin"], ALLOWED);
    let exposed = answer.headers()["access-control-expose-headers"].to_str().unwrap();
    assert!(exposed.contains("x-trace-id") && exposed.contains("retry-after"), "{exposed}");
    for other in ["https://evil.example", "https://app.example.com.evil.example", "null"] {
        assert!(
            !preflight(&site, other).await.headers().contains_key("access-control-allow-origin"),
            "{other}"
        );
    }
    site.end().await;
}

#[tokio::test]
async fn without_authentication_pages_of_others_are_kept_out() {
    let site =
        plan().settings(|settings| settings.allowed_origins = vec![ALLOWED.parse().unwrap()]).start().await;
    let own = format!("http://{}", site.address);
    let local = format!("localhost:{}", site.address.port());
    let ask = async |host: &str, origin: Option<&str>| {
        let origin = origin.map(|origin| format!("Origin: {origin}\r\n")).unwrap_or_default();
        let request = format!("GET /version HTTP/1.1\r\nHost: {host}\r\n{origin}Connection: close\r\n\r\n");
        let answer = exchange(site.address, request).await;
        answer[9..12].parse::<u16>().unwrap()
    };
    let address = site.address.to_string();
    assert_eq!(ask(&address, None).await, 200);
    assert_eq!(ask(&address, Some(&own)).await, 200);
    assert_eq!(ask(&local, Some(ALLOWED)).await, 200);
    assert_eq!(ask("[::1]:8420", None).await, 200);
    // A name that somebody else gave this address, and a page of somebody else.
    assert_eq!(ask("evil.example", None).await, 403);
    assert_eq!(ask("localhost.evil.example", None).await, 403);
    assert_eq!(ask("", None).await, 403);
    assert_eq!(ask(&address, Some("http://evil.example")).await, 403);
    assert_eq!(ask(&address, Some("http://127.0.0.1:1")).await, 403);
    assert_eq!(ask(&address, Some("null")).await, 403);
    let closed =
        site.http.get(site.url("/version")).header("origin", "https://evil.example").send().await.unwrap();
    assert_eq!(closed.status(), StatusCode::FORBIDDEN);
    assert_eq!(problem(closed).await["code"], "foreign_origin");
    site.end().await;
}

#[test]
fn origins_are_written_as_browsers_send_them() {
    use baton_server::settings::AllowedOrigin;
    for good in ["https://app.example.com", "http://localhost:5173", "http://[::1]:8080"] {
        assert_eq!(good.parse::<AllowedOrigin>().unwrap().to_string(), good);
    }
    for bad in [
        "*",
        "app.example.com",
        "https://app.example.com/",
        "https://App.example.com",
        "ftp://x",
        "https://a@b",
        "",
    ] {
        assert!(bad.parse::<AllowedOrigin>().is_err(), "{bad}");
    }
}
