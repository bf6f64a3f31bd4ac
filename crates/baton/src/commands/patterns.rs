//! `baton patterns`: how agents involve each other, how well that ends, and which agent serves which kind of request best.

use baton_core::usage::Cost;
use baton_server::wire::pattern::{Insight, Way, document};
use jiff::Timestamp;

use super::archive::{self, NOTHING_KEPT};
use super::{TenantArg, print, print_json};
use crate::cli::Common;
use crate::exit::Exit;
use crate::report::figures::{cost, moment, stretch};
use crate::report::table::{Column, Table};
use crate::report::tell;

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    tenant: TenantArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    args.tenant.select();
    archive::with(common, async |archive| {
        let (patterns, known) = (archive.tenant.patterns().await?, archive.tenant.experience().await?);
        let document = document(&patterns, &known, Timestamp::now());
        if args.json {
            print_json(&document)?;
        } else if !document.data.is_empty() {
            print(&(table(&document.data) + &insights(&document.insights)))?;
        } else if archive.is_there() {
            tell("no baton was passed yet: transfers, routes, chains and handoffs are counted here");
        } else {
            tell(NOTHING_KEPT);
        }
        Ok(Exit::Ok)
    })
}

/// One line for each kind of request.
fn insights(insights: &[Insight]) -> String {
    let lines: String = insights.iter().map(|insight| format!("{}\n", insight.text)).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

fn table(ways: &[Way]) -> String {
    let mut table = Table::new([
        Column::Text("way"),
        Column::Text("by"),
        Column::Number("times"),
        Column::Number("went well"),
        Column::Spare("liked"),
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
            liked(way),
            stretch(std::time::Duration::from_millis(way.average_latency_ms)),
            cost(Cost::Known(way.average_cost_usd)),
            moment(way.last_at),
            way.query_class.clone(),
        ]);
    }
    table.print()
}

/// How many of those who said something liked the answer.
fn liked(way: &Way) -> String {
    match way.liked.saturating_add(way.disliked) {
        0 => "-".to_owned(),
        all => format!("{} of {all}", way.liked),
    }
}
