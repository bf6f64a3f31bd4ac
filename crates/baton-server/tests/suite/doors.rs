//! Routes that only tests have, behind the same guards as all others.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::extract::ws::{CloseFrame, Message, WebSocketUpgrade};
use axum::response::Response;
use axum::{Json, extract};
use baton_server::App;
use baton_server::problem::FieldError;
use baton_server::strict::{Checked, Params, Repeatable, RunPath, Strict, ThreadPath};
use baton_server::wire::page::Paging;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the panic says, for those who count others.
pub const ON_PURPOSE: &str = "a panic on purpose, with hunter2 in it";

/// Where `/test/run` waits for as long as the test wants.
#[derive(Debug, Clone)]
pub struct Gate {
    come: Arc<Semaphore>,
    free: Arc<Semaphore>,
}

impl Gate {
    pub fn closed() -> Self {
        Self { come: Arc::new(Semaphore::new(0)), free: Arc::new(Semaphore::new(0)) }
    }

    /// Returns when somebody is at the gate.
    pub async fn reached(&self) {
        self.come.acquire().await.unwrap().forget();
    }

    pub fn open(&self) {
        self.free.add_permits(1);
    }
}

pub fn doors() -> OpenApiRouter<App> {
    with_gate(Gate::closed())
}

pub fn with_gate(gate: Gate) -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(order))
        .routes(routes!(repeat))
        .routes(routes!(file))
        .routes(routes!(run))
        .routes(routes!(hang))
        .routes(routes!(fail))
        .routes(routes!(follow))
        .routes(routes!(stay))
        .routes(routes!(socket))
        .routes(routes!(list))
        .routes(routes!(thread))
        .routes(routes!(of_run))
        .routes(routes!(page))
        .layer(axum::Extension(gate))
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Order {
    count: u8,
    #[serde(default)]
    note: String,
    #[serde(default)]
    metadata: Value,
}

impl Checked for Order {
    fn check(&self) -> Vec<FieldError> {
        let long = FieldError { pointer: "/note".into(), detail: "at most 10 characters".into() };
        if self.note.len() > 10 { vec![long] } else { Vec::new() }
    }
}

#[utoipa::path(post, path = "/test/order", responses((status = 200)), extensions(("x-permission" = json!("thread:write"))))]
async fn order(Strict(order): Strict<Order>) -> Json<Order> {
    Json(order)
}

#[utoipa::path(post, path = "/test/repeat", responses((status = 200)), extensions(("x-permission" = json!("thread:write"))))]
async fn repeat(Repeatable { body, idempotency }: Repeatable<Order>) -> Json<Value> {
    let idempotency = idempotency.map(|it| json!([it.key, it.fingerprint, it.expires_at.to_string()]));
    Json(json!({ "count": body.count, "idempotency": idempotency }))
}

#[utoipa::path(post, path = "/test/file", responses((status = 200)),
    extensions(("x-permission" = json!("thread:write")), ("x-work" = json!("upload"))))]
async fn file(body: Bytes) -> String {
    body.len().to_string()
}

/// Waits for as long as the test wants.
#[utoipa::path(post, path = "/test/run", responses((status = 200)),
    extensions(("x-permission" = json!("thread:write")), ("x-work" = json!("run"))))]
async fn run(extract::Extension(gate): extract::Extension<Gate>) -> &'static str {
    gate.come.add_permits(1);
    gate.free.acquire().await.unwrap().forget();
    "done"
}

#[utoipa::path(get, path = "/test/hang", responses((status = 200)), extensions(("x-permission" = json!("thread:read"))))]
async fn hang() {
    std::future::pending::<()>().await;
}

#[utoipa::path(get, path = "/test/panic", responses((status = 200)), extensions(("x-permission" = json!("thread:read"))))]
async fn fail() -> &'static str {
    panic!("{ON_PURPOSE}")
}

/// A stream that says goodbye when the server ends.
#[utoipa::path(get, path = "/test/stream", responses((status = 200)), extensions(("x-permission" = json!("thread:read"))))]
async fn follow(State(app): State<App>) -> Response {
    stream(async move {
        app.closing.cancelled().await;
    })
}

/// A stream that listens to nobody.
#[utoipa::path(get, path = "/test/stay", responses((status = 200)), extensions(("x-permission" = json!("thread:read"))))]
async fn stay() -> Response {
    stream(std::future::pending())
}

/// A WebSocket that says goodbye when the server ends.
#[utoipa::path(get, path = "/test/ws", responses((status = 101)), extensions(("x-permission" = json!("thread:read"))))]
async fn socket(State(app): State<App>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(async move |mut socket| {
        let _ = socket.send(Message::text("hello")).await;
        app.closing.cancelled().await;
        let _ = socket.send(Message::Close(Some(CloseFrame { code: 1012, reason: "goodbye".into() }))).await;
    })
}

fn stream(until: impl Future<Output = ()> + Send + 'static) -> Response {
    let parts = async_stream::stream! {
        yield Ok::<_, Infallible>(Bytes::from_static(b": hello\n\n"));
        tokio::time::sleep(Duration::from_millis(1)).await;
        until.await;
        yield Ok(Bytes::from_static(b": goodbye\n\n"));
    };
    let mut response = Response::new(Body::from_stream(parts));
    let headers = response.headers_mut();
    headers.insert("content-type", "text/event-stream".parse().unwrap());
    headers.insert("cache-control", "no-cache, no-transform".parse().unwrap());
    response
}

#[utoipa::path(get, path = "/test/list", responses((status = 200)), extensions(("x-permission" = json!("thread:read"))))]
async fn list(Params(paging): Params<Paging>) -> String {
    format!("{:?}", paging.limit)
}

#[utoipa::path(get, path = "/test/threads/{thread_id}/of/{part}", responses((status = 200)),
    extensions(("x-permission" = json!("thread:read"))))]
async fn thread(ThreadPath(id): ThreadPath) -> String {
    id.to_string()
}

#[utoipa::path(get, path = "/test/runs/{id}", responses((status = 200)), extensions(("x-permission" = json!("thread:read"))))]
async fn of_run(RunPath(id): RunPath) -> String {
    id.to_string()
}

/// Knows better what a browser may do with it.
#[utoipa::path(get, path = "/test/page", responses((status = 200)), extensions(("x-permission" = json!("public"))), security(()))]
async fn page() -> ([(&'static str, &'static str); 1], &'static str) {
    ([("content-security-policy", "default-src 'self'")], "<p>")
}
