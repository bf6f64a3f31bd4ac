//! K3: `semantic_search` by words, by vectors of a server on loopback, and by words again when that server fails.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use baton_core::Store;
use baton_tools::documents::DocumentReader;
use baton_tools::search::corpus::Corpora;
use baton_tools::search_docs::DocFolders;
use baton_tools::semantic_search::{EmbeddingSettings, SemanticSearch};
use serde_json::{Value, json};
use tempfile::TempDir;
use url::Url;

use crate::loopback::Loopback;
use crate::{call, memory};

/// What the vectors know: each list is one direction.
const SUBJECTS: [&[&str]; 3] =
    [&["vacation", "leave", "holiday"], &["invoice", "bill", "payment"], &["crash", "error", "fault"]];

fn vector(text: &str, dimensions: usize) -> Vec<f32> {
    let text = text.to_lowercase();
    let mut vector = vec![0.01; dimensions];
    for (number, words) in vector.iter_mut().zip(SUBJECTS) {
        *number += if words.iter().any(|word| text.contains(word)) { 1.0 } else { 0.0 };
    }
    vector
}

/// A server as OpenAI's, whose vectors have as many numbers as `dimensions` says; with 0 it fails.
async fn server(dimensions: Arc<AtomicUsize>) -> Loopback {
    Loopback::start(move |request| {
        let dimensions = dimensions.load(Ordering::Relaxed);
        if dimensions == 0 {
            return (503, json!({"error": {"message": "overloaded"}}).to_string());
        }
        let asked: Value = serde_json::from_str(&request.body).unwrap();
        let texts = asked["input"].as_array().unwrap();
        // Not in order, which the API permits.
        let data: Vec<Value> = texts
            .iter()
            .enumerate()
            .rev()
            .map(|(index, text)| {
                let embedding = vector(text.as_str().unwrap(), dimensions);
                json!({"object": "embedding", "index": index, "embedding": embedding})
            })
            .collect();
        let usage = json!({"prompt_tokens": 5, "total_tokens": 5});
        (200, json!({"object": "list", "data": data, "model": asked["model"], "usage": usage}).to_string())
    })
    .await
}

/// The texts that were embedded since the last `skip` requests.
fn embedded(server: &Loopback, skip: usize) -> Vec<String> {
    let requests = server.requests();
    let bodies =
        requests.iter().skip(skip).map(|request| serde_json::from_str::<Value>(&request.body).unwrap());
    let texts = bodies.flat_map(|body| body["input"].as_array().unwrap().clone());
    texts.map(|text| text.as_str().unwrap().to_owned()).collect()
}

fn documents() -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("docs")).unwrap();
    for (name, text) in [
        ("leave.md", "# Leave\n\nEmployees have 28 days off.\n"),
        ("billing.md", "# Invoices\n\nThey are due after 14 days.\n"),
        ("faults.md", "# Errors\n\nRestart the service.\n"),
    ] {
        fs::write(dir.path().join("docs").join(name), text).unwrap();
    }
    dir
}

fn tool(dir: &Path, store: &Arc<dyn Store>, server: Option<&Loopback>, model: &str) -> SemanticSearch {
    let docs = DocFolders { shared: vec![dir.join("docs")], ..DocFolders::default() };
    let corpora = Corpora::new(docs, &[], &DocumentReader::default());
    let settings = server.map(|server| EmbeddingSettings {
        base_url: Url::parse(&format!("{}/v1", server.base)).unwrap(),
        model: model.to_owned(),
        key: Some("sk-embed".into()),
    });
    SemanticSearch::new(corpora, settings.as_ref(), store)
}

async fn ask(tool: &SemanticSearch, query: &str, dir: &Path) -> String {
    call(tool, json!({"query": query}), dir).await.unwrap()
}

const QUESTION: &str = "How long is my vacation?";

#[tokio::test]
async fn k_3_without_an_endpoint_words_decide() {
    let (dir, store) = (documents(), memory().await);
    let tool = tool(dir.path(), &store, None, "");
    assert!(ask(&tool, "days off", dir.path()).await.starts_with("[1] docs/leave.md › Leave (line 1)"));
    assert!(ask(&tool, QUESTION, dir.path()).await.starts_with("Nothing found"));
}

#[tokio::test]
async fn k_3_other_words_for_the_same_thing_are_found() {
    let (dir, store) = (documents(), memory().await);
    let server = server(Arc::new(AtomicUsize::new(3))).await;
    let tool = tool(dir.path(), &store, Some(&server), "m");
    let text = ask(&tool, QUESTION, dir.path()).await;
    assert!(text.starts_with("[1] docs/leave.md › Leave (line 1)\nEmployees have 28 days off."), "{text}");
    let request = &server.requests()[0];
    assert!(request.head.starts_with("POST /v1/embeddings "), "{}", request.head);
    assert_eq!(request.header("authorization"), Some("Bearer sk-embed"));
    // A section that both ranks have comes before one that only one has.
    let text = ask(&tool, "When is payment due? After how many days?", dir.path()).await;
    assert!(text.starts_with("[1] docs/billing.md › Invoices"), "{text}");
}

#[tokio::test]
async fn k_3_only_changed_sections_are_embedded() {
    let (dir, store) = (documents(), memory().await);
    let dimensions = Arc::new(AtomicUsize::new(3));
    let server = server(Arc::clone(&dimensions)).await;
    let first = tool(dir.path(), &store, Some(&server), "m");
    ask(&first, QUESTION, dir.path()).await;
    assert_eq!(embedded(&server, 0).len(), 1 + 3);
    ask(&first, QUESTION, dir.path()).await;
    assert_eq!(embedded(&server, 2), [QUESTION]);
    // Another process with the same store, after one document was changed and one deleted.
    fs::write(dir.path().join("docs/faults.md"), "# Errors\n\nRestart the service and read its log.\n")
        .unwrap();
    fs::remove_file(dir.path().join("docs/billing.md")).unwrap();
    let second = tool(dir.path(), &store, Some(&server), "m");
    ask(&second, QUESTION, dir.path()).await;
    assert_eq!(embedded(&server, 3), [QUESTION, "Errors\nRestart the service and read its log."]);
    // Vectors of another length are not comparable.
    dimensions.store(5, Ordering::Relaxed);
    let text = ask(&second, QUESTION, dir.path()).await;
    assert!(text.starts_with("[1] docs/leave.md"), "{text}");
    assert_eq!(embedded(&server, 5).len(), 1 + 2);
    // Nor are those of another model.
    let third = tool(dir.path(), &store, Some(&server), "other");
    ask(&third, QUESTION, dir.path()).await;
    assert_eq!(embedded(&server, 7).len(), 1 + 2);
}

#[tokio::test]
async fn k_3_a_failing_endpoint_leaves_the_words() {
    let (dir, store) = (documents(), memory().await);
    let dimensions = Arc::new(AtomicUsize::new(0));
    let server = server(Arc::clone(&dimensions)).await;
    let tool = tool(dir.path(), &store, Some(&server), "m");
    let text = ask(&tool, "days off", dir.path()).await;
    assert!(text.starts_with("[1] docs/leave.md › Leave"), "{text}");
    let note =
        "(ranked by words only, because embeddings are not available: the server for embeddings answered 503";
    assert!(text.contains(note), "{text}");
    dimensions.store(3, Ordering::Relaxed);
    let text = ask(&tool, QUESTION, dir.path()).await;
    assert!(text.starts_with("[1] docs/leave.md") && !text.contains("words only"), "{text}");
}
