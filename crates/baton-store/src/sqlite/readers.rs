//! Connections that only read.

use std::sync::{Arc, Mutex, PoisonError};

use baton_core::StoreError;
use tokio::sync::Semaphore;

use super::connection::SqliteConnection;
use super::file::File;
use super::writer::run;
use crate::job::Job;
use crate::tenant::closed;

/// Reads at the same time; more wait for their turn.
const AT_ONCE: usize = 8;

#[derive(Debug)]
pub(crate) struct Readers {
    file: File,
    idle: Arc<Mutex<Vec<SqliteConnection>>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(file: File) -> Self {
        Self { file, idle: Arc::default(), permits: Arc::new(Semaphore::new(AT_ONCE)) }
    }

    /// Whoever waits for a turn gets none.
    pub(super) fn close(&self) {
        self.permits.close();
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    pub(super) async fn read(&self, tenant: Arc<str>, job: Box<dyn Job>) -> Result<(), StoreError> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|_| closed())?;
        let idle = Arc::clone(&self.idle);
        let file = self.file.clone();
        let reading = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let waiting = idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let connection = match waiting.map_or_else(|| SqliteConnection::open(Some(&file)), Ok) {
                Ok(connection) => connection,
                Err(error) => return job.answer(Err(error)),
            };
            // One transaction, so that all statements of a read see the same moment.
            let outcome = connection.control("BEGIN").and_then(|()| run(&connection, &tenant, &*job));
            connection.roll_back();
            job.answer(outcome);
            idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
        });
        reading.await.map_err(|_| closed())
    }
}
