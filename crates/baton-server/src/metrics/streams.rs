//! Those who listen.

use prometheus_client::metrics::gauge::Gauge;

/// The transport of a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StreamKind {
    Sse,
    WebSocket,
}

impl StreamKind {
    pub fn word(self) -> &'static str {
        match self {
            Self::Sse => "sse",
            Self::WebSocket => "websocket",
        }
    }
}

/// One listener. Belongs to whatever ends with the connection.
#[derive(Debug)]
#[must_use = "it counts as long as it is held"]
pub struct Stream(Gauge);

impl Stream {
    pub(super) fn open(open: Gauge) -> Self {
        open.inc();
        Self(open)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.0.dec();
    }
}
