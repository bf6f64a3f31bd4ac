//! The body of a new message.

use std::fmt;

use baton_core::store::OnBusy;
use serde::de::{Error, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Ref, Schema, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::problem::FieldError;
use crate::strict::Checked;
use crate::wire::approval::ResumeEntry;
use crate::wire::message::PartView;
use crate::wire::schema::words;

/// Of `metadata`, as JSON.
const MOST_METADATA: usize = 16 * 1024;
const MOST_PARTS: usize = 64;

#[derive(Debug, Clone, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SendMessage {
    /// What is said: a text, or parts. Left out with `resume`.
    #[serde(default)]
    #[schema(required = false)]
    pub content: Content,
    /// The agent that answers; by default the holder of the thread.
    #[schema(nullable = false)]
    pub agent: Option<String>,
    /// What happens while the thread has an active run: `enqueue` (the default), `reject` or `interrupt`.
    #[schema(required = false, schema_with = words::<OnBusy>)]
    pub on_busy: Option<OnBusy>,
    /// Anything the caller wants to find again with the run; up to 16 KiB.
    #[schema(nullable = false)]
    pub metadata: Option<Map<String, Value>>,
    /// AG-UI: decisions about what a run of the thread waits for. No new run begins; the run that waits continues.
    #[serde(default)]
    #[schema(required = false, max_items = 64)]
    pub resume: Vec<ResumeEntry>,
}

/// A text or parts. Read by hand, so that a mistake in a part is reported where it is.
#[derive(Debug, Clone, Default)]
pub struct Content(pub Vec<PartView>);

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor)
    }
}

impl PartialSchema for Content {
    fn schema() -> RefOr<Schema> {
        let text = ObjectBuilder::new().schema_type(Type::String).min_length(Some(1));
        let part = Ref::from_schema_name("PartView");
        let parts = ArrayBuilder::new().items(part).min_items(Some(1)).max_items(Some(MOST_PARTS));
        OneOfBuilder::new().item(text).item(parts).into()
    }
}

impl ToSchema for Content {
    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        schemas.push((PartView::name().into_owned(), PartView::schema()));
        PartView::schemas(schemas);
    }
}

struct ContentVisitor;

impl<'de> Visitor<'de> for ContentVisitor {
    type Value = Content;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a text or a list of parts")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Content, E> {
        Ok(Content(vec![PartView::Text { text: text.to_owned() }]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Content, A::Error> {
        let mut parts = Vec::new();
        while let Some(part) = seq.next_element()? {
            if parts.len() == MOST_PARTS {
                return Err(A::Error::custom(format!("a message has up to {MOST_PARTS} parts")));
            }
            parts.push(part);
        }
        Ok(Content(parts))
    }
}

impl Checked for SendMessage {
    fn check(&self) -> Vec<FieldError> {
        let mut errors = Vec::new();
        let mut wrong = |pointer: &str, detail: &str| {
            errors.push(FieldError { pointer: pointer.to_owned(), detail: detail.to_owned() });
        };
        if !self.resume.is_empty() && !self.content.0.is_empty() {
            wrong("/content", "leave it out with `resume`, which begins no new run");
        }
        if self.resume.len() > MOST_PARTS {
            wrong("/resume", "up to 64 entries");
        }
        if self.resume.is_empty() && self.content.0.iter().all(is_blank) {
            wrong("/content", "there is nothing in it: write a text, or add a part");
        }
        let size =
            self.metadata.as_ref().map_or(0, |metadata| Value::Object(metadata.clone()).to_string().len());
        if size > MOST_METADATA {
            wrong("/metadata", "it may have up to 16 KiB as JSON");
        }
        errors
    }
}

fn is_blank(part: &PartView) -> bool {
    matches!(part, PartView::Text { text } if text.trim().is_empty())
}
