//! Chat completions on loopback, byte by byte.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

/// Answers each request with what `answer` makes of it, a piece every few milliseconds. Returns where. Its threads end with the
/// test's process: nobody else can reach them.
pub(crate) fn serve(answer: impl Fn(&Value) -> Option<Answer> + Clone + Send + 'static) -> String {
    listen(move |request, stream| converse(stream, answer(request)?))
}

/// Gives each request to `converse` with the connection to answer it on, in a thread of its own. Returns where.
pub(crate) fn listen(
    converse: impl Fn(&Value, &mut TcpStream) -> Option<()> + Clone + Send + 'static,
) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            let converse = converse.clone();
            // A client that is killed in the middle is not an error.
            std::thread::spawn(move || converse(&read_request(&stream)?, &mut stream));
        }
    });
    base_url
}

/// What a provider says, piece by piece.
pub(crate) struct Answer {
    pub(crate) frames: Vec<String>,
    pub(crate) finish: &'static str,
}

/// In place of a finish: nothing more comes until the client goes away.
pub(crate) const HANG: &str = "hang";

fn converse(stream: &mut TcpStream, Answer { frames, finish }: Answer) -> Option<()> {
    stream.write_all(HEAD.as_bytes()).ok()?;
    for frame in frames {
        std::thread::sleep(Duration::from_millis(12));
        stream.write_all(frame.as_bytes()).ok()?;
    }
    if finish == HANG {
        return stream.read_to_end(&mut Vec::new()).ok().map(drop);
    }
    stream.write_all(end(finish).as_bytes()).ok()
}

/// What an answer begins with.
pub(crate) const HEAD: &str =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";

/// What an answer ends with.
pub(crate) fn end(finish: &str) -> String {
    let usage = json!({"id": "1", "choices": [], "usage": {"prompt_tokens": 12, "completion_tokens": 3}});
    frame(&json!({}), &json!(finish)) + &format!("data: {usage}\n\ndata: [DONE]\n\n")
}

fn read_request(stream: &TcpStream) -> Option<Value> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().ok()?;
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}

fn frame(delta: &Value, finish: &Value) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!("data: {}\n\n", json!({"id": "1", "choices": [choice]}))
}

/// A piece of text.
pub(crate) fn text(content: &str) -> String {
    frame(&json!({"content": content}), &Value::Null)
}

/// Calls of tools with JSON arguments.
pub(crate) fn calls(calls: &[(&str, String, Value)]) -> String {
    let calls = calls.iter().enumerate().map(|(index, (tool, id, arguments))| {
        let function = json!({"name": tool, "arguments": arguments.to_string()});
        json!({"index": index, "id": id, "type": "function", "function": function})
    });
    frame(&json!({"tool_calls": calls.collect::<Vec<_>>()}), &Value::Null)
}
