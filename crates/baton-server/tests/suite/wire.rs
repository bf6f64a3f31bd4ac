//! A client that sends whatever bytes a test wants.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::site::LONG;

pub struct Wire(pub TcpStream);

impl Wire {
    pub async fn connect(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.expect("a connection"))
    }

    /// A WebSocket on the thread.
    pub async fn websocket(address: SocketAddr, thread: &str, key: &str) -> Self {
        let mut socket = Self::connect(address).await;
        let head = format!(
            "GET /api/v1/threads/{thread}/ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {key}"
        );
        let upgrade = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13";
        let key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==";
        socket.send(format!("{head}\r\n{upgrade}\r\n{key}\r\n\r\n")).await;
        socket.until("101 ").await;
        socket
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.0.write_all(bytes.as_ref()).await.expect("sent");
    }

    /// The same when the peer may have hung up.
    pub async fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        let _ = self.0.write_all(bytes.as_ref()).await;
    }

    /// Everything until the server hangs up.
    pub async fn rest(&mut self) -> String {
        let mut all = Vec::new();
        let reading = self.0.read_to_end(&mut all);
        let _ = tokio::time::timeout(LONG, reading).await.expect("the server hangs up");
        String::from_utf8_lossy(&all).into_owned()
    }

    /// As much as it takes to have `text`.
    pub async fn until(&mut self, text: &str) -> String {
        let mut all = Vec::new();
        let reading = async {
            while !String::from_utf8_lossy(&all).contains(text) {
                if self.0.read_buf(&mut all).await.expect("more") == 0 {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(LONG, reading).await;
        let all = String::from_utf8_lossy(&all).into_owned();
        assert!(all.contains(text), "{all}");
        all
    }
}

/// A text frame as a client sends it. Masked, as it has to be, with nothing.
pub fn frame(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).expect("short");
    assert!(length < 126);
    [&[0x81, 0x80 | length, 0, 0, 0, 0], text.as_bytes()].concat()
}

/// One request on one connection, and everything that came back.
pub async fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut wire = Wire::connect(address).await;
    wire.try_send(request).await;
    wire.rest().await
}
