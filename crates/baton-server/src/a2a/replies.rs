//! A message that answers what a parked run waits for: the approval of a call, or a question.

use baton_a2a::model::{Message, Part, Task};
use baton_core::MessageId;
use baton_core::store::{AcceptedRun, Approval, ApprovalKind};
use baton_engine::handoff::is_yes;
use serde_json::{Value, json};
use uuid::Uuid;

use super::chain::Chain;
use super::exchange::Exchange;
use super::failure::A2aResult;
use super::tasks::{self, Wanted};
use crate::problem::Code;
use crate::routes::approvals;
use crate::trail;
use crate::wire::approval::DECIDE;

/// Words that deny a call, alone.
const NO: [&str; 10] =
    ["no", "n", "nope", "deny", "denied", "reject", "rejected", "decline", "don't", "do not"];
/// Words that approve a call, alone, besides those that mean yes everywhere.
const APPROVE: [&str; 5] = ["approve", "approved", "allow", "accept", "y"];

/// What became of a reply.
#[derive(Debug)]
pub enum Reply {
    /// The run continues.
    Decided(AcceptedRun),
    /// The reply decides nothing; the text says what would.
    Unclear(String),
}

/// Decides the approval that the message names, or the first that is open.
pub async fn answer(exchange: &Exchange, chain: &Chain, message: &Message) -> A2aResult<Reply> {
    let Exchange { app, caller, trace, .. } = exchange;
    trail::demand(app, caller, trace, DECIDE, &exchange.path).await?;
    let data = message.parts.iter().find_map(Part::as_data);
    let named = data.and_then(|data| data["approval_id"].as_str()).and_then(|id| Uuid::try_parse(id).ok());
    let is_meant = |approval: &&Approval| named.is_none_or(|id| approval.request.approval_id == id);
    let Some(approval) = chain.pending().find(is_meant) else {
        return Ok(Reply::Unclear("approval_id names nothing that the task waits for.".to_owned()));
    };
    let Some(body) = decision(approval, data, &message.text()) else {
        return Ok(Reply::Unclear(hint(approval).to_owned()));
    };
    let Ok(body) = serde_json::from_value(body) else {
        return Ok(Reply::Unclear("The data part has a member of the wrong type.".to_owned()));
    };
    let after = app.data(caller).thread(chain.first().thread_id, None).await?.last_seq;
    match approvals::decide(app, caller, trace, approval.request.approval_id, body).await {
        Ok(decided) => Ok(Reply::Decided(AcceptedRun {
            run_id: decided.run_id,
            // The decision has no message of its own.
            message_id: MessageId::from_uuid(Uuid::nil()),
            is_new: true,
            behind: None,
            after,
        })),
        Err(problem) if problem.code == Code::InvalidRequest => {
            let errors = problem.to_json("")["errors"][0]["detail"].as_str().unwrap_or_default().to_owned();
            Ok(Reply::Unclear(format!("The answer is not accepted: {errors}")))
        }
        Err(problem) => Err(problem.into()),
    }
}

fn hint(approval: &Approval) -> &'static str {
    match approval.request.kind {
        ApprovalKind::Tool => {
            "This was not understood. Answer yes or no, or send a data part {\"approved\": true} or {\"approved\": false}."
        }
        ApprovalKind::Question => {
            "The answer is empty. Send a text, or a data part with the member `answer`."
        }
    }
}

/// The decision as the native API takes it.
fn decision(approval: &Approval, data: Option<&Value>, text: &str) -> Option<Value> {
    if approval.request.kind == ApprovalKind::Question {
        let answer = match data {
            Some(data) => data.get("answer").unwrap_or(data).clone(),
            None => json!(text.trim()),
        };
        return (answer != "").then(|| json!({ "decision": "approve", "answer": answer }));
    }
    let approved = match data.and_then(|data| data["approved"].as_bool()) {
        Some(approved) => approved,
        None => said(text)?,
    };
    let mut body = json!({ "decision": if approved { "approve" } else { "deny" } });
    for member in ["reason", "arguments", "remember", "digest"] {
        if let Some(value) = data.and_then(|data| data.get(member)) {
            body[member] = value.clone();
        }
    }
    Some(body)
}

/// Whether the words approve or deny; `None` if they say anything else.
fn said(text: &str) -> Option<bool> {
    let word = text.trim().trim_end_matches(['.', '!']).to_lowercase();
    if is_yes(text) || APPROVE.contains(&word.as_str()) {
        return Some(true);
    }
    NO.contains(&word.as_str()).then_some(false)
}

/// The unchanged task, with the explanation before what it waits for.
pub async fn explained(exchange: &Exchange, chain: &Chain, explanation: String) -> A2aResult<Task> {
    let wanted = Wanted { history: None, artifacts: true, base: exchange.base.as_deref() };
    let mut task = tasks::task(&*exchange.app.data(&exchange.caller), chain, wanted).await?;
    if let Some(message) = &mut task.status.message {
        message.parts.insert(0, Part::text(explanation));
    }
    Ok(task)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_word_decides() {
        for yes in ["yes", "Yes!", "approve", "OK", "y"] {
            assert_eq!(said(yes), Some(true), "{yes}");
        }
        for no in ["no", "No.", "deny", "Don't"] {
            assert_eq!(said(no), Some(false), "{no}");
        }
        for unclear in ["maybe", "yes men", "no idea", "what does it do?", ""] {
            assert_eq!(said(unclear), None, "{unclear}");
        }
    }
}
