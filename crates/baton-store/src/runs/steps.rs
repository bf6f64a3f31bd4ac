//! Steps: the recorded effects of a run, read from the [`journal`].

use baton_core::store::Step;
use baton_core::{RunId, StoreError};

use crate::journal::{self, rows_of_run};
use crate::tx::Tx;
use crate::value::params;

const OF_RUN: &str = concat!(
    "WITH r AS (SELECT run_id, thread_id, first_seq, last_seq FROM runs WHERE tenant = $1 AND run_id = $2)
    SELECT j.steps, m.parts
    FROM r ",
    rows_of_run!(),
    "
    LEFT JOIN messages AS m ON m.tenant = $1 AND m.thread_id = j.thread_id AND m.number = j.text_of
    WHERE j.steps IS NOT NULL
    ORDER BY j.last_seq, j.record"
);

/// The last state of each step, in the order in which they started.
pub(crate) async fn of_run(tx: &Tx<'_>, run: RunId) -> Result<Vec<Step>, StoreError> {
    let rows = tx.query(OF_RUN, params![run]).await?;
    let steps = rows.iter().map(|row| journal::steps(run, row)).collect::<Result<Vec<_>, _>>()?;
    Ok(journal::last_states(steps.into_iter().flatten(), |step| step).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn steps_are_read_from_the_rows_of_their_run() {
        let plan = plan(OF_RUN);
        assert!(plan[0].starts_with("SEARCH runs USING PRIMARY KEY"), "{plan:#?}");
        assert!(plan[1].contains("thread_id=? AND last_seq>? AND last_seq<?"), "{plan:#?}");
    }
}
