//! Work that blocks, kept off the async threads.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use baton_core::ToolError;

/// Tells blocking work that nobody waits for it any more. A thread cannot be stopped from outside, so long work asks
/// between its steps, and work that writes asks before it takes effect.
#[derive(Debug, Clone, Default)]
pub struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    pub fn check(&self) -> Result<(), ToolError> {
        if self.is_set() { Err(ToolError::Execution("the call was cancelled".to_owned())) } else { Ok(()) }
    }
}

/// Sets the flag when the waiting future is dropped, finished or not.
struct WaitFlag(Abandoned);

impl Drop for WaitFlag {
    fn drop(&mut self) {
        self.0.0.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` on a thread that may block, and tells it when this future is dropped.
pub async fn offload<T, F>(work: F) -> Result<T, ToolError>
where
    T: Send + 'static,
    F: FnOnce(&Abandoned) -> Result<T, ToolError> + Send + 'static,
{
    let abandoned = Abandoned::default();
    let _waiting = WaitFlag(abandoned.clone());
    let task = tokio::task::spawn_blocking(move || {
        abandoned.check()?;
        work(&abandoned)
    });
    task.await.unwrap_or_else(|error| Err(ToolError::Execution(format!("the tool broke off: {error}"))))
}
