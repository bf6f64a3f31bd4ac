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
