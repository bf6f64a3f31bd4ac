//! Connections are opened late, used again and closed at once.

use std::time::Duration;

use baton_core::Chunk;
use futures_util::StreamExt;

use crate::server::{End, Play, Server};
use crate::talk::Talk;
use crate::{ask, provider};

const HELLO: &str = "data: {\"choices\":[{\"delta\":{\"content\":\"Hello\"}}]}\n\n";

#[tokio::test]
async fn dropping_the_stream_closes_the_connection() {
    let mut server = Server::start([Play::stream(HELLO).ending(End::Hang)]).await;
    let model = provider("openai", &server);
    let mut stream = Talk::hello().stream(&*model);
    assert_eq!(stream.next().await, Some(Ok(Chunk::Text("Hello".into()))));
    drop(stream);
    server.departure().await;
}

#[tokio::test]
async fn nothing_is_sent_before_the_stream_is_polled() {
    let server = Server::start([Play::stream(HELLO)]).await;
    let model = provider("openai", &server);
    drop(Talk::hello().stream(&*model));
    ask(&*model).await;
    assert_eq!((server.seen().len(), server.connections()), (1, 1), "the second call only");
}

#[tokio::test]
async fn a_connection_is_used_again() {
    let done = format!(
        "{HELLO}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let server = Server::start((0..5).map(|_| Play::stream(done.as_str()))).await;
    let model = provider("openai", &server);
    for _ in 0..5 {
        let items = ask(&*model).await;
        assert!(matches!(items.last(), Some(Ok(Chunk::Done(_)))), "{items:?}");
    }
    assert!(server.connections() < 5, "{} connections for 5 calls", server.connections());
}

#[tokio::test]
async fn a_connection_that_the_server_closed_is_not_used_again() {
    let done = format!(
        "{HELLO}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let plays = [Play::stream(done.as_str()).ending(End::Leave), Play::stream(done.as_str())];
    let mut server = Server::start(plays).await;
    let model = provider("openai", &server);
    for calls in 1..=2 {
        let items = ask(&*model).await;
        assert!(matches!(items.last(), Some(Ok(Chunk::Done(_)))), "{items:?}");
        assert_eq!(server.connections(), calls);
        if calls == 1 {
            server.departure().await;
            // Until the runtime has polled for I/O, the end of the connection is not known.
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

/// A server may keep the body open after it has said everything.
#[tokio::test]
async fn the_end_is_not_waited_for() {
    let done = format!(
        "{HELLO}data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"stop\"}}]}}\n\ndata: [DONE]\n\n"
    );
    let mut server = Server::start([Play::stream(done).ending(End::Hang)]).await;
    let items = ask(&*provider("openai", &server)).await;
    assert_eq!(items.len(), 2);
    server.departure().await;
}
