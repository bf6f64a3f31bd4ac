use std::future::poll_fn;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::*;

/// A connection to a server that reads one request and writes `pieces`, each after the client could read the one before: the runtime of
/// these tests has one thread. Then it keeps the connection open if `stays`.
async fn connected(pieces: Vec<Vec<u8>>, stays: bool) -> Http1Connection {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        socket.set_nodelay(true).unwrap();
        let mut head = Vec::new();
        while !head.windows(4).any(|four| four == b"\r\n\r\n") {
            assert_ne!(socket.read_buf(&mut head).await.unwrap(), 0);
        }
        for piece in pieces {
            tokio::task::yield_now().await;
            socket.write_all(&piece).await.unwrap();
        }
        if stays {
            std::future::pending::<()>().await;
        }
    });
    Http1Connection::new(TcpStream::connect(address).await.unwrap())
}

fn request() -> Request<Bytes> {
    Request::post("/v1?x=1").header("host", "model.test").body(Bytes::from_static(b"{}")).unwrap()
}

async fn body(connection: &mut Http1Connection) -> io::Result<String> {
    let mut body = Vec::new();
    while let Some(part) = poll_fn(|context| connection.poll_body(context)).await {
        body.extend_from_slice(&part?);
    }
    Ok(String::from_utf8(body).unwrap())
}

/// Status and body, and whether the connection can be used again.
async fn read(response: &str, split: usize, stays: bool) -> io::Result<(u16, String, bool)> {
    let (first, second) = response.as_bytes().split_at(split);
    let mut connection = connected(vec![first.to_vec(), second.to_vec()], stays).await;
    let head = connection.exchange(&request()).await.map_err(|failed| failed.error)?;
    let body = body(&mut connection).await?;
    Ok((head.status().as_u16(), body, connection.is_reusable()))
}

/// A body that ends with its connection.
const CLOSED: &str = "HTTP/1.1 200 OK\r\n\r\nuntil the end";

#[tokio::test]
async fn bodies_are_read_at_every_split() {
    let cases = [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 5, 5\r\n\r\nhello", "hello", true),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;a=b\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
            "hello",
            true,
        ),
        (
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\nA\r\nhello you!\r\n0\r\nx: y\r\n\r\n",
            "hello you!",
            true,
        ),
        ("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", "hi", true),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\nConnection: Close\r\n\r\nhi", "hi", false),
        ("HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi", "hi", false),
        (
            "HTTP/1.1 200 OK\r\ncontent-length: 9\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n",
            "hi",
            false,
        ),
        (CLOSED, "until the end", false),
    ];
    for (response, expected, is_reusable) in cases {
        for split in 0..=response.len() {
            let stays = response != CLOSED;
            let found = read(response, split, stays).await.unwrap();
            assert_eq!(found, (200, expected.to_owned(), is_reusable), "{response:?} split at {split}");
        }
    }
}

#[tokio::test]
async fn responses_without_a_body_end_at_once() {
    for status in [204, 304] {
        let response = format!("HTTP/1.1 {status} X\r\ncontent-length: 7\r\n\r\n");
        assert_eq!(read(&response, 9, true).await.unwrap(), (status, String::new(), true));
    }
}

#[tokio::test]
async fn broken_responses_are_errors() {
    let cases = [
        ("", ErrorKind::UnexpectedEof),
        ("HTTP/1.1 200 OK\r\n", ErrorKind::UnexpectedEof),
        ("no HTTP\r\n\r\n", ErrorKind::InvalidData),
        ("HTTP/1.1 101 Switching Protocols\r\n\r\n", ErrorKind::InvalidData),
        ("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi", ErrorKind::UnexpectedEof),
        ("HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nhi!", ErrorKind::InvalidData),
        ("HTTP/1.1 200 OK\r\ncontent-length: -2\r\n\r\nhi", ErrorKind::InvalidData),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi", ErrorKind::UnexpectedEof),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\nhi\r\n0\r\n\r\n", ErrorKind::InvalidData),
        (
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxy\r\nhi\r\n0\r\n\r\n",
            ErrorKind::InvalidData,
        ),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nhi\r\n\r\n\r\n", ErrorKind::InvalidData),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n;a\r\n\r\n", ErrorKind::InvalidData),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2;a\nhi\r\n0\r\n\r\n", ErrorKind::InvalidData),
        ("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n0\r\nx: y\n\n", ErrorKind::InvalidData),
    ];
    for (response, expected) in cases {
        let found = read(response, 0, false).await.unwrap_err();
        assert_eq!(found.kind(), expected, "{response:?}: {found}");
    }
}

#[tokio::test]
async fn endless_parts_are_refused() {
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let cases = [
        format!("HTTP/1.1 200 OK\r\nx: {}", "y".repeat(2 * MAX_HEAD_BYTES)),
        "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(MAX_INTERIM_RESPONSES + 1),
        format!("{chunked}2;{}", "x".repeat(MAX_CHUNK_LINE_BYTES)),
        format!("{chunked}0\r\n{}", "x: y\r\n".repeat(MAX_TRAILER_BYTES / 6 + 1)),
    ];
    for response in cases {
        let found = read(&response, 0, true).await.unwrap_err();
        assert_eq!(found.kind(), ErrorKind::InvalidData, "{found}");
    }
}

/// A response that arrives byte by byte is read as one that arrives at once.
#[tokio::test]
async fn a_response_may_arrive_byte_by_byte() {
    let response = "HTTP/1.1 100 Continue\n\nHTTP/1.1 200 OK\r\nx: y\r\ntransfer-encoding: chunked\r\n\r\n2;a\r\nhi\r\n0\r\nx: y\r\n\r\n";
    let pieces = response.bytes().map(|byte| vec![byte]).collect();
    let mut connection = connected(pieces, true).await;
    assert_eq!(connection.exchange(&request()).await.unwrap().status(), StatusCode::OK);
    assert_eq!(body(&mut connection).await.unwrap(), "hi");
    assert!(connection.is_reusable());
}

/// An interim response does not end a request that is not sent yet.
#[tokio::test]
async fn a_request_is_sent_to_its_end_after_an_interim_response() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let size: usize = 64 << 20;
    let server = tokio::spawn(async move {
        let (mut socket, _) = listener.accept().await.unwrap();
        let mut buffer = vec![0; 1 << 16];
        let mut received = socket.read(&mut buffer).await.unwrap();
        socket.write_all(b"HTTP/1.1 103 Early Hints\r\n\r\n").await.unwrap();
        while received < size {
            received += socket.read(&mut buffer).await.unwrap();
        }
        socket.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi").await.unwrap();
        socket
    });
    let mut connection = Http1Connection::new(TcpStream::connect(address).await.unwrap());
    let request = Request::post("/").body(Bytes::from(vec![b'x'; size])).unwrap();
    assert_eq!(connection.exchange(&request).await.unwrap().status(), StatusCode::OK);
    assert_eq!(body(&mut connection).await.unwrap(), "hi");
    let _socket = server.await.unwrap();
    assert!(connection.is_reusable());
}

/// The rest of a large request is not sent to a server that has refused it.
#[tokio::test]
async fn an_answer_before_the_whole_request_is_read() {
    let answer = b"HTTP/1.1 413 Too Large\r\ncontent-length: 3\r\n\r\nbig".to_vec();
    let mut connection = connected(vec![answer], true).await;
    let request = Request::post("/").body(Bytes::from(vec![b'x'; 64 << 20])).unwrap();
    let head = connection.exchange(&request).await.unwrap();
    assert_eq!(head.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(body(&mut connection).await.unwrap(), "big");
    assert!(!connection.is_reusable(), "the server expects the rest of the request");
}

#[tokio::test]
async fn a_request_for_a_closed_connection_is_unsent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut connection =
        Http1Connection::new(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
    drop(listener.accept().await.unwrap());
    connection.socket.readable().await.unwrap();
    assert!(connection.exchange(&request()).await.unwrap_err().is_unsent);
}

/// Such as a `408 Request Timeout` on a connection that was idle for too long.
#[tokio::test]
async fn bytes_before_the_request_are_no_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut connection =
        Http1Connection::new(TcpStream::connect(listener.local_addr().unwrap()).await.unwrap());
    let (mut server, _) = listener.accept().await.unwrap();
    server.write_all(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n").await.unwrap();
    connection.socket.readable().await.unwrap();
    assert!(connection.exchange(&request()).await.unwrap_err().is_unsent);
}

/// The bytes after the body would be read as the answer to the next request.
#[tokio::test]
async fn a_connection_with_more_than_its_response_is_not_used_again() {
    let answer = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi HTTP/1.1 200 OK".to_vec();
    let mut connection = connected(vec![answer], true).await;
    connection.exchange(&request()).await.unwrap();
    assert_eq!(body(&mut connection).await.unwrap(), "hi");
    assert!(!connection.is_reusable());
}

#[tokio::test]
async fn no_buffer_is_kept_while_the_server_is_silent() {
    let mut connection =
        connected(vec![b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhi".to_vec()], true).await;
    connection.exchange(&request()).await.unwrap();
    let part = poll_fn(|context| connection.poll_body(context)).await.unwrap().unwrap();
    assert_eq!(part, "hi");
    let silent = poll_fn(|context| Poll::Ready(connection.poll_body(context).is_pending())).await;
    assert!(silent && connection.buffer.capacity() == 0);
}

#[test]
fn requests_have_their_headers_and_length() {
    let written = |request: &Request<Bytes>| String::from_utf8(head(request).to_vec()).unwrap();
    assert_eq!(written(&request()), "POST /v1?x=1 HTTP/1.1\r\nhost: model.test\r\ncontent-length: 2\r\n\r\n");
    let get = Request::get("/v1").header("host", "a").body(Bytes::new()).unwrap();
    assert_eq!(written(&get), "GET /v1 HTTP/1.1\r\nhost: a\r\n\r\n");
}
