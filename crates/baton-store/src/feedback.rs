//! Ratings of messages by users.

use std::collections::{BTreeSet, HashMap};
use std::ops::RangeInclusive;

use baton_core::store::{Feedback, Feedbacks, Pending, Rating, ThreadMessage};
use baton_core::{MessageId, StoreError, ThreadId, UserId};
use uuid::Uuid;

use crate::job::JobSubject;
use crate::patterns::{self, Count};
use crate::tenant::Tenant;
use crate::threads::{self, history};
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params};

impl Feedbacks for Tenant {
    fn put_feedback(&self, feedback: Feedback) -> Pending<'_, ()> {
        Box::pin(async move {
            let (thread, _) = self.message(feedback.message_id).await?;
            self.write(JobSubject::Thread(thread), (thread, feedback), |tx, (thread, feedback)| {
                Box::pin(put(tx, *thread, feedback))
            })
            .await
        })
    }

    fn feedback(&self, message: MessageId) -> Pending<'_, Vec<Feedback>> {
        self.read(message, |tx, message| Box::pin(of_message(tx, *message)))
    }

    fn ratings(
        &self,
        thread: ThreadId,
        user: &UserId,
        numbers: RangeInclusive<u64>,
    ) -> Pending<'_, Vec<(MessageId, Rating)>> {
        self.read((thread, user.clone(), numbers), |tx, (thread, user, numbers)| {
            Box::pin(of_user(tx, *thread, user, numbers))
        })
    }

    fn message(&self, message: MessageId) -> Pending<'_, (ThreadId, ThreadMessage)> {
        self.read(message, |tx, message| Box::pin(find(tx, *message)))
    }
}

/// Runs whose ratings are read with one statement.
const MOST_RUNS: usize = 500;

const NOT_FOUND: StoreError = StoreError::NotFound("message");

async fn find(tx: &Tx<'_>, message: MessageId) -> Result<(ThreadId, ThreadMessage), StoreError> {
    history::one(tx, message).await?.ok_or(NOT_FOUND)
}

const BEFORE: &str = "SELECT rating FROM feedback WHERE tenant = $1 AND message_id = $2 AND user_id = $3";

const PUT: &str = "
    INSERT INTO feedback (tenant, message_id, user_id, thread_id, run_id, rating, comment, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (tenant, message_id, user_id) DO UPDATE
    SET rating = excluded.rating, comment = excluded.comment, at = excluded.at";

/// Locks the thread, so that no rating is written concurrently: a replaced rating also moves in the sums of its patterns. It is in the
/// sums of hops that are not settled without a write.
async fn put(tx: &Tx<'_>, thread: ThreadId, new: &Feedback) -> Result<(), StoreError> {
    let number = threads::hold(tx, thread, None).await.map_err(|error| match error {
        StoreError::ThreadNotFound => NOT_FOUND,
        other => other,
    })?;
    let run = find(tx, new.message_id).await?.1.message.run_id;
    let before = tx.first(BEFORE, params![new.message_id, &new.user_id]).await?;
    let before = before.map(|row| row.choice(0)).transpose()?;
    let (id, user, comment) = (new.message_id, &new.user_id, new.comment.as_deref());
    tx.execute(PUT, params![id, user, thread, run, new.rating, comment, new.at]).await?;
    let change = |rating| i64::from(new.rating == rating) - i64::from(before == Some(rating));
    let ratings = (change(Rating::Good), change(Rating::Bad));
    if ratings == (0, 0) {
        return Ok(());
    }
    let settled = patterns::settled_of_run(tx, number, run).await?;
    if settled.is_empty() {
        return Ok(());
    }
    for way in settled {
        tx.to_close().count(way, Count { ratings, ..Count::default() });
    }
    let (good, bad) =
        of_runs(tx, BTreeSet::from([run.as_uuid()])).await?.remove(&run.as_uuid()).unwrap_or_default();
    match (good - ratings.0 >= bad - ratings.1, good >= bad) {
        (true, false) => patterns::correct(tx, number, run, false).await,
        (false, true) => patterns::correct(tx, number, run, true).await,
        _ => Ok(()),
    }
}

const OF_MESSAGE: &str = "SELECT message_id, user_id, rating, comment, at
    FROM feedback
    WHERE tenant = $1 AND message_id = $2
    ORDER BY at, user_id";

async fn of_message(tx: &Tx<'_>, message: MessageId) -> Result<Vec<Feedback>, StoreError> {
    find(tx, message).await?;
    tx.query(OF_MESSAGE, params![message]).await?.iter().map(read).collect()
}

const OF_USER: &str = "SELECT f.message_id, f.rating
    FROM messages AS m
    JOIN feedback AS f ON f.tenant = $1 AND f.message_id = m.message_id AND f.user_id = $3
    WHERE m.tenant = $1
        AND m.thread_number = (SELECT w.thread_number FROM thread_work AS w WHERE w.tenant = $1 AND w.thread_id = $2)
        AND m.number BETWEEN $4 AND $5";

async fn of_user(
    tx: &Tx<'_>,
    thread: ThreadId,
    user: &UserId,
    numbers: &RangeInclusive<u64>,
) -> Result<Vec<(MessageId, Rating)>, StoreError> {
    let rows = tx.query(OF_USER, params![thread, user, *numbers.start(), *numbers.end()]).await?;
    rows.iter().map(|row| Ok((row.parse(0)?, row.choice(1)?))).collect()
}

fn read(row: &Row) -> Result<Feedback, StoreError> {
    Ok(Feedback {
        message_id: row.parse(0)?,
        user_id: row.parse(1)?,
        rating: row.choice(2)?,
        comment: row.optional(3, Row::text)?.map(str::to_owned),
        at: row.time(4)?,
    })
}

macro_rules! of_runs {
    ($in_runs:literal) => {
        concat!(
            "SELECT run_id,
                sum(CASE WHEN rating = 'good' THEN 1 ELSE 0 END),
                sum(CASE WHEN rating = 'bad' THEN 1 ELSE 0 END)
            FROM feedback
            WHERE tenant = $1 AND run_id ",
            $in_runs,
            " GROUP BY run_id"
        )
    };
}

/// SQLite has no arrays: `$2` is the concatenation of the ids, 16 bytes each.
const OF_RUNS: &str = of_runs!(
    "IN (
        WITH RECURSIVE listed (id, rest) AS (
            SELECT substr($2, 1, 16), substr($2, 17)
            UNION ALL
            SELECT substr(rest, 1, 16), substr(rest, 17) FROM listed WHERE length(rest) > 0
        )
        SELECT id FROM listed
    )"
);

const OF_RUNS_ARRAY: &str = of_runs!("= ANY ($2)");

/// Returns the numbers of good and bad ratings of the messages of these runs. Runs without a rating are omitted.
pub(crate) async fn of_runs(
    tx: &Tx<'_>,
    runs: BTreeSet<Uuid>,
) -> Result<HashMap<Uuid, (i64, i64)>, StoreError> {
    let mut found = HashMap::new();
    let runs: Vec<Uuid> = runs.into_iter().collect();
    for some in runs.chunks(MOST_RUNS) {
        let sql = if tx.is_postgres() { OF_RUNS_ARRAY } else { OF_RUNS };
        for row in tx.query(sql, &[SqlValue::Ids(some.to_vec())]).await? {
            found.insert(row.parse(0)?, (row.int(1)?, row.int(2)?));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn ratings_are_found_by_their_message_and_by_their_run() {
        for (sql, index) in [
            (BEFORE, "sqlite_autoindex_feedback_1 (tenant=? AND message_id=? AND user_id=?)"),
            (OF_MESSAGE, "sqlite_autoindex_feedback_1 (tenant=? AND message_id=?)"),
            (OF_RUNS, "feedback_of_run (tenant=? AND run_id=?)"),
        ] {
            let plan = plan(sql);
            assert!(plan[0].starts_with("SEARCH feedback USING") && plan[0].ends_with(index), "{plan:?}");
        }
    }
}
