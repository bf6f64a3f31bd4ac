//! Whether a value of one JSON Schema can satisfy another.
//!
//! Sound, not complete: a conflict is reported only if no value satisfies both schemas. What is not understood (`$ref`, `not`,
//! `pattern`, `if`, …) is ignored. There is one convention beyond the standard: an upstream schema that lists `properties` and does
//! not say `additionalProperties` gives only those, because its author has described the whole answer.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

type Schema = Map<String, Value>;

/// Comparisons after which the search ends without a conflict. Nested `anyOf` on both sides multiply.
const MAX_COMPARISONS: u32 = 10_000;
/// An integer is a number.
const TYPES: [&str; 6] = ["array", "boolean", "null", "number", "object", "string"];
/// Keywords that may declare properties beside `properties`.
const MORE_PROPERTIES: [&str; 8] = [
    "additionalProperties",
    "patternProperties",
    "allOf",
    "anyOf",
    "oneOf",
    "if",
    "dependentSchemas",
    "unevaluatedProperties",
];

/// Why no value fits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Conflict {
    /// JSON pointer of the part of the value. Empty: the whole value.
    pub(crate) pointer: String,
    /// A clause, such as "it is a string, and has to be a number".
    pub(crate) reason: String,
}

/// Finds out why no value that satisfies `upstream` satisfies `downstream`. `None` if one may.
pub(crate) fn conflict(upstream: &Value, downstream: &Value) -> Option<Conflict> {
    Comparison { left: MAX_COMPARISONS }.values(upstream, downstream, true, "")
}

struct Comparison {
    left: u32,
}

impl Comparison {
    /// `is_whole`: `upstream` is no branch of `allOf`, `anyOf` or `oneOf`, so its `properties` are all that it declares.
    fn values(&mut self, upstream: &Value, downstream: &Value, is_whole: bool, at: &str) -> Option<Conflict> {
        self.left = self.left.checked_sub(1)?;
        let (up, down) = (upstream.as_object()?, downstream.as_object()?);
        // Before draft 2019-09, `$ref` hides the keywords beside it.
        if [up, down].iter().any(|schema| schema.contains_key("$ref")) {
            return None;
        }
        let (given, wanted) = (types(up), types(down));
        let common: Vec<&str> = given.intersection(&wanted).copied().collect();
        let by_type = match common.as_slice() {
            [] => Some(found(at, format!("it is {}, and has to be {}", listed(&given), listed(&wanted)))),
            ["object"] => self.objects(up, down, is_whole, at),
            ["array"] => self.arrays(up, down, at),
            ["number"] => ranges(
                up,
                down,
                at,
                "a number",
                &["minimum", "exclusiveMinimum"],
                &["maximum", "exclusiveMaximum"],
            ),
            ["string"] => ranges(up, down, at, "its length", &["minLength"], &["maxLength"]),
            _ => None,
        };
        by_type
            .or_else(|| self.constants(upstream, downstream, at))
            .or_else(|| self.branches(upstream, downstream, at))
    }

    /// Values that one side lists and the other refuses, all of them.
    fn constants(&mut self, upstream: &Value, downstream: &Value, at: &str) -> Option<Conflict> {
        for (listing, other) in [(upstream, downstream), (downstream, upstream)] {
            let Some(values) = constants(listing) else { continue };
            self.left = self.left.checked_sub(u32::try_from(values.len()).unwrap_or(u32::MAX))?;
            let Ok(validator) = jsonschema::validator_for(other) else { continue };
            if !values.iter().any(|value| validator.is_valid(value)) {
                return Some(found(at, "no value is allowed on both sides".to_owned()));
            }
        }
        None
    }

    fn objects(&mut self, up: &Schema, down: &Schema, is_whole: bool, at: &str) -> Option<Conflict> {
        let (given, wanted) = (required(up), required(down));
        for name in &wanted {
            if !given.contains(name) && lacks(up, name, is_whole) {
                return Some(found(&below(at, name), "it is required, and is not given".to_owned()));
            }
        }
        for name in &given {
            let is_closed = down.get("additionalProperties") == Some(&Value::Bool(false));
            if is_closed && property(down, name).is_none() && !down.contains_key("patternProperties") {
                return Some(found(&below(at, name), "it is always given, and is not allowed".to_owned()));
            }
        }
        // A property that neither side requires can be left out.
        given
            .union(&wanted)
            .find_map(|name| self.values(property(up, name)?, property(down, name)?, true, &below(at, name)))
    }

    fn arrays(&mut self, up: &Schema, down: &Schema, at: &str) -> Option<Conflict> {
        let has_items =
            [up, down].iter().any(|schema| number(schema, "minItems").is_some_and(|least| least >= 1.0));
        let is_plain = [up, down].iter().all(|schema| !schema.contains_key("prefixItems"));
        ranges(up, down, at, "its length", &["minItems"], &["maxItems"]).or_else(|| {
            let (up, down) = up.get("items").zip(down.get("items")).filter(|_| has_items && is_plain)?;
            self.values(up, down, true, &below(at, "0"))
        })
    }

    /// `allOf` conflicts if a branch does, `anyOf` and `oneOf` if all branches do.
    fn branches(&mut self, upstream: &Value, downstream: &Value, at: &str) -> Option<Conflict> {
        for is_upstream in [true, false] {
            let schema = if is_upstream { upstream } else { downstream };
            let mut compare = |branch: &Value| {
                if is_upstream {
                    self.values(branch, downstream, false, at)
                } else {
                    self.values(upstream, branch, false, at)
                }
            };
            let branches = |key: &str| schema[key].as_array().filter(|branches| !branches.is_empty());
            if let Some(found) = branches("allOf").into_iter().flatten().find_map(&mut compare) {
                return Some(found);
            }
            for branches in [branches("anyOf"), branches("oneOf")].into_iter().flatten() {
                let found: Option<Vec<Conflict>> = branches.iter().map(&mut compare).collect();
                if let Some(first) = found.and_then(|all| all.into_iter().next()) {
                    return Some(first);
                }
            }
        }
        None
    }
}

fn found(at: &str, reason: String) -> Conflict {
    Conflict { pointer: at.to_owned(), reason }
}

fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn listed(types: &BTreeSet<&str>) -> String {
    let named = types.iter().map(|word| match *word {
        "array" | "object" => format!("an {word}"),
        "null" => "null".to_owned(),
        word => format!("a {word}"),
    });
    named.collect::<Vec<_>>().join(" or ")
}

/// The types that a value may have by `type`, `const` and `enum`.
fn types(schema: &Schema) -> BTreeSet<&'static str> {
    let words: Option<Vec<&str>> = match schema.get("type") {
        Some(Value::String(word)) => Some(vec![word]),
        Some(Value::Array(words)) => Some(words.iter().filter_map(Value::as_str).collect()),
        _ => None,
    };
    let is_named = |word: &&str| match &words {
        Some(words) => words.contains(word) || (*word == "number" && words.contains(&"integer")),
        None => true,
    };
    TYPES.into_iter().filter(is_named).collect()
}

/// The values of `const` or `enum`.
fn constants(schema: &Value) -> Option<Vec<&Value>> {
    match (schema.get("const"), schema.get("enum")) {
        (Some(value), _) => Some(vec![value]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

fn required(schema: &Schema) -> BTreeSet<&str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str).collect()
}

fn property<'a>(schema: &'a Schema, name: &str) -> Option<&'a Value> {
    schema.get("properties")?.get(name)
}

/// Whether an object of the schema never has this property.
fn lacks(schema: &Schema, name: &str, is_whole: bool) -> bool {
    if property(schema, name).is_some() || schema.contains_key("patternProperties") {
        return false;
    }
    let is_closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    let declares = schema.get("properties").and_then(Value::as_object).is_some_and(|all| !all.is_empty());
    is_closed || (is_whole && declares && !MORE_PROPERTIES.iter().any(|key| schema.contains_key(*key)))
}

fn number(schema: &Schema, key: &str) -> Option<f64> {
    schema.get(key)?.as_f64()
}

/// Ranges of both sides that have no number in common.
fn ranges(up: &Schema, down: &Schema, at: &str, what: &str, low: &[&str], high: &[&str]) -> Option<Conflict> {
    let limits = |keys: &[&str]| -> Vec<(f64, bool)> {
        let of = |schema: &Schema| -> Vec<(f64, bool)> {
            let limit = |key: &&str| Some((number(schema, key)?, key.starts_with("exclusive")));
            keys.iter().filter_map(limit).collect()
        };
        of(up).into_iter().chain(of(down)).collect()
    };
    let (lows, highs) = (limits(low), limits(high));
    let is_empty = |(low, is_low_open): &(f64, bool)| {
        highs
            .iter()
            .any(|(high, is_high_open)| low > high || (low >= high && (*is_low_open || *is_high_open)))
    };
    let least = lows.iter().find(|low| is_empty(low))?;
    Some(found(at, format!("{what} is at least {} on one side, and less on the other", least.0)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn fits(upstream: &Value, downstream: &Value) -> Option<String> {
        conflict(upstream, downstream).map(|Conflict { pointer, reason }| format!("{pointer}: {reason}"))
    }

    #[test]
    fn certain_conflicts_are_found() {
        let object = |properties: Value, required: Value| json!({"type": "object", "properties": properties, "required": required});
        let n = |kind: &str| object(json!({"n": {"type": kind}}), json!(["n"]));
        let cases = [
            (json!({"type": "string"}), n("number"), ": it is a string, and has to be an object"),
            (n("string"), n("integer"), "/n: it is a string, and has to be a number"),
            (object(json!({"m": {}}), json!([])), n("number"), "/n: it is required, and is not given"),
            (
                object(json!({"a/b": {"enum": ["x", "y"]}}), json!([])),
                object(json!({"a/b": {"enum": ["z"]}}), json!(["a/b"])),
                "/a~1b: no value is allowed on both sides",
            ),
            (
                n("number"),
                json!({"type": "object", "properties": {}, "additionalProperties": false}),
                "/n: it is always given, and is not allowed",
            ),
            (
                json!({"type": "array", "minItems": 1, "items": {"type": "string"}}),
                json!({"type": "array", "items": {"type": "null"}}),
                "/0: it is a string, and has to be null",
            ),
            (
                json!({"type": "number", "minimum": 10}),
                json!({"type": "integer", "exclusiveMaximum": 10}),
                ": a number is at least 10 on one side, and less on the other",
            ),
            (
                json!({"anyOf": [{"type": "string"}, {"type": "null"}]}),
                json!({"allOf": [{"type": "object"}]}),
                ": it is a string, and has to be an object",
            ),
        ];
        for (upstream, downstream, expected) in cases {
            assert_eq!(fits(&upstream, &downstream).as_deref(), Some(expected), "{upstream} → {downstream}");
        }
    }

    #[test]
    fn what_may_fit_is_no_conflict() {
        let open = json!({"type": "object", "properties": {"m": {}}, "additionalProperties": true});
        let needs = json!({"type": "object", "required": ["n"]});
        let n_or_m = json!({"anyOf": [{"required": ["n"]}, {"properties": {"m": {"type": "string"}}}]});
        let cases = [
            (json!({}), needs.clone()),
            (json!({"type": "object"}), needs.clone()),
            (open, needs.clone()),
            (json!({"type": "object", "properties": {"m": {}}, "required": ["n"]}), needs.clone()),
            (
                json!({"type": "object", "properties": {"m": {}}, "patternProperties": {"^n$": {}}}),
                needs.clone(),
            ),
            (
                json!({"allOf": [{"properties": {"m": {}}}, {"properties": {"n": {}}}], "type": "object"}),
                needs.clone(),
            ),
            (
                json!({"$ref": "#/$defs/x", "type": "string", "$defs": {"x": {"type": "object"}}}),
                needs.clone(),
            ),
            (json!({"type": "object", "properties": {"m": {"type": "number"}}}), n_or_m),
            (json!({"type": "integer"}), json!({"type": "number"})),
            (json!({"enum": ["a", "b"]}), json!({"enum": ["b", "c"]})),
            (json!({"type": ["string", "null"]}), json!({"type": "null"})),
            (
                json!({"type": "array", "items": {"type": "string"}}),
                json!({"type": "array", "items": {"type": "null"}}),
            ),
            (json!({"type": "number", "minimum": 10}), json!({"type": "number", "maximum": 10})),
            (json!(true), json!({"type": "null"})),
        ];
        for (upstream, downstream) in cases {
            assert_eq!(fits(&upstream, &downstream), None, "{upstream} → {downstream}");
        }
    }

    /// A schema that multiplies by nesting ends the search instead of the process.
    #[test]
    fn deeply_nested_choices_end_the_search() {
        let nested = |word: &str| {
            (0..10).fold(json!({"type": word}), |inner, _| json!({"anyOf": [inner.clone(), inner]}))
        };
        assert_eq!(fits(&nested("string"), &nested("null")), None);
    }
}
