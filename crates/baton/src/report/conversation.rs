//! Who said what, for reading.

use jiff::Timestamp;

use super::{figures, visible};

pub use baton_engine::recorded::text_of;

/// One entry: who and when, and below it what was said.
pub fn entry(who: &str, at: Option<Timestamp>, text: &str) -> String {
    let (bold, dim) = (anstyle::Style::new().bold(), anstyle::Style::new().dimmed());
    let at = at.map(|at| format!("  {dim}{}{dim:#}", figures::moment(at))).unwrap_or_default();
    format!("\n{bold}{}{bold:#}{at}\n{}", visible(who), indented(text))
}

/// Text two columns in, so that it cannot be taken for a head.
pub fn indented(text: &str) -> String {
    let line = |line: &str| if line.is_empty() { "\n".to_owned() } else { format!("  {line}\n") };
    visible(text.trim_end()).lines().map(line).collect()
}
