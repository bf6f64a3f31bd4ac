//! What a tenant has learnt from its hops: how well each agent serves each kind of request.
//!
//! Settling adds hops to the stored counts. Those that are not settled yet, at most [`MAX_UNSETTLED`], are judged when they are read.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use baton_core::choice::Choice as _;
use baton_core::learning::{
    Aftermath, Experience, HALF_LIFE_DAYS, Tally, add_evidence, is_same_request, is_win,
};
use baton_core::store::{HopKind, micros};
use baton_core::{AgentName, RunId, StoreError};
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;

use super::{read_outcome, weights};
use crate::feedback;
use crate::tx::Tx;
use crate::value::{Row, params, row_values};

/// A user who asks again within this time was not served by the answer before, in microseconds. Hops are settled later than that.
const REPEAT_WINDOW: i64 = 10 * 60 * 1_000_000;
/// Hops that are judged when they are read: the newest ones.
const MAX_UNSETTLED: u32 = 5_000;
/// Hops among which repeated requests are looked for.
const MAX_FOLLOWING: u32 = 20_000;
/// Counts are stored in millionths.
const MICRO: f64 = 1_000_000.0;
/// Half-lives after which evidence is deleted: less than a thousandth is left.
const KEPT_HALF_LIVES: f64 = 10.0;

/// Ratings correct what was counted until this long after the hop, in microseconds. What the ratings of a user can change at once is then
/// bounded by what one day of their runs weighs.
const CORRECTION_WINDOW: i64 = 24 * 60 * 60 * 1_000_000;

/// Evidence about agents, by kind of request.
type Known = BTreeMap<String, BTreeMap<String, Tally>>;
/// The weight that settled hops have added to the tries, by run and kind of request.
pub(super) type SettledWeights = HashMap<Uuid, HashMap<String, f64>>;

/// A hop from which something can be learnt.
pub(super) struct Lesson {
    thread: i64,
    hop_id: Uuid,
    class: String,
    agent: String,
    kind: HopKind,
    outcome: i64,
    cost_nanos: i64,
    run: Uuid,
    request: u64,
    at: i64,
}

impl Lesson {
    /// From the columns of a hop as it is settled. `None` for a handoff that was requested outside of a run: no agent chose its target,
    /// and requests that call no model could be repeated at will.
    fn read(row: &Row) -> Result<Option<Self>, StoreError> {
        let run: Uuid = row.parse(4)?;
        let Some(kind) = HopKind::parse(row.text(0)?).filter(|_| !run.is_nil()) else { return Ok(None) };
        Ok(Some(Self {
            thread: row.int(10)?,
            hop_id: row.parse(11)?,
            class: row.text(3)?.to_owned(),
            agent: row.text(2)?.to_owned(),
            kind,
            run,
            outcome: row.int(5)?,
            cost_nanos: row.int(7)?,
            at: row.int(8)?,
            request: row.int(9)?.cast_unsigned(),
        }))
    }

    /// In the order of time.
    pub(super) fn read_all(rows: &[Row]) -> Result<Vec<Self>, StoreError> {
        let lessons = rows.iter().filter_map(|row| Self::read(row).transpose());
        let mut lessons: Vec<Self> = lessons.collect::<Result<_, _>>()?;
        lessons.sort_by_key(|lesson| (lesson.at, lesson.run));
        Ok(lessons)
    }

    /// `None` if the hop says nothing about its agent.
    fn win(&self, aftermath: Aftermath) -> Result<Option<Win>, StoreError> {
        let outcome = read_outcome(self.outcome)?;
        let unrated = Aftermath { liked: 0, disliked: 0, ..aftermath };
        let is_won = is_win(self.kind, outcome, aftermath);
        Ok(is_won.map(|is_won| match is_won {
            true => Win::Yes,
            false if is_win(self.kind, outcome, unrated) == Some(true) => Win::RatedBad,
            false => Win::No,
        }))
    }
}

/// Whether a hop has served its user, as the column `win` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Win {
    No = 0,
    Yes = 1,
    /// It would have, were it not for bad ratings.
    RatedBad = 2,
}

/// What a lesson has added.
struct Learnt<'a> {
    lesson: &'a Lesson,
    weight: f64,
    win: Win,
}

fn time(micros: i64) -> Timestamp {
    Timestamp::from_microsecond(micros).unwrap_or(Timestamp::UNIX_EPOCH)
}

/// Requests of users, in which a later one may repeat an earlier one.
#[derive(Default)]
pub(super) struct Requests {
    users: HashMap<Uuid, String>,
    of_user: HashMap<String, Vec<(i64, u64, Uuid)>>,
}

const FOLLOWING: &str = "SELECT r.user_id, h.run_id, h.request, h.at
    FROM hops AS h
    JOIN runs AS r ON r.tenant = $1 AND r.run_id = h.run_id
    WHERE h.tenant = $1 AND h.settled = 0 AND h.at <= $2 AND h.request <> 0
    ORDER BY h.at DESC
    LIMIT $3";

impl Requests {
    /// Those of unsettled hops that began until `until` or within [`REPEAT_WINDOW`] after it.
    pub(super) async fn until(tx: &Tx<'_>, until: i64) -> Result<Self, StoreError> {
        let mut requests = Self::default();
        let until = until.saturating_add(REPEAT_WINDOW);
        for row in tx.query(FOLLOWING, params![until, MAX_FOLLOWING]).await? {
            let (user, run): (String, Uuid) = (row.text(0)?.to_owned(), row.parse(1)?);
            requests.users.insert(run, user.clone());
            let request = (row.int(3)?, row.int(2)?.cast_unsigned(), run);
            requests.of_user.entry(user).or_default().push(request);
        }
        Ok(requests)
    }

    /// Whether the user of the hop's run asked about the same again soon.
    fn is_repeated(&self, lesson: &Lesson) -> bool {
        let others = self.users.get(&lesson.run).and_then(|user| self.of_user.get(user));
        others.into_iter().flatten().any(|(at, request, run)| {
            *run != lesson.run
                && *at > lesson.at
                && *at - lesson.at <= REPEAT_WINDOW
                && is_same_request(*request, lesson.request)
        })
    }
}

/// What the runs of unsettled hops that began until `$2` have added already. The hops of a run begin after it; a minute is for the clocks
/// of different servers.
const SETTLED_WEIGHTS: &str = "SELECT s.run_id, s.query_class, CAST(sum(s.weight) AS BIGINT)
    FROM (
        SELECT DISTINCT thread_number, run_id FROM hops WHERE tenant = $1 AND settled = 0 AND at <= $2
    ) AS h
    JOIN runs AS r ON r.tenant = $1 AND r.run_id = h.run_id
    JOIN hops AS s ON s.thread_number = h.thread_number AND s.tenant = $1
        AND s.at >= r.created_at - 60000000 AND s.at <= $2
    WHERE s.run_id = h.run_id AND s.settled = 1
    GROUP BY s.run_id, s.query_class";

/// Must be read before the hops until `until` are settled: afterwards they would count as settled earlier.
pub(super) async fn settled_weights(tx: &Tx<'_>, until: i64) -> Result<SettledWeights, StoreError> {
    let mut weights = SettledWeights::new();
    for row in tx.query(SETTLED_WEIGHTS, params![until]).await? {
        let weight = to_float(row.int(2)?) / MICRO;
        weights.entry(row.parse(0)?).or_default().insert(row.text(1)?.to_owned(), weight);
    }
    Ok(weights)
}

/// Adds the evidence of `lessons`, which are in the order of time.
async fn learn<'a>(
    tx: &Tx<'_>,
    known: &mut Known,
    lessons: &'a [Lesson],
    requests: &Requests,
    settled: &SettledWeights,
) -> Result<Vec<Learnt<'a>>, StoreError> {
    let runs: BTreeSet<Uuid> = lessons.iter().map(|lesson| lesson.run).collect();
    let (weights, ratings) = (weights::of_runs(tx, &runs).await?, feedback::of_runs(tx, runs).await?);
    let mut learnt = Vec::with_capacity(lessons.len());
    let mut hops: HashMap<(Uuid, &str), f64> = HashMap::new();
    for lesson in lessons {
        let (liked, disliked) = ratings.get(&lesson.run).copied().unwrap_or_default();
        let aftermath = Aftermath { liked, disliked, is_repeated: requests.is_repeated(lesson) };
        if let Some(win) = lesson.win(aftermath)? {
            *hops.entry((lesson.run, lesson.class.as_str())).or_default() += 1.0;
            learnt.push(Learnt { lesson, weight: 0.0, win });
        }
    }
    for Learnt { lesson, weight, win } in &mut learnt {
        // A run weighs the same however often it involves agents, and whether its hops are settled together or not.
        let of_run = weights.get(&lesson.run).copied().unwrap_or(1.0);
        let before = settled.get(&lesson.run).and_then(|classes| classes.get(&lesson.class));
        let before = before.copied().unwrap_or_default();
        *weight = (of_run - before).max(0.0) / hops[&(lesson.run, lesson.class.as_str())];
        let wins = if *win == Win::Yes { 1.0 } else { 0.0 };
        let cost_nanos = to_float(lesson.cost_nanos);
        let tally = Tally { tries: 1.0, wins, cost_nanos, at: time(lesson.at) };
        let of_class = known.entry(lesson.class.clone()).or_default();
        add_evidence(of_class, lesson.agent.clone(), tally.scaled(*weight));
    }
    Ok(learnt)
}

const STORED: &str =
    "SELECT query_class, agent, tries, wins, cost_nanos, at FROM experience WHERE tenant = $1";
/// Waits for a rating that changes a row.
const LOCKED: &str =
    "SELECT query_class, agent, tries, wins, cost_nanos, at FROM experience WHERE tenant = $1 FOR UPDATE";

async fn stored(tx: &Tx<'_>, sql: &'static str) -> Result<Known, StoreError> {
    let mut stored = Known::new();
    for row in tx.query(sql, &[]).await? {
        let tally = Tally {
            tries: to_float(row.int(2)?) / MICRO,
            wins: to_float(row.int(3)?) / MICRO,
            cost_nanos: to_float(row.int(4)?),
            at: row.time(5)?,
        };
        stored.entry(row.text(0)?.to_owned()).or_default().insert(row.text(1)?.to_owned(), tally);
    }
    Ok(stored)
}

#[allow(clippy::cast_precision_loss, reason = "counts and costs need no more than 52 bits")]
fn to_float(number: i64) -> f64 {
    number as f64
}

#[allow(clippy::cast_possible_truncation, reason = "saturates")]
fn to_int(number: f64) -> i64 {
    number.round() as i64
}

const PUT: &str = "
    INSERT INTO experience (tenant, query_class, agent, tries, wins, cost_nanos, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (tenant, query_class, agent) DO UPDATE
    SET tries = excluded.tries, wins = excluded.wins, cost_nanos = excluded.cost_nanos, at = excluded.at";

const NOTE: &str = "UPDATE hops SET weight = $5, win = $6
    WHERE tenant = $1 AND thread_number = $2 AND at = $3 AND hop_id = $4";

const FORGET: &str = "DELETE FROM experience WHERE tenant = $1 AND at < $2";

/// Adds evidence to what is stored, notes with each hop what it added, and deletes what is too old to matter.
pub(super) async fn store(
    tx: &Tx<'_>,
    lessons: &[Lesson],
    requests: &Requests,
    settled: &SettledWeights,
) -> Result<(), StoreError> {
    if lessons.is_empty() {
        return Ok(());
    }
    let mut known = stored(tx, if tx.is_postgres() { LOCKED } else { STORED }).await?;
    let learnt = learn(tx, &mut known, lessons, requests, settled).await?;
    // Weight 0 is the default of the column, and a rating has nothing to correct then.
    let weighed = learnt.iter().filter(|learnt| to_int(learnt.weight * MICRO) > 0);
    let rows = weighed.map(|Learnt { lesson, weight, win }| {
        row_values![lesson.thread, lesson.at, lesson.hop_id, to_int(weight * MICRO), *win as i64]
    });
    tx.execute_each(NOTE, rows).await?;
    let changed: BTreeSet<&str> = lessons.iter().map(|lesson| lesson.class.as_str()).collect();
    let changed = known.into_iter().filter(|(class, _)| changed.contains(class.as_str()));
    let tallies = changed.flat_map(|(class, agents)| {
        agents.into_iter().map(move |(agent, tally)| (class.clone(), agent, tally))
    });
    let rows = tallies.map(|(class, agent, sum)| {
        let (tries, wins) = (to_int(sum.tries * MICRO), to_int(sum.wins * MICRO));
        row_values![class, agent, tries, wins, to_int(sum.cost_nanos), sum.at]
    });
    tx.execute_each(PUT, rows).await?;
    let kept = SignedDuration::from_secs_f64(HALF_LIFE_DAYS * KEPT_HALF_LIVES * 86_400.0);
    let oldest = tx.now().saturating_sub(kept).unwrap_or(Timestamp::MIN);
    tx.execute(FORGET, params![oldest]).await.map(drop)
}

const NEWEST: &str =
    "SELECT kind, source, target, query_class, run_id, outcome, latency_ms, cost_nanos, at, request,
        thread_number, hop_id
    FROM hops
    WHERE tenant = $1 AND settled = 0
    ORDER BY at DESC
    LIMIT $2";

pub(super) async fn experience(tx: &Tx<'_>) -> Result<Vec<Experience>, StoreError> {
    let mut known = stored(tx, STORED).await?;
    let lessons = Lesson::read_all(&tx.query(NEWEST, params![MAX_UNSETTLED]).await?)?;
    if !lessons.is_empty() {
        let requests = Requests::until(tx, i64::MAX).await?;
        let settled = settled_weights(tx, i64::MAX).await?;
        learn(tx, &mut known, &lessons, &requests, &settled).await?;
    }
    let known = known.into_iter().flat_map(|(query_class, agents)| {
        agents.into_iter().filter_map(move |(agent, tally)| {
            Some(Experience {
                query_class: query_class.clone(),
                agent: AgentName::parse(&agent).ok()?,
                tally,
            })
        })
    });
    Ok(known.collect())
}

/// Changes the wins of a run's settled hops from `$5` to `$6`.
const CHANGE_WINS: &str = "UPDATE hops SET win = $6
    WHERE tenant = $1 AND thread_number = $2 AND run_id = $3 AND at >= $4 AND settled = 1 AND win = $5
    RETURNING query_class, target, weight";

/// `$4` wins more or less, never below 0 or above the tries.
const CORRECT: &str = "
    UPDATE experience
    SET wins = CASE
        WHEN wins + CAST($4 AS BIGINT) < 0 THEN 0
        WHEN wins + CAST($4 AS BIGINT) > tries THEN tries
        ELSE wins + CAST($4 AS BIGINT)
    END
    WHERE tenant = $1 AND query_class = $2 AND agent = $3";

/// Corrects the evidence of settled hops after the first bad rating of their run (`is_won` is false) or the last one, by as much as each
/// hop has added.
pub(crate) async fn correct(tx: &Tx<'_>, thread: u64, run: RunId, is_won: bool) -> Result<(), StoreError> {
    let since = micros(tx.now()).saturating_sub(CORRECTION_WINDOW);
    let (from, to, sign) = if is_won { (Win::RatedBad, Win::Yes, 1) } else { (Win::Yes, Win::RatedBad, -1) };
    let params = params![thread, run, since, from as i64, to as i64];
    let mut wins: BTreeMap<(String, String), i64> = BTreeMap::new();
    for row in tx.query(CHANGE_WINS, params).await? {
        *wins.entry((row.text(0)?.to_owned(), row.text(1)?.to_owned())).or_default() += sign * row.int(2)?;
    }
    tx.execute_each(CORRECT, wins.into_iter().map(|((class, agent), wins)| row_values![class, agent, wins]))
        .await
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn what_is_learnt_is_found_by_indexes() {
        for sql in [NEWEST, FOLLOWING] {
            let plan = plan(sql);
            assert!(plan[0].contains("hops_unsettled (tenant=?"), "{sql}: {plan:?}");
        }
        let joined = plan(SETTLED_WEIGHTS);
        for index in [
            "hops_unsettled (tenant=?",
            "r USING PRIMARY KEY",
            "s USING PRIMARY KEY (thread_number=? AND tenant=? AND at>?",
        ] {
            assert!(joined.iter().any(|line| line.contains(index)), "{index}: {joined:?}");
        }
        for sql in [STORED, FORGET, NOTE, CHANGE_WINS, CORRECT] {
            let plan = plan(sql);
            assert!(!plan.iter().any(|line| line.starts_with("SCAN ")), "{sql}: {plan:?}");
        }
    }
}
