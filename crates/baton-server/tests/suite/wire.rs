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

/// One request on one connection, and everything that came back.
pub async fn exchange(address: SocketAddr, request: impl AsRef<[u8]>) -> String {
    let mut wire = Wire::connect(address).await;
    wire.try_send(request).await;
    wire.rest().await
}
