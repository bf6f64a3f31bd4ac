//! A provider without a model: speaks chat completions on loopback and answers at once. Runs as a child process, so that its
//! processor time is not counted.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// Tokens of one answer.
pub const TOKENS: usize = 200;

/// The child, and where it listens. Ends with this value.
#[derive(Debug)]
pub struct Provider {
    child: Child,
    pub base_url: String,
}

impl Provider {
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

impl Drop for Provider {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the child does until its parent goes away.
pub fn serve() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    println!("{}", listener.local_addr().expect("an address").port());
    let answer = std::sync::Arc::new(answer());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = std::sync::Arc::clone(&answer);
            std::thread::spawn(move || converse(stream, &answer));
        }
    });
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}

/// Answers every request on a connection with the same bytes.
fn converse(mut stream: TcpStream, answer: &[u8]) {
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
        if reader.read_exact(&mut body).is_err() || stream.write_all(answer).is_err() {
            return;
        }
    }
}

/// A whole HTTP answer: one chunk per token, as a provider sends them.
fn answer() -> Vec<u8> {
    let mut out =
        Vec::from("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n");
    let mut chunk = |data: &str| {
        let frame = format!("data: {data}\n\n");
        out.extend(format!("{:x}\r\n{frame}\r\n", frame.len()).into_bytes());
    };
    for at in 0..TOKENS {
        chunk(&format!(
            r#"{{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{{"index":0,"delta":{{"content":"word{at} "}},"finish_reason":null}}]}}"#
        ));
    }
    chunk(
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}"#,
    );
    chunk(
        r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[],"usage":{"prompt_tokens":20,"completion_tokens":200,"total_tokens":220}}"#,
    );
    chunk("[DONE]");
    out.extend(b"0\r\n\r\n");
    out
}
