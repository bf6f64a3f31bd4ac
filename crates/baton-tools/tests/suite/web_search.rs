//! K3: `web_search` against servers that answer as SearXNG, Brave and Tavily do.

use std::path::Path;

use baton_tools::web_search::{
    KeyHeader, ResultPointers, SearchEndpoint, SearchMethod, WebSearch, WebSearchSettings,
};
use secrecy::SecretString;
use serde_json::{Value, json};
use url::Url;

use crate::loopback::Loopback;
use crate::{call, refusal};

fn tool(endpoint: SearchEndpoint, key: Option<&str>) -> WebSearch {
    WebSearch::new(WebSearchSettings { endpoint, key: key.map(SecretString::from) })
}

async fn search(tool: &WebSearch, arguments: Value) -> String {
    call(tool, arguments, Path::new("/")).await.unwrap()
}

fn base(server: &Loopback) -> Url {
    Url::parse(&server.base).unwrap()
}

#[tokio::test]
async fn k_3_searxng_answers() {
    let server = Loopback::start(|_| {
        let answer = json!({
            "query": "rust async", "number_of_results": 0,
            "results": [
                {"url": "https://tokio.rs/", "title": "Tokio", "content": "A runtime\nfor  Rust.", "engine": "duckduckgo",
                 "engines": ["duckduckgo"], "positions": [1], "score": 1.0, "category": "general",
                 "publishedDate": "2025-03-01T00:00:00"},
                {"url": "magnet:?xt=1", "title": "Torrent", "content": "not a page", "publishedDate": null},
                {"url": "https://async.rs/", "title": "", "content": "", "publishedDate": null},
            ],
            "answers": [], "corrections": [], "infoboxes": [], "suggestions": [], "unresponsive_engines": []
        });
        (200, answer.to_string())
    })
    .await;
    let tool = tool(SearchEndpoint::searxng(&base(&server)), None);
    let text = search(&tool, json!({"query": " rust async "})).await;
    let expected = "[1] Tokio (2025-03-01T00:00:00)\nhttps://tokio.rs/\nA runtime for Rust.\n\n[2] (no title)\nhttps://async.rs/";
    assert_eq!(text, expected);
    let request = &server.requests()[0];
    assert!(request.target().starts_with("/search?"), "{}", request.target());
    assert_eq!(request.parameter("q").as_deref(), Some("rust async"));
    assert_eq!(request.parameter("format").as_deref(), Some("json"));
}

#[tokio::test]
async fn k_3_brave_answers() {
    let server = Loopback::start(|request| {
        if request.header("x-subscription-token") != Some("BSA-secret") {
            return (401, json!({"type": "ErrorResponse"}).to_string());
        }
        if request.parameter("q").as_deref() == Some("nothing") {
            return (200, json!({"type": "search", "query": {"original": "nothing"}}).to_string());
        }
        let answer = json!({
            "type": "search", "query": {"original": "rag", "more_results_available": true},
            "mixed": {"type": "mixed", "main": []},
            "web": {"type": "search", "family_friendly": true, "results": [
                {"title": "RAG &amp; search", "url": "https://example.com/rag", "is_source_local": false,
                 "description": "<strong>Retrieval</strong> isn&#x27;t magic.", "page_age": "2024-11-02T08:00:00",
                 "age": "November 2, 2024", "profile": {"name": "Example"}, "language": "en"},
            ]}
        });
        (200, answer.to_string())
    })
    .await;
    let endpoint = SearchEndpoint::brave(&base(&server));
    let brave = tool(endpoint.clone(), Some("BSA-secret"));
    let text = search(&brave, json!({"query": "rag", "limit": 3})).await;
    let expected = "[1] RAG & search (2024-11-02T08:00:00)\nhttps://example.com/rag\nRetrieval isn't magic.";
    assert_eq!(text, expected);
    let request = &server.requests()[0];
    assert!(request.target().starts_with("/web/search?q=rag&count=3"), "{}", request.target());
    assert_eq!(
        search(&brave, json!({"query": "nothing"})).await,
        "Nothing found for \"nothing\". Try fewer or other words."
    );
    // The key is in a header only, and in no error.
    let error =
        call(&tool(endpoint, Some("BSA-wrong")), json!({"query": "rag"}), Path::new("/")).await.unwrap_err();
    assert!(error.to_string().contains("check its key") && !error.to_string().contains("BSA"), "{error}");
    assert!(server.requests().iter().all(|request| !request.target().contains("BSA")));
}

#[tokio::test]
async fn k_3_tavily_answers() {
    let server = Loopback::start(|request| {
        let asked: Value = serde_json::from_str(&request.body).unwrap();
        let answer = json!({
            "query": asked["query"], "follow_up_questions": null, "answer": null, "images": [],
            "results": [
                {"url": "https://example.com/agents", "title": "Agents", "content": "Patterns of orchestration.",
                 "score": 0.97, "raw_content": null},
                {"url": "https://example.com/2", "title": "Second", "content": "x", "score": 0.5, "raw_content": null},
            ],
            "response_time": 1.09, "request_id": "123e4567-e89b-12d3-a456-426614174111"
        });
        (200, answer.to_string())
    })
    .await;
    let tool = tool(SearchEndpoint::tavily(&base(&server)), Some("tvly-key"));
    let text = search(&tool, json!({"query": "orchestration", "limit": 1})).await;
    assert_eq!(text, "[1] Agents\nhttps://example.com/agents\nPatterns of orchestration.");
    let request = &server.requests()[0];
    assert!(request.head.starts_with("POST /search "), "{}", request.head);
    assert_eq!(request.header("authorization"), Some("Bearer tvly-key"));
    let body: Value = serde_json::from_str(&request.body).unwrap();
    assert_eq!(body, json!({"query": "orchestration", "max_results": 1}));
}

#[tokio::test]
async fn any_json_by_pointers() {
    let server = Loopback::start(|_| {
        (
            200,
            json!({"data": [{"head": "T", "link": {"href": "http://x.example/"}, "text": "S"}]}).to_string(),
        )
    })
    .await;
    let endpoint = SearchEndpoint {
        url: Url::parse(&format!("{}/api?lang=en", server.base)).unwrap(),
        method: SearchMethod::Get,
        query_parameter: "term".to_owned(),
        limit_parameter: None,
        fixed: Vec::new(),
        key: Some(KeyHeader { name: "X-Key".to_owned(), prefix: String::new() }),
        pointers: ResultPointers {
            results: "/data".to_owned(),
            title: "/head".to_owned(),
            url: "/link/href".to_owned(),
            snippet: "/text".to_owned(),
            date: None,
        },
        is_html: false,
        json_hint: None,
    };
    let text = search(&tool(endpoint, Some("k")), json!({"query": "a&b"})).await;
    assert_eq!(text, "[1] T\nhttp://x.example/\nS");
    let request = &server.requests()[0];
    assert_eq!(request.target(), "/api?lang=en&term=a%26b");
    assert_eq!(request.header("x-key"), Some("k"));
}

#[tokio::test]
async fn faults_of_the_engine_are_answers() {
    let server = Loopback::start(|request| match request.parameter("q").unwrap().as_str() {
        "busy" => (429, String::new()),
        "closed" => (403, "Forbidden".to_owned()),
        "broken" => (500, "oops".to_owned()),
        "moved" => (302, String::new()),
        "html" => (200, "<html>".to_owned()),
        "other" => (200, json!({"results": {"a": 1}}).to_string()),
        _ => (200, json!({"results": "x".repeat(5 << 20)}).to_string()),
    })
    .await;
    let tool = tool(SearchEndpoint::searxng(&base(&server)), None);
    for (query, code) in [
        ("busy", "limit"),
        ("closed", "execution"),
        ("broken", "execution"),
        ("moved", "execution"),
        ("html", "execution"),
        ("other", "execution"),
        ("large", "limit"),
    ] {
        assert_eq!(refusal(&tool, json!({"query": query}), Path::new("/")).await, code, "{query}");
    }
    let error = call(&tool, json!({"query": "closed"}), Path::new("/")).await.unwrap_err();
    assert!(error.to_string().contains("add `json` to `search.formats`"), "{error}");
    let gone = self::tool(SearchEndpoint::searxng(&Url::parse("http://127.0.0.1:1").unwrap()), None);
    assert_eq!(refusal(&gone, json!({"query": "x"}), Path::new("/")).await, "transport");
    assert_eq!(refusal(&gone, json!({"query": "  "}), Path::new("/")).await, "invalid_arguments");
}
