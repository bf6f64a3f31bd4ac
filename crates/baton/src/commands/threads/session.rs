//! A conversation as the document that swarms of agents pass around: who has the baton, the ways it took, and what for. Made from
//! what is kept, so there is no second truth.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use baton_core::store::{HopKind, HopOutcome, MessageQuery, PageRequest, RunQuery, RunRecord, Thread};
use baton_core::{AgentName, StoreError, ThreadId, Usd};
use baton_server::wire::hop::HopView;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

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
    kind: HopKind,
    /// None while a handoff is open.
    outcome: Option<HopOutcome>,
    latency_ms: u64,
    cost_usd: Usd,
}

#[derive(Debug, Serialize)]
struct SessionContext {
    original_query: Option<String>,
    previous_work: Option<String>,
}

impl From<HopView> for SessionLink {
    fn from(hop: HopView) -> Self {
        Self {
            from: hop.from,
            to: hop.to,
            reason: hop.reason,
            timestamp: hop.at,
            kind: hop.kind,
            outcome: hop.outcome,
            latency_ms: hop.latency_ms,
            cost_usd: hop.cost_usd,
        }
    }
}

impl SessionDocument {
    /// Writes the document to `swarm_session_<context id>.json` in `folder` and returns the path. Only the owner can read the file. It
    /// is replaced as a whole: a reader never sees a part of it, and a crash leaves the one before.
    pub(super) fn write(&self, folder: &Path) -> std::io::Result<PathBuf> {
        let name = format!("swarm_session_{}.json", self.context_id);
        let (path, staged) = (folder.join(&name), folder.join(format!(".{name}.{}", Uuid::new_v4())));
        let written = write_private(&staged, self).and_then(|()| fs::rename(&staged, &path));
        if let Err(error) = written {
            let _ = fs::remove_file(&staged);
            return Err(error);
        }
        // The new name is durable once its folder is.
        fs::File::open(folder)?.sync_all()?;
        Ok(path)
    }
}

fn write_private(path: &Path, document: &SessionDocument) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create_new(true).write(true).mode(0o600).open(path)?;
    serde_json::to_writer_pretty(&mut file, document)?;
    file.write_all(b"\n")?;
    file.sync_all()
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
    let open = archive.tenant.open_handoff_of(id).await?;
    let chain = HopView::chain(hops, open.as_ref(), Timestamp::now());
    let asked = MessageQuery { before: Some(2), include_internal: true, ..MessageQuery::last(1) };
    let asked = archive.tenant.messages(id, asked).await?.pop();
    let answered = runs.iter().find_map(|run| run.end.as_ref()?.answer.clone());
    Ok(SessionDocument {
        version: VERSION,
        context_id: id,
        current_agent: thread.holder.or_else(|| runs.first().map(|run| run.agent.clone())),
        session_start: thread.created_at,
        handoff_chain: chain.into_iter().map(SessionLink::from).collect(),
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
