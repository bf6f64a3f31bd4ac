//! Steps: the recorded effects of a run, read from the [`journal`].

use baton_core::store::Step;
use baton_core::{RunId, StoreError};

use crate::journal::{self, rows_of_run};
use crate::tx::Tx;
use crate::value::params;

const OF_RUN: &str = concat!(
    "WITH r AS (SELECT run_id, thread_number, first_seq, last_seq FROM runs WHERE tenant = $1 AND run_id = $2)
    SELECT j.content, m.parts
    FROM r ",
    rows_of_run!(),
    "
    LEFT JOIN messages AS m ON m.tenant = $1 AND m.thread_number = j.thread_number AND m.number = j.text_of
    WHERE j.content IS NOT NULL
    ORDER BY j.last_seq, j.record"
);

/// The last state of each step, in the order in which they started.
pub(crate) async fn of_run(tx: &Tx<'_>, run: RunId) -> Result<Vec<Step>, StoreError> {
    let rows = tx.query(OF_RUN, params![run]).await?;
    let mut steps = Vec::new();
    for row in &rows {
        steps.append(&mut journal::steps(run, row)?);
    }
    let last = journal::last_states(&steps);
    let mut steps: Vec<Option<Step>> = steps.into_iter().map(Some).collect();
    Ok(last.into_iter().filter_map(|at| steps[at].take()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn steps_are_read_from_the_rows_of_their_run() {
        let plan = plan(OF_RUN);
        assert!(plan[0].starts_with("SEARCH runs USING PRIMARY KEY"), "{plan:#?}");
        assert!(plan[1].contains("thread_number=? AND tenant=? AND last_seq>? AND last_seq<?"), "{plan:#?}");
    }
}
