//! What the person hears while others are at work. Nothing, when they are quick.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::HumanDuration;
use baton_core::event::EventKind;
use tokio::time::Instant;

use crate::scope::Scope;

const FIRST: Duration = Duration::from_secs(2);
/// When the second sentence comes at the latest.
const SLOW: Duration = Duration::from_secs(30);
const BEAT: Duration = Duration::from_secs(15);
/// A sentence that comes this much too early is the next one all the same: clocks are not exact.
const SLACK: Duration = Duration::from_secs(1);

/// One for all calls of a session, of whatever tool: however many are waited for, the person hears each sentence once.
#[derive(Debug, Default)]
pub(crate) struct Voice {
    spoken: Mutex<Spoken>,
}

/// What was said since nobody was waited for.
#[derive(Debug, Default)]
struct Spoken {
    waiting: u32,
    sentences: u32,
    last: Option<Instant>,
}

/// Somebody is waited for, until it is dropped.
struct Waiting<'a>(&'a Voice);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let mut spoken = self.0.spoken();
        spoken.waiting -= 1;
        if spoken.waiting == 0 {
            *spoken = Spoken::default();
        }
    }
}

impl Voice {
    /// Does the work, and says now and then that it goes on. `limit` is how long it may take. Whoever hears the scope's agent hears
    /// this too: for an agent behind the scenes, only those who may read traces.
    pub(crate) async fn while_waiting<T>(
        &self,
        scope: &Scope,
        limit: HumanDuration,
        work: impl Future<Output = T>,
    ) -> T {
        let started = Instant::now();
        self.spoken().waiting += 1;
        let _waiting = Waiting(self);
        let mut work = std::pin::pin!(work);
        for nth in 0_u32.. {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep_until(started + due(nth, limit.get())) => {}
            }
            if self.is_next(nth) {
                scope.emit(EventKind::Status { text: sentence(nth, started.elapsed()) }).await;
            }
        }
        work.await
    }

    /// Whether nobody else has said the nth sentence, or has just spoken.
    fn is_next(&self, nth: u32) -> bool {
        let now = Instant::now();
        let mut spoken = self.spoken();
        let is_next = match nth {
            0 | 1 => spoken.sentences <= nth,
            _ => spoken.last.is_none_or(|at| now.duration_since(at) + SLACK >= BEAT),
        };
        if is_next {
            spoken.sentences = spoken.sentences.max(nth + 1);
            spoken.last = Some(now);
        }
        is_next
    }

    fn spoken(&self) -> MutexGuard<'_, Spoken> {
        self.spoken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When the nth sentence is due.
fn due(nth: u32, limit: Duration) -> Duration {
    let slow = (limit / 2).clamp(FIRST * 2, SLOW);
    match nth {
        0 => FIRST,
        nth => slow + BEAT * (nth - 1),
    }
}

fn sentence(nth: u32, waited: Duration) -> String {
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
    fn sentences_come_in_time_and_in_order() {
        let dues =
            |limit| (0..4).map(|nth| due(nth, Duration::from_secs(limit)).as_secs()).collect::<Vec<_>>();
        assert_eq!(dues(30), [2, 15, 30, 45]);
        assert_eq!(dues(300), [2, 30, 45, 60]);
        assert_eq!(dues(1), [2, 4, 19, 34]);
    }
}
