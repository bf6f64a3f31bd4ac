//! The official SDKs of A2A as clients of the built server. Their scripts are in `interop/`.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::root;
use crate::run::project;
use crate::served::Served;

const TRANSPORTS: [&str; 2] = ["JSONRPC", "HTTP+JSON"];
/// How long an answer to a message with the word `slow` takes: long enough to cancel it and to subscribe to it.
const SLOW: Duration = Duration::from_secs(2);

/// A provider that answers any number of requests at once with the same text. Its threads end with the process.
fn provider() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            // A cancelled run closes its connection.
            std::thread::spawn(move || drop(answer(stream)));
        }
    });
    base_url
}

fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let Some(request) = request(&stream)? else {
        return stream.write_all(b"HTTP/1.1 404 X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    };
    let chunk = |delta: Value, finish: Value| {
        let choice = json!({ "index": 0, "delta": delta, "finish_reason": finish });
        format!(
            "data: {}\n\n",
            json!({ "id": "1", "object": "chat.completion.chunk", "model": "m", "choices": [choice] })
        )
    };
    let head = "HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
    stream.write_all(format!("{head}{}", chunk(json!({ "content": "Good " }), Value::Null)).as_bytes())?;
    stream.flush()?;
    let last =
        request["messages"].as_array().and_then(|messages| messages.last()).cloned().unwrap_or_default();
    if last.to_string().contains("slow") {
        std::thread::sleep(SLOW);
    }
    let rest = chunk(json!({ "content": "morning." }), Value::Null) + &chunk(json!({}), json!("stop"));
    stream.write_all(format!("{rest}data: [DONE]\n\n").as_bytes())
}

/// The body of a request; `None` for a question about the model.
fn request(stream: &TcpStream) -> std::io::Result<Option<Value>> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut first, mut length) = (String::new(), 0);
    reader.read_line(&mut first)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    Ok(if first.starts_with("GET") { None } else { serde_json::from_slice(&body).ok() })
}

/// The receivers of push notifications are in the scripts, on a loopback address.
fn allow_private_receivers(project: &Path) {
    let mut config = std::fs::OpenOptions::new().append(true).open(project.join("baton.toml")).unwrap();
    config.write_all(b"[a2a]\npush_allow_private = true\n").unwrap();
}

/// Runs a script against a server of its own, on both transports.
fn check(program: &Path, script: &str, before: &[&Path], versions: &[&str]) {
    assert!(
        program.exists() || program.is_relative(),
        "the SDKs are not installed: run scripts/setup.sh test"
    );
    let dir = project(&provider(), "");
    allow_private_receivers(dir.path());
    let served = Served::start(dir.path());
    for version in versions {
        for transport in TRANSPORTS {
            let url = format!("http://{}", served.address);
            let mut command = Command::new(program);
            command.arg(root().join("interop").join(script)).args(before).args([&url, transport, *version]);
            let output = command.output().expect("the script runs");
            let (said, problems) =
                (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert!(output.status.success(), "{script} {transport} {version}\n{said}\n{problems}");
            assert!(said.contains("ok errors"), "{said}");
        }
    }
}

fn python(version: &str) -> PathBuf {
    root().join(format!("target/pip/a2a-{version}/bin/python"))
}

/// Where `scripts/setup.sh test` puts the packages of an SDK.
fn packages(version: &str) -> PathBuf {
    let folder = root().join(format!("target/npm/a2a-{version}"));
    assert!(
        folder.join("node_modules/@a2a-js/sdk").is_dir(),
        "the SDKs are not installed: run scripts/setup.sh test"
    );
    folder
}

#[test]
fn d10_python_sdk_0_3_uses_the_server() {
    check(&python("0.3"), "python-0.3/client.py", &[], &["0.3"]);
}

#[test]
fn d10_python_sdk_1_3_uses_the_server_in_both_versions() {
    check(&python("1.3"), "python-1.3/client.py", &[], &["0.3", "1.0"]);
}

#[test]
fn d10_javascript_sdk_0_3_uses_the_server() {
    check(Path::new("node"), "js-0.3/client.mjs", &[&packages("0.3")], &["0.3"]);
}

#[test]
fn d10_javascript_sdk_1_3_uses_the_server_in_both_versions() {
    check(Path::new("node"), "js-1.3/client.mjs", &[&packages("1.3")], &["0.3", "1.0"]);
}
