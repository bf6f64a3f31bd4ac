//! Extractors for JSON bodies, queries and paths. Their errors point at the mistake.

mod json;
mod path;
mod query;
pub mod repeatable;

pub use json::{Checked, Strict};
pub(crate) use json::{body, optional_body, parse};
pub use path::{HandoffPath, RunPath, ThreadPath, ToolPath, UserPath};
pub use query::Params;
pub use repeatable::Repeatable;

/// Maximum length of an error detail, which may quote the input.
const LONGEST_DETAIL: usize = 300;

fn shortened(mut text: String) -> String {
    if let Some((end, _)) = text.char_indices().nth(LONGEST_DETAIL) {
        text.truncate(end);
        text.push('…');
    }
    text
}

/// The field in a serde message without a position: `` duplicate field `limit` ``.
fn named<'a>(message: &'a str, beginning: &str) -> Option<&'a str> {
    message.strip_prefix(beginning)?.strip_prefix('`')?.split('`').next()
}
