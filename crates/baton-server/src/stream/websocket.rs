//! The stream over a WebSocket, which also accepts requests.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use baton_core::store::{Cancel, PageRequest, RunQuery, RunStatus};
use baton_core::{RunId, StoreError, ThreadId};
use baton_engine::SubmitOptions;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::resume::JoinedStream;
use super::{Outgoing, frames, listen};
use crate::app::App;
use crate::identity::Caller;
use crate::metrics::StreamKind;
use crate::problem::{ApiResult, Code, FieldError, Problem};
use crate::routes::{approvals, handoff, messages, runs};
use crate::strict::{self, Checked};
use crate::trace::Trace;
use crate::trail;
use crate::wire::approval::{DECIDE, Decision, DecisionBody};
use crate::wire::send::SendMessage;
use crate::wire::text::Remark;

/// The subprotocol, for clients that require one.
const PROTOCOL: &str = "baton";
/// As the audit trail names it.
const ROUTE: &str = "/api/v1/threads/{thread_id}/ws";
const EXPIRED: &str = "the credential is not valid any more";
/// Send timeout for a client that does not read.
const PATIENCE: Duration = Duration::from_secs(30);

/// A request of a client.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum SocketRequest {
    Message(SendMessage),
    Cancel {
        #[serde(default)]
        mode: Option<Cancel>,
        /// The active run if it is left out, or else the only run that waits.
        #[serde(default)]
        run_id: Option<RunId>,
    },
    ExitHandoff {},
    Approve(SocketDecision),
}

/// A decision and what it is about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SocketDecision {
    approval_id: Uuid,
    decision: Decision,
    #[serde(default)]
    reason: Option<Remark>,
    #[serde(default)]
    arguments: Option<Value>,
    #[serde(default)]
    remember: bool,
    #[serde(default)]
    answer: Option<Value>,
    #[serde(default)]
    digest: Option<String>,
}

impl Checked for SocketRequest {
    fn check(&self) -> Vec<FieldError> {
        match self {
            Self::Message(message) => message.check(),
            _ => Vec::new(),
        }
    }
}

pub fn respond(
    app: App,
    caller: Caller,
    trace: Trace,
    thread: ThreadId,
    upgrade: WebSocketUpgrade,
    joined: JoinedStream,
) -> Response {
    let most = app.settings.limits.max_body_bytes;
    let upgrade = upgrade.max_message_size(most).max_frame_size(most).protocols([PROTOCOL]);
    upgrade.on_upgrade(move |socket| async move {
        let guard = app.metrics.stream(StreamKind::WebSocket);
        Box::pin(SocketConversation { app, caller, trace, thread }.hold(socket, joined)).await;
        drop(guard);
    })
}

/// One client on one thread.
struct SocketConversation {
    app: App,
    caller: Caller,
    trace: Trace,
    thread: ThreadId,
}

impl SocketConversation {
    /// Runs until the client disconnects or stops reading, or the server shuts down.
    async fn hold(self, socket: WebSocket, joined: JoinedStream) {
        let (mut out, mut back) = socket.split();
        let mut sent = listen(self.app.clone(), joined);
        loop {
            let is_alive = tokio::select! {
                next = sent.next() => match next {
                    Some(sent) => say(&mut out, sent).await,
                    None => return close(&mut out, close_code::NORMAL, "there is nothing to follow").await,
                },
                asked = next_text(&mut back) => match asked {
                    Some(text) => send(&mut out, Message::text(self.answer(&text).await.to_string())).await,
                    None => false,
                },
            };
            if !is_alive {
                return;
            }
        }
    }

    /// Answers a request with a CUSTOM event, which AG-UI clients understand.
    async fn answer(&self, text: &str) -> Value {
        let (name, value) = match self.attend(text).await {
            Ok(value) => ("baton.accepted", value),
            Err(problem) => {
                self.app.metrics.refused(problem.code);
                ("baton.problem", problem.to_json(&self.trace.0.trace_id()))
            }
        };
        json!({ "type": "CUSTOM", "name": name, "value": value })
    }

    async fn attend(&self, text: &str) -> ApiResult<Value> {
        if !self.app.identity.is_still(&self.caller).await {
            return Err(Problem::new(Code::Unauthenticated, EXPIRED));
        }
        let Self { app, caller, trace, thread } = self;
        let request = strict::parse::<SocketRequest>(text.as_bytes());
        // Leaving and stopping always work.
        if !matches!(request, Ok(SocketRequest::Cancel { .. } | SocketRequest::ExitHandoff {})) {
            app.guards.admit(&caller.tenant)?;
        }
        match request? {
            SocketRequest::Message(message) => {
                caller.demand("thread:write")?;
                let terms = SubmitOptions { limits: app.run_limits(caller), ..SubmitOptions::default() };
                let accepted = messages::submit(app, caller, trace, *thread, message, terms).await?;
                Ok(json!({ "request": "message", "run_id": accepted.run_id }))
            }
            SocketRequest::Cancel { mode, run_id } => {
                let run = self.run_to_cancel(run_id).await?;
                let status = runs::cancel(app, caller, trace, run, mode.unwrap_or(Cancel::Stop)).await?;
                Ok(json!({ "request": "cancel", "run_id": run, "status": status }))
            }
            SocketRequest::ExitHandoff {} => {
                let returned = handoff::exit(app, caller, trace, *thread).await?;
                Ok(json!({ "request": "exit_handoff", "handoff": returned }))
            }
            SocketRequest::Approve(decided) => {
                trail::demand(app, caller, trace, DECIDE, ROUTE).await?;
                let SocketDecision { approval_id, decision, reason, arguments, remember, answer, digest } =
                    decided;
                let body = DecisionBody { decision, reason, arguments, remember, answer, digest };
                let decided = approvals::decide(app, caller, trace, approval_id, body).await?;
                Ok(json!({ "request": "approve", "approval": decided }))
            }
        }
    }
}

impl SocketConversation {
    /// Which run of the thread a request to cancel is about.
    async fn run_to_cancel(&self, named: Option<RunId>) -> ApiResult<RunId> {
        let data = self.app.data(&self.caller);
        let active = data.thread(self.thread, self.caller.scope()).await?.active_run;
        if let Some(run_id) = named {
            return match data.run(run_id).await {
                Ok(run) if run.thread_id == self.thread => Ok(run_id),
                Ok(_) | Err(StoreError::NotFound(_)) => Err(Problem::not_found("run")),
                Err(error) => Err(error.into()),
            };
        }
        if let Some(active) = active {
            return Ok(active);
        }
        let waiting = RunQuery {
            thread_id: Some(self.thread),
            status: Some(RunStatus::Waiting),
            ..RunQuery::default()
        };
        match &data.runs(waiting, PageRequest::first(2)).await?.data[..] {
            [only] => Ok(only.run_id),
            [] => Err(Problem::new(Code::Conflict, "no run of this thread is active or waiting")),
            _ => {
                Err(Problem::new(Code::Conflict, "several runs of this thread wait: name one with `run_id`"))
            }
        }
    }
}

/// The next text; `None` if the client has disconnected or sent a binary message.
async fn next_text(back: &mut SplitStream<WebSocket>) -> Option<String> {
    loop {
        match back.next().await?.ok()? {
            Message::Text(text) => return Some(text.to_string()),
            Message::Ping(_) | Message::Pong(_) => {}
            Message::Binary(_) | Message::Close(_) => return None,
        }
    }
}

async fn say(out: &mut SplitSink<WebSocket, Message>, outgoing: Outgoing) -> bool {
    match outgoing {
        Outgoing::Frames(sent) => {
            for (id, event) in frames::events(&sent) {
                if !send(out, Message::Text(numbered(id, &event))).await {
                    return false;
                }
            }
            true
        }
        Outgoing::Heartbeat => send(out, Message::Ping(bytes::Bytes::new())).await,
        Outgoing::Reconnect => {
            close(out, close_code::RESTART, "the server is shutting down, reconnect").await;
            false
        }
        Outgoing::Expired => {
            close(out, close_code::POLICY, EXPIRED).await;
            false
        }
    }
}

/// The event with the field `id`, which is what `id:` is in server-sent events: the number to reconnect with.
fn numbered(id: u64, event: &[u8]) -> Utf8Bytes {
    let members = event.strip_suffix(b"}").expect("an event is an object with a type");
    let text = [members, format!(",\"id\":{id}}}").as_bytes()].concat();
    Utf8Bytes::try_from(text).expect("JSON is UTF-8")
}

/// Returns `false` if the client does not accept the message in time.
async fn send(out: &mut SplitSink<WebSocket, Message>, message: Message) -> bool {
    matches!(tokio::time::timeout(PATIENCE, out.send(message)).await, Ok(Ok(())))
}

async fn close(out: &mut SplitSink<WebSocket, Message>, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let _ = send(out, Message::Close(Some(frame))).await;
}
