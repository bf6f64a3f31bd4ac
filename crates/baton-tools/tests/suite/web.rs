//! Pages from a server on this machine, and addresses that are never reached.

use std::path::Path;
use std::sync::Arc;

use baton_core::Tool as _;
use baton_tools::web::Reach;
use baton_tools::web_fetch::WebFetch;
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::{call, context, refusal};

/// A server that answers each path with fixed bytes, until the test ends. Gives its port.
async fn serve(answers: Vec<(&'static str, Vec<u8>)>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let answers = Arc::new(answers);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answers = answers.clone();
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let length = stream.read(&mut request).await.unwrap_or(0);
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                let path = request.split(' ').nth(1).unwrap_or_default();
                let found = answers.iter().find(|(known, _)| *known == path);
                let missing = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n".to_vec();
                let answer = found.map_or(missing, |(_, answer)| answer.clone());
                let _ = stream.write_all(&answer).await;
            });
        }
    });
    port
}

fn answer(head: &str, body: &str) -> Vec<u8> {
    format!("HTTP/1.1 200 OK\r\n{head}connection: close\r\n\r\n{body}").into_bytes()
}

fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")
        .into_bytes()
}

fn open() -> WebFetch {
    WebFetch::new(Reach { allow_private: true, ..Reach::default() })
}

async fn fetch(tool: &WebFetch, url: &str) -> Result<String, baton_core::ToolError> {
    call(tool, json!({"url": url}), Path::new("/")).await
}

#[tokio::test]
async fn pages_become_text_with_their_address() {
    let html = "<html><title>T</title><h1>Hello</h1><p>See <a href='more'>more</a>.</p></untrusted></html>";
    let port = serve(vec![
        ("/", redirect("/a/")),
        ("/a/", answer("content-type: text/html\r\n", html)),
        ("/json", answer("content-type: application/json\r\n", "{\"a\": 1}")),
        ("/empty", answer("content-type: text/plain\r\n", "")),
    ])
    .await;
    let text = fetch(&open(), &format!("http://127.0.0.1:{port}/")).await.unwrap();
    let (source, body) = text.split_once("\n\n").unwrap();
    assert_eq!(source, format!("Source: http://127.0.0.1:{port}/a/"));
    assert_eq!(body, format!("T\n\n# Hello\n\nSee [more](http://127.0.0.1:{port}/a/more)."));
    let text = fetch(&open(), &format!("http://127.0.0.1:{port}/json")).await.unwrap();
    assert!(text.ends_with("\n{\"a\": 1}"), "{text}");
    assert!(fetch(&open(), &format!("http://127.0.0.1:{port}/empty")).await.unwrap().contains("(no text)"));
}

#[tokio::test]
async fn large_and_strange_answers_are_bounded() {
    let port = serve(vec![
        ("/large", answer("content-type: text/plain\r\n", &"x".repeat(3 << 20))),
        ("/image", answer("content-type: image/png\r\n", &"x".repeat((8 << 20) + 1))),
        ("/loop", redirect("/loop")),
        ("/nowhere", b"HTTP/1.1 302 Found\r\ncontent-length: 0\r\n\r\n".to_vec()),
        ("/file", redirect("file:///etc/passwd")),
        ("/garbage", b"this is not HTTP\r\n\r\n".to_vec()),
    ])
    .await;
    let url = |path: &str| json!({"url": format!("http://localhost:{port}{path}")});
    let text = call(&open(), url("/large"), Path::new("/")).await.unwrap();
    assert!(text.ends_with("\n… (cut after 2097152 bytes)") && text.len() < (2 << 20) + 500);
    for (path, code) in [
        ("/image", "limit"),
        ("/loop", "limit"),
        ("/nowhere", "execution"),
        ("/file", "not_permitted"),
        ("/garbage", "transport"),
        ("/missing", "execution"),
    ] {
        assert_eq!(refusal(&open(), url(path), Path::new("/")).await, code, "{path}");
    }
}

#[tokio::test]
async fn private_addresses_are_refused_in_every_spelling() {
    let port = serve(vec![("/", answer("content-type: text/plain\r\n", "secret"))]).await;
    let tool = WebFetch::new(Reach::default());
    for host in [
        "127.0.0.1",
        "localhost",
        "LOCALHOST",
        "2130706433",
        "0x7f000001",
        "0177.0.0.1",
        "127.1",
        "0",
        "0.0.0.0",
        "[::1]",
        "[::]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[64:ff9b::7f00:1]",
        "10.0.0.1",
        "192.168.0.1",
        "172.16.0.1",
        "100.64.0.1",
        "169.254.169.254",
        "[fd00:ec2::254]",
        "[fe80::1]",
        "224.0.0.1",
        "１２７.0.0.1",
    ] {
        let error = fetch(&tool, &format!("http://{host}:{port}/")).await.unwrap_err();
        assert_eq!(error.code(), "not_permitted", "{host}: {error}");
    }
    for (url, code) in [
        ("ftp://example.com/", "not_permitted"),
        ("file:///etc/passwd", "not_permitted"),
        ("data:,x", "not_permitted"),
        ("http://user:pass@example.com/", "not_permitted"),
        ("example.com", "invalid_arguments"),
        ("http://", "invalid_arguments"),
    ] {
        assert_eq!(refusal(&tool, json!({"url": url}), Path::new("/")).await, code, "{url}");
    }
}

#[tokio::test]
async fn a_redirect_cannot_lead_inside() {
    let inside = serve(vec![("/", answer("content-type: text/plain\r\n", "secret"))]).await;
    let target: &'static str = Box::leak(format!("http://127.0.0.1:{inside}/").into_boxed_str());
    let port =
        serve(vec![("/", redirect(target)), ("/ok", answer("content-type: text/plain\r\n", "fine"))]).await;
    // One host of this machine is allowed by name, and only as that name.
    let tool = WebFetch::new(Reach { allow_private: false, allowed_hosts: vec!["localhost".to_owned()] });
    assert!(fetch(&tool, &format!("http://localhost:{port}/ok")).await.unwrap().contains("fine"));
    let error = fetch(&tool, &format!("http://localhost:{port}/")).await.unwrap_err();
    assert_eq!(error.to_string(), "not permitted: `127.0.0.1` is not on the public internet");
    assert_eq!(
        fetch(&tool, &format!("http://127.0.0.1:{port}/ok")).await.unwrap_err().code(),
        "not_permitted"
    );
}

/// D8: an image or another file is returned as a file, with what its server claims about it.
#[tokio::test]
async fn d8_files_are_fetched_as_files() {
    let port = serve(vec![
        ("/a/chart.png?x=1", answer("content-type: image/png\r\n", "x")),
        ("/", answer("", "a\0b")),
    ])
    .await;
    for (path, name, media_type, bytes) in [
        ("/a/chart.png?x=1", Some("chart.png"), Some("image/png"), b"x".as_slice()),
        ("/", None, None, b"a\0b"),
    ] {
        let url = format!("http://127.0.0.1:{port}{path}");
        let output = open().call(json!({"url": url}), Arc::new(context(Path::new("/")))).await.unwrap();
        assert_eq!(output.text, format!("Source: {url}"));
        let [file] = &output.files[..] else { panic!("one file was expected: {output:?}") };
        let found = (file.name.as_deref(), file.media_type.as_deref(), &*file.bytes);
        assert_eq!(found, (name, media_type, bytes));
    }
}
