//! A cache of compiled JSON Schemas, prompts and conditions that all runs share.
//!
//! The key is the source text. A reload that changes a text changes its key, so entries are never invalidated, and agents with
//! equal texts share an entry.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// More entries than a roster needs. A full cache is cleared.
const MAX_ENTRIES: usize = 1_024;

static VALIDATORS: CompileCache<Validator> = CompileCache::new();

/// A cache of values that are compiled from a source text.
#[derive(Debug)]
pub(crate) struct CompileCache<T> {
    by_source: Mutex<BTreeMap<String, Arc<T>>>,
}

impl<T> CompileCache<T> {
    pub(crate) const fn new() -> Self {
        Self { by_source: Mutex::new(BTreeMap::new()) }
    }

    /// Returns the value for `source`, compiling it on a miss. Errors are not cached.
    pub(crate) fn get<E>(&self, source: &str, compile: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        if let Some(found) = self.lock().get(source) {
            return Ok(Arc::clone(found));
        }
        // Compiles without holding the lock: two runs may compile the same text at the same time.
        let compiled = Arc::new(compile()?);
        let mut by_source = self.lock();
        if by_source.len() >= MAX_ENTRIES {
            by_source.clear();
        }
        by_source.insert(source.to_owned(), Arc::clone(&compiled));
        Ok(compiled)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<T>>> {
        self.by_source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the compiled validator of a JSON Schema.
pub(crate) fn validator(schema: &Value) -> Result<Arc<Validator>, ValidationError<'static>> {
    VALIDATORS.get(&schema.to_string(), || jsonschema::validator_for(schema))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn source_is_compiled_once_and_errors_are_not_cached() {
        let cache = CompileCache::new();
        assert_eq!(cache.get("a", || Err::<u8, _>("broken")), Err("broken"));
        let first = cache.get("a", || Ok::<_, &str>(1)).unwrap();
        let second = cache.get("a", || Err("not called again")).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(*cache.get("b", || Ok::<_, &str>(2)).unwrap(), 2);
    }

    #[test]
    fn number_of_entries_is_bounded() {
        let cache = CompileCache::new();
        for n in 0..MAX_ENTRIES + 10 {
            cache.get(&n.to_string(), || Ok::<_, &str>(n)).unwrap();
        }
        assert_eq!(cache.lock().len(), 10);
    }

    #[test]
    fn equal_schemas_share_a_validator() {
        let schema = json!({"type": "object", "required": ["unlike any other"]});
        assert!(Arc::ptr_eq(&validator(&schema).unwrap(), &validator(&schema.clone()).unwrap()));
        assert!(validator(&json!({"type": 5})).is_err());
    }
}
