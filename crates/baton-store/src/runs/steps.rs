//! The recorded effects of a run.

use baton_core::store::Step;
use baton_core::{RunId, StoreError};

use crate::tx::Tx;
use crate::value::{Row, Value, params};

const OF_RUN: &str = "SELECT path, session_id, kind, state, data, at
    FROM steps
    WHERE tenant = $1 AND run_id = $2
    ORDER BY number";

pub(crate) async fn of_run(tx: &Tx<'_>, run: RunId) -> Result<Vec<Step>, StoreError> {
    tx.query(OF_RUN, params![run]).await?.iter().map(read).collect()
}

/// What is finished stays as it is, and everything keeps the number of its beginning.
const UPSERT: &str = "
    INSERT INTO steps (tenant, run_id, path, number, session_id, kind, state, data, at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (tenant, run_id, path) DO UPDATE
    SET session_id = excluded.session_id, kind = excluded.kind, state = excluded.state, data = excluded.data,
        at = excluded.at
    WHERE steps.state <> 'finished'";

/// Adds or replaces steps; the first one gets the number `first` if it is new.
pub(crate) async fn write(tx: &Tx<'_>, run: RunId, first: u64, steps: &[Step]) -> Result<(), StoreError> {
    let row = |(number, step): (u64, &Step)| {
        let (path, data) = (step.path.as_str(), Value::json(&step.data)?);
        Ok(params![run, path, number, &step.session_id, step.kind, step.state, data, step.at].to_vec())
    };
    let rows = (first..).zip(steps).map(row).collect::<Result<Vec<_>, StoreError>>()?;
    tx.execute_each(UPSERT, rows).await
}

fn read(row: &Row) -> Result<Step, StoreError> {
    Ok(Step {
        path: row.text(0)?.to_owned(),
        session_id: row.parse(1)?,
        kind: row.choice(2)?,
        state: row.choice(3)?,
        data: row.json(4)?,
        at: row.time(5)?,
    })
}
