//! Proxies, the addresses they pass on, and encryption.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use reqwest::{Certificate, Client};
use serde_json::json;
use uuid::Uuid;

use super::target::{ATTACKER, OTHER, REQUIRED, client, folder, refusal, url};
use crate::baton;
use crate::served::{LONG, Served};

/// H16: behind a proxy, open mode would make every client of the proxy an administrator.
#[tokio::test]
async fn h16_open_mode_refuses_what_a_proxy_passes_on() {
    let dir = folder("");
    let served = Served::start(dir.path());
    let client = client(OTHER).build().unwrap();
    for (name, value) in [
        ("x-forwarded-for", "203.0.113.9"),
        ("x-forwarded-host", "localhost"),
        ("x-forwarded-proto", "https"),
        ("forwarded", "for=203.0.113.9"),
        ("via", "1.1 proxy"),
        ("x-real-ip", "203.0.113.9"),
    ] {
        for path in ["/api/v1/threads", "/version", "/"] {
            let answer = client.get(url(&served, path)).header(name, value).send().await.unwrap();
            assert_eq!(refusal(answer).await, (403, "forwarded_request".to_owned()), "{name} {path}");
        }
        let probe = client.get(url(&served, "/readyz")).header(name, value).send().await.unwrap();
        assert_eq!(probe.status(), 200);
    }
    // A page that a browser believes to be of another site, by DNS rebinding.
    let rebound = client.get(url(&served, "/version")).header("host", "evil.example").send().await.unwrap();
    assert_eq!(refusal(rebound).await, (403, "foreign_origin".to_owned()));
    assert_eq!(client.get(url(&served, "/version")).send().await.unwrap().status(), 200);
}

/// The log has the address of the client, as far as trusted proxies say it.
#[tokio::test]
async fn client_address_is_that_of_trusted_proxies_only() {
    let dir = folder(&format!("[server]\ntrusted_proxies = [\"127.0.0.1\"]\n{REQUIRED}"));
    let served = Served::start_logged(dir.path(), &[("BATON_LOG_FORMAT", "json")]);
    for (from, forwarded, expected) in [
        (OTHER, "203.0.113.9", "203.0.113.9"),
        (OTHER, "10.1.1.1, 203.0.113.7, 127.0.0.1", "203.0.113.7"),
        (ATTACKER, "203.0.113.8", "127.0.0.2"),
    ] {
        let client = client(from).build().unwrap();
        let path = format!("/nowhere/{}", Uuid::new_v4());
        let request = client.get(url(&served, &path)).header("x-forwarded-for", forwarded);
        request.send().await.unwrap();
        let line = format!("\"client\":\"{expected}\"");
        let until = std::time::Instant::now() + LONG;
        while !std::fs::read_to_string(dir.path().join("server.log")).unwrap().contains(&line) {
            assert!(std::time::Instant::now() < until, "{line} is not in the log");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    let log = std::fs::read_to_string(dir.path().join("server.log")).unwrap();
    assert!(!log.contains("203.0.113.8"), "{log}");
}

/// Other machines reach the server only over TLS, here or at a proxy.
#[test]
fn other_addresses_than_loopback_need_tls_or_a_proxy() {
    let dir = folder(REQUIRED);
    let refused = baton(dir.path(), &["serve", "--listen", "0.0.0.0:0"]);
    assert_ne!(refused.code, 0);
    for word in ["server.tls", "server.behind_proxy = true", "127.0.0.1"] {
        assert!(refused.stderr.contains(word), "{}", refused.stderr);
    }
    let dir = folder(&format!("[server]\nbehind_proxy = true\n{REQUIRED}"));
    let served = Served::start_with(dir.path(), &["--listen", "0.0.0.0:0"], &[]);
    assert!(served.address.starts_with("0.0.0.0:"), "{}", served.address);
    let dir = folder("[server]\nbehind_proxy = true\n");
    let open = baton(dir.path(), &["serve", "--listen", "0.0.0.0:0"]);
    assert!(open.code != 0 && open.stderr.contains("auth.mode"), "{}", open.stderr);
}

fn openssl(dir: &Path, arguments: &str) {
    let ran = Command::new("openssl").current_dir(dir).args(arguments.split_whitespace()).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
}

/// Makes a certificate for this machine, and returns that of the new authority that signed it.
fn certify(dir: &Path) -> Certificate {
    let new = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2";
    openssl(dir, &format!("{new} -subj /CN=authority -keyout ca.key -out ca.pem"));
    let leaf = "-addext basicConstraints=critical,CA:FALSE -addext subjectAltName=DNS:localhost,IP:127.0.0.1";
    let signed = "-CA ca.pem -CAkey ca.key -subj /CN=localhost -keyout new.key -out new.pem";
    openssl(dir, &format!("{new} {leaf} {signed}"));
    Certificate::from_pem(&std::fs::read(dir.join("ca.pem")).unwrap()).unwrap()
}

fn install(dir: &Path) {
    std::fs::rename(dir.join("new.pem"), dir.join("cert.pem")).unwrap();
    std::fs::rename(dir.join("new.key"), dir.join("key.pem")).unwrap();
}

fn trusting(certificate: Certificate) -> Client {
    client(OTHER).tls_certs_only([certificate]).build().unwrap()
}

/// H16: TLS with HTTP/2 and HTTP/1.1, and a new certificate without a restart.
#[tokio::test]
async fn h16_certificate_is_replaced_while_streams_are_open() {
    let dir = folder("[server]\ntls = { cert = \"cert.pem\", key = \"key.pem\" }\n");
    let first = trusting(certify(dir.path()));
    install(dir.path());
    let served = Served::start_logged(dir.path(), &[]);
    let address = format!("https://{}", served.address);
    let answer = first.get(format!("{address}/version")).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.version()), (200, http::Version::HTTP_2));
    assert!(answer.headers()["strict-transport-security"].to_str().unwrap().contains("max-age="));
    let old = client(OTHER).http1_only().tls_danger_accept_invalid_certs(true).build().unwrap();
    let old = old.get(format!("{address}/version")).header("origin", &address).send().await.unwrap();
    assert_eq!((old.status().as_u16(), old.version()), (200, http::Version::HTTP_11));
    let thread = format!("{address}/api/v1/threads/{}", Uuid::new_v4());
    let message = json!({ "content": "Hello" });
    let told = first.post(format!("{thread}/messages")).json(&message).send().await.unwrap();
    assert!(told.text().await.unwrap().contains("RUN_FINISHED"));
    let mut stream = first.get(format!("{thread}/events?after=1")).send().await.unwrap();
    stream.chunk().await.unwrap().expect("it begins");
    // A broken file changes nothing.
    std::fs::write(dir.path().join("cert.pem"), "no certificate").unwrap();
    wait_for(dir.path(), "the last good one stays").await;
    let second = certify(dir.path());
    install(dir.path());
    wait_for(dir.path(), "loaded again").await;
    let second = trusting(second);
    assert_eq!(second.get(format!("{address}/livez")).send().await.unwrap().status(), 200);
    // The connection of the stream is as it was: what is said now comes over it.
    let told = second.post(format!("{thread}/messages")).json(&message).send().await.unwrap();
    assert!(told.text().await.unwrap().contains("RUN_FINISHED"));
    let mut seen = String::new();
    while seen.matches("RUN_FINISHED").count() < 1 {
        let chunk = tokio::time::timeout(LONG, stream.chunk()).await.expect("it goes on").unwrap();
        seen.push_str(&String::from_utf8_lossy(&chunk.expect("not over")));
    }
}

fn hang_up(served: &Served) {
    let pid = rustix::process::Pid::from_child(&served.child);
    rustix::process::kill_process(pid, rustix::process::Signal::HUP).unwrap();
}

/// H16: SIGHUP reads the certificate again, at once and also if the files look unchanged, and does not end the server.
#[tokio::test]
async fn h16_sighup_reads_the_certificate_again() {
    let dir = folder("[server]\ntls = { cert = \"cert.pem\", key = \"key.pem\" }\n");
    let first = trusting(certify(dir.path()));
    install(dir.path());
    let mut served = Served::start_logged(dir.path(), &[]);
    let address = format!("https://{}", served.address);
    assert_eq!(first.get(format!("{address}/livez")).send().await.unwrap().status(), 200);
    hang_up(&served);
    // The files are those of the start, so only the signal makes the server read them.
    wait_for(dir.path(), "the TLS certificate was loaded again").await;
    let second = certify(dir.path());
    install(dir.path());
    hang_up(&served);
    let second = trusting(second);
    let until = std::time::Instant::now() + LONG;
    while second.get(format!("{address}/livez")).send().await.is_err() {
        assert!(std::time::Instant::now() < until, "the new certificate is never used");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(served.child.try_wait().unwrap().is_none());
}

/// H16: without TLS, SIGHUP reads the agents again, and runs go on.
#[tokio::test]
async fn h16_sighup_without_tls_does_not_end_the_server() {
    let dir = folder("");
    let mut served = Served::start_logged(dir.path(), &[]);
    let client = client(OTHER).build().unwrap();
    for _ in 0..3 {
        hang_up(&served);
    }
    wait_for(dir.path(), "the agents were loaded again").await;
    let thread = format!("http://{}/api/v1/threads/{}/messages", served.address, Uuid::new_v4());
    let told = client.post(thread).json(&json!({ "content": "Hello" })).send().await.unwrap();
    assert!(told.text().await.unwrap().contains("RUN_FINISHED"));
    assert!(served.child.try_wait().unwrap().is_none());
}

/// Waits for a line of the log.
async fn wait_for(dir: &Path, text: &str) {
    let until = std::time::Instant::now() + LONG;
    while !std::fs::read_to_string(dir.join("server.log")).unwrap().contains(text) {
        assert!(std::time::Instant::now() < until, "the log never says {text:?}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
