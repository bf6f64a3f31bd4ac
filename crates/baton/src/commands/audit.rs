//! `baton audit`: who did what, and whether the record of it is complete.

use baton_core::ThreadId;
use baton_core::store::{AuditQuery, AuditScope, AuditTruncation, AuditVerdict, Audited, PageRequest, Seal};
use baton_server::wire::audit::AuditView;
use jiff::Timestamp;
use serde_json::Value;

use super::archive::{self, Archive, NOTHING_KEPT, PagingArgs};
use super::reference::since;
use super::{TenantArg, print, print_json, write};
use crate::cli::Common;
use crate::exit::Exit;
use crate::report::figures::moment;
use crate::report::table::{Column, Table};
use crate::report::tell;
use crate::wiring;

#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub struct Args {
    #[command(flatten)]
    tenant: TenantArg,
    #[command(subcommand)]
    command: Option<Command>,
    /// Verify every entry and seal; the same as `baton audit verify --full`
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

#[derive(Debug, clap::Subcommand)]
enum Command {
    /// Verify that every entry and seal is there and as it was written
    Verify {
        /// Read everything, not only what was added since the last verification
        #[arg(long)]
        full: bool,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print all entries as JSON Lines, the oldest first
    Export {
        /// Only since then: a duration, such as 30d, or a time, such as 2026-11-15T09:30
        #[arg(long, value_name = "WHEN", value_parser = since)]
        since: Option<Timestamp>,
    },
    /// Accept a trail that was written without this key, and seal it with the first key of `BATON_AUDIT_KEY`
    Sign {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    args.tenant.select();
    archive::with(common, async |archive| match &args.command {
        Some(Command::Verify { full, json }) => {
            let scope = if *full { AuditScope::Full } else { AuditScope::Incremental };
            say(archive.tenant.verify_audit(scope).await?, *json)
        }
        Some(Command::Export { since }) => export(archive, *since).await,
        Some(Command::Sign { json }) => sign(archive, *json).await,
        None if args.verify => say(archive.tenant.verify_audit(AuditScope::Full).await?, args.json),
        None => list(archive, args).await,
    })
}

async fn sign(archive: &Archive, json: bool) -> anyhow::Result<Exit> {
    if wiring::audit_keys()?.is_empty() {
        let said = "there is no key to sign with: set BATON_AUDIT_KEY or BATON_AUDIT_KEY_FILE";
        return Err(Exit::Usage.because(anyhow::anyhow!(said)));
    }
    say(archive.tenant.sign_audit().await?, json)
}

/// Page by page, so that a trail of any length is exported with little memory.
async fn export(archive: &Archive, since: Option<Timestamp>) -> anyhow::Result<Exit> {
    let query = AuditQuery { since, ..AuditQuery::default() };
    let mut page = PageRequest::first(PageRequest::MAX_LIMIT);
    loop {
        let found = archive.tenant.audit(query.clone(), page.clone()).await?;
        let mut lines = String::new();
        for entry in found.data {
            lines += &serde_json::to_string(&AuditView::of(archive.tenant.tenant(), entry))?;
            lines.push('\n');
        }
        match write(&lines) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => return Ok(Exit::Ok),
            written => written?,
        }
        match found.next_cursor {
            Some(cursor) => page.cursor = Some(cursor),
            None => return Ok(Exit::Ok),
        }
    }
}

fn say(verdict: AuditVerdict, json: bool) -> anyhow::Result<Exit> {
    if json {
        print_json(&verdict)?;
    }
    match verdict {
        AuditVerdict::Intact { .. } if json => {}
        AuditVerdict::Intact { entries: 0, .. } => tell(NOTHING_KEPT),
        AuditVerdict::Intact { entries, head, seal, since_seal, unsigned_seals, truncation } => {
            let since = since_seal.map(|seal| format!(" (verified since seal {seal})")).unwrap_or_default();
            print(&format!("intact: {}, head {head}{since}\n", counted(entries)))?;
            if let Some(Seal { number, at, entries, hash, key_id }) = seal {
                let key = key_id.map(|id| format!(", signed with key {id}")).unwrap_or_default();
                print(&format!("seal {number} of {}: {}, hash {hash}{key}\n", moment(at), counted(entries)))?;
            }
            if let Some(AuditTruncation { seal, entries, at }) = truncation {
                let removed = counted(entries);
                print(&format!(
                    "{removed} up to seal {seal} were removed by retention, last on {}\n",
                    moment(at)
                ))?;
            }
            if unsigned_seals > 0 {
                tell(&format!("the first {unsigned_seals} seals are not signed with a configured key"));
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
