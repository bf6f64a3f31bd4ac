//! Reading JSON objects of peers: `camelCase` or `snake_case`, null is absent, unknown members are ignored.

use serde_json::{Map, Value};

use crate::error::Invalid;

/// The members of one object.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a> {
    map: &'a Map<String, Value>,
    has_snake_case: bool,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(value: &'a Value) -> Result<Self, Invalid> {
        let map = value.as_object().ok_or_else(|| Invalid::new("must be an object"))?;
        Ok(Self { map, has_snake_case: map.keys().any(|key| key.contains('_')) })
    }

    pub(crate) fn as_map(self) -> &'a Map<String, Value> {
        self.map
    }

    /// A member that is present and not null.
    pub(crate) fn get(self, name: &str) -> Option<&'a Value> {
        self.raw(name).filter(|value| !value.is_null())
    }

    /// A member that is present, even if it is null.
    pub(crate) fn raw(self, name: &str) -> Option<&'a Value> {
        self.map.get(name).or_else(|| if self.has_snake_case { self.snake_case(name) } else { None })
    }

    fn snake_case(self, camel: &str) -> Option<&'a Value> {
        self.map.iter().find(|(key, _)| is_snake_case_of(key, camel)).map(|(_, value)| value)
    }

    pub(crate) fn text(self, name: &str) -> Result<Option<String>, Invalid> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| Invalid::new("must be a string").within(name))?;
        Ok(Some(text.to_owned()))
    }

    /// As `text`, and an empty string is absent: `ProtoJSON` does not distinguish them.
    pub(crate) fn nonempty(self, name: &str) -> Result<Option<String>, Invalid> {
        Ok(self.text(name)?.filter(|text| !text.is_empty()))
    }

    pub(crate) fn required(self, name: &str) -> Result<String, Invalid> {
        self.nonempty(name)?.ok_or_else(|| Invalid::new("is required").within(name))
    }

    pub(crate) fn flag(self, name: &str) -> Result<Option<bool>, Invalid> {
        let Some(value) = self.get(name) else { return Ok(None) };
        value.as_bool().map(Some).ok_or_else(|| Invalid::new("must be true or false").within(name))
    }

    /// A count: not negative, and at most `u32::MAX`. `ProtoJSON` may write it as a float or a string.
    pub(crate) fn count(self, name: &str) -> Result<Option<u32>, Invalid> {
        let Some(value) = self.get(name) else { return Ok(None) };
        count(value).map(Some).map_err(|invalid| invalid.within(name))
    }

    pub(crate) fn map(self, name: &str) -> Result<Map<String, Value>, Invalid> {
        let Some(value) = self.get(name) else { return Ok(Map::new()) };
        value.as_object().cloned().ok_or_else(|| Invalid::new("must be an object").within(name))
    }

    pub(crate) fn items(self, name: &str) -> Result<&'a [Value], Invalid> {
        let Some(value) = self.get(name) else { return Ok(&[]) };
        let items = value.as_array().ok_or_else(|| Invalid::new("must be an array").within(name))?;
        Ok(items)
    }

    pub(crate) fn texts(self, name: &str) -> Result<Vec<String>, Invalid> {
        let text = |item: &Value| item.as_str().map(str::to_owned);
        let texts: Option<Vec<String>> = self.items(name)?.iter().map(text).collect();
        texts.ok_or_else(|| Invalid::new("must hold only strings").within(name))
    }

    /// Reads each item of a list; an error names the item.
    pub(crate) fn each<T>(
        self,
        name: &str,
        read: impl Fn(&'a Value) -> Result<T, Invalid>,
    ) -> Result<Vec<T>, Invalid> {
        let items = self.items(name)?.iter().enumerate();
        items
            .map(|(at, item)| read(item).map_err(|invalid| invalid.within(&format!("{name}[{at}]"))))
            .collect()
    }

    /// Reads a member that may be absent.
    pub(crate) fn object<T>(
        self,
        name: &str,
        read: impl FnOnce(&'a Value) -> Result<T, Invalid>,
    ) -> Result<Option<T>, Invalid> {
        let Some(value) = self.get(name) else { return Ok(None) };
        read(value).map(Some).map_err(|invalid| invalid.within(name))
    }
}

fn count(value: &Value) -> Result<u32, Invalid> {
    let number = match value {
        Value::Number(number) => number.as_i64().or_else(|| whole(number.as_f64()?)),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    let number = number.ok_or_else(|| Invalid::new("must be a whole number"))?;
    u32::try_from(number).map_err(|_| Invalid::new("must not be negative or larger than 4294967295"))
}

#[allow(clippy::cast_possible_truncation)]
fn whole(number: f64) -> Option<i64> {
    (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
}

/// Whether `snake` is `camel` with `_x` for each `X`.
fn is_snake_case_of(snake: &str, camel: &str) -> bool {
    let mut snake = snake.bytes();
    for byte in camel.bytes() {
        let expected = if byte.is_ascii_uppercase() {
            if snake.next() != Some(b'_') {
                return false;
            }
            byte.to_ascii_lowercase()
        } else {
            byte
        };
        if snake.next() != Some(expected) {
            return false;
        }
    }
    snake.next().is_none()
}
