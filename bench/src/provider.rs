//! A provider without a model: speaks chat completions on loopback and answers at once. Runs as a child process, so that its
//! processor time is not counted.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

/// Tokens of one answer.
pub const TOKENS: usize = 200;
/// Tokens of a short answer.
pub const FEW_TOKENS: usize = 20;
/// Tokens of an answer that does not fit into the buffers between a server and whoever does not read.
pub const MANY_TOKENS: usize = 2000;
/// The time until the first token of a model whose name begins with `later:`, and of `slow`.
pub const DELAY: Duration = Duration::from_millis(300);
/// Connections that may wait to be accepted: thousands come at once, and one that is turned away comes back after a second.
const BACKLOG: i32 = 4096;

static SHORT: LazyLock<Vec<u8>> = LazyLock::new(|| answer(&["Done.".to_owned()], None));
static FEW: LazyLock<Vec<u8>> = LazyLock::new(|| answer(&words(FEW_TOKENS), None));
static LONG: LazyLock<Vec<u8>> = LazyLock::new(|| answer(&words(TOKENS), None));
static VERY_LONG: LazyLock<Vec<u8>> = LazyLock::new(|| answer(&words(MANY_TOKENS), None));

/// What an answer of so many tokens says.
pub fn words(tokens: usize) -> Vec<String> {
    (0..tokens).map(|at| format!("word{at} ")).collect()
}

/// The child, and where it listens. Ends with this value.
#[derive(Debug)]
pub struct ProviderProcess {
    child: Child,
    pub base_url: String,
}

impl ProviderProcess {
    pub fn start() -> Self {
        let program = std::env::current_exe().expect("this program");
        let mut child = Command::new(program)
            .arg("--provider")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a child process");
        let mut port = String::new();
        BufReader::new(child.stdout.as_mut().expect("stdout")).read_line(&mut port).expect("a port");
        Self { child, base_url: format!("http://127.0.0.1:{}/v1", port.trim()) }
    }
}

impl Drop for ProviderProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the child does until its parent goes away.
pub fn serve() {
    let listener = listener().expect("a port");
    println!("{}", listener.local_addr().expect("an address").port());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            // Thousands of them wait most of the time.
            let thread = std::thread::Builder::new().stack_size(256 * 1024);
            thread.spawn(move || converse(stream)).expect("a thread");
        }
    });
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

fn listener() -> std::io::Result<TcpListener> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into())?;
    socket.listen(BACKLOG)?;
    Ok(socket.into())
}

/// Answers every request on a connection. What it answers is the name of the model: `m` says 200 tokens, `call:NAME:JSON` calls
/// that tool once and then says one word, `word` says one word, `slow` says it after 300 ms,
/// `steady` says 200 tokens within two seconds, and `torrent` ten times as many. `few` says 20 tokens, `ask:NAME:JSON` does so
/// after it has called that tool once, and `paced` takes 20 ms for the first of them and 5 ms for each of the others.
/// `later:` before any of them is the same after 300 ms.
fn converse(mut stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    loop {
        let mut length = 0;
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            let lower = line.to_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap_or(0);
            }
            if line == "\r\n" {
                break;
            }
        }
        let mut body = vec![0; length];
        if reader.read_exact(&mut body).is_err() {
            return;
        }
        let (kind, delay) = asked(&body);
        std::thread::sleep(delay);
        let sent = match kind {
            RequestKind::Steady => steady(&mut stream, &LONG),
            RequestKind::Torrent => steady(&mut stream, &VERY_LONG),
            RequestKind::Paced => paced(&mut stream, &FEW),
            RequestKind::Few => stream.write_all(&FEW),
            RequestKind::Long => stream.write_all(&LONG),
            RequestKind::Short => stream.write_all(&SHORT),
            RequestKind::Call(tool, arguments) => stream.write_all(&answer(&[], Some((&tool, &arguments)))),
        };
        if sent.is_err() {
            return;
        }
    }
}

/// Two seconds for an answer: its pieces come in twenty portions.
fn steady(stream: &mut TcpStream, answer: &[u8]) -> std::io::Result<()> {
    for portion in answer.chunks(answer.len().div_ceil(20)) {
        std::thread::sleep(Duration::from_millis(100));
        stream.write_all(portion)?;
    }
    Ok(())
}

/// Twenty milliseconds, then a frame every five.
fn paced(stream: &mut TcpStream, answer: &[u8]) -> std::io::Result<()> {
    std::thread::sleep(Duration::from_millis(15));
    let mut rest = answer;
    while !rest.is_empty() {
        std::thread::sleep(Duration::from_millis(5));
        let end = rest.windows(4).position(|window| window == b"\n\n\r\n").map_or(rest.len(), |at| at + 4);
        stream.write_all(&rest[..end])?;
        rest = &rest[end..];
    }
    Ok(())
}

enum RequestKind {
    Few,
    Paced,
    Steady,
    Torrent,
    Long,
    Short,
    Call(String, String),
}

/// What is answered, and how much later.
fn asked(body: &[u8]) -> (RequestKind, Duration) {
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    let has_result =
        body["messages"].as_array().is_some_and(|all| all.iter().any(|one| one["role"] == "tool"));
    let model = body["model"].as_str().unwrap_or_default();
    let (model, delay) = match model.strip_prefix("later:") {
        Some(model) => (model, DELAY),
        None => (model, if model == "slow" { DELAY } else { Duration::ZERO }),
    };
    let call = model.strip_prefix("call:").or(model.strip_prefix("ask:"));
    let kind = match call.and_then(|call| call.split_once(':')) {
        Some((tool, arguments)) if !has_result => RequestKind::Call(tool.to_owned(), arguments.to_owned()),
        Some(_) if model.starts_with("ask:") => RequestKind::Few,
        None if model == "few" => RequestKind::Few,
        None if model == "paced" => RequestKind::Paced,
        None if model == "m" => RequestKind::Long,
        None if model == "steady" => RequestKind::Steady,
        None if model == "torrent" => RequestKind::Torrent,
        _ => RequestKind::Short,
    };
    (kind, delay)
}

/// A whole HTTP answer: one chunk per token, as a provider sends them.
fn answer(words: &[String], call: Option<(&str, &str)>) -> Vec<u8> {
    let mut out =
        Vec::from("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut chunk = |data: &str| {
        let frame = format!("data: {data}\n\n");
        out.extend(format!("{:x}\r\n{frame}\r\n", frame.len()).into_bytes());
    };
    let mut say = |delta: &Value, finish: &Value| {
        let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
        let frame = json!({
            "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]
        });
        chunk(&frame.to_string());
    };
    for word in words {
        say(&json!({"content": word}), &Value::Null);
    }
    if let Some((name, arguments)) = call {
        let function = json!({"name": name, "arguments": arguments});
        let call = json!({"index": 0, "id": "call_1", "type": "function", "function": function});
        say(&json!({"tool_calls": [call]}), &Value::Null);
    }
    say(&json!({}), &json!(if call.is_some() { "tool_calls" } else { "stop" }));
    let tokens = words.len().max(1);
    let usage = json!({"prompt_tokens": 20, "completion_tokens": tokens, "total_tokens": 20 + tokens});
    chunk(
        &json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage})
            .to_string(),
    );
    chunk("[DONE]");
    out.extend(b"0\r\n\r\n");
    out
}
