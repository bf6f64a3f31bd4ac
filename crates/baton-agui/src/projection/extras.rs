//! Events that AG-UI does not define: ACTIVITY and CUSTOM events whose names begin with `baton.`.

use baton_core::event::{ApprovalEvent, Event, EventKind};
use baton_core::{FileRef, Part, SessionId};
use serde_json::{Value, json};

use crate::AgentProfiles;
use crate::wire::{EventBody, RunUsage};

pub(super) fn of(event: &Event, owner: Option<&SessionId>, profiles: &AgentProfiles) -> Option<EventBody> {
    Some(match &event.kind {
        EventKind::Status { text } => activity(event, owner, "baton.status", json!({ "text": text })),
        EventKind::Progress(progress) => activity(event, owner, "baton.progress", json!(progress)),
        EventKind::Files { message_id, files } => {
            let parts: Vec<Part> = files.iter().map(FileRef::to_part).collect();
            let content = json!({ "message_id": message_id, "parts": parts });
            let message_id = format!("{message_id}/baton.files");
            EventBody::ActivitySnapshot { message_id, activity_type: "baton.files", content }
        }
        EventKind::Handoff(handoff) => {
            let mut value = json!(handoff);
            value["display_name"] = json!(profiles.name_of(&handoff.to));
            custom("baton.handoff", value)
        }
        EventKind::Approval(approval) => custom("baton.approval", approval_value(approval)),
        EventKind::SubAgentFinished(result) => custom("baton.result", json!(result)),
        EventKind::Passed { by, from, to, reason, .. } => {
            custom("baton.hop", json!({ "by": by, "from": from, "to": to, "reason": reason }))
        }
        EventKind::Guardrail(refused) => custom("baton.guardrail", json!(refused)),
        EventKind::Budget(warning) => custom("baton.budget", json!(warning)),
        // The field `kind` tells them apart.
        kind @ (EventKind::Broadcast { .. } | EventKind::Voted { .. } | EventKind::TeamEnded { .. }) => {
            custom("baton.team", json!(kind))
        }
        _ => return None,
    })
}

/// `baton.usage`: usage in total and by agent, the limit, the answering agent and the sources.
pub(super) fn usage(end: &EventKind) -> Option<EventBody> {
    let value = match end {
        EventKind::RunFailed { usage, by_agent, .. } | EventKind::RunWaiting { usage, by_agent, .. } => {
            let by_agent = by_agent.clone();
            RunUsage { usage: *usage, by_agent, limit: None, answered_by: None, sources: None }
        }
        EventKind::RunFinished { usage, limit, answered_by, sources, by_agent, .. } => RunUsage {
            usage: *usage,
            by_agent: by_agent.clone(),
            limit: limit.clone(),
            answered_by: answered_by.clone(),
            sources: Some(sources.clone()),
        },
        _ => return None,
    };
    Some(EventBody::RunUsage { name: "baton.usage", value })
}

/// The request and what became of it, as one flat object.
fn approval_value(approval: &ApprovalEvent) -> Value {
    let mut value = json!(approval.request);
    if let (Value::Object(all), Value::Object(outcome)) = (&mut value, json!(approval.outcome)) {
        all.extend(outcome);
    }
    value
}

fn custom(name: &'static str, value: Value) -> EventBody {
    EventBody::Custom { name, value }
}

/// A status of the run or of a sub-agent. The message id is stable, so each snapshot replaces the previous one.
fn activity(
    event: &Event,
    owner: Option<&SessionId>,
    activity_type: &'static str,
    content: Value,
) -> EventBody {
    let whose = owner.map_or_else(|| event.run_id.to_string(), SessionId::to_string);
    EventBody::ActivitySnapshot { message_id: format!("{whose}/{activity_type}"), activity_type, content }
}
