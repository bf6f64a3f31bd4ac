//! Whether a connection is used: requests that are being answered, and since when there are none.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

#[derive(Debug, Clone)]
pub struct Pulse(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// Requests whose answers are not complete.
    busy: usize,
    /// When that was last zero, or the connection began.
    quiet_since: Instant,
    was_asked: bool,
}

/// A request that is being answered, until its answer is complete or given up.
#[derive(Debug)]
pub struct Beat(Pulse);

/// How long nothing may happen.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Before the first request.
    pub first: Duration,
    pub between: Duration,
}

impl Pulse {
    pub fn new() -> Self {
        Self(Arc::new(Mutex::new(State { busy: 0, quiet_since: Instant::now(), was_asked: false })))
    }

    pub fn begin(&self) -> Beat {
        let mut state = self.state();
        state.busy += 1;
        state.was_asked = true;
        Beat(self.clone())
    }

    /// When it is worth looking again, or that nobody needs this connection.
    pub fn look(&self, patience: Patience) -> Option<Instant> {
        let state = self.state();
        let now = Instant::now();
        let until = match &*state {
            State { busy: 0, was_asked: false, quiet_since } => *quiet_since + patience.first,
            State { busy: 0, quiet_since, .. } => *quiet_since + patience.between,
            _ => now + patience.between,
        };
        (until > now).then_some(until)
    }

    fn state(&self) -> MutexGuard<'_, State> {
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
