//! Tool output that is too long to show to a model at once.

use std::sync::Arc;

use baton_core::store::{
    Append, OutputHandle, OutputSlice, Retention, RunStatus, SpooledOutput, StepState, Swept,
};
use baton_core::{RunId, SessionId, Store, StoreError, TenantStore};
use jiff::SignedDuration;

use super::fixture::{LEASE, TestWorker, step, tenant};

const CHUNK: usize = SpooledOutput::CHUNK_BYTES;
const NOT_FOUND: StoreError = StoreError::NotFound("output");

/// Every byte differs from its neighbours, and some are NUL.
fn text(bytes: usize) -> String {
    (0_u8..97).cycle().take(bytes).map(char::from).collect()
}

fn handle_of(run: RunId) -> OutputHandle {
    OutputHandle::random(&SessionId::root(run))
}

/// A tool's result and its long output, as the engine writes them.
fn spooled(run: RunId, text: &str) -> (OutputHandle, Append) {
    let output = SpooledOutput::new(handle_of(run), text);
    let steps = vec![step(run, "assistant/turn:1/tool:1", StepState::Finished)];
    (output.handle, Append { steps, outputs: vec![output], ..Append::default() })
}

async fn read(
    tenant: &dyn TenantStore,
    run: RunId,
    handle: OutputHandle,
    offset: usize,
    limit: u32,
) -> Result<OutputSlice, StoreError> {
    tenant.output_slice(run, handle, offset as u64, limit).await
}

/// Also across chunks, and after the end.
pub async fn spooled_output_is_read_in_slices(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    for size in [1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK + 17] {
        let whole = text(size);
        let (handle, append) = spooled(worker.run, &whole);
        worker.append(append).await;
        for offset in [0, 1, CHUNK - 3, CHUNK, 2 * CHUNK - 1, size - 1, size, size + 1, usize::MAX] {
            for limit in [0, 1, 7, 8_192, 100_000] {
                let slice = read(&*worker.tenant, worker.run, handle, offset, limit).await.unwrap();
                let start = offset.min(size);
                let end = start.saturating_add(limit as usize).min(size);
                assert_eq!((slice.offset, slice.size), (start as u64, size as u64), "{offset} {limit}");
                assert!(slice.bytes == whole.as_bytes()[start..end], "{size}: {limit} bytes from {offset}");
            }
        }
    }
}

/// Not from another run of the same tenant, and not from another tenant.
pub async fn spooled_output_is_found_from_its_run_only(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (handle, append) = spooled(worker.run, &text(10));
    worker.append(append).await;
    let other_run = TestWorker::in_tenant(&worker.tenant).await.run;
    assert!(read(&*worker.tenant, worker.run, handle, 0, 10).await.is_ok());
    assert_eq!(read(&*worker.tenant, other_run, handle, 0, 10).await, Err(NOT_FOUND));
    assert_eq!(read(&*tenant(store), worker.run, handle, 0, 10).await, Err(NOT_FOUND));
    assert_eq!(read(&*worker.tenant, worker.run, handle_of(worker.run), 0, 10).await, Err(NOT_FOUND));
}

/// Once if the append is repeated, and never for a process that has lost its claim. Whoever takes the run over reads it.
pub async fn spooled_output_is_written_with_its_append_or_not_at_all(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (handle, append) = spooled(worker.run, &text(CHUNK + 1));
    worker.append(append.clone()).await;
    let again = Arc::new(Append { number: 1, ..append });
    worker.tenant.append(&worker.claimed.claim, again).await.unwrap();
    worker.die().await;
    let successor = TestWorker::claim(&worker.tenant, worker.thread, LEASE).await;
    assert_eq!((successor.run, successor.claimed.steps.len()), (worker.run, 1));
    let slice = read(&*successor.tenant, successor.run, handle, CHUNK, 10).await.unwrap();
    assert_eq!((slice.bytes.len(), slice.size), (1, CHUNK as u64 + 1));
    let (late, append) = spooled(worker.run, &text(10));
    let late_append = Arc::new(Append { number: 2, ..append });
    assert_eq!(worker.tenant.append(&worker.claimed.claim, late_append).await, Err(StoreError::Fenced));
    assert_eq!(read(&*successor.tenant, successor.run, late, 0, 10).await, Err(NOT_FOUND));
}

pub async fn spooled_output_is_deleted_with_its_thread(store: &dyn Store) {
    let mut deleted = TestWorker::start(store).await;
    let mut kept = TestWorker::in_tenant(&deleted.tenant).await;
    let (gone, append) = spooled(deleted.run, &text(CHUNK + 1));
    deleted.append(append).await;
    let (stays, append) = spooled(kept.run, &text(CHUNK + 1));
    kept.append(append).await;
    deleted.tenant.delete_thread(deleted.thread, None).await.unwrap();
    assert_eq!(read(&*kept.tenant, deleted.run, gone, 0, 10).await, Err(NOT_FOUND));
    assert!(read(&*kept.tenant, kept.run, stays, 0, 10).await.is_ok());
}

pub async fn spooled_bytes_are_counted_per_tenant(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    assert_eq!(worker.tenant.spooled_bytes().await, Ok(0));
    for size in [10, 2 * CHUNK + 1] {
        worker.append(spooled(worker.run, &text(size)).1).await;
    }
    assert_eq!(worker.tenant.spooled_bytes().await, Ok(2 * CHUNK as u64 + 11));
    assert_eq!(tenant(store).spooled_bytes().await, Ok(0));
    worker.tenant.delete_thread(worker.thread, None).await.unwrap();
    assert_eq!(worker.tenant.spooled_bytes().await, Ok(0));
}

/// All of it, however much; that of a run that waits stays.
pub async fn spooled_output_is_swept_once_its_run_has_ended(store: &dyn Store) {
    const OUTPUTS: u64 = 40;
    let keep = Retention { workflow_state: SignedDuration::from_hours(1) };
    let mut ended = TestWorker::start(store).await;
    let mut waiting = TestWorker::in_tenant(&ended.tenant).await;
    let (stays, append) = spooled(waiting.run, &text(10));
    waiting.append(append).await;
    let outputs = (0..OUTPUTS).map(|_| SpooledOutput::new(handle_of(ended.run), &text(10)));
    let outputs: Vec<SpooledOutput> = outputs.collect();
    let handle = outputs[0].handle;
    ended.append(Append { outputs, ..Append::default() }).await;
    assert_eq!(ended.tenant.sweep(keep).await, Ok(Swept::default()), "both runs are open");
    ended.end(RunStatus::Completed).await;
    waiting.end(RunStatus::Waiting).await;
    let swept = ended.tenant.sweep(keep).await.unwrap();
    assert_eq!(swept, Swept { spooled_outputs: OUTPUTS, ..Swept::default() });
    assert_eq!(read(&*ended.tenant, ended.run, handle, 0, 10).await, Err(NOT_FOUND));
    assert!(read(&*waiting.tenant, waiting.run, stays, 0, 10).await.is_ok());
}
