//! A connection's socket. Owns the connection's permit, so that the permit is released when the socket is dropped, including
//! after a WebSocket upgrade.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::admission::ConnectionPermit;

/// Time without acknowledgement after which the peer is considered gone.
const UNACKNOWLEDGED: Duration = Duration::from_mins(1);
/// The first bytes of an HTTP/2 connection.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// How long further input is discarded after the last byte was sent.
const LINGER: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Socket {
    stream: TcpStream,
    ending: Option<Pin<Box<Sleep>>>,
    /// `None` in the reserve.
    _permit: Option<ConnectionPermit>,
    _known: TaskTrackerToken,
}

impl Socket {
    pub fn new(stream: TcpStream, permit: Option<ConnectionPermit>, known: TaskTrackerToken) -> Self {
        prepare(&stream);
        Self { stream, ending: None, _permit: permit, _known: known }
    }

    /// Waits for the first bytes and reports whether the preface of HTTP/2 begins with them. They stay unread. Cancel safe.
    pub async fn may_be_http2(&self) -> bool {
        let mut first = [0; PREFACE.len()];
        let count = self.stream.peek(&mut first).await.unwrap_or(0);
        count > 0 && first[..count] == PREFACE[..count]
    }
}

/// Sets socket options. Errors are ignored, because none is worth refusing a connection for.
fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = rustix::net::sockopt::set_socket_keepalive(stream, true);
    #[cfg(target_os = "linux")]
    if let Ok(patience) = u32::try_from(UNACKNOWLEDGED.as_millis()) {
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, patience);
    }
}

impl AsyncRead for Socket {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl AsyncWrite for Socket {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, io::Error>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<Result<usize, io::Error>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Shuts down the sending side, and then discards input for a while. Closing a socket whose peer still sends, as after a
    /// refused upload, would reset it, and the peer would lose the response.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<(), io::Error>> {
        let this = &mut *self;
        if this.ending.is_none() {
            ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        }
        let patience = this.ending.get_or_insert_with(|| Box::pin(sleep(LINGER)));
        if patience.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        let mut scrap = [0; 4096];
        // Bounded, so that a peer that never stops sending does not block this task.
        for _ in 0..16 {
            let mut buffer = ReadBuf::new(&mut scrap);
            match ready!(Pin::new(&mut this.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                _ => return Poll::Ready(Ok(())),
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
