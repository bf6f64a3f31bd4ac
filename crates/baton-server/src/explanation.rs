//! Explanations of the error codes, parsed from `docs/errors.md` and shown at `/docs`.

use std::sync::LazyLock;

const TEXT: &str = include_str!("../../../docs/errors.md");

/// The explanation of one code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Explanation {
    pub code: &'static str,
    pub status: u16,
    pub title: &'static str,
    /// Markdown with plain text, `code` and **strong**.
    pub paragraphs: Vec<String>,
}

/// All explanations, in document order.
pub fn all() -> &'static [Explanation] {
    static ALL: LazyLock<Vec<Explanation>> =
        LazyLock::new(|| TEXT.split("\n### ").skip(1).map(Explanation::read).collect());
    &ALL
}

impl Explanation {
    /// Parses a section: the code, then `status, *title*`, then the explanation.
    fn read(section: &'static str) -> Self {
        let mut paragraphs = section.split("\n\n").map(str::trim).filter(|text| !text.is_empty());
        let code = paragraphs.next().unwrap_or_default();
        let (status, title) = paragraphs.next().and_then(|line| line.split_once(", ")).unwrap_or_default();
        Self {
            code,
            status: status.parse().unwrap_or_default(),
            title: title.trim_matches('*'),
            paragraphs: paragraphs.map(|text| text.replace('\n', " ")).collect(),
        }
    }

    /// Renders a section with an anchor, such as `/docs#thread_not_found`.
    pub fn html(&self) -> String {
        let Self { code, status, title, paragraphs } = self;
        let title = marked(title);
        let text: String = paragraphs.iter().map(|text| format!("<p>{}</p>\n", marked(text))).collect();
        format!(
            "<section class=\"problem\" id=\"{code}\">\n\
             <h3><a href=\"#{code}\"><code>{code}</code></a> <span class=\"status\">{status}</span> {title}</h3>\n\
             {text}</section>\n"
        )
    }
}

/// Renders `code` and **strong**, and escapes everything else.
fn marked(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;");
    let strong = paired(&escaped, "**", "strong");
    paired(&strong, "`", "code")
}

fn paired(text: &str, mark: &str, tag: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for (nth, piece) in text.split(mark).enumerate() {
        match nth {
            0 => {}
            _ if nth % 2 == 1 => out += &format!("<{tag}>"),
            _ => out += &format!("</{tag}>"),
        }
        out += piece;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::Code;

    /// A new code needs an explanation with the same status and title.
    #[test]
    fn every_code_is_explained_and_nothing_else_is() {
        let explained: Vec<_> = all().iter().map(|said| (said.code, said.status, said.title)).collect();
        let known: Vec<_> =
            Code::ALL.iter().map(|code| (code.word(), code.status().as_u16(), code.title())).collect();
        for code in &known {
            assert!(explained.contains(code), "docs/errors.md lacks {code:?}");
        }
        for said in &explained {
            assert!(known.contains(said), "docs/errors.md explains {said:?}, which is no code");
        }
        assert_eq!(explained.len(), known.len(), "a code is explained twice");
    }

    #[test]
    fn every_explanation_says_what_to_do() {
        for said in all() {
            let [meaning @ .., remedy] = said.paragraphs.as_slice() else { panic!("{}", said.code) };
            assert!(!meaning.is_empty(), "{} is not explained", said.code);
            assert!(remedy.starts_with("**What to do:** "), "{} has no way out", said.code);
        }
    }

    #[test]
    fn text_is_no_markup() {
        assert_eq!(marked("a `<b>` & **c**"), "a <code>&lt;b&gt;</code> &amp; <strong>c</strong>");
    }
}
