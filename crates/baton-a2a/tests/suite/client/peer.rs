//! A server that plays a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

/// What the server does with the next request that is not for a card.
#[derive(Debug, Clone)]
pub(super) enum Reply {
    /// Events of a stream, which ends in an orderly way.
    Stream(Vec<Value>),
    /// The same, but the connection breaks.
    Cut(Vec<Value>),
    /// The same, and then nothing.
    Silent(Vec<Value>),
    Json(u16, Value),
}

#[derive(Debug, Default)]
pub(super) struct Script {
    pub(super) card: Value,
    pub(super) card_headers: Vec<(&'static str, String)>,
    pub(super) replies: VecDeque<Reply>,
    pub(super) seen: Vec<Seen>,
}

/// A request that the server got.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

impl Seen {
    /// The method of JSON-RPC.
    pub(super) fn method(&self) -> &str {
        self.body["method"].as_str().unwrap_or_default()
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

/// A server that ends with the test.
#[derive(Clone)]
pub(super) struct Peer {
    pub(super) address: String,
    pub(super) script: Arc<Mutex<Script>>,
}

impl Peer {
    /// A server whose card has an interface of 0.3 over JSON-RPC.
    pub(super) async fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let card = json!({
            "protocolVersion": "0.3.0", "name": "Far", "description": "x", "url": format!("{address}/rpc"),
            "version": "1", "capabilities": { "streaming": true }, "defaultInputModes": ["text/plain"],
            "defaultOutputModes": ["text/plain"], "skills": [], "preferredTransport": "JSONRPC",
        });
        let script = Script { card, replies: replies.into_iter().collect(), ..Script::default() };
        let peer = Self { address, script: Arc::new(Mutex::new(script)) };
        let app = Router::new().fallback(serve).with_state(Arc::clone(&peer.script));
        tokio::spawn(async move { axum::serve(listener, app).await });
        peer
    }

    pub(super) fn card_url(&self) -> String {
        format!("{}/.well-known/agent-card.json", self.address)
    }

    pub(super) fn change(&self, change: impl FnOnce(&mut Script)) {
        change(&mut self.script.lock().unwrap());
    }

    /// The requests that were not for a card.
    pub(super) fn seen(&self) -> Vec<Seen> {
        let all = self.script.lock().unwrap().seen.clone();
        all.into_iter().filter(|seen| !is_card(&seen.path) && seen.path != "/").collect()
    }

    pub(super) fn methods(&self) -> Vec<String> {
        self.seen().iter().map(|seen| seen.method().to_owned()).collect()
    }

    pub(super) fn card_requests(&self) -> usize {
        self.script.lock().unwrap().seen.iter().filter(|seen| is_card(&seen.path)).count()
    }
}

fn is_card(path: &str) -> bool {
    path.contains("card") || path.contains(".well-known")
}

async fn serve(State(script): State<Arc<Mutex<Script>>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let bytes = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| json!(String::from_utf8_lossy(&bytes)));
    let path = parts.uri.path().to_owned();
    let seen = Seen { path: path.clone(), headers: parts.headers.clone(), body };
    let id = seen.body["id"].clone();
    let mut script = script.lock().unwrap();
    script.seen.push(seen);
    if is_card(&path) {
        return card(&script, &parts.headers);
    }
    if path == "/" {
        return Response::builder().status(StatusCode::NOT_FOUND).body(Body::empty()).unwrap();
    }
    let reply = script.replies.pop_front();
    drop(script);
    match reply.unwrap_or(Reply::Json(500, Value::Null)) {
        Reply::Json(status, value) => json_response(status, &value, &id),
        Reply::Stream(items) => stream(items, &id, Ending::Orderly),
        Reply::Cut(items) => stream(items, &id, Ending::Cut),
        Reply::Silent(items) => stream(items, &id, Ending::Silent),
    }
}

fn card(script: &Script, headers: &HeaderMap) -> Response {
    let mut response = Response::builder();
    for (name, value) in &script.card_headers {
        response = response.header(*name, value);
        if *name == "etag" && headers.get("if-none-match").is_some_and(|known| known == value.as_str()) {
            return response.status(StatusCode::NOT_MODIFIED).body(Body::empty()).unwrap();
        }
        if *name == "location" {
            response = response.status(StatusCode::TEMPORARY_REDIRECT);
        }
    }
    response.header("content-type", "application/json").body(Body::from(script.card.to_string())).unwrap()
}

fn json_response(status: u16, value: &Value, id: &Value) -> Response {
    let mut value = value.clone();
    if value.get("jsonrpc").is_some() {
        value["id"] = id.clone();
    }
    let response = Response::builder().status(status).header("content-type", "application/json");
    response.body(Body::from(value.to_string())).unwrap()
}

#[derive(Clone, Copy, PartialEq)]
enum Ending {
    Orderly,
    Cut,
    Silent,
}

fn stream(items: Vec<Value>, id: &Value, ending: Ending) -> Response {
    let frames: Vec<Result<Bytes, std::io::Error>> = items
        .into_iter()
        .map(|item| {
            let envelope = match item.get("error") {
                Some(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
                None => json!({ "jsonrpc": "2.0", "id": id, "result": item }),
            };
            Ok(Bytes::from(format!("data: {envelope}\n\n")))
        })
        .collect();
    let body = async_stream::stream! {
        for frame in frames {
            yield frame;
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
        match ending {
            Ending::Orderly => {}
            Ending::Cut => yield Err(std::io::Error::other("cut")),
            Ending::Silent => std::future::pending::<()>().await,
        }
    };
    Response::builder().header("content-type", "text/event-stream").body(Body::from_stream(body)).unwrap()
}

/// A task in a state.
pub(super) fn task(state: &str, artifacts: &[(&str, &str)]) -> Value {
    let artifacts: Vec<Value> = artifacts
        .iter()
        .map(|(id, text)| json!({ "artifactId": id, "parts": [{ "kind": "text", "text": text }] }))
        .collect();
    json!({
        "kind": "task", "id": "t1", "contextId": "c1", "status": { "state": state }, "artifacts": artifacts,
    })
}

pub(super) fn chunk(text: &str, append: bool) -> Value {
    json!({
        "kind": "artifact-update", "taskId": "t1", "contextId": "c1", "append": append,
        "artifact": { "artifactId": "a", "parts": [{ "kind": "text", "text": text }] },
    })
}

pub(super) fn status(state: &str, last: bool) -> Value {
    json!({ "kind": "status-update", "taskId": "t1", "contextId": "c1", "status": { "state": state }, "final": last })
}

/// The response of a call.
pub(super) fn result(value: &Value) -> Reply {
    Reply::Json(200, json!({ "jsonrpc": "2.0", "id": null, "result": value }))
}

/// The error of a call.
pub(super) fn error(code: i64, message: &str) -> Reply {
    Reply::Json(200, json!({ "jsonrpc": "2.0", "id": null, "error": { "code": code, "message": message } }))
}
