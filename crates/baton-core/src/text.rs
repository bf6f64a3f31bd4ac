//! Truncation of text.

/// The first `max_chars` characters, followed by `...` if any were cut.
pub fn head(text: &str, max_chars: usize) -> String {
    match text.char_indices().nth(max_chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_is_cut_between_characters() {
        assert_eq!(head("äöü", 3), "äöü");
        assert_eq!(head("äöü", 2), "äö...");
    }
}
