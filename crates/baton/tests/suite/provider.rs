//! A provider on loopback that plays what a test wrote down, in the wire form of chat completions.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;

use serde_json::{Value, json};

/// What is answered to one request.
pub enum Reply {
    /// A streamed text, a piece per chunk.
    Text(&'static [&'static str]),
    Call {
        tool: &'static str,
        arguments: &'static str,
    },
    Status {
        status: u16,
        body: &'static str,
    },
    /// The body of a recorded reply, byte for byte.
    Recorded(String),
    /// The beginning of a text, and then nothing until the client goes away.
    Hang(&'static str),
    /// This text again and again until the client goes away.
    Flood(&'static str),
}

/// A server that answers each request with the next reply. Its thread ends with the last one.
pub struct Provider {
    pub base_url: String,
    /// The body of each request, and after a [`Reply::Hang`] or a [`Reply::Flood`] one `null` when the client has closed the connection.
    pub heard: Receiver<Value>,
    thread: JoinHandle<()>,
}

impl Provider {
    pub fn start(replies: Vec<Reply>) -> Self {
        Self::start_at(TcpListener::bind("127.0.0.1:0").unwrap(), replies)
    }

    pub fn start_at(listener: TcpListener, replies: Vec<Reply>) -> Self {
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let (tell, heard) = channel();
        let thread = std::thread::spawn(move || {
            for reply in replies {
                let (mut stream, body) = next_call(&listener);
                let _ = tell.send(body);
                play(&mut stream, &reply);
                if let Reply::Flood(text) = reply {
                    while stream.write_all(text_frame(text).as_bytes()).is_ok() {}
                    let _ = tell.send(Value::Null);
                }
                if matches!(reply, Reply::Hang(_)) {
                    let _ = stream.read_to_end(&mut Vec::new());
                    let _ = tell.send(Value::Null);
                }
            }
        });
        Self { base_url, heard, thread }
    }

    pub fn finish(self) -> Vec<Value> {
        self.thread.join().unwrap();
        self.heard.try_iter().collect()
    }
}

/// The next call of the model. Questions about the model are not answered.
pub fn next_call(listener: &TcpListener) -> (TcpStream, Value) {
    loop {
        let (mut stream, _) = listener.accept().unwrap();
        match request(&stream) {
            Some(body) => return (stream, body),
            None => {
                let head = "HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                stream.write_all(head.as_bytes()).unwrap();
            }
        }
    }
}

/// The body of a request. `None` for a `GET`.
fn request(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    (!first.starts_with("GET")).then(|| serde_json::from_slice(&body).unwrap())
}

pub fn frame(delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    let chunk = json!({"id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice]});
    format!("data: {chunk}\n\n")
}

fn text_frame(text: &str) -> String {
    frame(&json!({"content": text}), &Value::Null)
}

pub fn play(stream: &mut TcpStream, reply: &Reply) {
    let head = |status: u16, kind: &str| {
        format!("HTTP/1.1 {status} X\r\nContent-Type: {kind}\r\nConnection: close\r\n\r\n")
    };
    let usage = json!({"id": "1", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}});
    let end = format!("data: {usage}\n\ndata: [DONE]\n\n");
    let bytes = match reply {
        Reply::Text(pieces) => {
            let text: String = pieces.iter().map(|piece| text_frame(piece)).collect();
            head(200, "text/event-stream") + &text + &frame(&json!({}), &json!("stop")) + &end
        }
        Reply::Call { tool, arguments } => {
            let function = json!({"name": tool, "arguments": arguments});
            let call = json!({"tool_calls": [{"index": 0, "id": "call_x", "type": "function", "function": function}]});
            head(200, "text/event-stream")
                + &frame(&call, &Value::Null)
                + &frame(&json!({}), &json!("tool_calls"))
                + &end
        }
        Reply::Status { status, body } => head(*status, "application/json") + body,
        Reply::Recorded(body) => head(200, "text/event-stream") + body,
        Reply::Hang(text) | Reply::Flood(text) => head(200, "text/event-stream") + &text_frame(text),
    };
    stream.write_all(bytes.as_bytes()).unwrap();
    stream.flush().unwrap();
}
