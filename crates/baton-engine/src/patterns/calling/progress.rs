//! Status messages to the user while sub-agents run. The first one is sent after 2 seconds.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::HumanDuration;
use baton_core::event::EventKind;
use tokio::time::Instant;

use crate::scope::Scope;

const FIRST_DELAY: Duration = Duration::from_secs(2);
/// Upper bound for the delay of the second message.
const SECOND_DELAY: Duration = Duration::from_secs(30);
const INTERVAL: Duration = Duration::from_secs(15);
/// Tolerance for the interval, because timers are not exact.
const SLACK: Duration = Duration::from_secs(1);

/// Sends progress messages for all waiting calls of a session. Each message is sent once, however many calls wait.
#[derive(Debug, Default)]
pub(crate) struct ProgressNotifier {
    state: Mutex<ProgressState>,
}

/// Messages sent since the number of waiting calls was last zero.
#[derive(Debug, Default)]
struct ProgressState {
    waiting: u32,
    sentences: u32,
    last: Option<Instant>,
}

/// RAII guard of a waiting call. Resets the state when the last one is dropped.
struct WaitGuard<'a>(&'a ProgressNotifier);

impl Drop for WaitGuard<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.waiting -= 1;
        if state.waiting == 0 {
            *state = ProgressState::default();
        }
    }
}

impl ProgressNotifier {
    /// Runs `work` and sends a status message from time to time. `limit` is the expected maximum duration. The messages have the
    /// visibility of the scope's agent: traces only, for a sub-agent. Dropping the future drops `work`.
    pub(crate) async fn while_waiting<T>(
        &self,
        scope: &Scope,
        limit: HumanDuration,
        work: impl Future<Output = T>,
    ) -> T {
        let started = Instant::now();
        self.state().waiting += 1;
        let _waiting = WaitGuard(self);
        let mut work = std::pin::pin!(work);
        for nth in 0_u32.. {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep_until(started + due(nth, limit.get())) => {}
            }
            if self.is_next(nth) {
                scope
                    .emit(
                        scope.visibility(),
                        EventKind::Status { text: progress_message(nth, started.elapsed()) },
                    )
                    .await;
            }
        }
        work.await
    }

    /// Whether no other call has sent the nth message, or any message within the interval.
    fn is_next(&self, nth: u32) -> bool {
        let now = Instant::now();
        let mut state = self.state();
        let is_next = match nth {
            0 | 1 => state.sentences <= nth,
            _ => state.last.is_none_or(|at| now.duration_since(at) + SLACK >= INTERVAL),
        };
        if is_next {
            state.sentences = state.sentences.max(nth + 1);
            state.last = Some(now);
        }
        is_next
    }

    fn state(&self) -> MutexGuard<'_, ProgressState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Delay of the nth message: 2 s, half of `limit` (4 to 30 s), then every 15 s.
fn due(nth: u32, limit: Duration) -> Duration {
    let slow = (limit / 2).clamp(FIRST_DELAY * 2, SECOND_DELAY);
    match nth {
        0 => FIRST_DELAY,
        nth => slow + INTERVAL * (nth - 1),
    }
}

fn progress_message(nth: u32, waited: Duration) -> String {
    match nth {
        0 => "Researching…".to_owned(),
        1 => "This is taking longer than expected…".to_owned(),
        _ => format!("Still working on it… ({} s)", waited.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// B12, B14
    #[test]
    fn progress_messages_are_timed_and_ordered() {
        let dues =
            |limit| (0..4).map(|nth| due(nth, Duration::from_secs(limit)).as_secs()).collect::<Vec<_>>();
        assert_eq!(dues(30), [2, 15, 30, 45]);
        assert_eq!(dues(300), [2, 30, 45, 60]);
        assert_eq!(dues(1), [2, 4, 19, 34]);
    }
}
