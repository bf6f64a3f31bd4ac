//! Conversations in SQLite: one thread writes, and what waits together is committed together.

use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use rusqlite::Connection;
use tokio::sync::oneshot;

const TABLE: &str = "
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE said (thread TEXT NOT NULL, at INTEGER NOT NULL, message TEXT NOT NULL, PRIMARY KEY (thread, at))
        WITHOUT ROWID;";

enum ArchiveJob {
    Read { thread: String, done: oneshot::Sender<Vec<String>> },
    Keep { thread: String, from: usize, messages: Vec<String>, done: oneshot::Sender<()> },
}

#[derive(Debug, Clone)]
pub struct RunArchive {
    jobs: Sender<ArchiveJob>,
}

impl RunArchive {
    pub fn open(file: &Path) -> Self {
        let database = Connection::open(file).expect("a database");
        database.execute_batch(TABLE).expect("a table");
        let (jobs, waiting) = channel();
        std::thread::spawn(move || work(&database, &waiting));
        Self { jobs }
    }

    pub async fn read(&self, thread: &str) -> Vec<String> {
        let (done, read) = oneshot::channel();
        self.jobs.send(ArchiveJob::Read { thread: thread.to_owned(), done }).expect("the thread that writes");
        read.await.expect("the thread that writes")
    }

    /// Returns when the messages are on the disk. The first of them is the message number `from` of its thread.
    pub async fn keep(&self, thread: &str, from: usize, messages: Vec<String>) {
        let (done, kept) = oneshot::channel();
        let job = ArchiveJob::Keep { thread: thread.to_owned(), from, messages, done };
        self.jobs.send(job).expect("the thread that writes");
        kept.await.expect("the thread that writes");
    }
}

fn work(database: &Connection, waiting: &Receiver<ArchiveJob>) {
    while let Ok(first) = waiting.recv() {
        let batch: Vec<ArchiveJob> = std::iter::once(first).chain(waiting.try_iter()).collect();
        let writes = batch.iter().any(|job| matches!(job, ArchiveJob::Keep { .. }));
        let transaction = writes.then(|| database.unchecked_transaction().expect("a transaction"));
        let mut kept = Vec::new();
        for job in batch {
            match job {
                ArchiveJob::Read { thread, done } => drop(done.send(said(database, &thread))),
                ArchiveJob::Keep { thread, from, messages, done } => {
                    insert(database, &thread, from, &messages);
                    kept.push(done);
                }
            }
        }
        if let Some(transaction) = transaction {
            transaction.commit().expect("a commit");
        }
        for done in kept {
            let _ = done.send(());
        }
    }
}

fn said(database: &Connection, thread: &str) -> Vec<String> {
    let mut select =
        database.prepare_cached("SELECT message FROM said WHERE thread = ?1 ORDER BY at").expect("SQL");
    let rows = select.query_map([thread], |row| row.get(0)).expect("rows");
    rows.collect::<Result<_, _>>().expect("texts")
}

fn insert(database: &Connection, thread: &str, from: usize, messages: &[String]) {
    let mut insert = database.prepare_cached("INSERT INTO said VALUES (?1, ?2, ?3)").expect("SQL");
    for (at, message) in (i64::try_from(from).expect("small")..).zip(messages) {
        insert.execute((thread, at, message)).expect("a row");
    }
}
