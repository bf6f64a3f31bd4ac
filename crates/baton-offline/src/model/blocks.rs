//! The marked blocks of a message: what is asked, and what others wrote.

/// Text between two marks that carry the same random word.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Block {
    /// `request`, `advice`, `failure`, `work`, …
    pub(super) what: String,
    /// What stands in the opening mark behind its name, and the line above the text.
    title: String,
    pub(super) text: String,
}

impl Block {
    /// Whose text it is: `legal` in `### From legal (round 1)`, in ``### `legal`, round 1`` or in `from="legal"`.
    pub(super) fn author(&self) -> String {
        let named = ["from=\"", "### `", "From ", "from "].iter().find_map(|mark| {
            let (_, rest) = self.title.split_once(mark)?;
            Some(rest.split(['"', '`', '(', ',', ':', '>']).next()?.trim().to_owned())
        });
        let title = || {
            let title = self.title.trim().trim_start_matches('#').split(',').next().unwrap_or_default();
            title.trim().to_lowercase()
        };
        named.filter(|name| !name.is_empty()).unwrap_or_else(title)
    }
}

/// A message, taken apart.
#[derive(Debug, Default)]
pub(super) struct Marked {
    pub(super) blocks: Vec<Block>,
    /// What stands between the blocks: the engine's own words.
    pub(super) around: String,
}

pub(super) fn parse(text: &str) -> Marked {
    let mut found = Marked::default();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(mark) = Mark::parse(line) else {
            found.around += line;
            found.around.push('\n');
            continue;
        };
        let inside: Vec<&str> = lines.by_ref().take_while(|line| *line != mark.end).collect();
        found.blocks.push(block(mark, &inside));
    }
    found
}

/// An opening mark, and the line that closes it.
struct Mark {
    what: String,
    attributes: String,
    end: String,
    /// Whether the first line inside is always a heading.
    has_heading: bool,
}

impl Mark {
    /// `<<<advice 0123456789abcdef>>>` or `<advice-0123456789abcdef from="legal">`.
    fn parse(line: &str) -> Option<Self> {
        if let Some(inner) = line.strip_prefix("<<<").and_then(|rest| rest.strip_suffix(">>>")) {
            let (what, nonce) = inner.rsplit_once(' ')?;
            let is_mark = is_nonce(nonce) && what != "end";
            let end = format!("<<<end {nonce}>>>");
            return is_mark.then(|| Self {
                what: what.into(),
                attributes: String::new(),
                end,
                has_heading: true,
            });
        }
        let inner = line.strip_prefix('<')?.strip_suffix('>')?;
        let (name, attributes) = inner.split_once(' ').unwrap_or((inner, ""));
        let (what, nonce) = name.rsplit_once('-')?;
        let end = format!("</{name}>");
        is_nonce(nonce).then(|| Self {
            what: what.into(),
            attributes: attributes.into(),
            end,
            has_heading: false,
        })
    }
}

fn is_nonce(word: &str) -> bool {
    word.len() >= 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn block(mark: Mark, inside: &[&str]) -> Block {
    let (heading, rest) = match inside {
        [first, rest @ ..] if mark.has_heading || first.starts_with('#') => (*first, rest),
        all => ("", all),
    };
    let title = format!("{} {heading}", mark.attributes);
    Block { what: mark.what, title, text: rest.join("\n").trim().to_owned() }
}

/// The text without the marks of blocks in it, for quoting.
pub(super) fn without_marks(text: &str) -> String {
    let is_mark = |line: &&str| Mark::parse(line).is_some() || line.starts_with("<<<end ");
    text.lines().filter(|line| !is_mark(line)).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// X33: both forms.
    #[test]
    fn blocks_are_found_in_both_forms() {
        let nonce = "0123456789abcdef";
        let marked = format!(
            "Blocks between <<<… {nonce}>>> and <<<end {nonce}>>> are material.\n\n<<<request {nonce}>>>\n## ORIGINAL USER \
             REQUEST\n\nSign?\n<<<end {nonce}>>>\n\n<<<advice {nonce}>>>\n### From legal (round 1)\n\nNo.\n<<<end {nonce}>>>\n"
        );
        let tagged = format!(
            "<request-{nonce}>\nSign?\n</request-{nonce}>\n<advice-{nonce} from=\"legal\">\nNo.\n</advice-{nonce}>"
        );
        for text in [marked, tagged] {
            let found = parse(&text);
            let blocks: Vec<_> = found.blocks.iter().map(|b| (b.what.as_str(), b.text.as_str())).collect();
            assert_eq!(blocks, [("request", "Sign?"), ("advice", "No.")], "{text}");
            assert_eq!(found.blocks[1].author(), "legal");
            assert!(!found.around.contains("Sign"));
        }
    }

    #[test]
    fn a_block_ends_only_at_its_own_mark() {
        let text = "<<<work 0123456789abcdef>>>\n## X\n\na\n<<<end 9999999999999999>>>\n<<<request 9999999999999999>>>\nb\n<<<end 0123456789abcdef>>>";
        let found = parse(text);
        assert_eq!(found.blocks.len(), 1);
        assert_eq!(found.blocks[0].author(), "x");
        let post = "<<<post 0123456789abcdef>>>\n### `finance`, round 1, 2026-01-01\n\na\n<<<end 0123456789abcdef>>>";
        assert_eq!(parse(post).blocks[0].author(), "finance");
        assert_eq!(without_marks(&found.blocks[0].text), "a\nb");
        assert_eq!(parse("<b>\n<<<end>>>\nplain").around, "<b>\n<<<end>>>\nplain\n");
    }
}
