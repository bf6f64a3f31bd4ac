//! `approvals.notify_url`: what an endpoint receives, and when again.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::baton;
use crate::provider::{Provider, Reply};
use crate::run::project;
use crate::served::{LONG, Served};

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const WRITE: Reply = Reply::Call { tool: "write_file", arguments: r#"{"path": "a.txt", "content": "one"}"# };

pub struct Delivery {
    headers: Vec<(String, String)>,
    pub body: String,
}

impl Delivery {
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(known, _)| known == name);
        found.map_or_else(|| panic!("no header {name}"), |(_, value)| value)
    }

    /// As a receiver verifies it.
    fn assert_signed(&self) {
        let (id, timestamp) = (self.header("webhook-id"), self.header("webhook-timestamp"));
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(&SECRET[6..]).unwrap());
        let signed = format!("{id}.{timestamp}.{}", self.body);
        let signature = self.header("webhook-signature").strip_prefix("v1,").unwrap();
        hmac::verify(&key, signed.as_bytes(), &STANDARD.decode(signature).unwrap())
            .expect("a valid signature");
        let age = jiff::Timestamp::now().as_second() - timestamp.parse::<i64>().unwrap();
        assert!((0..60).contains(&age), "{timestamp}");
    }
}

/// Answers requests with these statuses, then with the last one again and again.
pub fn receiver(statuses: &'static [u16]) -> (String, Receiver<Delivery>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hooks/t0ken", listener.local_addr().unwrap());
    let (tell, heard) = channel();
    std::thread::spawn(move || {
        for at in 0.. {
            let (mut stream, _) = listener.accept().unwrap();
            let delivery = read(&stream);
            let status = statuses[at.min(statuses.len() - 1)];
            let _ = write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            if tell.send(delivery).is_err() {
                return;
            }
        }
    });
    (url, heard)
}

fn read(stream: &TcpStream) -> Delivery {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).unwrap();
    assert!(line.starts_with("POST /hooks/t0ken "), "{line}");
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let Some((name, value)) = line.trim().split_once(": ") else { break };
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length").unwrap().1.parse().unwrap();
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    Delivery { headers, body: String::from_utf8(body).unwrap() }
}

fn asking(replies: Vec<Reply>, approvals: &str) -> (Provider, tempfile::TempDir) {
    let provider = Provider::start(replies);
    let front = "display_name: Helper\ntools: [write_file]\napprovals: { ask: [write_file] }";
    let dir = project(&provider.base_url, front);
    let config = dir.path().join("baton.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}\n[approvals]\n{approvals}\n")).unwrap();
    (provider, dir)
}

fn serve(dir: &Path) -> Served {
    Served::start_with(dir, &[], &[("BATON_NOTIFY_SECRET", SECRET)])
}

fn say(served: &Served) {
    let thread = uuid::Uuid::new_v4();
    let path = format!("/api/v1/threads/{thread}/messages");
    let mut answer = String::new();
    let mut stream = served.ask("POST", &path, "application/json", r#"{"content": "Write it"}"#);
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("\"status\":\"waiting\""), "{answer}");
}

#[test]
fn an_approval_is_delivered_signed_and_tried_again_after_an_error() {
    let (url, heard) = receiver(&[500, 503, 204]);
    let (provider, dir) =
        asking(vec![WRITE], &format!("notify_url = \"{url}\"\nnotify_allow_private = true"));
    let served = serve(dir.path());
    let began = Instant::now();
    say(&served);
    let deliveries: Vec<Delivery> = (0..3).map(|_| heard.recv_timeout(LONG).unwrap()).collect();
    assert!(began.elapsed() >= Duration::from_secs(3), "the second pause is longer than the first");
    for delivery in &deliveries {
        delivery.assert_signed();
        assert_eq!(
            delivery.header("webhook-id"),
            deliveries[0].header("webhook-id"),
            "the same for every attempt"
        );
    }
    let body: Value = serde_json::from_str(&deliveries[2].body).unwrap();
    assert_eq!((&body["type"], &body["tenant_id"]), (&"approval.requested".into(), &"default".into()));
    assert_eq!(body["approval"]["tool"], "write_file");
    assert_eq!(body["approval"]["arguments"]["path"], "a.txt");
    assert_eq!(body["approval"]["approval_id"], deliveries[0].header("webhook-id"));
    assert!(
        heard.recv_timeout(Duration::from_secs(7)).is_err(),
        "once it is delivered, it is not sent again"
    );
    provider.finish();
}

/// At least once while it is open: also if the server died before the endpoint answered with success.
#[test]
fn a_restart_delivers_what_was_not_delivered_and_nothing_else() {
    let (url, heard) = receiver(&[500, 200]);
    let approvals = format!("notify_url = \"{url}\"\nnotify_allow_private = true");
    let (provider, dir) = asking(vec![WRITE], &approvals);
    let mut served = serve(dir.path());
    say(&served);
    heard.recv_timeout(LONG).unwrap();
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    while heard.try_recv().is_ok() {}
    let served = serve(dir.path());
    heard.recv_timeout(LONG).unwrap().assert_signed();
    drop(served);
    let served = serve(dir.path());
    assert!(heard.recv_timeout(Duration::from_secs(3)).is_err());
    drop(served);
    provider.finish();
}

#[test]
fn an_address_that_must_not_be_reached_is_refused_at_the_start() {
    let (provider, dir) = asking(vec![], "notify_url = \"http://127.0.0.1:9/x\"");
    let ran = baton(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("not on the public internet"), "{}", ran.stderr);
    assert!(ran.stderr.contains("notify_allow_private"), "{}", ran.stderr);
    let (_, dir) = asking(vec![], "notify_url = \"http://127.0.0.1:9/x\"\nnotify_allow_private = true");
    let ran = baton(dir.path(), &["serve", "--listen", "127.0.0.1:0"]);
    assert_eq!(ran.code, 3, "{}", ran.stderr);
    assert!(ran.stderr.contains("BATON_NOTIFY_SECRET"), "a webhook is always signed: {}", ran.stderr);
    provider.finish();
}

/// A name that resolves to a private address is refused when it is resolved, and the run is not affected.
#[test]
fn a_name_with_a_private_address_gets_nothing() {
    let (provider, dir) = asking(vec![WRITE], "notify_url = \"https://localhost:9/hooks/t0ken\"");
    let served = Served::start_logged(dir.path(), &[("BATON_NOTIFY_SECRET", SECRET)]);
    say(&served);
    let log = crate::run::eventually("a refusal in the log", || {
        let log = std::fs::read_to_string(dir.path().join("server.log")).unwrap();
        log.contains("`localhost` is not on the public internet").then_some(log)
    });
    assert!(!log.contains("t0ken") && !log.contains(&SECRET[6..]), "no secret in the log: {log}");
    provider.finish();
}
