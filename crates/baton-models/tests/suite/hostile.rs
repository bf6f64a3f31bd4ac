//! Providers gone wild.

use baton_core::{Chunk, ModelErrorKind};

use crate::server::{End, Play, Server};
use crate::{ask, fail, provider};

const PROVIDERS: [&str; 4] = ["openai", "anthropic", "gemini", "ollama"];

#[tokio::test]
async fn garbage() {
    let bodies: [&[u8]; 6] = [
        b"\xff\xfe\x00\x01\n\n",
        b"data: \xc3\x28\n\n",
        b"data: not json\n\n",
        b"data: {\"choices\": 7, \"candidates\": 7, \"type\": 7, \"done\": 7}\n\n",
        b"{\"choices\": 7, \"candidates\": 7, \"type\": 7, \"done\": 7}\n",
        b"data: [[[[\n\n",
    ];
    for name in PROVIDERS {
        for body in bodies {
            let server = Server::start([Play::status("200 OK", "", body).ending(End::Close)]).await;
            let error = fail(&*provider(name, &server)).await;
            assert_eq!(error.kind, ModelErrorKind::Malformed, "{name} {}", String::from_utf8_lossy(body));
        }
    }
}

#[tokio::test]
async fn a_frame_without_an_end() {
    for name in PROVIDERS {
        let mebibyte = vec![b'x'; 1024 * 1024];
        let play =
            Play::status("200 OK", "", "").in_pieces((0..10).map(|_| mebibyte.clone())).ending(End::Hang);
        let mut server = Server::start([play]).await;
        let error = fail(&*provider(name, &server)).await;
        assert_eq!(error.message, "a frame is larger than 8 MiB", "{name}");
        server.departure().await;
    }
}

#[tokio::test]
async fn a_call_with_a_huge_number() {
    let body = r#"data: {"choices":[{"delta":{"tool_calls":[{"index":3000000,"id":"c","function":{"name":"now","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}

data: [DONE]

"#;
    let server = Server::start([Play::stream(body)]).await;
    let items = ask(&*provider("openai", &server)).await;
    assert!(matches!(&items[0], Ok(Chunk::Call { index: 0, name, .. }) if name == "now"), "{items:?}");
    assert_eq!(items.len(), 3);
}

#[tokio::test]
async fn too_many_calls() {
    let call = |index: u64| {
        format!(
            "data: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":{index},\"id\":\"c{index}\",\"function\":{{\"name\":\"now\"}}}}]}}}}]}}\n\n"
        )
    };
    let server = Server::start([Play::stream((0..200).map(call).collect::<String>())]).await;
    let items = ask(&*provider("openai", &server)).await;
    assert_eq!(items.len(), 129);
    let error = items.last().unwrap().as_ref().unwrap_err();
    assert_eq!(error.message, "more than 128 tool calls in one reply");
}

#[tokio::test]
async fn a_megabyte_of_arguments() {
    let piece = "x".repeat(50);
    let mut body = String::from(
        r#"data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"now","arguments":""}}]}}]}"#,
    );
    let delta = format!(
        "\n\ndata: {{\"choices\":[{{\"delta\":{{\"tool_calls\":[{{\"index\":0,\"function\":{{\"arguments\":\"{piece}\"}}}}]}}}}]}}"
    );
    body.push_str(&delta.repeat(20_000));
    body.push_str(
        "\n\ndata: {\"choices\":[{\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n",
    );
    let server = Server::start([Play::stream(body)]).await;
    let items = ask(&*provider("openai", &server)).await;
    let length: usize = items
        .iter()
        .map(|item| match item {
            Ok(Chunk::Arguments { delta, .. }) => delta.len(),
            _ => 0,
        })
        .sum();
    assert_eq!(length, 1_000_000);
    assert!(items.len() <= 20_002, "{}", items.len());
}
