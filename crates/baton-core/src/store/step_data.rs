//! The data of a step.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// The data of a step as JSON text. It is serialised once, stored as it is, and parsed only by its readers.
///
/// ```
/// use baton_core::store::StepData;
///
/// let data = StepData::of(&("reply", 2));
/// assert_eq!(data.read::<(String, u8)>().unwrap(), ("reply".to_owned(), 2));
/// ```
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StepData(Box<RawValue>);

impl StepData {
    pub fn new(value: &(impl Serialize + ?Sized)) -> serde_json::Result<Self> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// The data of a value that is always JSON. Panics if it is not, for example because a map has keys that are no text.
    pub fn of(value: &(impl Serialize + ?Sized)) -> Self {
        Self::new(value).expect("the value is JSON")
    }

    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> serde_json::Result<T> {
        serde_json::from_str(self.0.get())
    }

    /// A field of an object, or `None` if it is missing or cannot be read.
    pub fn field<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        // Most steps are searched for fields that they do not have. Within a text, the quotation marks are escaped.
        if !self.0.get().contains(&format!("\"{name}\":")) {
            return None;
        }
        let fields: HashMap<Cow<'_, str>, &RawValue> = self.read().ok()?;
        serde_json::from_str(fields.get(name)?.get()).ok()
    }

    pub fn json(&self) -> Value {
        self.read().unwrap_or_default()
    }
}

impl From<Value> for StepData {
    fn from(value: Value) -> Self {
        Self::of(&value)
    }
}

/// The JSON text.
impl fmt::Display for StepData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.get())
    }
}

/// `null`.
impl Default for StepData {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

/// Equal texts. The same value serialised in another way is not equal.
impl PartialEq for StepData {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_are_read_and_missing_ones_are_none() {
        let data = StepData::from(json!({"why": "x", "count": 3}));
        assert_eq!(data.field::<String>("why").as_deref(), Some("x"));
        assert_eq!(data.field::<u64>("why"), None);
        assert_eq!(data.field::<u64>("count"), Some(3));
        assert_eq!(data.field::<u64>("x"), None);
        assert_eq!(StepData::default().field::<u64>("why"), None);
    }

    #[test]
    fn text_is_kept_as_it_is() {
        let text = r#"[1.50, {"b":1, "a":2}]"#;
        let data: StepData = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&data).unwrap(), text);
        assert_eq!(data.json(), json!([1.5, {"b": 1, "a": 2}]));
        assert_eq!(serde_json::to_value(&data).unwrap(), data.json());
    }
}
