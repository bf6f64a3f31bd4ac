//! MCP servers that send without end.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use serde_json::{Value, json};

use super::{Installation, probe};
use crate::served::Served;

/// Most that the server may need in addition, in kB. One message may have 16 MiB, and a few copies of it exist for a moment.
const MAX_GROWTH: u64 = 250 << 10;

fn peak(served: &Served) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", served.child.id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    peak.trim().trim_end_matches(" kB").parse().unwrap()
}

/// H3, H16: an answer without an end is an error of the tool, whatever it is sent over. The server neither runs out of memory nor waits
/// for the time limit of the tool.
#[test]
fn h16_endless_answers_of_mcp_servers_are_cut_off() {
    let installation = Installation::new("");
    let agent = "---\ndescription: Runs the requested tools.\ntools: [\"mcp:pipe/*\", \"mcp:web/*\"]\n---\nYou help.\n";
    std::fs::write(installation.path().join("agents/a.md"), agent).unwrap();
    let mut pipe = probe();
    let script = pipe["args"][0].as_str().unwrap().replace("server.mjs", "endless.mjs");
    pipe["args"] = json!([script]);
    let web = json!({ "url": serve_endless() });
    let servers = json!({ "mcpServers": { "pipe": pipe, "web": web } });
    std::fs::write(installation.path().join(".mcp.json"), servers.to_string()).unwrap();
    let served = installation.serve();
    let ada = installation.person(&served, "acme", "ada");
    let before = peak(&served);
    for (tool, expected) in [
        ("mcp__pipe__line", "at most 16777216 are read"),
        ("mcp__pipe__nameless", "closed"),
        ("mcp__web__json", "longer than 16777216 bytes"),
        ("mcp__web__events", "longer than 16777216 bytes"),
        ("mcp__web__lines", "longer than 16777216 bytes"),
        ("mcp__web__refusal", "longer than 16777216 bytes"),
    ] {
        let answer = ada.calls(&[(tool, json!({}))]);
        assert!(answer.contains(expected), "{tool}: {answer}");
        if tool.starts_with("mcp__pipe") {
            // A process that had to be ended is not started again at once.
            std::thread::sleep(Duration::from_secs(3));
        }
    }
    let growth = peak(&served).saturating_sub(before);
    assert!(growth < MAX_GROWTH, "{growth} kB");
}

/// A server over HTTP that initializes properly and answers calls without an end.
fn serve_endless() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || answer(stream));
        }
    });
    url
}

fn answer(mut stream: TcpStream) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let (mut line, mut length) = (String::new(), 0);
    reader.read_line(&mut line).ok()?;
    let is_post = line.starts_with("POST");
    loop {
        line.clear();
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
    let message: Value = serde_json::from_slice(&body).unwrap_or_default();
    let id = &message["id"];
    let result = match message["method"].as_str() {
        _ if !is_post => return head(&mut stream, "405 Method Not Allowed", "text/plain", Some(0)),
        Some("initialize") => json!({
            "protocolVersion": message["params"]["protocolVersion"], "capabilities": { "tools": {} },
            "serverInfo": { "name": "liar", "version": "1" }
        }),
        Some("tools/list") => {
            let tool = |name: &str| json!({ "name": name, "inputSchema": { "type": "object" } });
            let tools = ["json", "events", "lines", "refusal"].map(tool);
            json!({ "tools": tools })
        }
        Some("tools/call") => return endless(&mut stream, message["params"]["name"].as_str()?, id),
        Some(_) if !id.is_null() => {
            let error = json!({ "code": -32601, "message": "unknown" });
            return send(&mut stream, &json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
        _ => return head(&mut stream, "202 Accepted", "text/plain", Some(0)),
    };
    send(&mut stream, &json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

fn head(stream: &mut TcpStream, status: &str, kind: &str, length: Option<usize>) -> Option<()> {
    let length = length.map(|length| format!("Content-Length: {length}\r\n")).unwrap_or_default();
    let head = format!("HTTP/1.1 {status}\r\nContent-Type: {kind}\r\n{length}Connection: close\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()
}

fn send(stream: &mut TcpStream, message: &Value) -> Option<()> {
    let text = message.to_string();
    head(stream, "200 OK", "application/json", Some(text.len()))?;
    stream.write_all(text.as_bytes()).ok()
}

/// Ends when the client has closed the connection.
fn endless(stream: &mut TcpStream, tool: &str, id: &Value) -> Option<()> {
    let start = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{{\"content\":[{{\"type\":\"text\",\"text\":\""
    );
    let (status, kind, start, more) = match tool {
        "json" => ("200 OK", "application/json", start, "x".repeat(1 << 16)),
        "refusal" => ("400 Bad Request", "application/json", start, "x".repeat(1 << 16)),
        "events" => ("200 OK", "text/event-stream", format!("data: {start}"), "x".repeat(1 << 16)),
        _ => ("200 OK", "text/event-stream", String::new(), "data: xxxxxxxx\r\n".repeat(1 << 12)),
    };
    head(stream, status, kind, None)?;
    stream.write_all(start.as_bytes()).ok()?;
    loop {
        stream.write_all(more.as_bytes()).ok()?;
    }
}
