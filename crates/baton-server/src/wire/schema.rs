//! Schemas of values whose types come from crates that know nothing of schemas.

use baton_core::choice::Choice;
use baton_core::store::Order;
use utoipa::openapi::schema::{KnownFormat, Object, ObjectBuilder, SchemaFormat, Type};

/// A closed set of words.
pub fn words<T: Choice>() -> Object {
    let words = T::ALL.iter().map(|(word, _)| *word);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}

/// The direction of a list, the oldest first if it is left out.
pub fn order() -> Object {
    let words = Order::ALL.iter().map(|(word, _)| *word);
    let default = Some(Order::default().word().into());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).default(default).build()
}

/// A moment in UTC, as RFC 3339 writes it.
pub fn moment() -> Object {
    let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
    ObjectBuilder::new().schema_type(Type::String).format(Some(format)).build()
}
