//! What a client hears that loses its connection and comes back, wherever that happens.
//!
//! - `ids`: the number of each event of the whole log; a client comes back with the one it heard last.
//! - `kept`: the log for a client that was not connected while the texts grew.
//! - `late`: by that number, what comes first when the run is over by then; what follows is the part of `kept` behind it.
//! - `live`: after how many events of the whole log, what comes first when the connection is back at once; what follows is the rest of the
//!   log, unless thoughts are framed differently: then it is `rest`.

use std::collections::BTreeMap;

use baton_agui::{AguiEvent, AguiMessage, Detail};
use baton_core::event::{Event, EventKind, Growing};
use baton_core::message::{Message, Part, Role, Visibility};
use serde_json::{Value, json};

use super::{Log, View, frames, profiles};
use crate::joining::{growing, kept};

pub fn recorded(log: &Log, detail: Detail) -> String {
    let all = frames(&log.events, detail);
    let kept_log = kept(&log.events);
    let kept_frames = frames(&kept_log, detail);
    let ids: Vec<u64> = all.iter().map(|(id, _)| *id).collect();
    let mut late = BTreeMap::new();
    for at in 1..kept_log.len() {
        late.insert(kept_log[at - 1].seq, first(log, detail, &kept_log[..at], &[]));
    }
    let mut live = Vec::new();
    for at in 1..log.events.len() {
        let (seen, rest) = log.events.split_at(at);
        let heard = frames(seen, detail).len();
        let (first, follows) = live_join(log, detail, seen, rest);
        let is_same = follows == all[heard..].iter().map(|(_, event)| event.clone()).collect::<Vec<_>>();
        let mut join = json!({ "heard": heard, "first": first });
        if !is_same {
            join["rest"] = json!(follows);
        }
        // Not everything that happens is heard.
        if live.last() != Some(&join) {
            live.push(join);
        }
    }
    let questions =
        log.questions.iter().map(|one| json!({ "id": one.id, "runId": one.run_id, "text": one.text() }));
    let parts = [
        ("questions", lines(questions)),
        ("ids", json!(ids).to_string()),
        ("kept", lines(kept_frames.iter().map(|(_, event)| json!(event)))),
        ("late", lines(late.iter().map(|(after, first)| json!({ "after": after, "first": first })))),
        ("live", lines(live)),
    ];
    let parts: Vec<String> = parts.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    format!("{{\n{}\n}}\n", parts.join(",\n"))
}

fn lines(values: impl IntoIterator<Item = Value>) -> String {
    let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
    format!("[\n{}\n]", values.join(",\n"))
}

/// What the server sends before anything else to a client that has heard of `seen`.
fn first(log: &Log, detail: Detail, seen: &[Event], growing: &[Growing]) -> Vec<AguiEvent> {
    resumed(log, detail, seen, growing).1
}

fn live_join(log: &Log, detail: Detail, seen: &[Event], rest: &[Event]) -> (Vec<AguiEvent>, Vec<AguiEvent>) {
    let (mut view, first) = resumed(log, detail, &kept(seen), &growing(seen));
    let follows = rest.iter().flat_map(|event| view.show(event)).map(|(_, event)| event).collect();
    (first, follows)
}

fn resumed(log: &Log, detail: Detail, seen: &[Event], growing: &[Growing]) -> (View, Vec<AguiEvent>) {
    let mut view = View::new(detail);
    let Some(last) = seen.last().filter(|event| !event.kind.is_end()) else { return (view, Vec::new()) };
    let projection = view.projection(last.run_id);
    for event in seen.iter().filter(|event| event.run_id == last.run_id) {
        projection.replay(event);
    }
    let mut first = projection.preamble(history(log, last, detail));
    first.extend(growing.iter().flat_map(|text| projection.grown(text)));
    (view, first)
}

/// The conversation up to the message that the run of `event` answers.
fn history(log: &Log, event: &Event, detail: Detail) -> Vec<AguiMessage> {
    let mut messages = Vec::new();
    for question in &log.questions {
        messages.push(question.clone());
        if question.run_id == event.run_id {
            break;
        }
        messages.extend(log.events.iter().filter(|event| event.run_id == question.run_id).filter_map(said));
    }
    messages.iter().filter_map(|message| AguiMessage::of(message, detail, &profiles())).collect()
}

fn said(event: &Event) -> Option<Message> {
    let EventKind::TextFinished { message_id, text, .. } = &event.kind else { return None };
    (event.visibility == Visibility::User).then(|| Message {
        id: *message_id,
        run_id: event.run_id,
        role: Role::Assistant,
        agent: Some(event.agent.clone()),
        visibility: Visibility::User,
        parts: vec![Part::text(text)],
        created_at: event.at,
    })
}
