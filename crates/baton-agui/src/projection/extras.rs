//! What AG-UI has no event for: ACTIVITY and CUSTOM events whose names begin with `baton.`.

use baton_core::SessionId;
use baton_core::event::{Event, EventKind};
use serde_json::{Map, Value, json};

use crate::Faces;
use crate::wire::Body;

pub(super) fn of(event: &Event, owner: Option<&SessionId>, faces: &Faces) -> Option<Body> {
    Some(match &event.kind {
        EventKind::Status { text } => activity(event, owner, "baton.status", json!({ "text": text })),
        EventKind::Progress { state, label, step, total } => {
            let content = json!({ "state": state, "label": label, "step": step, "total": total });
            activity(event, owner, "baton.progress", content)
        }
        EventKind::Handoff(handoff) => {
            let mut value = json!(handoff);
            value["display_name"] = json!(faces.name_of(&handoff.to));
            custom("baton.handoff", value)
        }
        EventKind::Brought(result) => custom("baton.result", json!(result)),
        EventKind::Passed { by, from, to, reason, .. } => {
            custom("baton.hop", json!({ "by": by, "from": from, "to": to, "reason": reason }))
        }
        // `kind` says which it is.
        kind @ (EventKind::Broadcast { .. } | EventKind::Voted { .. } | EventKind::TeamEnded { .. }) => {
            custom("baton.team", json!(kind))
        }
        _ => return None,
    })
}

/// What a run took and who took it, whose answer it has and who contributed to it.
pub(super) fn usage(end: &EventKind) -> Value {
    let mut value = Map::new();
    match end {
        EventKind::RunFailed { usage, by_agent, .. } => {
            value.insert("usage".into(), json!(usage));
            value.insert("by_agent".into(), json!(by_agent));
        }
        EventKind::RunFinished { usage, limit, answered_by, sources, by_agent, .. } => {
            value.insert("usage".into(), json!(usage));
            value.insert("by_agent".into(), json!(by_agent));
            value.insert("limit".into(), json!(limit));
            value.insert("answered_by".into(), json!(answered_by));
            value.insert("sources".into(), json!(sources));
        }
        _ => {}
    }
    value.retain(|_, value| !value.is_null());
    Value::Object(value)
}

fn custom(name: &'static str, value: Value) -> Body {
    Body::Custom { name, value }
}

/// One for each who is at work, replaced by the next.
fn activity(event: &Event, owner: Option<&SessionId>, activity_type: &'static str, content: Value) -> Body {
    let whose = owner.map_or_else(|| event.run_id.to_string(), SessionId::to_string);
    Body::ActivitySnapshot { message_id: format!("{whose}/{activity_type}"), activity_type, content }
}
