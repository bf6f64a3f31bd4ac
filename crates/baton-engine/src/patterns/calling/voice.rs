//! What the person hears while others are at work. Nothing, when they are quick.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use baton_core::HumanDuration;
use baton_core::event::EventKind;
use tokio::time::Instant;

use crate::scope::Scope;

const FIRST: Duration = Duration::from_secs(2);
/// When the second sentence comes at the latest.
const SLOW: Duration = Duration::from_secs(30);
const BEAT: Duration = Duration::from_secs(15);
/// Calls of one turn begin together; one of them speaks for all.
const TOGETHER: Duration = Duration::from_secs(1);

/// One for all calls of a session.
#[derive(Debug, Default)]
pub(crate) struct Voice {
    spoke: Mutex<Option<Instant>>,
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
        let mut work = std::pin::pin!(work);
        for nth in 0_u32.. {
            tokio::select! {
                biased;
                done = &mut work => return done,
                () = tokio::time::sleep_until(started + due(nth, limit.get())) => {}
            }
            if self.speaks_now() {
                scope.emit(EventKind::Status { text: sentence(nth, started.elapsed()) }).await;
            }
        }
        work.await
    }

    /// Whether nobody else has just spoken.
    fn speaks_now(&self) -> bool {
        let now = Instant::now();
        let mut spoke = self.spoke.lock().unwrap_or_else(PoisonError::into_inner);
        let is_silent = spoke.is_none_or(|at| now.duration_since(at) >= TOGETHER);
        if is_silent {
            *spoke = Some(now);
        }
        is_silent
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
