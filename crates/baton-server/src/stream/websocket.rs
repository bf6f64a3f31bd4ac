//! The same over a WebSocket, with a way back.

use std::time::Duration;

use axum::extract::ws::{CloseFrame, Message, Utf8Bytes, WebSocket, WebSocketUpgrade, close_code};
use axum::response::Response;
use baton_core::ThreadId;
use baton_core::store::Cancel;
use baton_engine::Terms;
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::resume::Joined;
use super::{Outgoing, frames, listen};
use crate::app::App;
use crate::identity::Caller;
use crate::metrics::StreamKind;
use crate::problem::{Answer, Code, FieldError, Problem};
use crate::routes::{approvals, handoff, messages, runs};
use crate::strict::{self, Checked};
use crate::trace::Trace;
use crate::wire::approval::{Decision, DecisionBody};
use crate::wire::send::SendMessage;
use crate::wire::text::Remark;

const DECIDE: &str = "approval:decide";
/// The subprotocol, for clients that have to name one.
const PROTOCOL: &str = "baton";
const EXPIRED: &str = "the credential is not valid any more";
/// How long a client that does not read is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a client may send.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Request {
    Message(SendMessage),
    Cancel {
        #[serde(default)]
        mode: Option<Cancel>,
    },
    ExitHandoff {},
    Approve {
        approval_id: Uuid,
        decision: Decision,
        #[serde(default)]
        reason: Option<Remark>,
    },
}

impl Checked for Request {
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
    joined: Joined,
) -> Response {
    let most = app.settings.limits.max_body_bytes;
    let upgrade = upgrade.max_message_size(most).max_frame_size(most).protocols([PROTOCOL]);
    upgrade.on_upgrade(move |socket| async move {
        let guard = app.metrics.stream(StreamKind::WebSocket);
        Box::pin(Conversation { app, caller, trace, thread }.hold(socket, joined)).await;
        drop(guard);
    })
}

/// One client on one thread.
struct Conversation {
    app: App,
    caller: Caller,
    trace: Trace,
    thread: ThreadId,
}

impl Conversation {
    /// Until the client goes or does not read, or the server ends.
    async fn hold(self, socket: WebSocket, joined: Joined) {
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

    /// What a request came to, in a CUSTOM event, because that is what clients of this stream understand.
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

    async fn attend(&self, text: &str) -> Answer<Value> {
        if !self.app.identity.is_still(&self.caller).await {
            return Err(Problem::new(Code::Unauthenticated, EXPIRED));
        }
        self.app.guards.admit(&self.caller.tenant)?;
        let Self { app, caller, trace, thread } = self;
        match strict::parse::<Request>(text.as_bytes())? {
            Request::Message(message) => {
                caller.demand("thread:write")?;
                let terms =
                    Terms { max_active: Some(app.settings.limits.max_concurrent_runs), ..Terms::default() };
                let accepted = messages::submit(app, caller, trace, *thread, message, terms).await?;
                Ok(json!({ "request": "message", "run_id": accepted.run_id }))
            }
            Request::Cancel { mode } => {
                let active = app.data(caller).thread(*thread, caller.scope()).await?.active_run;
                let run =
                    active.ok_or_else(|| Problem::new(Code::Conflict, "no run of this thread is at work"))?;
                let status = runs::cancel(app, caller, trace, run, mode.unwrap_or(Cancel::Stop)).await?;
                Ok(json!({ "request": "cancel", "run_id": run, "status": status }))
            }
            Request::ExitHandoff {} => {
                let returned = handoff::exit(app, caller, trace, *thread).await?;
                Ok(json!({ "request": "exit_handoff", "handoff": returned }))
            }
            Request::Approve { approval_id, decision, reason } => {
                caller.demand(DECIDE)?;
                let body = DecisionBody { decision, reason };
                let decided = approvals::decide(app, caller, trace, approval_id, body).await?;
                Ok(json!({ "request": "approve", "approval": decided }))
            }
        }
    }
}

/// The next text; `None` when the client has gone or speaks something else.
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
            for event in frames::events(&sent) {
                let text = Utf8Bytes::try_from(event).expect("JSON is UTF-8");
                if !send(out, Message::Text(text)).await {
                    return false;
                }
            }
            true
        }
        Outgoing::Heartbeat => send(out, Message::Ping(bytes::Bytes::new())).await,
        Outgoing::Reconnect => {
            close(out, close_code::RESTART, "the server is about to end, come back").await;
            false
        }
        Outgoing::Expired => {
            close(out, close_code::POLICY, EXPIRED).await;
            false
        }
    }
}

/// False when the client does not take it.
async fn send(out: &mut SplitSink<WebSocket, Message>, message: Message) -> bool {
    matches!(tokio::time::timeout(PATIENCE, out.send(message)).await, Ok(Ok(())))
}

async fn close(out: &mut SplitSink<WebSocket, Message>, code: u16, reason: &'static str) {
    let frame = CloseFrame { code, reason: reason.into() };
    let _ = send(out, Message::Close(Some(frame))).await;
}
