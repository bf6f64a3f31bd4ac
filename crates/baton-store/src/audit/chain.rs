//! What binds an entry to the one before.

use baton_core::StoreError;
use baton_core::store::{AuditEntry, micros};
use jiff::Timestamp;
use serde_json::Value as Json;
use sha2::{Digest as _, Sha256};

/// The hash of an entry in its place. Each part ends with a line break, which none of them contains: no two chains have the
/// same bytes.
pub(super) fn link(before: &str, number: u64, at: Timestamp, entry: &str) -> String {
    let bytes = format!("{before}\n{number}\n{}\n{entry}\n", micros(at));
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// An entry as JSON without spaces, the keys of every object sorted: the same in every program that checks the chain.
pub(super) fn canonical(entry: &AuditEntry) -> Result<String, StoreError> {
    let fault = |error| StoreError::Failed(format!("an audit entry cannot be written as JSON: {error}"));
    let value = serde_json::to_value(entry).map_err(fault)?;
    serde_json::to_string(&sorted(value)).map_err(fault)
}

fn sorted(value: Json) -> Json {
    match value {
        Json::Object(fields) => {
            let mut fields: Vec<(String, Json)> = fields.into_iter().collect();
            fields.sort_by(|a, b| a.0.cmp(&b.0));
            fields.into_iter().map(|(key, value)| (key, sorted(value))).collect()
        }
        Json::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::audit::entry;

    #[test]
    fn the_order_of_keys_does_not_matter() {
        let with =
            |detail| canonical(&AuditEntry { detail, ..entry("ada", "run.start", "allowed") }).unwrap();
        let text = with(json!({"b": [{"y": 1, "x": "a\nb"}], "a": 2}));
        assert_eq!(text, with(json!({"a": 2, "b": [{"x": "a\nb", "y": 1}]})));
        assert!(text.starts_with(r#"{"action":"run.start","actor":"ada""#), "{text}");
        assert!(!text.contains('\n'), "a line break is escaped, so parts cannot run into each other");
    }

    #[test]
    fn every_part_counts() {
        let at = Timestamp::from_microsecond(1).unwrap();
        let later = Timestamp::from_microsecond(2).unwrap();
        let hashes = [
            link("", 1, at, "{}"),
            link("a", 1, at, "{}"),
            link("", 2, at, "{}"),
            link("", 1, later, "{}"),
            link("", 1, at, "[]"),
        ];
        let different: std::collections::BTreeSet<&String> = hashes.iter().collect();
        assert_eq!(different.len(), hashes.len());
        assert_eq!(hashes[0].len(), 64);
    }
}
