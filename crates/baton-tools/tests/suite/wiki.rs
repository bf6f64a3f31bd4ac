//! K3: `wiki` against a server that answers as the API of MediaWiki does.

use std::path::Path;

use baton_tools::wiki::{Wiki, WikiSettings};
use serde_json::json;
use url::Url;

use crate::loopback::{Loopback, Request};
use crate::{call, refusal};

/// `api.php` of a small wiki. Its page "Plain" has no extract, as on a wiki without that extension.
fn media_wiki(request: &Request) -> (u16, String) {
    let parameter = |name: &str| request.parameter(name).unwrap_or_default();
    assert_eq!((parameter("format").as_str(), parameter("formatversion").as_str()), ("json", "2"));
    let answer = match (
        parameter("action").as_str(),
        parameter("list").as_str(),
        parameter("titles").as_str(),
    ) {
        ("query", "search", _) if parameter("srsearch") == "nothing" => {
            json!({"batchcomplete": true, "query": {"searchinfo": {"totalhits": 0}, "search": []}})
        }
        ("query", "search", _) => json!({
            "batchcomplete": true, "continue": {"sroffset": 1, "continue": "-||"},
            "query": {"searchinfo": {"totalhits": 2}, "search": [
                {"ns": 0, "title": "Baton (conducting)", "pageid": 1, "size": 900, "wordcount": 120,
                 "snippet": "A <span class=\"searchmatch\">baton</span> is a stick &amp; a sign", "timestamp": "2025-01-01T00:00:00Z"},
            ]}
        }),
        ("query", _, "Baton") => json!({
            "batchcomplete": true,
            "query": {
                "redirects": [{"from": "Baton", "to": "Baton (conducting)"}],
                "pages": [{"pageid": 1, "ns": 0, "title": "Baton (conducting)",
                    "extract": "A baton is a stick.\n\n\n== History ==\nSince 1820.", "contentmodel": "wikitext",
                    "fullurl": "https://wiki.example/wiki/Baton_(conducting)"}]
            }
        }),
        ("query", _, "Plain") => json!({"query": {"pages": [{"pageid": 2, "ns": 0, "title": "Plain"}]},
            "warnings": [{"code": "unrecognizedvalues", "text": "extracts", "module": "query"}]}),
        ("parse", ..) => {
            json!({"parse": {"title": "Plain", "pageid": 2, "text": "<p>Rendered <b>text</b>.</p>"}})
        }
        ("query", _, "Locked") => {
            json!({"errors": [{"code": "readapidenied", "text": "You need read permission to use this module.", "module": "main"}]})
        }
        _ => json!({"batchcomplete": true, "query": {"pages": [{"ns": 0, "title": "X", "missing": true}]}}),
    };
    (200, answer.to_string())
}

async fn wiki() -> (Wiki, Loopback) {
    let server = Loopback::start(media_wiki).await;
    let api = Url::parse(&format!("{}/w/api.php", server.base)).unwrap();
    (Wiki::new(WikiSettings { api }), server)
}

#[tokio::test]
async fn k_3_search_and_article() {
    let (wiki, server) = wiki().await;
    let ask = async |arguments| call(&wiki, arguments, Path::new("/")).await.unwrap();
    assert_eq!(
        ask(json!({"query": "baton", "limit": 1})).await,
        "[1] Baton (conducting)\nA baton is a stick & a sign"
    );
    assert_eq!(server.requests()[0].parameter("srlimit").as_deref(), Some("1"));
    assert_eq!(
        ask(json!({"title": "Baton"})).await,
        "Baton (conducting)\nSource: https://wiki.example/wiki/Baton_(conducting)\n\nA baton is a stick.\n\n\n== History ==\nSince 1820."
    );
    assert_eq!(ask(json!({"title": "Plain"})).await, "Plain\n\nRendered text.");
    assert!(ask(json!({"query": "nothing"})).await.starts_with("Nothing found"));
    assert!(ask(json!({"title": "Absent|Baton"})).await.starts_with("There is no article \"Absent\""));
}

#[tokio::test]
async fn errors_of_the_wiki_are_answers() {
    let (wiki, _server) = wiki().await;
    let error = call(&wiki, json!({"title": "Locked"}), Path::new("/")).await.unwrap_err();
    assert!(error.to_string().contains("You need read permission"), "{error}");
    for wrong in [json!({}), json!({"query": "a", "title": "b"})] {
        assert_eq!(refusal(&wiki, wrong, Path::new("/")).await, "invalid_arguments");
    }
}
