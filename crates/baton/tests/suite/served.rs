//! A server in a process of its own.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;

pub const LONG: Duration = Duration::from_mins(3);

/// Ends with this value.
pub struct Served {
    pub child: Child,
    pub address: String,
}

impl Served {
    pub fn start(dir: &Path) -> Self {
        Self::start_with(dir, &[], &[])
    }

    pub fn start_with(dir: &Path, args: &[&str], env: &[(&str, &str)]) -> Self {
        Self::spawn(dir, args, env, Stdio::null())
    }

    /// The same with its log in `server.log`.
    pub fn start_logged(dir: &Path, env: &[(&str, &str)]) -> Self {
        let log = std::fs::File::create(dir.join("server.log")).unwrap();
        Self::spawn(dir, &[], env, Stdio::from(log))
    }

    /// The same with a log that is a pipe without a reader.
    pub fn start_unread(dir: &Path, env: &[(&str, &str)]) -> Self {
        Self::spawn(dir, &[], env, Stdio::piped())
    }

    fn spawn(dir: &Path, args: &[&str], env: &[(&str, &str)], log: Stdio) -> Self {
        let listen: &[&str] = if args.contains(&"--listen") { &[] } else { &["--listen", "127.0.0.1:0"] };
        let mut child = Command::new(env!("CARGO_BIN_EXE_baton"))
            .arg("serve")
            .args(listen)
            .args(args)
            .envs(env.iter().copied())
            .current_dir(dir)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let (_, address) = line.trim().split_once("://").expect("an address");
        let address = address.to_owned();
        Self { child, address }
    }

    pub fn ask(&self, method: &str, path: &str, accept: &str, body: &str) -> TcpStream {
        ask(&self.address, method, path, accept, body)
    }

    /// The whole response as text.
    pub fn read(&self, method: &str, path: &str, accept: &str, body: &str) -> String {
        let mut text = String::new();
        self.ask(method, path, accept, body).read_to_string(&mut text).unwrap();
        text
    }

    pub fn get(&self, path: &str) -> Value {
        let mut text = String::new();
        self.ask("GET", path, "application/json", "").read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200"), "{path}: {text}");
        serde_json::from_str(body).unwrap_or_else(|error| panic!("{path}: {error}: {body}"))
    }
}

/// Sends a request, and leaves its answer to be read.
pub fn ask(address: &str, method: &str, path: &str, accept: &str, body: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LONG)).unwrap();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
