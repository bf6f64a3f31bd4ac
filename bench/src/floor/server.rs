//! The floor itself: reads the model's stream, sends every token on, and keeps what was said. No configuration, no retries, no
//! limits: something to compare with, not something to use.

use std::collections::HashMap;
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Request, Uri};
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::serve::ListenerExt as _;
use axum::{Json, Router};
use bytes::Bytes;
use futures_util::future::join_all;
use futures_util::stream;
use http_body_util::{BodyExt as _, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use super::archive::RunArchive;
use super::scenario::{Others, ScenarioAgent, agents};

struct Floor {
    http: Client<HttpConnector, Full<Bytes>>,
    model: Uri,
    agents: HashMap<String, ScenarioAgent>,
    archive: RunArchive,
}

#[derive(Deserialize)]
struct ChatBody {
    thread: String,
    agent: String,
    content: String,
}

#[derive(Debug, Serialize, Deserialize)]
struct WireMessage {
    role: String,
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

impl WireMessage {
    fn new(role: &str, content: String) -> Self {
        Self { role: role.to_owned(), content: Some(content), tool_calls: Vec::new(), tool_call_id: None }
    }

    fn result(call: &WireCall, content: String) -> Self {
        Self { tool_call_id: Some(call.id.clone()), ..Self::new("tool", content) }
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct WireCall {
    id: String,
    r#type: String,
    function: WireFunction,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct WireFunction {
    name: String,
    arguments: String,
}

/// What is read of a frame.
#[derive(Deserialize)]
struct FloorFrame {
    choices: Vec<DeltaChoice>,
}

#[derive(Deserialize)]
struct DeltaChoice {
    delta: FloorDelta,
}

#[derive(Deserialize)]
struct FloorDelta {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<WireCall>,
}

#[derive(Serialize)]
struct FloorTurn<'a> {
    model: &'a str,
    stream: bool,
    messages: Vec<&'a WireMessage>,
}

/// Serves until the parent ends the process.
pub fn serve(provider: &str, database: &str) -> ExitCode {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let floor = Floor {
            http: Client::builder(TokioExecutor::new()).build(connector),
            model: format!("{provider}/chat/completions").parse().expect("an address"),
            agents: agents().into_iter().map(|agent| (agent.name.clone(), agent)).collect(),
            archive: RunArchive::open(Path::new(database)),
        };
        let app = Router::new().route("/chat", post(chat)).with_state(Arc::new(floor));
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(([127, 0, 0, 1], 0).into()).expect("a port");
        let listener = socket.listen(4096).expect("a listener");
        println!("http://{}", listener.local_addr().expect("an address"));
        let listener = listener.tap_io(|stream| stream.set_nodelay(true).expect("a socket"));
        axum::serve(listener, app).await.expect("served");
    });
    ExitCode::SUCCESS
}

async fn chat(State(floor): State<Arc<Floor>>, Json(asked): Json<ChatBody>) -> Response {
    let (sender, receiver) = unbounded_channel();
    tokio::spawn(async move { floor.run(asked, &sender).await });
    let pieces = stream::unfold(receiver, |mut receiver: UnboundedReceiver<Bytes>| async {
        receiver.recv().await.map(|piece| (Ok::<_, std::convert::Infallible>(piece), receiver))
    });
    ([(CONTENT_TYPE, "text/event-stream")], Body::from_stream(pieces)).into_response()
}

impl Floor {
    async fn run(&self, asked: ChatBody, out: &UnboundedSender<Bytes>) {
        let kept = self.archive.read(&asked.thread).await;
        let from = kept.len();
        let read = |text: &String| serde_json::from_str(text).expect("what was kept");
        let mut said: Vec<WireMessage> = kept.iter().map(read).collect();
        said.push(WireMessage::new("user", asked.content));
        let mut agent = &self.agents[&asked.agent];
        // An agent sees what was said before the run and what it did itself, not what others did before it.
        let (before, mut own) = (said.len(), said.len());
        loop {
            let seen = said[..before].iter().chain(&said[own..]);
            let mut reply = self.turn(agent, seen, Some(out)).await;
            let calls = std::mem::take(&mut reply.tool_calls);
            let Some(call) = calls.first() else {
                said.push(reply);
                break;
            };
            let result = match &agent.others {
                Others::Next(next) => {
                    agent = &self.agents[next];
                    own = said.len() + 2;
                    WireMessage::result(call, format!("{next} has it now"))
                }
                Others::Asked(names) => WireMessage::result(call, self.ask(names).await),
                Others::None => panic!("the model of `{}` called a tool", agent.name),
            };
            said.push(WireMessage { tool_calls: calls, ..reply });
            said.push(result);
        }
        let fresh = said[from..].iter().map(|message| serde_json::to_string(message).expect("JSON"));
        self.archive.keep(&asked.thread, from, fresh.collect()).await;
        let _ = out.send(Bytes::from_static(b"data: {\"done\":true}\n\n"));
    }

    /// Asks agents at the same time.
    async fn ask(&self, names: &[String]) -> String {
        let task = [WireMessage::new("user", "Look it up.".to_owned())];
        let ask = |name: &String| self.turn(&self.agents[name], task.iter(), None);
        let answers = join_all(names.iter().map(ask)).await;
        answers.into_iter().filter_map(|answer| answer.content).collect::<Vec<_>>().join("\n")
    }

    /// One model call. Text goes to `out` as it comes.
    async fn turn(
        &self,
        agent: &ScenarioAgent,
        said: impl Iterator<Item = &WireMessage>,
        out: Option<&UnboundedSender<Bytes>>,
    ) -> WireMessage {
        let system = WireMessage::new("system", "You help.".to_owned());
        let mut messages: Vec<&WireMessage> = vec![&system];
        for message in said {
            messages.push(message);
        }
        let body =
            serde_json::to_vec(&FloorTurn { model: &agent.model, stream: true, messages }).expect("JSON");
        let request = Request::post(self.model.clone())
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(body))
            .expect("a request");
        let mut body = self.http.request(request).await.expect("an answer").into_body();
        let mut reply = WireMessage::new("assistant", String::new());
        let mut pending = Vec::new();
        while let Some(frame) = body.frame().await {
            let Ok(bytes) = frame.expect("a whole body").into_data() else { continue };
            pending.extend_from_slice(&bytes);
            let piece = read_lines(&mut pending, &mut reply, out.is_some());
            if let Some(out) = out.filter(|_| !piece.is_empty()) {
                let _ = out.send(piece.into());
            }
        }
        reply
    }
}

/// Takes whole lines from `pending` and returns what is sent on.
fn read_lines(pending: &mut Vec<u8>, reply: &mut WireMessage, sends: bool) -> Vec<u8> {
    let (mut from, mut piece) = (0, Vec::new());
    while let Some(length) = memchr::memchr(b'\n', &pending[from..]) {
        let line = &pending[from..from + length];
        from += length + 1;
        let Some(data) = line.strip_prefix(b"data: ").filter(|data| *data != b"[DONE]") else { continue };
        let frame: FloorFrame = serde_json::from_slice(data).expect("a frame");
        for DeltaChoice { delta } in frame.choices {
            reply.tool_calls.extend(delta.tool_calls);
            let Some(text) = delta.content else { continue };
            if sends {
                piece.extend_from_slice(b"data: {\"delta\":");
                serde_json::to_writer(&mut piece, &text).expect("JSON");
                piece.extend_from_slice(b"}\n\n");
            }
            reply.content.get_or_insert_default().push_str(&text);
        }
    }
    pending.drain(..from);
    piece
}
