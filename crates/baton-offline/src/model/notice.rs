//! The sentence that says that no language model is configured: once, at the end.

use super::blocks::without_marks;

const NOTICE: &str = "(No language model is configured; this was put together from the sources by simple rules. Set \
                      `models.default` in baton.toml for real answers.)";
const OPENING: &str = "(No language model is configured";

/// Lines that announce a quotation; they are not worth quoting themselves.
pub(super) const SOURCES: &str = "This is what the sources say:";
pub(super) const BRIEF: &str = "I go by this:";

/// The whole answer. Whatever notices are in it already are left out.
pub(super) fn closed(text: &str) -> String {
    format!("{}\n\n{NOTICE}", without(text))
}

fn without(text: &str) -> String {
    let mut left = String::new();
    let mut rest = text;
    while let Some((before, notice)) = rest.split_once(OPENING) {
        left += before.trim_end();
        rest = notice.split_once(".)").map_or("", |(_, after)| after);
    }
    left += rest;
    left.trim().to_owned()
}

/// What somebody wrote, as it can be quoted: without notices, marks and announcements.
pub(super) fn quotable(text: &str) -> String {
    let text = without_marks(&without(text));
    let is_announcement = |line: &str| line.trim() == SOURCES || line.trim().ends_with(BRIEF);
    let lines = text.lines().filter(|line| !is_announcement(line));
    let lines: Vec<&str> = lines.map(|line| line.strip_prefix("> ").unwrap_or(line)).collect();
    let mut text = lines.join("\n");
    while text.contains("\n\n\n") {
        text = text.replace("\n\n\n", "\n\n");
    }
    text.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_notice_never_piles_up() {
        let once = closed("a");
        let twice = closed(&format!("{once}\n\nb\n\n{}", closed("c")));
        assert_eq!(twice.matches(OPENING).count(), 1);
        assert!(twice.starts_with("a\n\nb\n\nc\n\n(No language"), "{twice}");
        assert_eq!(without("cut (No language model is conf"), "cut (No language model is conf");
        assert_eq!(without("cut (No language model is configured; this"), "cut");
    }

    #[test]
    fn announcements_are_not_quoted() {
        assert_eq!(quotable(&closed(&format!("{BRIEF}\n\n> Check the term."))), "Check the term.");
    }
}
