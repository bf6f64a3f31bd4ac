//! `baton patterns`: which ways batons take between agents, and how well they end.

use baton_core::store::{HopKind, Pattern};
use baton_core::usage::Cost;
use baton_core::{AgentName, Usd};
use jiff::Timestamp;
use serde::Serialize;

use super::archive::{self, NOTHING_KEPT};
use super::{print, print_json};
use crate::cli::Common;
use crate::exit::Exit;
use crate::report::figures::{cost, moment, stretch};
use crate::report::table::{Column, Table};
use crate::report::tell;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// All ways for programs, with the names that the HTTP API uses.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    data: Vec<Way>,
    /// There is one page.
    next_cursor: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct Way {
    kind: HopKind,
    from: AgentName,
    to: AgentName,
    query_class: String,
    count: u64,
    successes: u64,
    /// From 0 to 1.
    success_rate: f64,
    average_latency_ms: u64,
    average_cost_usd: Usd,
    last_at: Timestamp,
}

/// What was learnt, across all threads.
pub fn document(patterns: &[Pattern]) -> Document {
    Document { data: patterns.iter().map(Way::from).collect(), next_cursor: None }
}

impl From<&Pattern> for Way {
    #[allow(clippy::cast_precision_loss, reason = "a share needs no more than 52 bits")]
    fn from(pattern: &Pattern) -> Self {
        // Counted when it was first seen, so never nothing.
        let count = pattern.count.max(1);
        let average_nanos = pattern.total_cost.nanos() / i64::try_from(count).unwrap_or(i64::MAX);
        Self {
            kind: pattern.kind,
            from: pattern.from.clone(),
            to: pattern.to.clone(),
            query_class: pattern.query_class.clone(),
            count: pattern.count,
            successes: pattern.successes,
            success_rate: pattern.successes as f64 / count as f64,
            average_latency_ms: pattern.total_latency_ms / count,
            average_cost_usd: Usd::from_nanos(average_nanos),
            last_at: pattern.last_at,
        }
    }
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    archive::with(common, async |archive| {
        let document = document(&archive.tenant.patterns().await?);
        if args.json {
            print_json(&document)?;
        } else if !document.data.is_empty() {
            print(&table(&document.data))?;
        } else if archive.is_there() {
            tell("no baton was passed yet: transfers, routes, chains and handoffs are counted here");
        } else {
            tell(NOTHING_KEPT);
        }
        Ok(Exit::Ok)
    })
}

fn table(ways: &[Way]) -> String {
    let mut table = Table::new([
        Column::Text("way"),
        Column::Text("by"),
        Column::Number("times"),
        Column::Number("went well"),
        Column::Number("time"),
        Column::Spare("known cost"),
        Column::Spare("last"),
        Column::Text("about"),
    ]);
    for way in ways {
        table.add([
            format!("{} → {}", way.from, way.to),
            way.kind.to_string(),
            way.count.to_string(),
            format!("{:.0}%", way.success_rate * 100.0),
            stretch(std::time::Duration::from_millis(way.average_latency_ms)),
            cost(Cost::Known(way.average_cost_usd)),
            moment(way.last_at),
            way.query_class.clone(),
        ]);
    }
    table.print()
}
