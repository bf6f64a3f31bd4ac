//! A server that plays scripts, byte by byte if need be.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// One answer.
#[derive(Debug, Clone)]
pub struct Play {
    /// Status line and headers, without the one that frames the body.
    pub head: String,
    /// Written one after the other.
    pub pieces: Vec<Vec<u8>>,
    pub end: End,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// A whole body; the connection stays open for the next request.
    Whole,
    /// A whole body, after which the server closes the connection without having said so.
    Leave,
    /// The end of the connection is the end of the body.
    Close,
    /// The connection ends before the body does.
    Cut,
    /// Nothing more comes. Waits until the client leaves.
    Hang,
    /// Not even a head.
    Nothing,
}

impl Play {
    pub fn stream(body: impl Into<Vec<u8>>) -> Self {
        Self::status("200 OK", "content-type: text/event-stream\r\n", body)
    }

    pub fn status(status: &str, headers: &str, body: impl Into<Vec<u8>>) -> Self {
        let head = format!("HTTP/1.1 {status}\r\n{headers}");
        Self { head, pieces: vec![body.into()], end: End::Whole }
    }

    pub fn in_pieces(mut self, pieces: impl Iterator<Item = Vec<u8>>) -> Self {
        self.pieces = pieces.collect();
        self
    }

    pub fn ending(mut self, end: End) -> Self {
        self.end = end;
        self
    }
}

#[derive(Debug, Clone)]
pub struct Seen {
    /// Request line and headers, as they came.
    pub head: String,
    pub body: Vec<u8>,
}

#[derive(Debug)]
pub struct Server {
    pub url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
    connections: Arc<AtomicUsize>,
    departures: mpsc::UnboundedReceiver<()>,
    task: JoinHandle<()>,
}

impl Server {
    /// Plays one answer a request, in this order.
    pub async fn start(plays: impl IntoIterator<Item = Play>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (departed, departures) = mpsc::unbounded_channel();
        let stage = Stage {
            plays: Arc::new(Mutex::new(plays.into_iter().collect())),
            seen: Arc::default(),
            departed,
        };
        let (seen, connections) = (Arc::clone(&stage.seen), Arc::new(AtomicUsize::new(0)));
        let counter = Arc::clone(&connections);
        let task = tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                counter.fetch_add(1, Ordering::Relaxed);
                tokio::spawn(stage.clone().perform(socket));
            }
        });
        Self { url, seen, connections, departures, task }
    }

    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    pub fn connections(&self) -> usize {
        self.connections.load(Ordering::Relaxed)
    }

    /// Waits until a client has left a play that hangs, or the server a connection after [`End::Leave`].
    pub async fn departure(&mut self) {
        let wait = tokio::time::timeout(Duration::from_secs(5), self.departures.recv());
        wait.await.expect("the connection is still open").unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[derive(Clone)]
struct Stage {
    plays: Arc<Mutex<VecDeque<Play>>>,
    seen: Arc<Mutex<Vec<Seen>>>,
    departed: mpsc::UnboundedSender<()>,
}

impl Stage {
    async fn perform(self, mut socket: TcpStream) {
        socket.set_nodelay(true).unwrap();
        while let Some(request) = read_request(&mut socket).await {
            self.seen.lock().unwrap().push(request);
            let play = self.plays.lock().unwrap().pop_front().expect("a play for this request");
            if play.end == End::Nothing {
                return;
            }
            let is_written = write(&mut socket, &play).await.is_ok();
            match play.end {
                End::Whole if is_written => {}
                End::Leave => {
                    drop(socket);
                    let _ = self.departed.send(());
                    return;
                }
                End::Hang => {
                    // A client that leaves early makes the write fail.
                    if is_written {
                        let _ = socket.read(&mut [0; 1]).await;
                    }
                    let _ = self.departed.send(());
                    return;
                }
                End::Whole | End::Close | End::Cut | End::Nothing => return,
            }
        }
    }
}

async fn write(socket: &mut TcpStream, play: &Play) -> std::io::Result<()> {
    for packet in packets(play) {
        socket.write_all(&packet).await?;
        socket.flush().await?;
        tokio::task::yield_now().await;
    }
    Ok(())
}

/// The head, then a packet for each piece. The end comes with the last of them, as it mostly does.
fn packets(play: &Play) -> Vec<Vec<u8>> {
    let framing = if play.end == End::Close { "connection: close" } else { "transfer-encoding: chunked" };
    let mut packets = vec![format!("{}{framing}\r\n\r\n", play.head).into_bytes()];
    let chunk = |piece: &Vec<u8>| match play.end {
        End::Close => piece.clone(),
        _ => [format!("{:x}\r\n", piece.len()).as_bytes(), piece, b"\r\n"].concat(),
    };
    packets.extend(play.pieces.iter().filter(|piece| !piece.is_empty()).map(chunk));
    if let (End::Whole | End::Leave, Some(last)) = (play.end, packets.last_mut()) {
        last.extend_from_slice(b"0\r\n\r\n");
    }
    packets
}

async fn read_request(socket: &mut TcpStream) -> Option<Seen> {
    let mut bytes = Vec::new();
    let head_end = loop {
        if let Some(at) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break at;
        }
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..head_end].to_vec()).unwrap();
    let lower = head.to_lowercase();
    let length = lower.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
    let end = head_end + 4 + length.parse::<usize>().unwrap();
    while bytes.len() < end {
        if socket.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    Some(Seen { head, body: bytes[head_end + 4..end].to_vec() })
}
