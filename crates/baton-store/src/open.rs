//! Opens a store by URL.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::StoreError;

use crate::audit::keys::AuditKeys;
use crate::audit::seal::Unsealed;
use crate::postgres::Postgres;
use crate::sqlite::{DatabaseFile, Sqlite};
use crate::tenant::Driver;

/// An open store, with its schema migrated.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) driver: Arc<Driver>,
    pub(crate) unsealed: Arc<Unsealed>,
    /// The id of the key that signs the audit trail; empty without a key.
    pub(crate) signing_id: Arc<str>,
}

/// Opens `sqlite://file`, `sqlite::memory:` or `postgres://user@host/database`, and migrates its schema. Relative paths are
/// resolved against `base`.
///
/// A file takes two parameters: `?busy_timeout=5000` is the time in milliseconds that a write waits for another program's lock,
/// `max_page_count=250000` limits the file's size in pages of 4 KiB.
///
/// The audit trail is not signed. [`open_signed`] signs it.
pub async fn open(url: &str, base: &Path) -> Result<Database, StoreError> {
    open_signed(url, base, AuditKeys::default()).await
}

/// Like [`open`], with the keys that sign and verify the audit trail.
pub async fn open_signed(url: &str, base: &Path, keys: AuditKeys) -> Result<Database, StoreError> {
    let signing_id = keys.signing_id().into();
    let driver = match address(url, base)? {
        StoreUrl::Memory => Driver::Sqlite(Sqlite::open(None, keys).await?),
        StoreUrl::File(file) => Driver::Sqlite(Sqlite::open(Some(file), keys).await?),
        StoreUrl::Postgres(url) => Driver::Postgres(Postgres::open(&url, keys).await?),
    };
    Ok(Database { driver: Arc::new(driver), unsealed: Arc::default(), signing_id })
}

/// Returns the files of a SQLite store, whether or not they exist yet, so that other users of the folder can avoid them.
pub fn files(url: &str, base: &Path) -> Vec<PathBuf> {
    let Ok(StoreUrl::File(DatabaseFile { path, .. })) = address(url, base) else { return Vec::new() };
    let beside = |suffix: &str| {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    };
    vec![path.clone(), beside("-wal"), beside("-shm"), beside("-journal")]
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    Memory,
    File(DatabaseFile),
    Postgres(String),
}

pub(crate) fn address(url: &str, base: &Path) -> Result<StoreUrl, StoreError> {
    let wrong = |what: &str| {
        let help = "use sqlite://file, sqlite::memory: or postgres://user@host/database";
        Err(StoreError::Failed(format!("`store.url` {what}; {help}")))
    };
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(StoreUrl::Postgres(url.to_owned()));
    }
    match url.strip_prefix("sqlite:") {
        Some(":memory:") => Ok(StoreUrl::Memory),
        Some(rest) => match rest.strip_prefix("//").unwrap_or(rest) {
            "" => wrong("names no file"),
            file => DatabaseFile::parse(file, base).map(StoreUrl::File).or_else(|parameter| {
                wrong(&format!("has the parameter `{parameter}`, which is not understood"))
            }),
        },
        // The URL may contain a password, so the error does not repeat it.
        None => wrong("is not understood"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let base = Path::new("/project");
        let address = |url| address(url, base).ok();
        assert_eq!(
            address("sqlite://baton.db"),
            Some(StoreUrl::File(DatabaseFile::at("/project/baton.db".into())))
        );
        assert_eq!(address("sqlite:///var/b.db"), Some(StoreUrl::File(DatabaseFile::at("/var/b.db".into()))));
        assert_eq!(address("sqlite::memory:"), Some(StoreUrl::Memory));
        assert!(matches!(address("postgres://u:p@h/d"), Some(StoreUrl::Postgres(_))));
        assert_eq!(address("sqlite://"), None);
        assert_eq!(address("sqlite://b.db?busy_timout=1"), None);
        assert_eq!(address("mysql://h"), None);
    }
}
