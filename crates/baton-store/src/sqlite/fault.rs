//! Maps SQLite errors.

use baton_core::StoreError;
use rusqlite::{Error, ErrorCode};

use crate::runs::accept::KNOWN;

pub(crate) fn fault(error: &Error) -> StoreError {
    let text = error.to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => StoreError::Full(text),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Unavailable("the file is locked by another program".to_owned())
        }
        Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen | ErrorCode::OutOfMemory) => {
            StoreError::Unavailable(text)
        }
        Some(ErrorCode::ConstraintViolation) if text.ends_with("runs.tenant, runs.run_id") => KNOWN,
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => StoreError::Corrupt(text),
        _ => StoreError::Failed(text),
    }
}

/// Maps an error of `COMMIT`. A lock or a full disk is a definite failure: SQLite reports them before the commit is complete in the
/// log.
pub(crate) fn commit_fault(error: &Error) -> StoreError {
    match error.sqlite_error_code() {
        Some(ErrorCode::SystemIoFailure) => StoreError::OutcomeUnknown(error.to_string()),
        _ => fault(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_io_error_leaves_the_outcome_of_a_commit_unknown() {
        let error = |code| Error::SqliteFailure(rusqlite::ffi::Error::new(code), None);
        let fsync = error(rusqlite::ffi::SQLITE_IOERR_FSYNC);
        assert!(matches!(commit_fault(&fsync), StoreError::OutcomeUnknown(_)));
        assert!(matches!(fault(&fsync), StoreError::Unavailable(_)), "of any other statement");
        assert!(matches!(commit_fault(&error(rusqlite::ffi::SQLITE_FULL)), StoreError::Full(_)));
        assert!(matches!(commit_fault(&error(rusqlite::ffi::SQLITE_BUSY)), StoreError::Unavailable(_)));
    }
}
