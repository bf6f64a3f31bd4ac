//! `baton usage`: what was spent, by agent, user, model or day.

use baton_core::Usage;
use baton_core::choice::Choice as _;
use baton_core::store::{Page, UsageBy, UsageLine, UsageQuery};
use jiff::Timestamp;

use super::archive;
use super::reference::since;
use crate::cli::Common;
use crate::exit::Exit;
use crate::report::figures::{cost, tokens};
use crate::report::table::{Column, Table};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// What to add up for: agent, user, model or day
    #[arg(long, value_name = "WHAT", default_value = "agent", value_parser = by)]
    by: UsageBy,
    /// Only since then: a duration, such as 7d, or a time, such as 2026-11-15T09:30
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Timestamp>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

fn by(text: &str) -> Result<UsageBy, String> {
    UsageBy::parse(text).ok_or_else(|| {
        let words: Vec<&str> = UsageBy::ALL.iter().map(|(word, _)| *word).collect();
        format!("`{text}` is nothing to add up for: use {}", words.join(", "))
    })
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    archive::with(common, async |archive| {
        let query = UsageQuery { by: args.by, user_id: None, since: args.since, until: None };
        // There is one page.
        let page = Page { data: archive.tenant.usage(query).await?, next_cursor: None };
        archive.list(page, args.json, "calls", |lines| table(args.by, lines))
    })
}

fn table(by: UsageBy, lines: &[UsageLine]) -> String {
    let mut table = Table::new([
        Column::Text(by.word()),
        Column::Spare("runs"),
        Column::Number("model calls"),
        Column::Spare("tool calls"),
        Column::Spare("input"),
        Column::Spare("output"),
        Column::Number("tokens"),
        Column::Number("cost"),
    ]);
    for line in lines {
        table.add(row(line, line.runs.to_string()));
    }
    if lines.len() > 1 {
        // A run may be in several lines, so runs cannot be added up.
        table.add(row(&total(lines), String::new()));
    }
    table.print()
}

fn row(line: &UsageLine, runs: String) -> [String; 8] {
    let UsageLine { key, model_calls, tool_calls, usage, .. } = line;
    [
        key.clone(),
        runs,
        model_calls.to_string(),
        tool_calls.to_string(),
        usage.tokens.input_tokens.to_string(),
        usage.tokens.output_tokens.to_string(),
        tokens(usage),
        cost(usage.cost),
    ]
}

fn total(lines: &[UsageLine]) -> UsageLine {
    let none = UsageLine {
        key: "total".to_owned(),
        runs: 0,
        model_calls: 0,
        tool_calls: 0,
        usage: Usage::default(),
    };
    lines.iter().fold(none, |mut total, line| {
        total.model_calls += line.model_calls;
        total.tool_calls += line.tool_calls;
        total.usage += line.usage;
        total
    })
}
