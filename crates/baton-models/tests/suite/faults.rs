//! Refusals and broken answers.

use std::time::Duration;

use baton_core::ModelErrorKind as Kind;
use baton_models::{Endpoint, ModelHttpClient, WireFormat, connect};

use crate::server::{End, Play, Server};
use crate::{KEY, ask, endpoint, fail, provider};

const PROVIDERS: [&str; 4] = ["openai", "anthropic", "gemini", "ollama"];

#[tokio::test]
async fn statuses() {
    let cases = [
        ("401 Unauthorized", Kind::Auth),
        ("403 Forbidden", Kind::Auth),
        ("404 Not Found", Kind::InvalidRequest),
        ("413 Payload Too Large", Kind::ContextTooLong),
        ("429 Too Many Requests", Kind::RateLimit),
        ("500 Internal Server Error", Kind::Overloaded),
        ("502 Bad Gateway", Kind::Overloaded),
        ("529 Overloaded", Kind::Overloaded),
    ];
    for name in PROVIDERS {
        for (status, kind) in cases {
            let headers = "content-type: application/json\r\nx-request-id: req_7\r\nretry-after: 20\r\n";
            let body = r#"{"error":{"message":"the words of the provider"}}"#;
            let server = Server::start([Play::status(status, headers, body)]).await;
            let error = fail(&*provider(name, &server)).await;
            assert_eq!(error.kind, kind, "{name} {status}");
            assert_eq!(error.provider, name);
            assert_eq!(error.message, "the words of the provider");
            assert_eq!(error.status, status[..3].parse().ok());
            assert_eq!(error.request_id.as_deref(), Some("req_7"));
            assert_eq!(error.retry_after, Some(Duration::from_secs(20)));
        }
    }
}

#[tokio::test]
async fn retry_after_in_every_form() {
    for (header, milliseconds) in [
        ("retry-after-ms: 1500", 1_500),
        ("retry-after: 2.5", 2_500),
        ("date: Sun, 06 Nov 1994 08:49:37 GMT\r\nretry-after: Sun, 06 Nov 1994 08:49:47 GMT", 10_000),
    ] {
        let server = Server::start([Play::status("429 Slow Down", &format!("{header}\r\n"), "")]).await;
        let error = fail(&*provider("openai", &server)).await;
        assert_eq!(error.retry_after, Some(Duration::from_millis(milliseconds)), "{header}");
        assert_eq!(error.message, "HTTP status 429 without an explanation");
    }
}

#[tokio::test]
async fn a_good_status_with_an_error() {
    let json = "content-type: application/json; charset=utf-8\r\n";
    let error = r#"{"error":{"message":"no capacity","type":"overloaded_error"}}"#;
    for name in PROVIDERS {
        let plays = [
            Play::status("200 OK", json, error),
            // Under the type of a stream, or under none at all.
            Play::status("200 OK", "content-type: text/event-stream\r\n", error),
            Play::status("200 OK", "", error),
        ];
        let server = Server::start(plays).await;
        let model = provider(name, &server);
        for _ in 0..3 {
            let error = fail(&*model).await;
            assert!(matches!(error.kind, Kind::Overloaded), "{name}: {error}");
            assert!(error.message.contains("no capacity"), "{error}");
        }
    }
}

#[tokio::test]
async fn a_good_status_with_something_else() {
    for name in PROVIDERS {
        let html = Play::status("200 OK", "content-type: text/html\r\n", "<h1>Sign in to the network</h1>");
        let server = Server::start([html]).await;
        let error = fail(&*provider(name, &server)).await;
        assert_eq!(error.kind, Kind::Malformed, "{name}");
        assert!(error.message.contains("`text/html`: <h1>Sign in"), "{error}");
    }
}

#[tokio::test]
async fn cut() {
    let begun = "data: {\"choices\":[{\"delta\":{\"content\":\"So\"}}]}\n\n";
    for (play, kind) in [
        (Play::stream(begun).ending(End::Close), Kind::Malformed),
        (Play::stream(begun).ending(End::Whole), Kind::Malformed),
        (Play::stream(begun).ending(End::Cut), Kind::Transport),
        (Play::stream("").ending(End::Close), Kind::Malformed),
        (Play::stream("").ending(End::Cut), Kind::Transport),
        (Play::stream("").ending(End::Nothing), Kind::Transport),
    ] {
        let said = !play.pieces[0].is_empty();
        let server = Server::start([play.clone()]).await;
        let items = ask(&*provider("openai", &server)).await;
        let (last, before) = items.split_last().unwrap();
        let error = last.as_ref().unwrap_err();
        assert_eq!(error.kind, kind, "{play:?}: {error}");
        assert!(error.kind.is_transient());
        assert_eq!(before.len(), usize::from(said), "what was said comes first, and nothing after the error");
    }
}

#[tokio::test]
async fn cut_before_any_byte_everywhere() {
    for name in PROVIDERS {
        let server = Server::start([Play::status("200 OK", "", "").ending(End::Close)]).await;
        let error = fail(&*provider(name, &server)).await;
        assert_eq!(
            (error.kind, error.message.as_str()),
            (Kind::Malformed, "the answer was cut before its end")
        );
    }
}

#[tokio::test]
async fn nobody_there() {
    let url = Server::start([]).await.url.clone();
    let refused = endpoint("openai", Some(&url.replace("127.0.0.1", "user:pass@127.0.0.1")));
    let model = connect(WireFormat::OpenAi, refused, ModelHttpClient::default());
    // The server is gone once its task is; the port is free then.
    let error = loop {
        let error = fail(&*model).await;
        if error.message.contains("refused") {
            break error;
        }
        tokio::task::yield_now().await;
    };
    assert_eq!(error.kind, Kind::Unreachable);
    assert!(error.kind.is_transient());
    assert!(!error.message.contains("pass"), "{error}");
}

#[tokio::test]
async fn the_key_is_told_to_nobody() {
    let quote = format!(r#"{{"error":{{"message":"Incorrect API key provided: {KEY}."}}}}"#);
    for name in PROVIDERS {
        let server = Server::start([Play::status("401 Unauthorized", "", quote.as_str())]).await;
        let model = provider(name, &server);
        let error = fail(&*model).await;
        assert_eq!(error.message, "Incorrect API key provided: [key].");
        for text in
            [format!("{error} {error:?}"), format!("{model:?}"), format!("{:?}", endpoint(name, None))]
        {
            assert!(!text.contains(KEY), "{text}");
        }
        assert!(server.seen()[0].head.contains(KEY), "but the provider needs it");
    }
}

/// A local server may want any key, such as `x`, which occurs in ordinary words.
#[tokio::test]
async fn a_short_key_does_not_garble_errors() {
    let refusal = r#"{"error":{"message":"expected an index, text exceeds the maximum"}}"#;
    let server = Server::start([Play::status("400 Bad Request", "", refusal)]).await;
    let short = Endpoint { key: Some("x".into()), ..endpoint("local", Some(&server.url)) };
    let error = fail(&*connect(WireFormat::OpenAi, short, ModelHttpClient::default())).await;
    assert_eq!(error.message, "expected an index, text exceeds the maximum");
}

#[tokio::test]
async fn a_missing_key_names_its_variable() {
    let bare = |provider: &str, base_url: Option<&str>| {
        let endpoint = Endpoint { key: None, ..endpoint(provider, base_url) };
        connect(WireFormat::of(provider), endpoint, ModelHttpClient::default())
    };
    for (name, variable) in [
        ("openai", "OPENAI_API_KEY"),
        ("anthropic", "ANTHROPIC_API_KEY"),
        ("gemini", "GEMINI_API_KEY"),
        ("openrouter", "OPENROUTER_API_KEY"),
    ] {
        let error = fail(&*bare(name, None)).await;
        assert_eq!(error.kind, Kind::Auth);
        assert!(error.message.contains(variable), "{error}");
    }
    let server = Server::start([Play::stream("data: [DONE]\n\n")]).await;
    assert_eq!(fail(&*bare("openai", Some(&server.url))).await.kind, Kind::Malformed, "the call was made");
    assert!(!server.seen()[0].head.contains("authorization"));

    let error = fail(&*bare("nowhere", None)).await;
    assert_eq!(error.message, "`nowhere` has no known address; set its `base_url`");
    let error = fail(&*bare("odd", Some("not a url"))).await;
    assert_eq!(error.kind, Kind::InvalidRequest);
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let elsewhere = Server::start([]).await;
    let location = format!("location: {}/v1\r\n", elsewhere.url);
    let server = Server::start([Play::status("307 Temporary Redirect", &location, "")]).await;
    let error = fail(&*provider("anthropic", &server)).await;
    assert_eq!((error.kind, error.status), (Kind::InvalidRequest, Some(307)));
    assert_eq!(elsewhere.connections(), 0);
}

#[tokio::test]
async fn a_long_error_is_not_read_to_its_end() {
    let play = Play::status("500 Oh", "content-type: text/plain\r\n", vec![b'x'; 200_000]).ending(End::Hang);
    let mut server = Server::start([play]).await;
    let error = fail(&*provider("openai", &server)).await;
    assert_eq!(error.message.chars().count(), 501);
    server.departure().await;
}
