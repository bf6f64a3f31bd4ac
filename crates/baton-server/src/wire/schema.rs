//! Schemas of values whose types come from crates that know nothing of schemas.

use baton_core::choice::Choice;
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};

/// A closed set of words.
pub fn words<T: Choice>() -> Object {
    let words = T::ALL.iter().map(|(word, _)| *word);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

/// A moment in UTC, as RFC 3339 writes it.
pub fn moment() -> Object {
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build()
}
