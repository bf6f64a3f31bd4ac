//! SQLite: one thread writes, a few connections read.
//!
//! All queued jobs go into one transaction and are answered after it commits, so that many appends share one sync of the disk.
//! Reads use separate connections and, in WAL mode, never wait for the writer.

mod connection;
mod fault;
mod file;
mod readers;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};

use baton_core::StoreError;
use baton_core::store::StoreLoad;

pub(crate) use connection::SqliteConnection;
pub(crate) use file::DatabaseFile;
use readers::Readers;
use writer::{Writer, WriterJob};

use crate::audit::keys::AuditKeys;
use crate::job::Job;
use crate::meter::MeterShared;
use crate::tenant::closed;

#[derive(Debug)]
pub(crate) struct Sqlite {
    place: DatabaseLocation,
    shared: Arc<MeterShared>,
}

#[derive(Debug)]
enum DatabaseLocation {
    OnDisk {
        writer: Writer,
        readers: Readers,
    },
    /// Visible to its one connection only, so the caller's thread does the work. `None` after the store is closed.
    InMemory(Mutex<Option<SqliteConnection>>),
}

impl Sqlite {
    /// Opens the file or an in-memory store, and migrates its schema.
    pub(crate) async fn open(file: Option<DatabaseFile>, keys: AuditKeys) -> Result<Self, StoreError> {
        let Some(file) = file else {
            let connection = SqliteConnection::open(None)?;
            connection.migrate()?;
            let place = DatabaseLocation::InMemory(Mutex::new(Some(connection)));
            return Ok(Self { place, shared: Arc::new(MeterShared::new(keys)) });
        };
        let opened = tokio::task::spawn_blocking(move || {
            let connection = SqliteConnection::open(Some(&file))?;
            connection.migrate().map_err(|error| connection::at(&file.path, error))?;
            connection.enlarge_cache()?;
            let shared = Arc::new(MeterShared::new(keys));
            let writer = Writer::start(connection, Arc::clone(&shared))?;
            let readers = Readers::new(file, Arc::clone(&shared));
            Ok(Self { place: DatabaseLocation::OnDisk { writer, readers }, shared })
        });
        opened.await.unwrap_or_else(|_| Err(closed()))
    }

    pub(crate) async fn write(&self, tenant: Arc<str>, job: Box<dyn Job>) -> Result<(), StoreError> {
        let queued = WriterJob { tenant, job, waiting: self.shared.meter.enter() };
        match &self.place {
            DatabaseLocation::OnDisk { writer, .. } => writer.queue(queued).await,
            DatabaseLocation::InMemory(connection) => within(connection, |connection| {
                writer::commit_all(connection, &self.shared, vec![queued]);
                Ok(())
            }),
        }
    }

    pub(crate) async fn read(&self, tenant: Arc<str>, job: Box<dyn Job>) -> Result<(), StoreError> {
        match &self.place {
            DatabaseLocation::OnDisk { readers, .. } => readers.read(tenant, job).await,
            DatabaseLocation::InMemory(_) => self.write(tenant, job).await,
        }
    }

    /// Runs a query across tenants.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteConnection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.place {
            DatabaseLocation::OnDisk { readers, .. } => readers.ask(work).await,
            DatabaseLocation::InMemory(connection) => within(connection, work),
        }
    }

    /// Runs a change across tenants.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteConnection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.place {
            DatabaseLocation::OnDisk { writer, .. } => writer.with_connection(work).await,
            DatabaseLocation::InMemory(connection) => within(connection, work),
        }
    }

    pub(crate) fn load(&self) -> StoreLoad {
        self.shared.meter.load()
    }

    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        match &self.place {
            DatabaseLocation::OnDisk { writer, readers } => {
                writer.close().await;
                readers.close();
            }
            DatabaseLocation::InMemory(connection) => {
                connection.lock().unwrap_or_else(PoisonError::into_inner).take();
            }
        }
        Ok(())
    }
}

fn within<T>(
    connection: &Mutex<Option<SqliteConnection>>,
    work: impl FnOnce(&SqliteConnection) -> Result<T, StoreError>,
) -> Result<T, StoreError> {
    let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
    connection.as_ref().ok_or_else(closed).and_then(work)
}
