//! How long the scopes of a run had worked before its process died.

use std::collections::HashMap;
use std::time::Duration;

use baton_core::LedgerRow;
use baton_core::store::Step;
use jiff::Timestamp;

/// For each path, the time in which at least one call at or below it was in progress. It comes from the ledger, because a
/// finished step does not say when it started. The time between two processes does not count.
#[derive(Debug, Default)]
pub(crate) struct PriorDurations {
    places: HashMap<String, Duration>,
    /// The latest time that the previous process recorded.
    last_sign: Option<Timestamp>,
}

impl PriorDurations {
    /// Computes the durations of all paths from what earlier attempts recorded, in one pass.
    pub(crate) fn of(steps: &[Step], rows: &[LedgerRow]) -> Self {
        let signs =
            steps.iter().map(|step| step.at).chain(rows.iter().map(|row| end(row.started_at, took(row))));
        let mut before = Self { places: HashMap::new(), last_sign: signs.max() };
        let cut = steps.iter().filter_map(Step::interrupted_call);
        let cut: Vec<LedgerRow> = cut.map(|call| before.lasted(call.row)).collect();
        let mut calls: Vec<&LedgerRow> = rows.iter().chain(&cut).collect();
        calls.sort_by_key(|row| row.started_at);
        let mut counted: HashMap<&str, (Duration, Timestamp)> = HashMap::new();
        for row in calls {
            let until = end(row.started_at, took(row));
            for place in places(&row.path) {
                let (total, last) = counted.entry(place).or_insert((Duration::ZERO, row.started_at));
                *total += between(row.started_at.max(*last), until);
                *last = until.max(*last);
            }
        }
        before.places = counted.into_iter().map(|(place, (total, _))| (place.to_owned(), total)).collect();
        before
    }

    pub(crate) fn at(&self, path: &str) -> Duration {
        self.places.get(path).copied().unwrap_or_default()
    }

    /// The row of an interrupted call, with the time that it is known to have lasted.
    pub(crate) fn lasted(&self, row: LedgerRow) -> LedgerRow {
        let known = self.last_sign.map_or(Duration::ZERO, |last| between(row.started_at, last));
        let known = u64::try_from(known.as_millis()).unwrap_or(u64::MAX);
        LedgerRow { latency_ms: row.latency_ms.max(known), ..row }
    }
}

/// A path and all its ancestors.
fn places(path: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(path), |path| Some(path.rsplit_once('/')?.0))
}

fn took(row: &LedgerRow) -> Duration {
    Duration::from_millis(row.latency_ms)
}

fn end(start: Timestamp, took: Duration) -> Timestamp {
    start.checked_add(took).unwrap_or(Timestamp::MAX)
}

/// Zero if the clock was set back.
fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use baton_core::ledger::{CallOutcome, Called};
    use baton_core::message::Visibility;
    use baton_core::store::work::InterruptedCall;
    use baton_core::store::{StepKind, StepState};
    use baton_core::usage::{Cost, Tokens};
    use baton_core::{AgentName, MessageId, RunId, SessionId};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    fn run_id() -> RunId {
        RunId::from_uuid(Uuid::nil())
    }

    fn row(path: &str, from: i64, seconds: u64) -> LedgerRow {
        LedgerRow {
            run_id: run_id(),
            session_id: SessionId::root(run_id()),
            agent: AgentName::parse("a").unwrap(),
            path: path.to_owned(),
            call: Called::Tool { tool: "look".into() },
            tokens: Tokens::default(),
            estimated: false,
            cost: Cost::default(),
            started_at: at(from),
            latency_ms: seconds * 1_000,
            outcome: CallOutcome::Ok,
            error: None,
        }
    }

    fn step(path: &str, kind: StepKind, state: StepState, data: serde_json::Value, second: i64) -> Step {
        Step {
            path: path.to_owned(),
            session_id: SessionId::root(run_id()),
            kind,
            state,
            data: data.into(),
            at: at(second),
        }
    }

    fn seconds(before: &PriorDurations, path: &str) -> u64 {
        before.at(path).as_secs()
    }

    /// A finished step has the time of its end. Its start is in the ledger.
    #[test]
    fn the_first_turn_counts() {
        let steps = [step("a/call:b", StepKind::Session, StepState::Finished, json!({}), 30)];
        let rows = [row("a/turn:1", 0, 10), row("a/call:b/turn:1", 10, 20), row("a/turn:1/tool:1", 10, 20)];
        let before = PriorDurations::of(&steps, &rows);
        assert_eq!((seconds(&before, "a"), seconds(&before, "a/call:b")), (30, 20));
        assert_eq!(
            (seconds(&before, "a/call"), seconds(&before, "b")),
            (0, 0),
            "places, not beginnings of names"
        );
    }

    #[test]
    fn overlapping_time_counts_once() {
        let rows = [row("a/x/turn:1", 0, 10), row("a/y/turn:1", 5, 10), row("a/z/turn:1", 6, 2)];
        let before = PriorDurations::of(&[], &rows);
        assert_eq!((seconds(&before, "a"), seconds(&before, "a/y"), seconds(&before, "a/z")), (15, 10, 2));
    }

    /// The downtime of a server uses up no time limit.
    #[test]
    fn time_between_two_processes_is_not_counted() {
        let rows = [row("a/turn:1", 0, 10), row("a/turn:2", 50_000, 10)];
        assert_eq!(seconds(&PriorDurations::of(&[], &rows), "a"), 20);
    }

    /// An interrupted call lasted at least until the last record of its process.
    #[test]
    fn interrupted_call_counts_its_known_duration() {
        let under_way = InterruptedCall {
            message_id: MessageId::from_uuid(Uuid::nil()),
            visibility: Visibility::Internal,
            row: row("a/call:b/turn:1", 10, 0),
        };
        let open = step("a/call:b/turn:1", StepKind::Turn, StepState::Started, json!(under_way), 10);
        let alone = PriorDurations::of(std::slice::from_ref(&open), &[row("a/turn:1", 0, 10)]);
        assert_eq!((seconds(&alone, "a"), seconds(&alone, "a/call:b")), (10, 0));
        let rows = [row("a/turn:1", 0, 10), row("a/call:c/turn:1", 10, 40)];
        let beside = PriorDurations::of(&[open], &rows);
        assert_eq!((seconds(&beside, "a"), seconds(&beside, "a/call:b")), (50, 40));
        assert_eq!(beside.lasted(under_way.row).latency_ms, 40_000);
    }
}
