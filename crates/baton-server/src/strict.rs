//! What comes in: JSON bodies, queries and paths, or a problem that points at the mistake.

mod json;
mod path;
mod query;
mod repeatable;

pub(crate) use json::parse;
pub use json::{Checked, Strict};
pub use path::{HandoffPath, InThread, OfRun};
pub use query::Params;
pub use repeatable::Repeatable;

/// What was sent is quoted in messages, but not all of it.
const LONGEST_DETAIL: usize = 300;

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST_DETAIL) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The field that serde means where it knows its place no more: `` duplicate field `limit` ``.
fn named<'a>(message: &'a str, beginning: &str) -> Option<&'a str> {
    message.strip_prefix(beginning)?.strip_prefix('`')?.split('`').next()
}
