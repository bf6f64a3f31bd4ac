//! From an address to a store.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_core::StoreError;

use crate::audit::seal::Unsealed;
use crate::postgres::Postgres;
use crate::sqlite::{File, Sqlite};
use crate::tenant::Driver;

/// A store that is ready: reachable, its schema up to date.
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) driver: Arc<Driver>,
    pub(crate) unsealed: Arc<Unsealed>,
}

/// Opens `sqlite://file`, `sqlite::memory:` or `postgres://user@host/database`. Relative files start at `base`.
///
/// A file may be followed by `?busy_timeout=5000`, how many milliseconds a write waits for another program that has it, and
/// `max_page_count=250000`, how many pages of 4 KiB it may grow to.
pub async fn open(url: &str, base: &Path) -> Result<Database, StoreError> {
    let driver = match address(url, base)? {
        Address::Memory => Driver::Sqlite(Sqlite::open(None).await?),
        Address::File(file) => Driver::Sqlite(Sqlite::open(Some(file)).await?),
        Address::Postgres(url) => Driver::Postgres(Postgres::open(&url).await?),
    };
    Ok(Database { driver: Arc::new(driver), unsealed: Arc::default() })
}

/// The files that such a store consists of, here or later: what else has access to the folder must leave them alone.
pub fn files(url: &str, base: &Path) -> Vec<PathBuf> {
    let Ok(Address::File(File { path, .. })) = address(url, base) else { return Vec::new() };
    let beside = |suffix: &str| {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        PathBuf::from(name)
    };
    vec![path.clone(), beside("-wal"), beside("-shm"), beside("-journal")]
}

#[derive(Debug, PartialEq, Eq)]
enum Address {
    Memory,
    File(File),
    Postgres(String),
}

fn address(url: &str, base: &Path) -> Result<Address, StoreError> {
    let wrong = |what: &str| {
        let help = "use sqlite://file, sqlite::memory: or postgres://user@host/database";
        Err(StoreError::Failed(format!("`store.url` {what}; {help}")))
    };
    if url.starts_with("postgres://") || url.starts_with("postgresql://") {
        return Ok(Address::Postgres(url.to_owned()));
    }
    match url.strip_prefix("sqlite:") {
        Some(":memory:") => Ok(Address::Memory),
        Some(rest) => match rest.strip_prefix("//").unwrap_or(rest) {
            "" => wrong("names no file"),
            file => File::parse(file, base).map(Address::File).or_else(|parameter| {
                wrong(&format!("has the parameter `{parameter}`, which is not understood"))
            }),
        },
        // The address may hold a password, so it is not repeated.
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
        assert_eq!(address("sqlite://baton.db"), Some(Address::File(File::at("/project/baton.db".into()))));
        assert_eq!(address("sqlite:///var/b.db"), Some(Address::File(File::at("/var/b.db".into()))));
        assert_eq!(address("sqlite::memory:"), Some(Address::Memory));
        assert!(matches!(address("postgres://u:p@h/d"), Some(Address::Postgres(_))));
        assert_eq!(address("sqlite://"), None);
        assert_eq!(address("sqlite://b.db?busy_timout=1"), None);
        assert_eq!(address("mysql://h"), None);
    }
}
