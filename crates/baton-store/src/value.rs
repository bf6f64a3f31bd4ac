//! What goes into a statement and what comes out of it, the same for both databases.

use std::str::FromStr;

use baton_core::choice::Choice;
use baton_core::ledger::CallOutcome;
use baton_core::store::{
    ApprovalFilter, ApprovalStatus, Cancel, HandoffState, HopKind, Rating, RunStatus, StepKind, StepState,
    micros,
};
use baton_core::tool::Risk;
use baton_core::{
    AgentName, HandoffId, MessageId, Role, RunId, SessionId, StoreError, ThreadId, UserId, Visibility,
};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    /// Bytes. An id that is a UUID is its 16 bytes.
    Blob(Vec<u8>),
    /// Many ids as one value: an array for PostgreSQL, one after the other for SQLite.
    Ids(Vec<Uuid>),
}

impl Value {
    /// An id, a choice: whatever is kept as it is written.
    pub(crate) fn shown(value: &impl ToString) -> Self {
        Self::Text(value.to_string())
    }

    pub(crate) fn json(value: &impl Serialize) -> Result<Self, StoreError> {
        serde_json::to_string(value)
            .map(Self::Text)
            .map_err(|error| StoreError::Failed(format!("cannot be written as JSON: {error}")))
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

/// Numbers from a wire may be larger than a column; they saturate, as sums do.
impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for Value {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Self::Int(value.into())
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::from(value.to_owned())
    }
}

/// PostgreSQL keeps no NUL in a text, so nobody does. JSON has another way to write it.
impl From<String> for Value {
    fn from(mut value: String) -> Self {
        value.retain(|c| c != '\0');
        Self::Text(value)
    }
}

impl From<Timestamp> for Value {
    fn from(value: Timestamp) -> Self {
        Self::Int(micros(value))
    }
}

/// Ids and choices are kept as they are written.
macro_rules! shown {
    ($($kind:ty),* $(,)?) => {
        $(impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Self::shown(&value)
            }
        })*
    };
}
shown!(
    &AgentName,
    &UserId,
    &SessionId,
    Role,
    Visibility,
    Risk,
    RunStatus,
    Cancel,
    StepKind,
    StepState,
    HandoffState,
    ApprovalStatus,
    ApprovalFilter,
    HopKind,
    Rating,
    CallOutcome,
);

impl From<Uuid> for Value {
    fn from(value: Uuid) -> Self {
        Self::Blob(value.as_bytes().to_vec())
    }
}

macro_rules! uuids {
    ($($kind:ty),* $(,)?) => {
        $(impl From<$kind> for Value {
            fn from(value: $kind) -> Self {
                Self::from(value.as_uuid())
            }
        })*
    };
}
uuids!(ThreadId, RunId, MessageId, HandoffId);

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// One row of an answer, its columns by position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row(pub(crate) Vec<Value>);

impl Row {
    pub(crate) fn text(&self, at: usize) -> Result<&str, StoreError> {
        match self.0.get(at) {
            Some(Value::Text(text)) => Ok(text),
            other => Err(unexpected(at, other)),
        }
    }

    pub(crate) fn int(&self, at: usize) -> Result<i64, StoreError> {
        match self.0.get(at) {
            Some(Value::Int(int)) => Ok(*int),
            other => Err(unexpected(at, other)),
        }
    }

    pub(crate) fn count(&self, at: usize) -> Result<u64, StoreError> {
        u64::try_from(self.int(at)?).map_err(|_| unexpected(at, self.0.get(at)))
    }

    pub(crate) fn is_null(&self, at: usize) -> bool {
        matches!(self.0.get(at), None | Some(Value::Null))
    }

    pub(crate) fn blob(&self, at: usize) -> Result<&[u8], StoreError> {
        match self.0.get(at) {
            Some(Value::Blob(bytes)) => Ok(bytes),
            other => Err(unexpected(at, other)),
        }
    }

    pub(crate) fn time(&self, at: usize) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(self.int(at)?).map_err(|_| unexpected(at, self.0.get(at)))
    }

    /// A word of a closed set.
    pub(crate) fn choice<T: Choice>(&self, at: usize) -> Result<T, StoreError> {
        T::parse(self.text(at)?).ok_or_else(|| unexpected(at, self.0.get(at)))
    }

    /// An id: a name, or the 16 bytes of a UUID.
    pub(crate) fn parse<T: FromStr>(&self, at: usize) -> Result<T, StoreError> {
        let parsed = match self.0.get(at) {
            Some(Value::Blob(bytes)) => {
                let id = Uuid::from_slice(bytes).map_err(|_| unexpected(at, self.0.get(at)))?;
                id.hyphenated().encode_lower(&mut Uuid::encode_buffer()).parse()
            }
            _ => self.text(at)?.parse(),
        };
        parsed.map_err(|_| unexpected(at, self.0.get(at)))
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, at: usize) -> Result<T, StoreError> {
        serde_json::from_str(self.text(at)?).map_err(|_| unexpected(at, self.0.get(at)))
    }

    /// What `read` makes of the column, unless it is null.
    pub(crate) fn optional<'a, T>(
        &'a self,
        at: usize,
        read: impl FnOnce(&'a Self, usize) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if self.is_null(at) { Ok(None) } else { read(self, at).map(Some) }
    }
}

/// Says which column it was, never what stood in it: that may be somebody's words.
fn unexpected(at: usize, found: Option<&Value>) -> StoreError {
    let found = match found {
        None => "nothing",
        Some(Value::Null) => "null",
        Some(Value::Int(_)) => "a number",
        Some(Value::Text(_)) => "text",
        Some(Value::Blob(_)) => "bytes",
        Some(Value::Ids(_)) => "ids",
    };
    StoreError::Corrupt(format!("column {at} of a row has an unexpected value ({found})"))
}

/// Values for a statement. `$1` is always the tenant, so these are `$2` and on.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::value::Value::from($value)),*] };
}
pub(crate) use params;
