//! `baton audit`: who did what, and whether the record of it is whole.

use baton_core::ThreadId;
use baton_core::store::{AuditQuery, AuditVerdict, Audited, Seal};
use jiff::Timestamp;
use serde_json::Value;

use super::archive::{self, Archive, NOTHING_KEPT, PagingArgs};
use super::reference::since;
use super::{print, print_json};
use crate::cli::Common;
use crate::exit::Exit;
use crate::report::figures::moment;
use crate::report::table::{Column, Table};
use crate::report::tell;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Read the whole trail and say whether every entry is there and as it was written
    #[arg(long, conflicts_with_all = ["thread", "actor", "action", "since", "limit", "cursor"])]
    verify: bool,
    /// Only about this thread, which may have been deleted: its whole id
    #[arg(long, value_name = "ID")]
    thread: Option<ThreadId>,
    /// Only by this user, agent, or `system`
    #[arg(long, value_name = "NAME")]
    actor: Option<String>,
    /// Only this action, such as `thread.delete`
    #[arg(long, value_name = "ACTION")]
    action: Option<String>,
    /// Only since then: a duration, such as 2h, or a time, such as 2026-11-15T09:30
    #[arg(long, value_name = "WHEN", value_parser = since)]
    since: Option<Timestamp>,
    #[command(flatten)]
    paging: PagingArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    archive::with(common, async |archive| {
        if args.verify { verify(archive, args.json).await } else { list(archive, args).await }
    })
}

async fn verify(archive: &Archive, json: bool) -> anyhow::Result<Exit> {
    let verdict = archive.tenant.verify_audit().await?;
    if json {
        print_json(&verdict)?;
    }
    match verdict {
        AuditVerdict::Intact { .. } if json => {}
        AuditVerdict::Intact { entries: 0, .. } => tell(NOTHING_KEPT),
        AuditVerdict::Intact { entries, head, seal } => {
            print(&format!("intact: {}, head {head}\n", counted(entries)))?;
            if let Some(Seal { number, at, entries, hash }) = seal {
                print(&format!("seal {number} of {}: {}, hash {hash}\n", moment(at), counted(entries)))?;
            }
        }
        AuditVerdict::Broken { chain: Some(chain), number, reason } => {
            tell(&format!("broken at entry {}: {reason}", place(chain, number)));
            return Ok(Exit::Failed);
        }
        AuditVerdict::Broken { chain: None, number, reason } => {
            tell(&format!("broken at seal {number}: {reason}"));
            return Ok(Exit::Failed);
        }
    }
    Ok(Exit::Ok)
}

fn counted(entries: u64) -> String {
    if entries == 1 { "1 entry".to_owned() } else { format!("{entries} entries") }
}

/// How an entry is named: its chain and its number in it.
fn place(chain: u8, number: u64) -> String {
    format!("{chain}.{number}")
}

async fn list(archive: &Archive, args: &Args) -> anyhow::Result<Exit> {
    let query = AuditQuery {
        thread_id: args.thread,
        actor: args.actor.clone(),
        action: args.action.clone(),
        since: args.since,
        ..AuditQuery::default()
    };
    let page = archive.tenant.audit(query, args.paging.request()).await?;
    archive.list(page, args.json, "entries", table)
}

fn table(entries: &[Audited]) -> String {
    let mut table = Table::new([
        Column::Number("entry"),
        Column::Text("time"),
        Column::Text("actor"),
        Column::Text("for"),
        Column::Text("action"),
        Column::Text("decision"),
        Column::Text("about"),
    ]);
    for Audited { chain, number, at, entry, .. } in entries {
        let about = match (entry.run_id, entry.thread_id) {
            (Some(run), _) => format!("run {run}"),
            (None, Some(thread)) => format!("thread {thread}"),
            (None, None) => String::new(),
        };
        // Whom an agent involved.
        let about = match entry.detail.get("to").and_then(Value::as_str) {
            Some(to) => format!("{to}, {about}"),
            None => about,
        };
        table.add([
            place(*chain, *number),
            moment(*at),
            entry.actor.clone(),
            entry.on_behalf_of.clone().unwrap_or_else(|| "-".to_owned()),
            entry.action.clone(),
            entry.decision.clone(),
            about,
        ]);
    }
    table.print()
}
