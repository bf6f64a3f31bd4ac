//! Entries as rows: searchable fields have columns, the others are stored as JSON.

use std::borrow::Cow;

use baton_core::store::AuditEntry;
use baton_core::{RunId, StoreError, ThreadId};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::chain::{self, Stored};
use super::ends::ChainEnd;
use crate::insert::{ColumnKind, Insert};
use crate::value::{Row, SqlValue, row_values};

/// The fields without a column. Fields and the keys in `detail` are in alphabetical order, so that an external verifier can
/// reproduce the text.
#[derive(Serialize, Deserialize)]
struct Rest<'a> {
    decision: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Json::is_null")]
    detail: Json,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    on_behalf_of: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    trace_id: Option<Cow<'a, str>>,
}

pub(super) static INSERT: Insert = Insert::new(
    "audit",
    &[
        ("chain", ColumnKind::Int),
        ("number", ColumnKind::Int),
        ("at", ColumnKind::Int),
        ("actor", ColumnKind::Text),
        ("action", ColumnKind::Text),
        ("thread_id", ColumnKind::Uuid),
        ("entry", ColumnKind::Text),
        ("hash", ColumnKind::Bytes),
    ],
    "",
);

/// Appends an entry to a chain. Advances `end` and returns the parameters of [`INSERT`].
pub(super) fn add(chain: u8, end: &mut ChainEnd, entry: &AuditEntry) -> Result<Vec<SqlValue>, StoreError> {
    // PostgreSQL text cannot contain NUL.
    let [actor, action] = [&entry.actor, &entry.action].map(|text| text.replace('\0', ""));
    let (text, thread) = (rest(entry)?, entry.thread_id);
    end.entries += 1;
    let number = i64::try_from(end.entries).unwrap_or(i64::MAX);
    let stored = Stored { number, at: end.at, actor: &actor, action: &action, thread, entry: &text };
    end.head = chain::link(&end.head, &stored);
    let hash = chain::value(&end.head);
    Ok(row_values![u32::from(chain), number, end.at, actor, action, thread, text, hash])
}

fn rest(entry: &AuditEntry) -> Result<String, StoreError> {
    let rest = Rest {
        decision: entry.decision.as_str().into(),
        detail: sorted(&entry.detail),
        on_behalf_of: entry.on_behalf_of.as_deref().map(Cow::from),
        run_id: entry.run_id,
        trace_id: entry.trace_id.as_deref().map(Cow::from),
    };
    let fault = |error| StoreError::Failed(format!("an audit entry cannot be written as JSON: {error}"));
    serde_json::to_string(&rest).map_err(fault)
}

fn sorted(value: &Json) -> Json {
    match value {
        Json::Object(fields) => {
            let mut fields: Vec<(&String, &Json)> = fields.iter().collect();
            fields.sort_by_key(|(key, _)| *key);
            fields.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
        }
        Json::Array(items) => items.iter().map(sorted).collect(),
        other => other.clone(),
    }
}

/// Reads the columns `actor, action, thread_id, entry`, starting at `column`.
pub(super) fn read(row: &Row, column: usize) -> Result<AuditEntry, StoreError> {
    let rest: Rest<'_> = row.json(column + 3)?;
    Ok(AuditEntry {
        actor: row.text(column)?.to_owned(),
        on_behalf_of: rest.on_behalf_of.map(Cow::into_owned),
        action: row.text(column + 1)?.to_owned(),
        thread_id: row.optional(column + 2, Row::parse)?,
        run_id: rest.run_id,
        decision: rest.decision.into_owned(),
        trace_id: rest.trace_id.map(Cow::into_owned),
        detail: rest.detail,
    })
}

/// Recomputes the hash of a row from the columns `number, at, actor, action, thread_id, entry`.
pub(super) fn hash(before: &chain::Hash, row: &Row) -> Result<chain::Hash, StoreError> {
    let thread: Option<ThreadId> = row.optional(4, Row::parse)?;
    let id = thread.map(ThreadId::as_uuid);
    if row.optional(4, Row::blob)? != id.as_ref().map(|id| id.as_bytes().as_slice()) {
        return Err(StoreError::Corrupt("a thread id of the audit trail has another spelling".to_owned()));
    }
    let stored = Stored {
        number: row.int(0)?,
        at: row.int(1)?,
        actor: row.text(2)?,
        action: row.text(3)?,
        thread,
        entry: row.text(5)?,
    };
    Ok(chain::link(before, &stored))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::entry;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let with = |detail| rest(&AuditEntry { detail, ..entry("ada", "run.start", "allowed") }).unwrap();
        let text = with(json!({"b": [{"y": 1, "x": "a\nb"}], "a": 2}));
        assert_eq!(text, with(json!({"a": 2, "b": [{"x": "a\nb", "y": 1}]})));
        assert_eq!(text, r#"{"decision":"allowed","detail":{"a":2,"b":[{"x":"a\nb","y":1}]}}"#);
    }
}
