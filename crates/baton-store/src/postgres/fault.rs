//! Maps PostgreSQL errors.
//!
//! Only the message of an error is repeated: its detail may quote a row with user content.

use std::error::Error as _;
use std::io;

use baton_core::StoreError;
use deadpool_postgres::{HookError, PoolError, TimeoutType};
use tokio_postgres::Error;
use tokio_postgres::error::SqlState;

use crate::tenant::closed;

/// Why a statement or transaction failed.
#[derive(Debug, Clone)]
pub(crate) struct PostgresFault {
    pub(crate) error: StoreError,
    pub(crate) kind: FaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// Serialization failure or deadlock: a retry may succeed at once.
    Beaten,
    /// An earlier statement of the transaction had failed.
    Aftermath,
    /// The connection was lost.
    Lost,
    /// The user of the URL lacks the permission.
    Forbidden,
    /// A lock was not free in time.
    Locked,
    Other,
}

impl From<StoreError> for PostgresFault {
    fn from(error: StoreError) -> Self {
        Self { error, kind: FaultKind::Other }
    }
}

impl From<PostgresFault> for StoreError {
    fn from(fault: PostgresFault) -> Self {
        fault.error
    }
}

impl From<Error> for PostgresFault {
    fn from(error: Error) -> Self {
        let text = text(&error);
        match error.code() {
            Some(state) => Self { error: by_state(state, text), kind: kind(state) },
            None if is_lost(&error) => Self { error: StoreError::Unavailable(text), kind: FaultKind::Lost },
            None => StoreError::Failed(text).into(),
        }
    }
}

impl From<PoolError> for PostgresFault {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) | PoolError::PostCreateHook(HookError::Backend(error)) => error.into(),
            PoolError::Timeout(TimeoutType::Wait) => {
                StoreError::Unavailable("all connections to PostgreSQL are busy".to_owned()).into()
            }
            PoolError::Timeout(_) => {
                StoreError::Unavailable("PostgreSQL did not answer in time".to_owned()).into()
            }
            PoolError::Closed => closed().into(),
            other => StoreError::Failed(other.to_string()).into(),
        }
    }
}

/// SQLSTATEs, or prefixes of them, of transient errors: connections (08), resources (53), system (58), a server that starts,
/// stops or fails over, time-outs and conflicts with another transaction.
const PASSING: &[&str] = &[
    "08", "53", "58", "57P01", "57P02", "57P03", "57P05", "25006", "25P03", "25P04", "55P03", "57014",
    "40001", "40P01",
];

fn by_state(state: &SqlState, text: String) -> StoreError {
    match state.code() {
        "53100" => StoreError::Full(text),
        "XX001" | "XX002" => StoreError::Corrupt(text),
        code if PASSING.iter().any(|passing| code.starts_with(passing)) => StoreError::Unavailable(text),
        _ => StoreError::Failed(text),
    }
}

fn kind(state: &SqlState) -> FaultKind {
    match state.code() {
        "40001" | "40P01" => FaultKind::Beaten,
        "25P02" => FaultKind::Aftermath,
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" | "25P04" => FaultKind::Lost,
        "42501" => FaultKind::Forbidden,
        "55P03" => FaultKind::Locked,
        code if code.starts_with("08") => FaultKind::Lost,
        _ => FaultKind::Other,
    }
}

/// Whether the connection failed without a reply from the server. An invalid request or certificate is not transient.
fn is_lost(error: &Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput};
    let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
    error.is_closed() || cause.is_some_and(|cause| !matches!(cause.kind(), InvalidData | InvalidInput))
}

fn text(error: &Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(answer), _) => format!("{} ({})", answer.message(), answer.code().code()),
        (None, Some(cause)) if cause.to_string().contains("does not support TLS") => {
            let help =
                "connections to another machine are encrypted unless `store.url` says `sslmode=disable`";
            format!("{error}: {cause}; {help}")
        }
        (None, Some(cause)) => format!("{error}: {cause}"),
        (None, None) => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states() {
        let error = |code| by_state(&SqlState::from_code(code), String::new());
        for passing in ["57P01", "57P03", "53300", "08006", "40001", "40P01", "55P03", "57014"] {
            assert!(matches!(error(passing), StoreError::Unavailable(_)), "{passing}");
        }
        assert!(matches!(error("53100"), StoreError::Full(_)));
        assert!(matches!(error("XX001"), StoreError::Corrupt(_)));
        assert!(matches!(error("23505"), StoreError::Failed(_)));
    }
}
