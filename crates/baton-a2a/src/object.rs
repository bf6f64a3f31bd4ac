//! Building JSON objects in which optional members are absent rather than null.

use serde_json::{Map, Value};

#[derive(Default)]
pub(crate) struct Object(Map<String, Value>);

impl Object {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn set(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.0.insert(key.to_owned(), value.into());
        self
    }

    pub(crate) fn optional(self, key: &str, value: Option<impl Into<Value>>) -> Self {
        match value {
            Some(value) => self.set(key, value),
            None => self,
        }
    }

    /// Leaves an empty list out.
    pub(crate) fn list<T: Into<Value>>(self, key: &str, items: impl IntoIterator<Item = T>) -> Self {
        let items: Vec<Value> = items.into_iter().map(Into::into).collect();
        if items.is_empty() { self } else { self.set(key, items) }
    }

    /// Leaves an empty object out.
    pub(crate) fn map(self, key: &str, map: &Map<String, Value>) -> Self {
        if map.is_empty() { self } else { self.set(key, map.clone()) }
    }

    pub(crate) fn extend(mut self, other: Map<String, Value>) -> Self {
        self.0.extend(other);
        self
    }
}

impl From<Object> for Value {
    fn from(object: Object) -> Self {
        Self::Object(object.0)
    }
}

impl From<Object> for Map<String, Value> {
    fn from(object: Object) -> Self {
        object.0
    }
}
