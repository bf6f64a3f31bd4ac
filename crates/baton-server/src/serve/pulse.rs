//! Activity of a connection: requests in progress, and the time since the last one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Clone)]
pub struct Pulse(Arc<Mutex<PulseState>>);

#[derive(Debug)]
struct PulseState {
    /// Requests whose responses are not complete.
    busy: usize,
    /// When the last response ended, or the connection started.
    quiet_since: Instant,
    was_asked: bool,
}

/// RAII guard: a request in progress, until its response is complete or dropped.
#[derive(Debug)]
pub struct Beat(Pulse);

/// Idle timeouts of a connection.
#[derive(Debug, Clone, Copy)]
pub struct IdleTimeouts {
    /// Before the first request.
    pub first: Duration,
    pub between: Duration,
}

impl Pulse {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(PulseState { busy: 0, quiet_since: Instant::now(), was_asked: false })))
    }

    pub fn begin(&self) -> Beat {
        let mut state = self.state();
        state.busy += 1;
        state.was_asked = true;
        Beat(self.clone())
    }

    /// Returns the time of the next check, or `None` if the connection has been idle for too long.
    pub fn look(&self, patience: IdleTimeouts) -> Option<Instant> {
        let state = self.state();
        let now = Instant::now();
        let until = match &*state {
            PulseState { busy: 0, was_asked: false, quiet_since } => *quiet_since + patience.first,
            PulseState { busy: 0, quiet_since, .. } => *quiet_since + patience.between,
            _ => now + patience.between,
        };
        (until > now).then_some(until)
    }

    fn state(&self) -> MutexGuard<'_, PulseState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Beat {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.busy -= 1;
        state.quiet_since = Instant::now();
    }
}
