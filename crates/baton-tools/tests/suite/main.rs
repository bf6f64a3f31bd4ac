//! The built-in tools as the engine calls them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod attachments;
mod builtin;
mod documents;
mod files;
mod hostile;
mod loopback;
mod python;
mod read_output;
mod search;
mod semantic;
mod shell;
mod skills;
mod web;
mod web_search;
mod wiki;

use std::path::Path;
use std::sync::Arc;

use baton_core::{
    AgentName, CallContext, RunId, SessionId, Store, TenantId, ThreadId, Tool, ToolError, UserId,
};
use serde_json::Value;

const RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

/// A call of tenant `acme` in one and the same run.
fn context(work_dir: &Path) -> CallContext {
    let run_id = RunId::parse(RUN).unwrap();
    CallContext {
        tenant: TenantId::parse("acme").unwrap(),
        user: UserId::parse("ann").unwrap(),
        rights: baton_core::Rights::all(),
        thread_id: ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
        run_id,
        session_id: SessionId::root(run_id),
        agent: AgentName::parse("knowledge").unwrap(),
        work_dir: work_dir.to_owned(),
        has_workspace: false,
        storage_left: None,
        subfolder: None,
        trace: None,
    }
}

/// A store of its own.
async fn memory() -> Arc<dyn Store> {
    Arc::new(baton_store::open("sqlite::memory:", Path::new("")).await.unwrap())
}

async fn call(tool: &dyn Tool, arguments: Value, work_dir: &Path) -> Result<String, ToolError> {
    tool.call(arguments, Arc::new(context(work_dir))).await.map(|output| output.text)
}

/// The code of the error that a call must give.
async fn refusal(tool: &dyn Tool, arguments: Value, work_dir: &Path) -> &'static str {
    match call(tool, arguments.clone(), work_dir).await {
        Ok(text) => panic!("{arguments} was not refused: {text}"),
        Err(error) => error.code(),
    }
}
