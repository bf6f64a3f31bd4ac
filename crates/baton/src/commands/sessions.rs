//! `baton sessions`: one agent's loop inside a run each, and who called whom.

mod transcript;

use std::collections::BTreeSet;
use std::str::FromStr;

use baton_core::id::InvalidId;
use baton_core::store::SessionRecord;
use baton_core::{SessionId, StoreError, ThreadId};
use indexmap::IndexMap;
use serde::Serialize;

use super::archive::{self, Archive, PagingArgs};
use super::reference::Reference;
use super::{print, print_json};
use crate::cli::Common;
use crate::exit::Exit;
use crate::report::figures::{self, moment};
use crate::report::table::{Column, Table, facts};
use crate::report::tell;
use crate::report::tree::{below, branch};
use transcript::TranscriptEntry;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Sessions of the newest runs, with what each of them took by itself
    List {
        /// Only of this thread: its id, or the beginning of it
        #[arg(long, value_name = "ID")]
        thread: Option<Reference<ThreadId>>,
        /// Draw who called whom
        #[arg(long)]
        tree: bool,
        #[command(flatten)]
        paging: PagingArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// The conversation that one session had with its model and tools
    Show {
        /// The session's id, or what a tree calls it; the beginning of a run's id is its first session
        #[arg(value_name = "ID")]
        session: SessionRef,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// How a session is named: by its id, or by what it is called below its parent.
#[derive(Debug, Clone)]
pub enum SessionRef {
    Id(Reference<SessionId>),
    Label(String),
}

impl FromStr for SessionRef {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        if text.starts_with("sub_") && !text.contains(':') {
            return Ok(Self::Label(text.to_owned()));
        }
        text.parse().map(Self::Id)
    }
}

pub fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    archive::with(common, async |archive| match command {
        Command::List { thread, tree, paging, json } => {
            let thread = archive.known_thread(thread.as_ref()).await?;
            let page = archive.tenant.sessions(thread, paging.request()).await?;
            archive.list(page, *json, "sessions", |sessions| table(sessions, *tree))
        }
        Command::Show { session, json } => show(archive, session, *json).await,
    })
}

fn table(sessions: &[SessionRecord], tree: bool) -> String {
    let session = if tree { Column::Id("session") } else { Column::Text("session") };
    let mut table = Table::new([
        session,
        Column::Text("agent"),
        Column::Text("status"),
        Column::Number("tokens"),
        Column::Spare("cost"),
        Column::Number("time"),
    ]);
    if tree {
        let family = Family::of(sessions);
        for root in &family.roots {
            family.add(&mut table, root, &[]);
        }
    } else {
        for session in sessions {
            table.add(row(session, session.session_id.to_string()));
        }
    }
    table.print()
}

fn row(session: &SessionRecord, name: String) -> [String; 6] {
    [
        name,
        session.agent.to_string(),
        session.status.to_string(),
        figures::tokens(&session.usage),
        figures::cost(session.usage.cost),
        took(session),
    ]
}

fn took(session: &SessionRecord) -> String {
    let took = figures::took(Some(session.started_at), session.finished_at);
    figures::stretch(took.unwrap_or_default())
}

/// Parents and children.
struct Family<'a> {
    roots: Vec<&'a SessionRecord>,
    children: IndexMap<SessionId, Vec<&'a SessionRecord>>,
}

impl<'a> Family<'a> {
    fn of(sessions: &'a [SessionRecord]) -> Self {
        let known: BTreeSet<&SessionId> = sessions.iter().map(|session| &session.session_id).collect();
        let mut family = Self { roots: Vec::new(), children: IndexMap::new() };
        for session in sessions {
            match session.session_id.parent().filter(|parent| known.contains(parent)) {
                Some(parent) => family.children.entry(parent).or_default().push(session),
                None => family.roots.push(session),
            }
        }
        family
    }

    /// A child is called by what its id adds to that of its parent.
    fn add(&self, table: &mut Table<6>, session: &SessionRecord, lasts: &[bool]) {
        let id = session.session_id.as_str();
        let name = if lasts.is_empty() { id } else { id.rsplit(':').next().unwrap_or(id) };
        table.add(row(session, branch(lasts) + name));
        let children = self.children.get(&session.session_id).map_or(&[][..], Vec::as_slice);
        for (at, child) in children.iter().enumerate() {
            self.add(table, child, &below(lasts, at, children.len()));
        }
    }
}

/// A session for programs.
#[derive(Serialize)]
struct SessionJson {
    #[serde(flatten)]
    session: SessionRecord,
    /// 1 for the run's first session, one more for each nesting.
    level: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<SessionId>,
    messages: Vec<TranscriptEntry>,
}

async fn show(archive: &Archive, named: &SessionRef, json: bool) -> anyhow::Result<Exit> {
    let id = match named {
        SessionRef::Id(id) => archive.session_id(id).await?,
        SessionRef::Label(label) => labelled(archive, label).await?,
    };
    let session = archive.tenant.session(&id).await?;
    let messages = transcript::of(archive, &session).await?;
    if json {
        let (level, parent) = (id.level(), id.parent());
        print_json(&SessionJson { session, level, parent, messages })?;
        return Ok(Exit::Ok);
    }
    let said = messages.iter().map(|said| said.text(&session.agent));
    print(&(described(&session) + &said.collect::<String>()))?;
    Ok(Exit::Ok)
}

/// The newest session of this name. The same part of another run has the same one.
async fn labelled(archive: &Archive, label: &str) -> anyhow::Result<SessionId> {
    let found = archive.labelled(label).await?;
    let Some((newest, others)) = found.split_first() else {
        return Err(StoreError::NotFound("session").into());
    };
    if let Some(other) = others.first() {
        let count = figures::count(others.len() as u64, "other");
        tell(&format!("the newest `{label}`; there is also {other}, {count} in all"));
    }
    Ok(newest.clone())
}

fn described(session: &SessionRecord) -> String {
    let parent = session.session_id.parent().map(|parent| ("called by", parent.to_string()));
    let mut all = vec![("session", session.session_id.to_string())];
    all.extend(parent);
    all.extend([
        ("thread", session.thread_id.to_string()),
        ("agent", session.agent.to_string()),
        ("status", session.status.to_string()),
        ("began", moment(session.started_at)),
        ("took", took(session)),
        ("tokens", figures::tokens(&session.usage)),
        ("cost", figures::cost(session.usage.cost)),
    ]);
    facts(&all)
}

#[cfg(test)]
mod tests {
    use baton_core::store::RunStatus;
    use baton_core::{AgentName, RunId, Usage};
    use jiff::Timestamp;

    use super::*;

    fn record(session_id: &SessionId, agent: &str) -> SessionRecord {
        SessionRecord {
            session_id: session_id.clone(),
            run_id: RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap(),
            thread_id: ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
            agent: AgentName::parse(agent).unwrap(),
            path: agent.to_owned(),
            status: RunStatus::Completed,
            started_at: Timestamp::from_second(0).unwrap(),
            finished_at: Some(Timestamp::from_second(2).unwrap()),
            usage: Usage::default(),
        }
    }

    #[test]
    fn f15_the_tree_shows_who_called_whom() {
        let label = |name: &str| AgentName::parse(name).unwrap();
        let root = SessionId::root(RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap());
        let (first, second) = (root.child(&label("legal"), 1), root.child(&label("web_research"), 2));
        let nested = first.child(&label("law-books"), 3);
        let sessions = [
            record(&root, "assistant"),
            record(&first, "legal"),
            record(&nested, "law-books"),
            record(&second, "research"),
        ];
        let text = anstream::adapter::strip_str(&table(&sessions, true)).to_string();
        insta::assert_snapshot!(text, @"
        session                               agent      status     tokens   cost   time
        01890a5d-ac96-774b-bcce-b302099a8057  assistant  completed       0  $0.00  2.0 s
        ├── sub_legal_00000001                legal      completed       0  $0.00  2.0 s
        │   └── sub_law-books_00000003        law-books  completed       0  $0.00  2.0 s
        └── sub_web_research_00000002         research   completed       0  $0.00  2.0 s
        ");
        // A part of a run, as at the edge of a page.
        let part = anstream::adapter::strip_str(&table(&sessions[1..], true)).to_string();
        assert!(part.lines().nth(1).unwrap().starts_with(first.as_str()), "{part}");
    }
}
