//! All data of a user, as a sequence of JSON objects. Each has a `type`; at most one page, artifact or piece of a file is in memory.

use std::fs::File;
use std::io::Read as _;
use std::sync::Arc;

use async_stream::try_stream;
use baton_core::store::{
    ApprovalQuery, AuditQuery, MessageQuery, PageRequest, RunQuery, Thread, ThreadMessage, UsageBy,
    UsageQuery,
};
use baton_core::workspace::MAX_WORKSPACE_FILES;
use baton_core::{StoreError, TenantId, TenantStore, ThreadId, UserId, Workspaces};
use data_encoding::BASE64;
use futures_util::Stream;
use jiff::Timestamp;
use serde::Serialize;
use serde_json::{Value, json};

/// Events per query.
const EVENTS: u32 = 200;
/// Bytes of a workspace file per line.
const PIECE: usize = 1 << 20;

/// Threads with their messages, runs, events, handoffs, approvals, feedback, artifacts and workspace files, then API keys, costs and
/// audit entries.
pub fn export(
    data: Arc<dyn TenantStore>,
    workspaces: Option<Arc<dyn Workspaces>>,
    user: UserId,
) -> impl Stream<Item = Result<Value, StoreError>> + Send + 'static {
    try_stream! {
        yield json!({
            "type": "export", "tenant_id": data.tenant(), "user_id": user, "at": Timestamp::now(), "version": 1
        });
        let mut page = PageRequest::first(PageRequest::MAX_LIMIT);
        loop {
            let found = data.threads(Some(&user), page.clone()).await?;
            for thread in &found.data {
                for await line in of_thread(Arc::clone(&data), user.clone(), thread.clone()) {
                    yield line?;
                }
                for await line in files(workspaces.clone(), data.tenant().clone(), thread.thread_id) {
                    yield line?;
                }
            }
            let Some(cursor) = found.next_cursor else { break };
            page.cursor = Some(cursor);
        }
        for key in data.keys().await?.into_iter().filter(|key| key.user_id == user) {
            yield line("key", &key)?;
        }
        let query = UsageQuery { by: UsageBy::Model, user_id: Some(user.clone()), since: None, until: None };
        for usage in data.usage(query).await? {
            yield json!({
                "type": "usage", "model": usage.key, "runs": usage.runs, "model_calls": usage.model_calls,
                "usage": usage.usage
            });
        }
        let query = AuditQuery { actor: Some(user.to_string()), ..AuditQuery::default() };
        let mut page = PageRequest::first(PageRequest::MAX_LIMIT);
        loop {
            let found = data.audit(query.clone(), page.clone()).await?;
            for entry in &found.data {
                yield line("audit", entry)?;
            }
            let Some(cursor) = found.next_cursor else { break };
            page.cursor = Some(cursor);
        }
        yield json!({ "type": "end" });
    }
}

fn of_thread(
    data: Arc<dyn TenantStore>,
    user: UserId,
    thread: Thread,
) -> impl Stream<Item = Result<Value, StoreError>> + Send + 'static {
    try_stream! {
        let id = thread.thread_id;
        yield line("thread", &thread)?;
        let mut after = 0;
        loop {
            let messages = messages_after(&*data, &thread, after).await?;
            let Some(last) = messages.last() else { break };
            after = last.number;
            for message in messages {
                yield of("message", id, &message)?;
                for feedback in data.feedback(message.message.id).await?.into_iter().filter(|one| one.user_id == user) {
                    yield of("feedback", id, &feedback)?;
                }
            }
        }
        let query = RunQuery { thread_id: Some(id), ..RunQuery::default() };
        let mut page = PageRequest::first(PageRequest::MAX_LIMIT);
        loop {
            let found = data.runs(query.clone(), page.clone()).await?;
            for run in &found.data {
                yield line("run", run)?;
            }
            let Some(cursor) = found.next_cursor else { break };
            page.cursor = Some(cursor);
        }
        let mut after = 0;
        loop {
            let events = data.events(id, after, EVENTS).await?;
            let Some(last) = events.last() else { break };
            after = last.seq;
            for event in &events {
                yield json!({ "type": "event", "event": event });
            }
        }
        for handoff in data.handoffs(id).await? {
            yield line("handoff", &handoff)?;
        }
        let query = ApprovalQuery { thread_id: Some(id), ..ApprovalQuery::default() };
        let mut page = PageRequest::first(PageRequest::MAX_LIMIT);
        loop {
            let found = data.approvals(query.clone(), page.clone()).await?;
            for approval in &found.data {
                yield json!({ "type": "approval", "approval": approval });
            }
            let Some(cursor) = found.next_cursor else { break };
            page.cursor = Some(cursor);
        }
        for artifact in data.artifacts(id).await? {
            let (artifact, bytes) = data.artifact(artifact.artifact_id).await?;
            let mut file = line("artifact", &artifact)?;
            file["content_base64"] = BASE64.encode(&bytes).into();
            yield file;
        }
    }
}

/// The files that the tools of a thread have written, in pieces. A file that is deleted meanwhile is left out. Hidden files and links are
/// not part of a workspace's list.
fn files(
    workspaces: Option<Arc<dyn Workspaces>>,
    tenant: TenantId,
    thread: ThreadId,
) -> impl Stream<Item = Result<Value, StoreError>> + Send + 'static {
    try_stream! {
        let listed = match &workspaces {
            Some(workspaces) => workspaces.files(&tenant, thread).await.map_err(unreadable)?,
            None => Vec::new(),
        };
        if listed.len() >= MAX_WORKSPACE_FILES {
            yield json!({ "type": "incomplete", "thread_id": thread, "reason": "there are more files", "files": listed.len() });
        }
        for file in listed {
            let Some(workspaces) = &workspaces else { break };
            let opened = workspaces.open(&tenant, thread, &file.path).await.map_err(unreadable)?;
            let Some((file, mut bytes)) = opened else { continue };
            let mut offset = 0;
            loop {
                let read;
                (bytes, read) = piece(bytes).await?;
                if read.is_empty() && offset > 0 {
                    break;
                }
                yield json!({
                    "type": "file", "thread_id": thread, "path": file.path, "size": file.size, "modified_at": file.modified_at,
                    "offset": offset, "content_base64": BASE64.encode(&read)
                });
                offset += read.len();
                if read.len() < PIECE {
                    break;
                }
            }
        }
    }
}

/// The next bytes of a file, fewer than [`PIECE`] at its end.
async fn piece(mut file: File) -> Result<(File, Vec<u8>), StoreError> {
    let reading = tokio::task::spawn_blocking(move || {
        let mut bytes = Vec::new();
        (&mut file).take(PIECE as u64).read_to_end(&mut bytes)?;
        std::io::Result::Ok((file, bytes))
    });
    reading.await.map_err(unreadable)?.map_err(unreadable)
}

fn unreadable(error: impl std::fmt::Display) -> StoreError {
    StoreError::Failed(error.to_string())
}

/// The next messages after a number, oldest first.
async fn messages_after(
    data: &dyn TenantStore,
    thread: &Thread,
    after: u64,
) -> Result<Vec<ThreadMessage>, StoreError> {
    let limit = PageRequest::MAX_LIMIT;
    let before = after + u64::from(limit) + 1;
    let query = MessageQuery { limit, before: Some(before), include_internal: true, include_system: true };
    let found = data.messages(thread.thread_id, query).await?;
    Ok(found.into_iter().filter(|message| message.number > after).collect())
}

fn line(kind: &str, value: &impl Serialize) -> Result<Value, StoreError> {
    let mut line = json!({ "type": kind });
    let value = serde_json::to_value(value).map_err(|error| StoreError::Failed(error.to_string()))?;
    if let (Some(line), Value::Object(fields)) = (line.as_object_mut(), value) {
        line.extend(fields);
    }
    Ok(line)
}

fn of(kind: &str, thread: ThreadId, value: &impl Serialize) -> Result<Value, StoreError> {
    let mut line = line(kind, value)?;
    line["thread_id"] = json!(thread);
    Ok(line)
}
