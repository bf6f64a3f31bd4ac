//! HTML as text to read: headings, paragraphs, lists and links stay, the rest goes.
//!
//! One pass from left to right that never looks back, so time and memory are linear in the page, however broken it is.

use url::Url;

pub(crate) mod entity;
pub(crate) mod markup;

use entity::decode;
use markup::{Markup, Tag};

/// Elements whose content nobody reads.
const DROPPED: &[&str] =
    &["script", "style", "template", "svg", "iframe", "object", "canvas", "select", "noscript"];
const BLOCKS: &[&str] = &[
    "address",
    "article",
    "aside",
    "blockquote",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "fieldset",
    "figure",
    "figcaption",
    "footer",
    "form",
    "header",
    "hr",
    "main",
    "nav",
    "ol",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "title",
    "ul",
];

/// Relative links are resolved against `base`.
pub fn reduce(html: &str, base: Option<&Url>) -> String {
    let mut text = HtmlText { base, ..HtmlText::default() };
    let mut rest = html;
    while let Some(at) = rest.find('<') {
        text.words(&rest[..at]);
        rest = &rest[at..];
        match Markup::read(rest) {
            Markup::Text(length) => {
                text.words(&rest[..length]);
                rest = &rest[length..];
            }
            Markup::Nothing(length) => rest = &rest[length..],
            Markup::Tag(tag) => {
                rest = &rest[tag.length..];
                if !tag.is_end && DROPPED.contains(&tag.name.as_str()) && !tag.is_closed {
                    rest = markup::after_end(rest, &tag.name);
                } else {
                    text.tag(&tag);
                }
            }
        }
    }
    text.words(rest);
    text.finish()
}

#[derive(Default)]
struct HtmlText<'a> {
    out: String,
    base: Option<&'a Url>,
    /// A space that is written only if a word follows.
    space: bool,
    /// Inside `pre`, where white space counts.
    preformatted: bool,
    lists: usize,
    /// The open link, and where its text begins. Links do not nest: a new one closes the one before.
    link: Option<(String, usize)>,
}

impl HtmlText<'_> {
    fn words(&mut self, raw: &str) {
        if raw.is_empty() {
            return;
        }
        let decoded = decode(raw);
        if self.preformatted {
            self.out += &decoded;
            return;
        }
        self.space |= decoded.starts_with(char::is_whitespace);
        for word in decoded.split_whitespace() {
            if self.space && !self.out.is_empty() && !self.out.ends_with(['\n', ' ']) {
                self.out.push(' ');
            }
            self.out += word;
            self.space = true;
        }
        self.space = decoded.ends_with(char::is_whitespace);
    }

    fn tag(&mut self, tag: &Tag<'_>) {
        match (tag.name.as_str(), tag.is_end) {
            ("a", false) => self.open_link(tag),
            ("a", true) => self.close_link(),
            ("br" | "tr", _) => self.lines(1),
            ("pre", is_end) => {
                self.lines(2);
                self.preformatted = !is_end;
            }
            ("ul" | "ol", is_end) => self.list(is_end),
            ("li", false) => {
                self.lines(1);
                self.out += &"  ".repeat(self.lists.clamp(1, 8) - 1);
                self.out += "- ";
            }
            ("td" | "th", true) => self.words(" | "),
            (name, is_end) if heading_level(name).is_some() => self.heading(name, is_end),
            (name, _) if BLOCKS.contains(&name) => self.lines(2),
            _ => {}
        }
    }

    fn list(&mut self, is_end: bool) {
        self.lists = if is_end { self.lists.saturating_sub(1) } else { self.lists + 1 };
        self.lines(if self.lists > usize::from(!is_end) { 1 } else { 2 });
    }

    fn heading(&mut self, name: &str, is_end: bool) {
        self.lines(2);
        if let (Some(level), false) = (heading_level(name), is_end) {
            self.out += &"#".repeat(level);
            self.out.push(' ');
        }
    }

    fn open_link(&mut self, tag: &Tag<'_>) {
        self.close_link();
        let Some(href) = tag.attribute("href") else { return };
        let target = match self.base {
            Some(base) => base.join(href.trim()).map(String::from).unwrap_or_default(),
            None => href,
        };
        if std::mem::take(&mut self.space) && !self.out.ends_with(['\n', ' ']) && !self.out.is_empty() {
            self.out.push(' ');
        }
        let is_web = target.starts_with("http:") || target.starts_with("https:");
        if is_web && !target.contains([' ', ')', '\n']) {
            self.link = Some((target, self.out.len()));
        }
    }

    fn close_link(&mut self) {
        let Some((target, start)) = self.link.take() else { return };
        // Blank lines at the end of the output may have been taken back since the link began.
        let Some(text) = self.out.get(start..) else { return };
        let shown = text.trim();
        if shown.is_empty() {
            return;
        }
        // White space around the text stays outside of the brackets.
        let begin = self.out.len() - text.trim_start().len();
        let tail = self.out.split_off(begin + shown.len());
        self.out.insert(begin, '[');
        self.out += &format!("]({target}){tail}");
    }

    /// Ends the line, and leaves at most `breaks - 1` blank ones.
    fn lines(&mut self, breaks: usize) {
        self.space = false;
        if self.preformatted && breaks == 1 {
            self.out.push('\n');
            return;
        }
        let kept = self.out.trim_end_matches([' ', '\n']).len();
        let had = self.out[kept..].matches('\n').count();
        self.out.truncate(kept);
        if kept > 0 {
            self.out += &"\n".repeat(had.max(breaks).min(2));
        }
    }

    fn finish(mut self) -> String {
        self.close_link();
        self.out.trim().to_owned()
    }
}

fn heading_level(name: &str) -> Option<usize> {
    match name.as_bytes() {
        [b'h', level @ b'1'..=b'6'] => Some(usize::from(level - b'0')),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_text() {
        let html = r#"<!DOCTYPE html><html><head><title>Docs &amp; more</title><style>p{}</style>
            <script>if (a < b) { "</p>" }</script></head><body><!-- note --><h1>Limits</h1>
            <p>Rate   limits are <b>per</b> tenant, see <a href="/api?x=1&amp;y=2">the API</a>.<br>Next</p>
            <ul><li>one<ul><li>inner</li></ul></li><li>two &lt;3</li></ul>
            <pre>  a
  b</pre><table><tr><td>k</td><td>v</td></tr></table><a href="javascript:x()">bad</a></body>"#;
        let base = Url::parse("https://example.com/docs/").unwrap();
        insta::assert_snapshot!(reduce(html, Some(&base)), @r"
        Docs & more

        # Limits

        Rate limits are per tenant, see [the API](https://example.com/api?x=1&y=2).
        Next

        - one
          - inner
        - two <3

          a
          b

        k | v |

        bad
        ");
    }

    #[test]
    fn broken_pages() {
        for (html, expected) in [
            ("a < b and c > d", "a < b and c > d"),
            ("x<script>never closed", "x"),
            ("x<!-- never closed", "x"),
            ("x<a href=\"never closed>y", "x"),
            ("<a href=http://a/>1<a href=http://b/>2", "[1](http://a/)[2](http://b/)"),
            ("<p></p></p><b>x", "x"),
            ("<svg><script></script><svg></svg></svg>x", "x"),
            ("&#x41;&#66;&nope;&amp", "AB&nope;&amp"),
            ("<pre>a<br>b</pre>", "a\nb"),
        ] {
            assert_eq!(reduce(html, None), expected, "{html}");
        }
    }
}
