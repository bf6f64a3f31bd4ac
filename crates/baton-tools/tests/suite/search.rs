//! The right section comes first.

use std::fs;
use std::path::Path;

use baton_tools::documents::DocumentReader;
use baton_tools::search::corpus::Corpora;
use baton_tools::search_docs::{DocFolders, SearchDocs};
use serde_json::json;

use crate::call;

fn over(dir: impl AsRef<Path>) -> SearchDocs {
    let docs = DocFolders { shared: vec![dir.as_ref().to_owned()], ..DocFolders::default() };
    SearchDocs::new(Corpora::new(docs, &[], &DocumentReader::default()))
}

fn fixtures() -> SearchDocs {
    over(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/docs"))
}

async fn search(tool: &SearchDocs, query: &str) -> String {
    call(tool, json!({"query": query}), Path::new("/")).await.unwrap()
}

#[tokio::test]
async fn questions_find_their_section() {
    let tool = fixtures();
    for (question, expected) in [
        ("How do I configure rate limiting?", "[1] docs/configuration.md › Configuration › Limits (line 9)"),
        (
            "which key do requests need for authentication",
            "[1] docs/configuration.md › Configuration › Authentication (line 21)",
        ),
        (
            "use Postgres with several servers",
            "[1] docs/configuration.md › Configuration › Storage (line 25)",
        ),
        ("environment or file, what wins?", "[1] docs/configuration.md › Configuration › What wins (line 5)"),
        ("retry failed calls", "[1] docs/agents.md › Agents › Retries (line 13)"),
        ("delegating in parallel", "[1] docs/agents.md › Agents › Delegation (line 9)"),
        ("restore a backup", "[1] docs/guides/deployment.md › Deploying to Kubernetes › Backups (line 8)"),
        ("kubernetes deployments", "[1] docs/guides/deployment.md › Deploying to Kubernetes (line 4)"),
        ("cancelling a run", "[1] docs/faq.txt (line 1)"),
    ] {
        let text = search(&tool, question).await;
        assert_eq!(text.lines().next(), Some(expected), "{question}\n{text}");
    }
}

#[tokio::test]
async fn hits_have_passages() {
    let text =
        call(&fixtures(), json!({"query": "How do I configure rate limiting?", "limit": 2}), Path::new("/"))
            .await;
    insta::assert_snapshot!(text.unwrap(), @r#"
    [1] docs/configuration.md › Configuration › Limits (line 9)
    Rate limiting protects the server. Set how many requests a tenant may make in a minute; requests above the limit are
    answered with status 429 and a `Retry-After` header.

    ```toml
    [limits]
    # Not a heading: the default.
    requests_per_minute = 600
    max_concurrent_runs = 1000
    ```

    [2] docs/agents.md › Agents (line 1)
    An agent is a Markdown file. Its limits say how many turns it may take.
    "#);
}

#[tokio::test]
async fn nothing_found_suggests_words() {
    let text = search(&fixtures(), "kubernettes").await;
    assert_eq!(text, "Nothing found for \"kubernettes\" in 4 documents. Similar words: kubernetes.");
    assert_eq!(
        search(&fixtures(), "zzz").await,
        "Nothing found for \"zzz\" in 4 documents. Try other words."
    );
    let empty = over("/nonexistent");
    assert_eq!(search(&empty, "x").await, "Nothing found for \"x\": there are no documents to search.");
}

#[tokio::test]
async fn changes_are_seen() {
    let dir = tempfile::tempdir().unwrap();
    let tool = over(dir.path());
    let file = dir.path().join("a.md");
    assert!(search(&tool, "saxophone").await.starts_with("Nothing found"));
    fs::write(&file, "# Music\nA saxophone.\n").unwrap();
    assert!(search(&tool, "saxophones").await.contains("a.md › Music (line 1)\nA saxophone."));
    fs::write(&file, "# Music\nA trumpet, quite another thing.\n").unwrap();
    assert!(search(&tool, "saxophone").await.starts_with("Nothing found"));
    assert!(search(&tool, "trumpet").await.contains("[1]"));
    fs::remove_file(&file).unwrap();
    assert!(search(&tool, "trumpet").await.starts_with("Nothing found"));
}

#[tokio::test]
async fn only_documents_inside_are_read() {
    let outer = tempfile::tempdir().unwrap();
    let docs = outer.path().join("docs");
    fs::create_dir_all(docs.join(".hidden")).unwrap();
    fs::create_dir(outer.path().join("other")).unwrap();
    for path in ["secret.md", "other/x.md", "docs/.hidden/x.md", "docs/.x.md", "docs/x.rs"] {
        fs::write(outer.path().join(path), "needle").unwrap();
    }
    fs::write(docs.join("large.md"), "needle ".repeat(200_000)).unwrap();
    fs::write(docs.join("bytes.md"), b"\xff\xfe haystack").unwrap();
    std::os::unix::fs::symlink("../secret.md", docs.join("link.md")).unwrap();
    std::os::unix::fs::symlink("../other", docs.join("folder")).unwrap();
    std::os::unix::fs::symlink(".", docs.join("circle")).unwrap();
    let tool = over(docs);
    let text = search(&tool, "needle").await;
    assert!(text.starts_with("Nothing found for \"needle\" in 1 document."), "{text}");
    assert!(text.ends_with("1 files are too large, or too many, to be searched."), "{text}");
    assert!(search(&tool, "haystack").await.starts_with("[1] docs/bytes.md (line 1)"));
}
