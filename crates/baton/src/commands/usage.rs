//! `baton usage`: what was spent, by agent, user, model or day, and what is left of the budgets.

use baton_core::Usage;
use baton_core::budget::BudgetReport;
use baton_core::choice::Choice as _;
use baton_core::store::budget::budget_reports;
use baton_core::store::{Page, UsageBy, UsageLine, UsageQuery};
use jiff::Timestamp;
use serde::Serialize;

use super::reference::since;
use super::{TenantArg, archive, print, print_json};
use crate::cli::Common;
use crate::exit::Exit;
use crate::report::figures::{cost, moment, tokens};
use crate::report::table::{Column, Table};

#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    tenant: TenantArg,
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
    args.tenant.select();
    let project = super::project(common)?;
    let budgets = project.config.budgets;
    archive::with_project(&project, async |archive| {
        let query = UsageQuery { by: args.by, user_id: None, since: args.since, until: None };
        let data = archive.tenant.usage(query).await?;
        let accounts = budgets.accounts(None, Some(&super::user()), Timestamp::now());
        let budgets = budget_reports(&*archive.tenant, accounts).await?;
        if args.json {
            print_json(&UsageJson { data, next_cursor: (), budgets })?;
            return Ok(Exit::Ok);
        }
        // There is one page.
        let exit =
            archive.list(Page { data, next_cursor: None }, false, "calls", |lines| table(args.by, lines))?;
        if !budgets.is_empty() {
            print(&format!("\n{}", budget_table(&budgets)))?;
        }
        Ok(exit)
    })
}

/// A report for programs.
#[derive(Serialize)]
struct UsageJson {
    data: Vec<UsageLine>,
    next_cursor: (),
    #[serde(skip_serializing_if = "Vec::is_empty")]
    budgets: Vec<BudgetReport>,
}

/// What is left of the budgets, one line for each limit.
fn budget_table(budgets: &[BudgetReport]) -> String {
    let mut table = Table::new([
        Column::Text("budget"),
        Column::Number("limit"),
        Column::Number("spent"),
        Column::Number("remaining"),
        Column::Spare("starts again"),
    ]);
    for budget in budgets {
        let name = format!("{} per {}", budget.scope, budget.period);
        let again = budget.ends_at.map(moment).unwrap_or_default();
        let BudgetReport { limit, spent, remaining, .. } = budget;
        if let (Some(most), Some(left)) = (limit.max_cost_usd, remaining.max_cost_usd) {
            let amounts = [most, spent.cost(), left].map(|usd| usd.to_string());
            table.add(budget_row(&name, amounts, &again));
        }
        if let (Some(most), Some(left)) = (limit.max_tokens, remaining.max_tokens) {
            let amounts = [most, spent.tokens, left].map(|tokens| format!("{tokens} tokens"));
            table.add(budget_row(&name, amounts, &again));
        }
    }
    table.print()
}

fn budget_row(name: &str, [limit, spent, remaining]: [String; 3], again: &str) -> [String; 5] {
    [name.to_owned(), limit, spent, remaining, again.to_owned()]
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
