//! Parameters and rows, common to both databases.

use std::str::FromStr;
use std::sync::Arc;

use baton_core::budget::{BudgetPeriod, BudgetScope};
use baton_core::choice::Choice;
use baton_core::ledger::CallOutcome;
use baton_core::store::{
    ApprovalFilter, ApprovalKind, ApprovalStatus, Cancel, HandoffState, HopKind, Rating, RunStatus, StepKind,
    StepState, micros,
};
use baton_core::tool::Risk;
use baton_core::{
    AgentName, HandoffId, MessageId, Role, RunId, SessionId, StoreError, ThreadId, UserId, Visibility,
};
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

/// A parameter, or a column of a row.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SqlValue {
    Null,
    Int(i64),
    Text(String),
    /// `'static` text, written without a copy. Reads return `Text`.
    StaticText(&'static str),
    Blob(Vec<u8>),
    /// Bytes to write without a copy. Reads return `Blob`.
    SharedBlob(Arc<[u8]>),
    /// A UUID to write. Reads return its 16 bytes as `Blob`.
    Id(Uuid),
    /// Many ids as one parameter: an array for PostgreSQL, their concatenation for SQLite.
    Ids(Vec<Uuid>),
}

impl SqlValue {
    pub(crate) fn json(value: &impl Serialize) -> Result<Self, StoreError> {
        serde_json::to_string(value)
            .map(Self::Text)
            .map_err(|error| StoreError::Failed(format!("cannot be written as JSON: {error}")))
    }
}

impl From<i64> for SqlValue {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

/// Provider-reported numbers may exceed `i64`; they saturate.
impl From<u64> for SqlValue {
    fn from(value: u64) -> Self {
        Self::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<u32> for SqlValue {
    fn from(value: u32) -> Self {
        Self::Int(value.into())
    }
}

impl From<bool> for SqlValue {
    fn from(value: bool) -> Self {
        Self::Int(value.into())
    }
}

impl From<&str> for SqlValue {
    fn from(value: &str) -> Self {
        Self::from(value.to_owned())
    }
}

/// Removes NUL, which PostgreSQL text cannot contain. JSON escapes it.
impl From<String> for SqlValue {
    fn from(mut value: String) -> Self {
        if value.contains('\0') {
            value.retain(|c| c != '\0');
        }
        Self::Text(value)
    }
}

impl From<Vec<u8>> for SqlValue {
    fn from(value: Vec<u8>) -> Self {
        Self::Blob(value)
    }
}

impl From<&Arc<[u8]>> for SqlValue {
    fn from(value: &Arc<[u8]>) -> Self {
        Self::SharedBlob(Arc::clone(value))
    }
}

impl From<Timestamp> for SqlValue {
    fn from(value: Timestamp) -> Self {
        Self::Int(micros(value))
    }
}

macro_rules! names {
    ($($kind:ty),* $(,)?) => {
        $(impl From<&$kind> for SqlValue {
            fn from(value: &$kind) -> Self {
                Self::Text(value.as_str().to_owned())
            }
        })*
    };
}
names!(AgentName, UserId, SessionId);

macro_rules! words {
    ($($kind:ty),* $(,)?) => {
        $(impl From<$kind> for SqlValue {
            fn from(value: $kind) -> Self {
                Self::StaticText(value.word())
            }
        })*
    };
}
words!(
    Role,
    Visibility,
    Risk,
    RunStatus,
    Cancel,
    StepKind,
    StepState,
    HandoffState,
    ApprovalKind,
    ApprovalStatus,
    ApprovalFilter,
    HopKind,
    Rating,
    CallOutcome,
    BudgetScope,
    BudgetPeriod,
);

impl From<Uuid> for SqlValue {
    fn from(value: Uuid) -> Self {
        Self::Id(value)
    }
}

macro_rules! uuids {
    ($($kind:ty),* $(,)?) => {
        $(impl From<$kind> for SqlValue {
            fn from(value: $kind) -> Self {
                Self::from(value.as_uuid())
            }
        })*
    };
}
uuids!(ThreadId, RunId, MessageId, HandoffId);

impl<T: Into<SqlValue>> From<Option<T>> for SqlValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// One row of a result, with its columns by position.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Row(pub(crate) Vec<SqlValue>);

impl Row {
    pub(crate) fn text(&self, at: usize) -> Result<&str, StoreError> {
        match self.0.get(at) {
            Some(SqlValue::Text(text)) => Ok(text),
            other => Err(unexpected(at, other)),
        }
    }

    pub(crate) fn int(&self, at: usize) -> Result<i64, StoreError> {
        match self.0.get(at) {
            Some(SqlValue::Int(int)) => Ok(*int),
            other => Err(unexpected(at, other)),
        }
    }

    pub(crate) fn count(&self, at: usize) -> Result<u64, StoreError> {
        u64::try_from(self.int(at)?).map_err(|_| unexpected(at, self.0.get(at)))
    }

    pub(crate) fn is_null(&self, at: usize) -> bool {
        matches!(self.0.get(at), None | Some(SqlValue::Null))
    }

    pub(crate) fn blob(&self, at: usize) -> Result<&[u8], StoreError> {
        match self.0.get(at) {
            Some(SqlValue::Blob(bytes)) => Ok(bytes),
            other => Err(unexpected(at, other)),
        }
    }

    pub(crate) fn time(&self, at: usize) -> Result<Timestamp, StoreError> {
        Timestamp::from_microsecond(self.int(at)?).map_err(|_| unexpected(at, self.0.get(at)))
    }

    /// Parses a word of a closed set.
    pub(crate) fn choice<T: Choice>(&self, at: usize) -> Result<T, StoreError> {
        T::parse(self.text(at)?).ok_or_else(|| unexpected(at, self.0.get(at)))
    }

    /// Parses an id: a name, or the 16 bytes of a UUID.
    pub(crate) fn parse<T: FromStr>(&self, at: usize) -> Result<T, StoreError> {
        let parsed = match self.0.get(at) {
            Some(SqlValue::Blob(bytes)) => {
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

    /// Reads a nullable column.
    pub(crate) fn optional<'a, T>(
        &'a self,
        at: usize,
        read: impl FnOnce(&'a Self, usize) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        if self.is_null(at) { Ok(None) } else { read(self, at).map(Some) }
    }
}

/// Names the column and the type found, but not the value, which may be user content.
fn unexpected(at: usize, found: Option<&SqlValue>) -> StoreError {
    let found = match found {
        None => "nothing",
        Some(SqlValue::Null) => "null",
        Some(SqlValue::Int(_)) => "a number",
        Some(SqlValue::Text(_) | SqlValue::StaticText(_)) => "text",
        Some(SqlValue::Blob(_) | SqlValue::SharedBlob(_)) => "bytes",
        Some(SqlValue::Id(_) | SqlValue::Ids(_)) => "ids",
    };
    StoreError::Unreadable(format!("column {at} of a row has an unexpected value ({found})"))
}

/// Parameters for a statement from `$2` on. `$1` is always the tenant.
macro_rules! params {
    ($($value:expr),* $(,)?) => { &[$($crate::value::SqlValue::from($value)),*] };
}
pub(crate) use params;

/// Like [`params!`], as an owned row: nothing is cloned.
macro_rules! row_values {
    ($($value:expr),* $(,)?) => { vec![$($crate::value::SqlValue::from($value)),*] };
}
pub(crate) use row_values;
