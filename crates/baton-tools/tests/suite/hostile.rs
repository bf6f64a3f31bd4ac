//! No text makes a tool panic, and whatever is written is valid.

use std::fs;

use baton_core::stem::stem;
use baton_tools::search::Index;
use baton_tools::search::index::IndexedDocument;
use baton_tools::search::passage::passage;
use baton_tools::search::section::split;
use baton_tools::search::words::words;
use baton_tools::skills::draft::{SkillDraft, Wishes};
use baton_tools::skills::head;
use baton_tools::skills::wording::OneOrMany;
use baton_tools::web::html::reduce;
use baton_tools::{SkillStrictness, validate};
use proptest::prelude::*;

/// Pieces that the parsers look for, so that random texts get past the first line.
#[rustfmt::skip]
const PIECES: &[&str] = &[
    "---\n", "---", "--", "- ", "# A\n", "## B ##\n", "===\n", "```\n", "~~~", "<a href=", "<a href='x'>", "</a>", "<p>",
    "<pre>", "</pre>", "<script>", "</script>", "<svg/>", "<svg>", "<!--", "-->", "<ul><li>", "</ul>", "<h2>", "&amp;",
    "&#x", "&#128", ";", "<", ">", "/", "=", "\"", "'", "\\", ": ", "name: ", "description: x\n", "metadata:\n  a: b\n",
    "[", "]", "{", "}", "|\n", "&x ", "*x", "!!", "? ", "%", "@", "`", "~", "null", "true", "1.0", "\n", "\r\n", "\t", " ",
    "\u{0}", "\u{7f}", "\u{85}", "\u{2028}", "\u{feff}", "\u{202e}", "\u{fffe}", "\u{10ffff}", "ä", "İ", "ß", "日本", "🎷",
    "👩\u{200d}🚀", "e\u{301}", "a; b", "1. ", "…",
];

fn fragment() -> impl Strategy<Value = String> {
    prop_oneof![4 => prop::sample::select(PIECES).prop_map(str::to_owned), 1 => any::<String>()]
}

fn text() -> impl Strategy<Value = String> {
    prop::collection::vec(fragment(), 0..30).prop_map(|pieces| pieces.concat())
}

fn texts() -> impl Strategy<Value = OneOrMany> {
    prop_oneof![
        text().prop_map(OneOrMany::One),
        prop::collection::vec(text(), 0..5).prop_map(OneOrMany::Many)
    ]
}

proptest! {
    // `PROPTEST_CASES` asks for more, for a long soak by hand.
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_document_and_question(document in text(), query in text()) {
        for section in split(&document) {
            prop_assert!(document.get(section.range.clone()).is_some_and(|text| !text.trim().is_empty()));
            prop_assert!(section.line >= 1 && section.line <= document.lines().count().max(1));
            let _ = passage(&document[section.range], &query);
        }
        for (at, word) in words(&document) {
            prop_assert!(document[at..].starts_with(word) && !stem(&word.to_lowercase()).is_empty());
        }
        let mut index = Index::default();
        index.documents.insert("a".into(), IndexedDocument::new("a".to_owned(), &document).into());
        for hit in index.search(&query, 5) {
            prop_assert!(hit.score.is_finite() && hit.score > 0.0);
        }
        let _ = index.nearest(&query, 5);
    }

    #[test]
    fn any_page(html in text()) {
        let base = url::Url::parse("https://example.com/a").ok();
        let reduced = reduce(&html, base.as_ref());
        prop_assert!(reduced.len() <= html.len() * 40 + 40, "a link grows by its base, nothing else grows");
        let _ = reduce(&html, None);
    }

    #[test]
    fn any_head(file in text()) {
        let _ = head::read(&file);
        let _ = head::read(&format!("---\n{file}\n---\n{file}"));
    }

    #[test]
    fn written_skills_are_valid(name in text(), purpose in text(), steps in texts(), more in (
        prop::option::of(text()), prop::option::of(text()), prop::option::of(texts()), prop::option::of(texts()), prop::option::of(text()),
    )) {
        let (description, format, triggers, non_triggers, example) = more;
        let wishes = Wishes { name, purpose, steps, description, format, triggers, non_triggers, example };
        match SkillDraft::new(&wishes) {
            Err(error) => prop_assert!(matches!(error.code(), "invalid_arguments" | "limit"), "{}", error),
            Ok(draft) => {
                let file = draft.file();
                let dir = tempfile::tempdir().unwrap();
                let folder = dir.path().join(draft.name.as_str());
                fs::create_dir(&folder).unwrap();
                fs::write(folder.join("SKILL.md"), &file).unwrap();
                prop_assert_eq!(validate(&folder, SkillStrictness::Strict), [], "{}", file);
                // Careless readers split at the first three hyphens they see.
                let head = file.split("---").nth(1).unwrap();
                prop_assert!(head.ends_with('\n') && head.contains("\ndescription: "), "{}", file);
                let (read, _) = head::read(&file).unwrap();
                let description = draft.description();
                prop_assert_eq!(read.text("description"), Some(description.as_str()));
            }
        }
    }
}

#[test]
fn large_pages_take_linear_time() {
    // Each of these would take hours if the reducer looked back.
    for piece in [
        "<",
        "<a href=x>",
        "<a href=x>y",
        "</a>",
        "<svg>",
        "<!--",
        "<p ",
        "<a \"",
        "&",
        "<pre>\n",
        "<li>",
        "<script>",
        "[",
        "<h1>",
    ] {
        let _ = reduce(&piece.repeat(300_000 / piece.len()), None);
    }
    let nested = format!("{}x{}", "<a href=x>".repeat(30_000), "</a>".repeat(30_000));
    let _ = reduce(&nested, None);
}
