//! What is compiled once and used by many runs: JSON Schemas, prompts, conditions.
//!
//! The key is the source text. A reload that changes a text uses another key, so nothing has to be invalidated, and agents
//! that share a text share what was compiled from it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use jsonschema::{ValidationError, Validator};
use serde_json::Value;

/// More texts than a roster has; beyond that everything is forgotten and compiled anew.
const MOST: usize = 1_024;

static VALIDATORS: Compiled<Validator> = Compiled::new();

#[derive(Debug)]
pub(crate) struct Compiled<T> {
    by_source: Mutex<BTreeMap<String, Arc<T>>>,
}

impl<T> Compiled<T> {
    pub(crate) const fn new() -> Self {
        Self { by_source: Mutex::new(BTreeMap::new()) }
    }

    /// What was compiled from `source`, or what `compile` makes of it. An error is not kept.
    pub(crate) fn get<E>(&self, source: &str, compile: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        if let Some(found) = self.lock().get(source) {
            return Ok(Arc::clone(found));
        }
        // Without the lock: a text that two runs compile at the same time is compiled twice.
        let compiled = Arc::new(compile()?);
        let mut by_source = self.lock();
        if by_source.len() >= MOST {
            by_source.clear();
        }
        by_source.insert(source.to_owned(), Arc::clone(&compiled));
        Ok(compiled)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeMap<String, Arc<T>>> {
        self.by_source.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The validator of a JSON Schema.
pub(crate) fn validator(schema: &Value) -> Result<Arc<Validator>, ValidationError<'static>> {
    VALIDATORS.get(&schema.to_string(), || jsonschema::validator_for(schema))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_text_is_compiled_once_and_an_error_is_not_kept() {
        let cache = Compiled::new();
        assert_eq!(cache.get("a", || Err::<u8, _>("broken")), Err("broken"));
        let first = cache.get("a", || Ok::<_, &str>(1)).unwrap();
        let second = cache.get("a", || Err("not called again")).unwrap();
        assert!(Arc::ptr_eq(&first, &second));
        assert_eq!(*cache.get("b", || Ok::<_, &str>(2)).unwrap(), 2);
    }

    #[test]
    fn the_number_of_texts_is_bounded() {
        let cache = Compiled::new();
        for n in 0..MOST + 10 {
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
