//! Problems, as they are described.

use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use crate::problem::Code;

/// RFC 9457. `code` is stable; `/docs` explains each.
#[derive(Debug, Serialize, ToSchema)]
pub struct ProblemBody {
    pub r#type: String,
    pub title: String,
    pub status: u16,
    /// What happened and what to do.
    pub detail: String,
    #[schema(schema_with = codes)]
    pub code: String,
    /// Under which the server's logs and audit trail have more.
    pub trace_id: String,
    #[schema(nullable = false)]
    pub errors: Option<Vec<FieldErrorBody>>,
}

#[derive(Debug, Serialize, ToSchema)]
pub struct FieldErrorBody {
    /// A JSON pointer into the body, or the name of a parameter or header.
    pub pointer: String,
    pub detail: String,
}

fn codes() -> Object {
    let words = Code::ALL.iter().map(|code| code.word());
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(words)).build()
}
