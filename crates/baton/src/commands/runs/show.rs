//! One run: how it ended and whose answer it has, the tree of its steps with who did what and why and what each of them took, and
//! the ways that the baton took.

use baton_core::AgentName;
use baton_core::learning::{Evidence, Suggestion};
use baton_core::ledger::{Called, LedgerRow};
use baton_core::store::{Hop, RunEndData, RunRecord, Step, StepKind, StepState};
use baton_engine::learning::SUGGESTION;
use serde::Serialize;

use super::super::archive::Archive;
use super::super::{print, print_json};
use super::tree::{Spent, TreeNode, grow};
use super::{hops, who};
use crate::exit::Exit;
use crate::report::conversation::{indented, text_of};
use crate::report::figures::{cost, count, instant, stretch, tokens};
use crate::report::table::{Column, Table, cut, facts, line};
use crate::report::tree::{below, branch};

/// Of a question, in columns.
const QUESTION: usize = 80;

/// A run for programs.
#[derive(Serialize)]
struct RunJson<'a> {
    #[serde(flatten)]
    run: &'a RunRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_by: Option<&'a AgentName>,
    steps: Vec<TreeNode>,
    hops: Vec<Hop>,
    /// What experience suggested to agents of the run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    suggestions: Vec<Suggestion>,
}

pub(super) async fn show(archive: &Archive, run: &RunRecord, json: bool) -> anyhow::Result<Exit> {
    let steps = archive.tenant.steps(run.run_id).await?;
    let rows = archive.tenant.ledger(run.run_id).await?;
    let nodes = grow(&steps, &rows, &archive.tenant.run_sessions(run.run_id).await?);
    let hops = hops::of(archive, run).await?;
    let suggestions = suggestions(&steps);
    if json {
        let answered_by = run.end.as_ref().and_then(|end| end.answered_by.as_ref());
        print_json(&RunJson { run, answered_by, steps: nodes, hops, suggestions })?;
        return Ok(Exit::Ok);
    }
    let asked = archive.message_of(run).await?;
    let asked = asked.map(|message| text_of(&message.parts)).unwrap_or_default();
    let mut text = described(run, &asked) + &ended(run);
    if !nodes.is_empty() {
        text += &format!("\n{}", table(run, &nodes));
    }
    let suggested: String = suggestions.iter().map(|one| suggested(one, &hops)).collect();
    let hops = hops::table(&hops, run) + &suggested;
    print(&(text + &unfinished(run, &nodes) + &hops + &totals(run, &rows)))?;
    Ok(Exit::Ok)
}

/// What experience suggested to the agents of a run, in order.
fn suggestions(steps: &[Step]) -> Vec<Suggestion> {
    let is_suggestion =
        |step: &&Step| step.kind == StepKind::Note && step.path.rsplit('/').next() == Some(SUGGESTION);
    let suggestions = steps.iter().filter(is_suggestion);
    suggestions.filter_map(|step| step.data.read().ok()).collect()
}

fn suggested(suggestion: &Suggestion, hops: &[Hop]) -> String {
    let Suggestion { query_class, agent, is_exploration, evidence } = suggestion;
    let known = evidence.iter().map(Evidence::text).collect::<Vec<_>>().join(", ");
    let why = if *is_exploration { " (to learn more about it)" } else { "" };
    let is_followed = hops.iter().any(|hop| hop.to == *agent);
    let followed = if is_followed { "followed" } else { "not followed" };
    format!("\nexperience suggested {agent}{why}, {followed}: {query_class} questions: {known}\n")
}

fn described(run: &RunRecord, asked: &str) -> String {
    let cancel = run.cancel.filter(|_| !run.status.is_final());
    let cancel = cancel.map(|how| format!(" ({how} was asked for)")).unwrap_or_default();
    let limit = run.end.as_ref().and_then(|end| end.limit.as_ref());
    let limit = limit.map(|limit| format!(" (ended early: {limit})")).unwrap_or_default();
    let attempts = match run.attempts {
        0 | 1 => run.attempts.to_string(),
        more => format!("{more} (its process ended {})", times(more - 1)),
    };
    let mut all = vec![
        ("run", run.run_id.to_string()),
        ("thread", run.thread_id.to_string()),
        ("user", run.user_id.to_string()),
        ("agent", run.agent.to_string()),
        ("asked", cut(&line(asked), QUESTION)),
        ("status", format!("{}{cancel}{limit}", run.status)),
        ("accepted", instant(run.created_at)),
        ("began", run.started_at.map_or_else(|| "not yet".to_owned(), instant)),
        ("ended", run.finished_at.map_or_else(|| "not yet".to_owned(), instant)),
        ("attempts", attempts),
    ];
    all.extend(run.end.iter().flat_map(contributors));
    facts(&all)
}

/// Whose answer it is, who worked for it, and who did not agree with it.
fn contributors(end: &RunEndData) -> Vec<(&'static str, String)> {
    let names = |names: Vec<String>| Some(names.join(", ")).filter(|names| !names.is_empty());
    let sources = end.sources.iter().map(|source| source.agent.to_string());
    // One may have contributed more than once.
    let sources: indexmap::IndexSet<String> = sources.collect();
    let dissent = end.dissent.iter().map(|one| format!("{} ({})", one.member, one.reason));
    let all = [
        ("answered", end.answered_by.as_ref().map(|agent| format!("by {agent}"))),
        ("with", names(sources.into_iter().collect())),
        ("dissent", names(dissent.collect())),
    ];
    all.into_iter().filter_map(|(name, value)| Some((name, value?))).collect()
}

fn times(count: u32) -> String {
    if count == 1 { "once".to_owned() } else { format!("{count} times") }
}

/// The answer or the error, in full.
fn ended(run: &RunRecord) -> String {
    let Some(end) = &run.end else { return String::new() };
    let bold = anstyle::Style::new().bold();
    let answer = end.answer.as_ref().map(|answer| format!("\n{bold}answer{bold:#}\n{}", indented(answer)));
    let red = anstyle::AnsiColor::Red.on_default().bold();
    let error = end.message.as_ref().map(|message| {
        let code = line(end.code.as_deref().unwrap_or_default());
        format!("\n{red}error {code}{red:#}\n{}", indented(message))
    });
    answer.unwrap_or_default() + &error.unwrap_or_default()
}

fn table(run: &RunRecord, nodes: &[TreeNode]) -> String {
    let mut table = Table::new([
        Column::Text("step"),
        Column::Number("tokens"),
        Column::Spare("own"),
        Column::Number("cost"),
        Column::Spare("own"),
        Column::Number("time"),
        Column::Spare("own"),
        Column::Text("what"),
    ]);
    for node in nodes {
        add(&mut table, run, node, &[]);
    }
    table.print()
}

fn add(table: &mut Table<8>, run: &RunRecord, node: &TreeNode, lasts: &[bool]) {
    let name = if lasts.is_empty() { &node.path } else { node.path.rsplit('/').next().unwrap_or_default() };
    let Spent { usage: total, .. } = &node.total;
    let Spent { usage: own, .. } = &node.own;
    table.add([
        branch(lasts) + name,
        tokens(total),
        tokens(own),
        cost(total.cost),
        cost(own.cost),
        stretch(node.total.time()),
        stretch(node.own.time()),
        happened(run, node),
    ]);
    let children: Vec<&TreeNode> = node.children.iter().filter(|child| !is_note(child)).collect();
    for (at, child) in children.iter().enumerate() {
        add(table, run, child, &below(lasts, at, children.len()));
    }
}

/// A step that is only a record: it takes no time and costs nothing.
fn is_note(node: &TreeNode) -> bool {
    let name = node.path.rsplit('/').next().unwrap_or_default();
    let is_kept = match node.kind {
        Some(StepKind::Round) => matches!(name, "said" | "team"),
        kind => kind == Some(StepKind::Note),
    };
    is_kept && node.children.is_empty()
}

fn happened(run: &RunRecord, node: &TreeNode) -> String {
    let failed = match (node.failed_calls, node.calls) {
        (0, _) => None,
        (_, 1) => Some("failed".to_owned()),
        (failed, calls) => Some(format!("{failed} of {calls} calls failed")),
    };
    let open = is_open(node).then(|| if run.status.is_final() { "never finished" } else { "not finished" });
    let who = node.who.as_ref().map(who::told);
    let called = who.or_else(|| node.called.clone()).or_else(|| node.kind.map(|kind| kind.to_string()));
    let parts = [called, failed, open.map(str::to_owned)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Whether something was begun here whose end was not recorded. A session ends with its record, not with a step.
fn is_open(node: &TreeNode) -> bool {
    node.state == Some(StepState::Started) && node.kind != Some(StepKind::Session)
}

/// Also in words: a reader may have to find out whether it had an effect.
fn unfinished(run: &RunRecord, nodes: &[TreeNode]) -> String {
    let mut open = Vec::new();
    let mut left: Vec<&TreeNode> = nodes.iter().rev().collect();
    while let Some(node) = left.pop() {
        if is_open(node) {
            open.push(node.path.as_str());
        }
        left.extend(node.children.iter().rev());
    }
    if open.is_empty() || !run.status.is_final() {
        return String::new();
    }
    format!("\nnever finished, so whether it had an effect is not known: {}\n", line(&open.join(", ")))
}

fn totals(run: &RunRecord, rows: &[LedgerRow]) -> String {
    let models = rows.iter().filter(|row| matches!(row.call, Called::Model { .. })).count();
    let of = &run.usage.tokens;
    let time = super::took(run);
    format!(
        "\ntotal: {} tokens ({} in, {} out), cost {}, {time}, {}, {}\n",
        tokens(&run.usage),
        of.input_tokens,
        of.output_tokens,
        cost(run.usage.cost),
        count(models as u64, "model call"),
        count((rows.len() - models) as u64, "tool call"),
    )
}
