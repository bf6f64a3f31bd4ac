//! How the agents of a run involved each other.

use baton_core::store::{Hop, RunRecord};
use baton_core::usage::Cost;

use super::super::archive::Archive;
use crate::report::figures::{cost, stretch};
use crate::report::table::{Column, Table};

/// In the order in which they happened.
pub(super) async fn of(archive: &Archive, run: &RunRecord) -> anyhow::Result<Vec<Hop>> {
    let all = archive.tenant.hops(run.thread_id).await?;
    Ok(all.into_iter().filter(|hop| hop.run_id == Some(run.run_id)).collect())
}

/// A hop keeps what is known of its cost; where the run's cost is not known, that is not all of it.
pub(super) fn table(hops: &[Hop], run: &RunRecord) -> String {
    if hops.is_empty() {
        return String::new();
    }
    let mut table = Table::new([
        Column::Text("hop"),
        Column::Text("by"),
        Column::Text("ended"),
        Column::Number("time"),
        Column::Number("cost"),
        Column::Text("reason"),
    ]);
    for hop in hops {
        table.add([
            format!("{} → {}", hop.from, hop.to),
            hop.kind.to_string(),
            hop.outcome.to_string(),
            stretch(std::time::Duration::from_millis(hop.latency_ms)),
            cost(match run.usage.cost {
                Cost::Known(_) => Cost::Known(hop.cost),
                Cost::Unknown(_) => Cost::Unknown(hop.cost),
            }),
            hop.reason.clone(),
        ]);
    }
    format!("\n{}", table.print())
}
