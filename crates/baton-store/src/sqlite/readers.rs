//! Connections that only read.

use std::sync::{Arc, Mutex, PoisonError};

use baton_core::StoreError;
use tokio::sync::Semaphore;

use super::connection::SqliteConnection;
use super::file::DatabaseFile;
use super::writer::run;
use crate::job::Job;
use crate::meter::MeterShared;
use crate::tenant::closed;

/// Maximum number of concurrent reads; further reads wait.
const AT_ONCE: usize = 8;

#[derive(Debug)]
pub(crate) struct Readers {
    file: DatabaseFile,
    idle: Arc<Mutex<Vec<SqliteConnection>>>,
    permits: Arc<Semaphore>,
    shared: Arc<MeterShared>,
}

impl Readers {
    pub(super) fn new(file: DatabaseFile, shared: Arc<MeterShared>) -> Self {
        Self { file, idle: Arc::default(), permits: Arc::new(Semaphore::new(AT_ONCE)), shared }
    }

    /// Fails waiting and later reads.
    pub(super) fn close(&self) {
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) async fn read(&self, tenant: Arc<str>, job: Box<dyn Job>) -> Result<(), StoreError> {
        let shared = Arc::clone(&self.shared);
        let outcome = self.with(move |opened| match opened {
            // One transaction, so that all statements see one snapshot.
            Ok(connection) => {
                shared.meter.executed(2);
                let outcome =
                    connection.control("BEGIN").and_then(|()| run(connection, &shared, &tenant, &*job));
                connection.roll_back();
                job.answer(outcome);
            }
            Err(error) => job.answer(Err(error)),
        });
        outcome.await
    }

    /// Runs a query across tenants.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&SqliteConnection) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        self.with(|opened| opened.and_then(work)).await?
    }

    /// Runs `work` with a connection on a blocking thread.
    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(Result<&SqliteConnection, StoreError>) -> T + Send + 'static,
    ) -> Result<T, StoreError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed())?;
        let idle = Arc::clone(&self.idle);
        let file = self.file.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let waiting = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            match waiting.map_or_else(|| SqliteConnection::open(Some(&file)), Ok) {
                Ok(connection) => {
                    let result = work(Ok(&connection));
                    idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
                    result
                }
                Err(error) => work(Err(error)),
            }
        });
        reading.await.map_err(|_| closed())
    }
}
