//! A conversation as the document that swarms of agents pass around: who has the baton, the ways it took, and what for. Made from
//! what is kept, so there is no second truth.

use baton_core::store::{Hop, MessageQuery, PageRequest, RunQuery, RunRecord, Thread};
use baton_core::{AgentName, StoreError, ThreadId};
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;

use super::super::archive::Archive;
use crate::report::conversation::text_of;

const VERSION: &str = "1.4";
/// Of what was said last, in characters; its end is what counts.
const PREVIOUS_WORK: usize = 2000;

#[derive(Debug, Serialize)]
pub(super) struct SessionDocument {
    version: &'static str,
    context_id: ThreadId,
    current_agent: Option<AgentName>,
    session_start: Timestamp,
    handoff_chain: Vec<SessionLink>,
    context: SessionContext,
    handoffs_enabled: bool,
    domain: Value,
    last_classification_confidence: Value,
}

#[derive(Debug, Serialize)]
struct SessionLink {
    from: AgentName,
    to: AgentName,
    reason: String,
    timestamp: Timestamp,
}

#[derive(Debug, Serialize)]
struct SessionContext {
    original_query: Option<String>,
    previous_work: Option<String>,
}

impl From<Hop> for SessionLink {
    fn from(hop: Hop) -> Self {
        Self { from: hop.from, to: hop.to, reason: hop.reason, timestamp: hop.at }
    }
}

pub(super) async fn document(
    archive: &Archive,
    thread: Thread,
    handoffs_enabled: bool,
) -> Result<SessionDocument, StoreError> {
    let id = thread.thread_id;
    let query = RunQuery { thread_id: Some(id), ..RunQuery::default() };
    let runs = archive.tenant.runs(query, PageRequest::first(PageRequest::MAX_LIMIT)).await?.data;
    let hops = archive.tenant.hops(id).await?;
    let asked = MessageQuery { before: Some(2), include_internal: true, ..MessageQuery::last(1) };
    let asked = archive.tenant.messages(id, asked).await?.pop();
    let answered = runs.iter().find_map(|run| run.end.as_ref()?.answer.clone());
    Ok(SessionDocument {
        version: VERSION,
        context_id: id,
        current_agent: thread.holder.or_else(|| runs.first().map(|run| run.agent.clone())),
        session_start: thread.created_at,
        handoff_chain: hops.into_iter().map(SessionLink::from).collect(),
        context: SessionContext {
            original_query: asked.map(|asked| text_of(&asked.message.parts)),
            previous_work: answered.map(|text| end_of(&text)),
        },
        handoffs_enabled,
        domain: entry(&runs, "domain"),
        last_classification_confidence: entry(&runs, "confidence"),
    })
}

/// How the newest request that was classified came in.
fn entry(runs: &[RunRecord], key: &str) -> Value {
    let entries = runs.iter().filter_map(|run| run.request.get("entry"));
    entries.filter_map(|entry| entry.get(key)).find(|value| !value.is_null()).cloned().unwrap_or_default()
}

fn end_of(text: &str) -> String {
    let count = text.chars().count();
    if count <= PREVIOUS_WORK {
        return text.to_owned();
    }
    format!("...{}", text.chars().skip(count - PREVIOUS_WORK).collect::<String>())
}
