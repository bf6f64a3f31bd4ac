//! Steps: the recorded effects of a run.

use baton_core::store::{Step, StepState};
use baton_core::{RunId, StoreError};
use indexmap::IndexMap;

use super::sessions;
use crate::insert::{ColumnKind, Insert};
use crate::once::{self, StoredTexts};
use crate::tx::Tx;
use crate::value::{Row, SqlValue, params, row_values};

const OF_RUN: &str = "SELECT s.path, s.session_id, s.kind, s.state, s.data, s.at, m.parts
    FROM steps AS s
    LEFT JOIN runs AS r ON r.tenant = $1 AND r.run_id = s.run_id
    LEFT JOIN messages AS m ON m.tenant = $1 AND m.thread_id = r.thread_id AND m.number = s.text_of
    WHERE s.tenant = $1 AND s.run_id = $2
    ORDER BY s.number";

pub(crate) async fn of_run(tx: &Tx<'_>, run: RunId) -> Result<Vec<Step>, StoreError> {
    tx.query(OF_RUN, params![run]).await?.iter().map(|row| read(run, row)).collect()
}

/// A finished step never changes, and a step keeps the number of its first write.
pub(crate) static UPSERT: Insert = Insert::new(
    "steps",
    &[
        ("run_id", ColumnKind::Uuid),
        ("path", ColumnKind::Text),
        ("number", ColumnKind::Int),
        ("session_id", ColumnKind::Text),
        ("kind", ColumnKind::Text),
        ("state", ColumnKind::Text),
        ("data", ColumnKind::Text),
        ("text_of", ColumnKind::Int),
        ("at", ColumnKind::Int),
    ],
    "ON CONFLICT (tenant, run_id, path) DO UPDATE
    SET session_id = excluded.session_id, kind = excluded.kind, state = excluded.state, data = excluded.data,
        text_of = excluded.text_of, at = excluded.at
    WHERE steps.state <> 'finished'",
);

/// Returns rows for [`UPSERT`]. A new first step gets the number `first`. Only the last state of each path is written.
pub(crate) fn rows(
    run: RunId,
    first: u64,
    steps: &[Step],
    texts: &StoredTexts,
) -> Result<Vec<Vec<SqlValue>>, StoreError> {
    let mut last: IndexMap<&str, (u64, &Step)> = IndexMap::new();
    for (number, step) in (first..).zip(steps) {
        let kept = last.entry(step.path.as_str()).or_insert((number, step));
        if kept.1.state != StepState::Finished {
            kept.1 = step;
        }
    }
    let row = |(path, (number, step)): (&str, (u64, &Step))| {
        let session = sessions::short(run, &step.session_id);
        let (data, text_of) = texts.refer(SqlValue::json(&step.data)?);
        Ok(row_values![run, path, number, session, step.kind, step.state, data, text_of, step.at])
    };
    last.into_iter().map(row).collect()
}

fn read(run: RunId, row: &Row) -> Result<Step, StoreError> {
    Ok(Step {
        path: row.text(0)?.to_owned(),
        session_id: sessions::full(run, row.text(1)?)?,
        kind: row.choice(2)?,
        state: row.choice(3)?,
        data: once::json(run, row, 4, 6)?,
        at: row.time(5)?,
    })
}
