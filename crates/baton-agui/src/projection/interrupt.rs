//! A run that waits for decisions: AG-UI calls what it waits for interrupts.

use baton_core::event::is_within;
use baton_core::store::{ApprovalKind, ApprovalRequest};
use serde_json::{Value, json};

use super::subagents::Subagent;
use crate::wire::EventBody;

/// Outcome of `RUN_FINISHED`.
pub(super) fn outcome(requests: &[ApprovalRequest]) -> Value {
    let interrupts: Vec<Value> = requests.iter().map(interrupt).collect();
    json!({ "type": "interrupt", "interrupts": interrupts })
}

fn interrupt(request: &ApprovalRequest) -> Value {
    json!({
        "id": request.approval_id,
        "reason": match request.kind {
            ApprovalKind::Tool => "tool_call",
            ApprovalKind::Question => "input_required",
        },
        "message": request.preview.heading,
        "responseSchema": response_schema(request),
        "expiresAt": request.expires_at.to_string(),
        "metadata": { "baton": request },
    })
}

/// Schema of the payload of a `resume` entry: a decision, or the answer to a question.
fn response_schema(request: &ApprovalRequest) -> Value {
    match request.kind {
        ApprovalKind::Question => request.schema.clone(),
        ApprovalKind::Tool => json!({
            "type": "object",
            "properties": {
                "approved": { "type": "boolean" },
                "reason": { "type": "string" },
                "arguments": request.schema,
                "remember": { "type": "boolean" },
            },
            "required": ["approved"],
        }),
    }
}

/// A sub-agent that waits, or works for one that does.
pub(super) fn suspended(subagent: &Subagent, requests: &[ApprovalRequest]) -> EventBody {
    let own = requests.iter().filter(|request| is_within(&request.path, &subagent.path));
    let ids: Vec<Value> = own.map(|request| json!(request.approval_id)).collect();
    EventBody::SubagentFinished {
        subagent_run_id: subagent.start.subagent_run_id.clone(),
        outcome: json!({ "type": "suspended", "interruptIds": ids }),
    }
}
