//! A connection to PostgreSQL that is cut exactly when it commits.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::json;

use super::{Client, project};
use crate::postgres::new_span_id as new_database;
use crate::served::Served;

/// Passes bytes between Baton and its database. While it is armed, a commit reaches the database and its reply is lost.
#[derive(Clone, Default)]
struct Proxy(Arc<AtomicBool>);

impl Proxy {
    /// Returns the URL to use instead.
    fn listen(&self, url: &str) -> String {
        let (_, address) = url.rsplit_once('@').unwrap_or(("", url.trim_start_matches("postgres://")));
        let target = address.split('/').next().unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let own = listener.local_addr().unwrap().to_string();
        let proxy = self.clone();
        let to = target.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(&to).unwrap();
                proxy.clone().pass(client, server);
            }
        });
        format!("{}?sslmode=disable", url.replacen(&target, &own, 1))
    }

    fn pass(self, client: TcpStream, server: TcpStream) {
        let is_cut = Arc::new(AtomicBool::new(false));
        let (mut from_client, mut to_server) = (client.try_clone().unwrap(), server.try_clone().unwrap());
        let (mut from_server, mut to_client) = (server, client);
        let cut = Arc::clone(&is_cut);
        std::thread::spawn(move || {
            let mut bytes = vec![0; 65536];
            while let Ok(size @ 1..) = from_client.read(&mut bytes) {
                let is_commit = bytes[..size].windows(7).any(|part| part == b"COMMIT\0");
                if is_commit && self.0.swap(false, Ordering::SeqCst) {
                    cut.store(true, Ordering::SeqCst);
                }
                if to_server.write_all(&bytes[..size]).is_err() {
                    return;
                }
            }
        });
        std::thread::spawn(move || {
            let mut bytes = vec![0; 65536];
            while let Ok(size @ 1..) = from_server.read(&mut bytes) {
                if is_cut.load(Ordering::SeqCst) || to_client.write_all(&bytes[..size]).is_err() {
                    let _ = to_client.shutdown(std::net::Shutdown::Both);
                    return;
                }
            }
        });
    }
}

/// The change may be there, and the server does not say that it is not. A message is repeated by the server itself.
#[test]
fn a_lost_commit_is_never_reported_as_unchanged() {
    let proxy = Proxy::default();
    let dir = project(&proxy.listen(&new_database()), "");
    let served = Served::start(dir.path());
    let ada = Client::new(&served, dir.path(), "ada", "user");
    let thread = ada.say("Hello");
    let path = format!("/api/v1/threads/{thread}");
    // Other writes, such as seals, may take the cut: repeated until a request meets it.
    let problem = loop {
        proxy.0.store(true, Ordering::SeqCst);
        let (status, answer) = ada.ask("PATCH", &path, &json!({ "title": "Renamed" }));
        if status != 200 {
            break (status, answer);
        }
    };
    assert_eq!((problem.0, &problem.1["code"]), (503, &json!("outcome_unknown")), "{problem:?}");
    let detail = problem.1["detail"].as_str().unwrap();
    assert!(detail.contains("may have been made") && !detail.contains("nothing was changed"), "{detail}");
    assert_eq!(ada.ask("PATCH", &path, &json!({ "title": "Renamed" })).0, 200, "the same again is safe");
    assert_eq!(ada.get(&path)["title"], "Renamed");

    proxy.0.store(true, Ordering::SeqCst);
    let (status, answer) =
        ada.ask("POST", &format!("{path}/messages"), &json!({ "content": "Once and only once" }));
    assert_eq!(status, 200, "{answer}");
    let messages = ada.get(&format!("{path}/messages?limit=50"));
    let texts = messages.to_string();
    assert_eq!(texts.matches("Once and only once").count(), 1, "{texts}");
}
