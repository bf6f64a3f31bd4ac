//! Who said what, for reading.

use baton_core::message::{Image, Part};
use jiff::Timestamp;

use super::{figures, visible};

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

/// All parts as text; what is none is named.
pub fn words(parts: &[Part]) -> String {
    let words = parts.iter().map(|part| match part {
        Part::Text { text } => text.clone(),
        Part::Image(Image { media_type, .. }) => format!("[image: {media_type}]"),
        Part::File { name, .. } => format!("[file: {name}]"),
        Part::Data { data } => data.to_string(),
    });
    words.collect::<Vec<_>>().join("\n")
}
