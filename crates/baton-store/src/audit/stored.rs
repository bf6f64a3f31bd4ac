//! Entries as rows: those of one transaction and chain are one row, with a line of JSON each.

use std::borrow::Cow;

use baton_core::store::AuditEntry;
use baton_core::{RunId, StoreError, ThreadId};
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value as Json;

use super::chain::{self, Hash};
use super::ends::ChainEnd;
use super::people;
use crate::insert::{ColumnKind, Insert};
use crate::value::{Row, SqlValue, row_values};

/// Maximum number of entries in a row. A reader that wants one of them reads them all.
pub(super) const MOST: usize = 64;

/// An entry as it is written. Fields and the keys in `detail` are in alphabetical order, so that an external verifier can
/// reproduce the text.
#[derive(Serialize)]
struct LineToWrite<'a> {
    action: &'a str,
    actor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<&'a str>,
    decision: &'a str,
    #[serde(skip_serializing_if = "SortedJson::is_null")]
    detail: SortedJson<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    on_behalf_of: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thread_id: Option<ThreadId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_id: Option<&'a str>,
}

/// A [`LineToWrite`] as it is read.
#[derive(Deserialize)]
struct Line {
    action: String,
    actor: String,
    address: Option<String>,
    decision: String,
    #[serde(default)]
    detail: Json,
    on_behalf_of: Option<String>,
    run_id: Option<RunId>,
    thread_id: Option<ThreadId>,
    trace_id: Option<String>,
}

/// JSON with the keys of its objects in alphabetical order.
struct SortedJson<'a>(&'a Json);

impl SortedJson<'_> {
    fn is_null(&self) -> bool {
        self.0.is_null()
    }
}

impl Serialize for SortedJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Json::Object(fields) => {
                let mut fields: Vec<(&String, &Json)> = fields.iter().collect();
                fields.sort_unstable_by_key(|(key, _)| *key);
                serializer.collect_map(fields.into_iter().map(|(key, value)| (key, SortedJson(value))))
            }
            Json::Array(items) => serializer.collect_seq(items.iter().map(SortedJson)),
            other => other.serialize(serializer),
        }
    }
}

/// Most lines are shorter.
const USUAL_LENGTH: usize = 512;

/// An entry that waits for the end of its transaction.
#[derive(Debug)]
pub(crate) struct AuditLine {
    pub(super) thread: Option<ThreadId>,
    /// If it is known already.
    pub(super) thread_number: Option<u64>,
    pub(super) actor: String,
    on_behalf_of: Option<String>,
    /// The user that the detail names.
    detail_user: Option<String>,
    pub(super) action: String,
    text: String,
}

impl AuditLine {
    pub(crate) fn new(entry: &AuditEntry, thread_number: Option<u64>) -> Result<Self, StoreError> {
        // PostgreSQL text cannot contain NUL, and the names are also stored by themselves.
        let [actor, action] = [&entry.actor, &entry.action].map(|text| without_nul(text));
        let line = LineToWrite {
            action: &action,
            actor: &actor,
            address: entry.address.as_deref(),
            decision: &entry.decision,
            detail: SortedJson(&entry.detail),
            on_behalf_of: entry.on_behalf_of.as_deref(),
            run_id: entry.run_id,
            thread_id: entry.thread_id,
            trace_id: entry.trace_id.as_deref(),
        };
        let fault = |error: &dyn std::fmt::Display| {
            StoreError::Failed(format!("an audit entry cannot be written as JSON: {error}"))
        };
        let mut text = Vec::with_capacity(USUAL_LENGTH);
        serde_json::to_writer(&mut text, &line).map_err(|error| fault(&error))?;
        let text = String::from_utf8(text).map_err(|error| fault(&error))?;
        let (thread, actor, action) = (entry.thread_id, actor.into_owned(), action.into_owned());
        let on_behalf_of = entry.on_behalf_of.clone();
        let detail_user = people::in_detail(&entry.detail).map(str::to_owned);
        Ok(Self { thread, thread_number, actor, on_behalf_of, detail_user, action, text })
    }

    /// The names of people and agents in the entry.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        [Some(&self.actor), self.on_behalf_of.as_ref(), self.detail_user.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
    }

    /// Replaces names, in the text too. A quotation mark within a text is escaped, so a field is found by its name and value: the actor
    /// is the first such field, because only the action is before it; the principal is the last one.
    pub(super) fn rename<'n>(&mut self, new: impl Fn(&str) -> Option<&'n str>) {
        if let Some(name) = new(&self.actor) {
            let old = field("actor", &self.actor);
            self.replace(self.text.find(&old), &old, &field("actor", name));
            name.clone_into(&mut self.actor);
        }
        if let Some(old) = self.on_behalf_of.take()
            && let Some(name) = new(&old)
        {
            let old = field("on_behalf_of", &old);
            self.replace(self.text.rfind(&old), &old, &field("on_behalf_of", name));
        }
        if let Some(old) = self.detail_user.take()
            && let Some(name) = new(&old)
        {
            self.text = self.text.replace(&field("user_id", &old), &field("user_id", name));
        }
    }

    fn replace(&mut self, place: Option<usize>, old: &str, new: &str) {
        if let Some(start) = place {
            self.text.replace_range(start..start + old.len(), new);
        }
    }
}

/// A field as it is in the text of an entry.
fn field(key: &str, value: &str) -> String {
    let mut text = String::with_capacity(key.len() + value.len() + "\"\":\"\"".len());
    text.extend(["\"", key, "\":"]);
    let is_plain = value.bytes().all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    if is_plain {
        text.extend(["\"", value, "\""]);
    } else {
        text.push_str(&Json::from(value).to_string());
    }
    text
}

fn without_nul(text: &str) -> Cow<'_, str> {
    if text.contains('\0') { text.replace('\0', "").into() } else { text.into() }
}

pub(super) static INSERT: Insert = Insert::new(
    "audit",
    &[
        ("chain", ColumnKind::Int),
        ("number", ColumnKind::Int),
        ("at", ColumnKind::Int),
        ("entries", ColumnKind::Text),
        ("hash", ColumnKind::Bytes),
    ],
    "",
);

/// Appends entries to a chain. Advances `end` and returns the parameters of [`INSERT`].
pub(super) fn add(chain: u8, end: &mut ChainEnd, lines: &[&AuditLine]) -> Vec<SqlValue> {
    let mut text = String::with_capacity(lines.iter().map(|line| line.text.len() + 1).sum());
    for line in lines {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line.text);
        end.entries += 1;
        end.head = chain::link(&end.head, end.entries, end.at, &line.text);
    }
    row_values![u32::from(chain), end.entries, end.at, SqlValue::Text(text), chain::value(&end.head)]
}

/// An entry of a row, with its number and hash.
pub(super) struct StoredEntry<'r> {
    pub(super) number: u64,
    pub(super) hash: Hash,
    line: &'r str,
}

impl StoredEntry<'_> {
    pub(super) fn entry(&self) -> Result<AuditEntry, StoreError> {
        let wrong = |_| StoreError::Unreadable("an audit entry has unexpected JSON".to_owned());
        let line: Line = serde_json::from_str(self.line).map_err(wrong)?;
        Ok(AuditEntry {
            actor: line.actor,
            on_behalf_of: line.on_behalf_of,
            action: line.action,
            thread_id: line.thread_id,
            run_id: line.run_id,
            decision: line.decision,
            trace_id: line.trace_id,
            address: line.address,
            detail: line.detail,
        })
    }
}

/// Reads the columns `number, at, entries`, starting at `column`. Computes the hash of each entry from that of the entry before the
/// first.
pub(super) fn entries(before: Hash, row: &Row, column: usize) -> Result<Vec<StoredEntry<'_>>, StoreError> {
    let (last, at, text) = (row.count(column)?, row.int(column + 1)?, row.text(column + 2)?);
    let lines: Vec<&str> = text.split('\n').collect();
    let wrong = || StoreError::Unreadable("a row of the audit trail has a wrong number".to_owned());
    let first = (last + 1).checked_sub(lines.len() as u64).ok_or_else(wrong)?;
    let mut hash = before;
    let read = |(number, line)| {
        hash = chain::link(&hash, number, at, line);
        StoredEntry { number, hash, line }
    };
    Ok((first..).zip(lines).map(read).collect())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::entry;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let with = |detail| {
            AuditLine::new(&AuditEntry { detail, ..entry("ada", "run.start", "allowed") }, None).unwrap().text
        };
        let text = with(json!({"b": [{"y": 1, "x": "a\nb"}], "a": 2}));
        assert_eq!(text, with(json!({"a": 2, "b": [{"x": "a\nb", "y": 1}]})));
        assert_eq!(
            text,
            r#"{"action":"run.start","actor":"ada","decision":"allowed","detail":{"a":2,"b":[{"x":"a\nb","y":1}]}}"#
        );
    }

    #[test]
    fn names_are_replaced_where_they_are_names() {
        let detail =
            json!({"actor": "ada", "note": "\"actor\":\"ada\"", "on_behalf_of": "eve", "user_id": "bob"});
        let entry = AuditEntry {
            detail,
            on_behalf_of: Some("eve".to_owned()),
            ..entry("ada", "\"actor\":\"ada\"", "on_behalf_of")
        };
        let mut line = AuditLine::new(&entry, None).unwrap();
        assert_eq!(line.names().collect::<Vec<_>>(), ["ada", "eve", "bob"]);
        line.rename(|name| match name {
            "ada" => Some("~1"),
            "eve" => Some("~2"),
            _ => Some("~3"),
        });
        let read: Line = serde_json::from_str(&line.text).unwrap();
        assert_eq!((read.actor.as_str(), read.on_behalf_of.as_deref()), ("~1", Some("~2")));
        assert_eq!(read.action, entry.action);
        let expected =
            json!({"actor": "ada", "note": "\"actor\":\"ada\"", "on_behalf_of": "eve", "user_id": "~3"});
        assert_eq!(read.detail, expected);
        assert_eq!(line.actor, "~1");
    }

    #[test]
    fn entries_are_read_as_they_were_written() {
        let mut end = ChainEnd { entries: 41, head: chain::start("acme", 3), at: 7 };
        let before = end.head;
        let all = ["ada", "b\nob", "eve"].map(|actor| AuditEntry {
            run_id: Some(RunId::from_uuid(uuid::Uuid::now_v7())),
            detail: json!({"text": "a\nb"}),
            ..entry(actor, "run.start", "allowed")
        });
        let lines = all.each_ref().map(|entry| AuditLine::new(entry, None).unwrap());
        let row = Row(add(3, &mut end, &lines.each_ref()));
        let found = entries(before, &row, 1).unwrap();
        assert_eq!(found.iter().map(|found| found.number).collect::<Vec<_>>(), [42, 43, 44]);
        assert_eq!(found.iter().map(|found| found.entry().unwrap()).collect::<Vec<_>>(), all);
        assert_eq!(found[2].hash, end.head);
    }
}
