//! A server on this machine that records requests and answers them as a function says.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// One request: the line and headers as sent, and the body.
#[derive(Debug, Clone)]
pub struct Request {
    pub head: String,
    pub body: String,
}

impl Request {
    /// Path and query.
    pub fn target(&self) -> &str {
        self.head.split(' ').nth(1).unwrap_or_default()
    }

    /// The value of a parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<String> {
        let query = self.target().split_once('?')?.1;
        let pairs = url::form_urlencoded::parse(query.as_bytes());
        pairs.into_owned().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    pub fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().skip(1);
        let mut headers = lines.filter_map(|line| line.split_once(": "));
        headers.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }
}

pub struct Loopback {
    pub base: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Loopback {
    /// `answer` gives the status and the body, which is JSON.
    pub async fn start(answer: impl Fn(&Request) -> (u16, String) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let requests: Arc<Mutex<Vec<Request>>> = Arc::default();
        let (log, answer) = (Arc::clone(&requests), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (log, answer) = (Arc::clone(&log), Arc::clone(&answer));
                tokio::spawn(async move { serve(stream, &log, &*answer).await });
            }
        });
        Self { base, requests }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

async fn serve(
    mut stream: TcpStream,
    log: &Mutex<Vec<Request>>,
    answer: &(dyn Fn(&Request) -> (u16, String) + Send + Sync),
) {
    let mut bytes = Vec::new();
    let mut chunk = vec![0; 64 * 1024];
    let request = loop {
        let count = stream.read(&mut chunk).await.unwrap_or(0);
        if count == 0 {
            return;
        }
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let request = Request { head: head.to_owned(), body: body.to_owned() };
        let length = request.header("content-length").map_or(0, |length| length.parse().unwrap());
        if request.body.len() >= length {
            break request;
        }
    };
    let (status, body) = answer(&request);
    log.lock().unwrap().push(request);
    let head = format!(
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let _ = stream.write_all((head + &body).as_bytes()).await;
}
