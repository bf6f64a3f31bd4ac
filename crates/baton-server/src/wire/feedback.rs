//! What people think of an answer.

use baton_core::store::Rating;
use serde::{Deserialize, Serialize, Serializer};
use utoipa::ToSchema;
use utoipa::openapi::schema::{Object, ObjectBuilder, Type};

use super::text::Remark;
use crate::strict::Checked;

#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(examples(json!({ "rating": 1, "comment": "exactly what I needed" })))]
pub struct FeedbackBody {
    /// 1 for good, -1 for bad.
    #[schema(schema_with = thumbs)]
    pub rating: Thumb,
    #[schema(value_type = Option<String>, nullable = false, max_length = 2000)]
    pub comment: Option<Remark>,
}

impl Checked for FeedbackBody {}

/// Up or down, as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "i64")]
pub struct Thumb(pub Rating);

impl TryFrom<i64> for Thumb {
    type Error = &'static str;

    fn try_from(number: i64) -> Result<Self, Self::Error> {
        match number {
            1 => Ok(Self(Rating::Good)),
            -1 => Ok(Self(Rating::Bad)),
            _ => Err("a rating is 1 for good or -1 for bad"),
        }
    }
}

impl From<Rating> for Thumb {
    fn from(rating: Rating) -> Self {
        Self(rating)
    }
}

impl Serialize for Thumb {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(match self.0 {
            Rating::Good => 1,
            Rating::Bad => -1,
        })
    }
}

pub fn thumbs() -> Object {
    ObjectBuilder::new().schema_type(Type::Integer).enum_values(Some([1, -1])).build()
}
