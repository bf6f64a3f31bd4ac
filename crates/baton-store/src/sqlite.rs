//! SQLite: one thread writes, a few connections read.
//!
//! Whatever waits to be written goes into one transaction, and everyone is answered when it has committed: many appends share
//! one sync of the disk. Reads have connections of their own and, in WAL mode, never wait for the writer.

mod connection;
mod fault;
mod file;
mod readers;
mod writer;

use std::sync::{Arc, Mutex, PoisonError};

use baton_core::StoreError;
use baton_core::store::Load;

pub(crate) use connection::SqliteConnection;
pub(crate) use file::File;
use readers::Readers;
use writer::{Queued, Writer};

use crate::job::Job;
use crate::meter::Shared;
use crate::tenant::closed;

#[derive(Debug)]
pub(crate) struct Sqlite {
    place: Place,
    shared: Arc<Shared>,
}

#[derive(Debug)]
enum Place {
    OnDisk {
        writer: Writer,
        readers: Readers,
    },
    /// Only its one connection sees it, so whoever calls does the work: no thread, and nothing to wait for. Gone once it was
    /// closed.
    InMemory(Mutex<Option<SqliteConnection>>),
}

impl Sqlite {
    /// Opens the file, or a store in memory, and brings its schema up to date.
    pub(crate) async fn open(file: Option<File>) -> Result<Self, StoreError> {
        let Some(file) = file else {
            let connection = SqliteConnection::open(None)?;
            connection.migrate()?;
            let place = Place::InMemory(Mutex::new(Some(connection)));
            return Ok(Self { place, shared: Arc::default() });
        };
        let opened = tokio::task::spawn_blocking(move || {
            let connection = SqliteConnection::open(Some(&file))?;
            connection.migrate().map_err(|error| connection::at(&file.path, error))?;
            let shared = Arc::<Shared>::default();
            let writer = Writer::start(connection, Arc::clone(&shared))?;
            let readers = Readers::new(file, Arc::clone(&shared));
            Ok(Self { place: Place::OnDisk { writer, readers }, shared })
        });
        opened.await.unwrap_or_else(|_| Err(closed()))
    }

    pub(crate) async fn write(&self, tenant: Arc<str>, job: Box<dyn Job>) -> Result<(), StoreError> {
        let queued = Queued { tenant, job, waiting: self.shared.meter.enter() };
        match &self.place {
            Place::OnDisk { writer, .. } => writer.queue(queued).await,
            Place::InMemory(connection) => within(connection, |connection| {
                writer::commit_all(connection, &self.shared, vec![queued]);
                Ok(())
            }),
        }
    }

    pub(crate) async fn read(&self, tenant: Arc<str>, job: Box<dyn Job>) -> Result<(), StoreError> {
        match &self.place {
            Place::OnDisk { readers, .. } => readers.read(tenant, job).await,
            Place::InMemory(_) => self.write(tenant, job).await,
        }
    }

    /// A question that concerns all tenants.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteConnection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.place {
            Place::OnDisk { readers, .. } => readers.ask(work).await,
            Place::InMemory(connection) => within(connection, work),
        }
    }

    /// A change that concerns all tenants.
    pub(crate) async fn change<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteConnection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        match &self.place {
            Place::OnDisk { writer, .. } => writer.with_connection(work).await,
            Place::InMemory(connection) => within(connection, work),
        }
    }

    pub(crate) fn load(&self) -> Load {
        self.shared.meter.load()
    }

    pub(crate) async fn close(&self) -> Result<(), StoreError> {
        match &self.place {
            Place::OnDisk { writer, readers } => {
                writer.close().await;
                readers.close();
            }
            Place::InMemory(connection) => {
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
