//! A copy of a SQLite store while it is in use.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use baton_core::StoreError;

use crate::open::{StoreUrl, address};
use crate::sqlite::SqliteConnection;

/// Writes a consistent copy of the store to a new file, readable by its owner only, and returns its size in bytes. Writers do not
/// wait for it. PostgreSQL has its own tools.
pub async fn backup(url: &str, base: &Path, target: &Path) -> Result<u64, StoreError> {
    let file = match address(url, base)? {
        StoreUrl::File(file) => file,
        StoreUrl::Memory => return Err(StoreError::Failed("a store in memory has no backup".to_owned())),
        StoreUrl::Postgres(_) => {
            let text = "PostgreSQL is backed up with its own tools: pg_dump --format=custom --schema=baton";
            return Err(StoreError::Failed(text.to_owned()));
        }
    };
    if !file.path.exists() {
        return Err(StoreError::Failed(format!("there is no store at {}", file.path.display())));
    }
    let target = target.to_owned();
    let copied = tokio::task::spawn_blocking(move || {
        create(&target)?;
        let copied = SqliteConnection::open(Some(&file)).and_then(|source| source.copy_to(&target));
        // The copy is durable before it is reported; an incomplete one is no backup.
        match copied.and_then(|()| sync(&target)) {
            Ok(size) => Ok(size),
            Err(error) => {
                let _ = std::fs::remove_file(&target);
                Err(error)
            }
        }
    });
    copied
        .await
        .unwrap_or_else(|_| Err(StoreError::Failed("the backup stopped with an internal error".to_owned())))
}

fn create(target: &Path) -> Result<(), StoreError> {
    let created = OpenOptions::new().create_new(true).write(true).mode(0o600).open(target);
    created.map(drop).map_err(|error| failed(target, &error))
}

fn sync(target: &Path) -> Result<u64, StoreError> {
    let synced = File::open(target).and_then(|file| {
        file.sync_all()?;
        file.metadata()
    });
    synced.map(|found| found.len()).map_err(|error| failed(target, &error))
}

fn failed(target: &Path, error: &std::io::Error) -> StoreError {
    StoreError::Failed(format!("cannot write {}: {error}", target.display()))
}
