//! Which rows of the trail have entries about a thread, of an actor or of an action.
//!
//! Entries about a thread are found by its number while it exists, and by its id once it is deleted or if it never existed.

use std::collections::{BTreeMap, BTreeSet};

use baton_core::{StoreError, ThreadId};

use super::ends::ChainEnd;
use super::stored::AuditLine;
use crate::insert::{Changes, ColumnKind, Insert};
use crate::tx::Tx;
use crate::value::{SqlValue, params, row_values};

static THREADS: Insert = Insert::new(
    "audit_threads",
    &[
        ("thread_number", ColumnKind::Int),
        ("at", ColumnKind::Int),
        ("chain", ColumnKind::Int),
        ("number", ColumnKind::Int),
    ],
    "",
);

static NAMES: Insert = Insert::new(
    "audit_names",
    &[
        ("name", ColumnKind::Text),
        ("at", ColumnKind::Int),
        ("chain", ColumnKind::Int),
        ("number", ColumnKind::Int),
    ],
    "",
);

/// Every run writes entries of these actions, so a page of them is found by time without passing many others.
const FREQUENT: [&str; 3] = ["message.send", "run.start", "run.end"];

/// The name of a thread in `audit_names`.
pub(super) fn thread(id: ThreadId) -> String {
    format!("thread:{id}")
}

/// The name of an actor in `audit_names`.
pub(super) fn actor(name: &str) -> String {
    format!("actor:{name}")
}

/// The name of an action in `audit_names`, or `None` if it is not in there because it is frequent.
pub(super) fn action(name: &str) -> Option<String> {
    (!FREQUENT.contains(&name)).then(|| format!("action:{name}"))
}

/// The rows that a transaction adds to the two tables.
#[derive(Default)]
pub(super) struct Found {
    threads: Vec<Vec<SqlValue>>,
    names: Vec<Vec<SqlValue>>,
}

impl Found {
    /// Adds a row of a chain that has these entries and ends at `end`.
    pub(super) fn add(&mut self, chain: u8, end: &ChainEnd, lines: &[&AuditLine]) {
        let of_thread =
            |line: &&AuditLine| (line.thread.filter(|_| line.thread_number.is_none()), line.thread_number);
        let threads: BTreeSet<(Option<ThreadId>, Option<u64>)> = lines.iter().map(of_thread).collect();
        let actors: BTreeSet<&str> = lines.iter().map(|line| line.actor.as_str()).collect();
        let actions: BTreeSet<&str> = lines.iter().map(|line| line.action.as_str()).collect();
        let (at, chain, number) = (end.at, u32::from(chain), end.entries);
        let numbers = threads.iter().filter_map(|(_, number)| *number);
        self.threads.extend(numbers.map(|thread| row_values![thread, at, chain, number]));
        let unnumbered = threads.iter().filter_map(|(id, _)| id.map(thread));
        let names =
            actors.into_iter().map(actor).chain(actions.into_iter().filter_map(action)).chain(unnumbered);
        self.names.extend(names.map(|name| row_values![name, at, chain, number]));
    }

    pub(super) fn write(self, changes: &mut Changes) {
        changes.insert(&THREADS, self.threads);
        changes.insert(&NAMES, self.names);
    }
}

const NUMBER: &str = "SELECT thread_number FROM thread_work WHERE tenant = $1 AND thread_id = $2";

/// The number of a thread, if it exists.
pub(super) async fn number_of(tx: &Tx<'_>, thread: ThreadId) -> Result<Option<u64>, StoreError> {
    tx.first(NUMBER, params![thread]).await?.map(|row| row.count(0)).transpose()
}

/// Finds the numbers of the threads of entries that came without one.
pub(super) async fn number(tx: &Tx<'_>, lines: &mut [AuditLine]) -> Result<(), StoreError> {
    let mut numbers: BTreeMap<ThreadId, Option<u64>> = BTreeMap::new();
    for line in lines.iter_mut().filter(|line| line.thread_number.is_none()) {
        let Some(thread) = line.thread else { continue };
        line.thread_number = match numbers.get(&thread) {
            Some(number) => *number,
            None => *numbers.entry(thread).or_insert(number_of(tx, thread).await?),
        };
    }
    Ok(())
}

const OF_THREAD: &str =
    "SELECT at, chain, number FROM audit_threads WHERE tenant = $1 AND thread_number = $2";
const FORGET: &str = "DELETE FROM audit_threads WHERE tenant = $1 AND thread_number = $2";

/// Makes the entries about a thread that is being deleted known by its id, also those of this transaction.
pub(crate) async fn forget_number(tx: &Tx<'_>, id: ThreadId, number: u64) -> Result<(), StoreError> {
    let positions = tx.query(OF_THREAD, params![number]).await?;
    let name = thread(id);
    let row = |position: &crate::value::Row| {
        Ok(row_values![name.as_str(), position.int(0)?, position.int(1)?, position.int(2)?])
    };
    let names = positions.iter().map(row).collect::<Result<Vec<_>, StoreError>>()?;
    for line in tx.to_close().audit.iter_mut().filter(|line| line.thread == Some(id)) {
        line.thread_number = None;
    }
    let mut changes = Changes::default();
    changes.insert(&NAMES, names);
    tx.write(changes).await?;
    tx.execute(FORGET, params![number]).await.map(drop)
}
