//! A revoked key of an issuer of tokens that cannot be reached.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::installation::Installation;
use crate::served::Served;

const MAX_STALE: Duration = Duration::from_secs(4);

struct Signer {
    name: &'static str,
    pair: EcdsaKeyPair,
}

impl Signer {
    fn new(name: &'static str) -> Self {
        Self { name, pair: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap() }
    }

    fn jwk(&self) -> Value {
        let point = self.pair.public_key().as_ref();
        let coordinate = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
        json!({
            "kty": "EC", "crv": "P-256", "kid": self.name, "alg": "ES256", "use": "sig",
            "x": coordinate(&point[1..33]), "y": coordinate(&point[33..65])
        })
    }

    fn token(&self) -> String {
        let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let head = part(json!({ "alg": "ES256", "typ": "JWT", "kid": self.name }));
        let claims = part(json!({
            "iss": "https://id.example", "aud": "baton", "sub": "ada", "tenant_id": "acme", "roles": ["user"],
            "exp": jiff::Timestamp::now().as_second() + 3600
        }));
        let signed = format!("{head}.{claims}");
        let signature = self.pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

/// Publishes keys; `None` while it is down: connections are closed without an answer.
struct Issuer {
    address: String,
    keys: Arc<Mutex<Option<Vec<Value>>>>,
}

impl Issuer {
    fn start(keys: Vec<Value>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let keys = Arc::new(Mutex::new(Some(keys)));
        let published = Arc::clone(&keys);
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let Some(keys) = published.lock().unwrap().clone() else { continue };
                let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
                while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
                let body = json!({ "keys": keys }).to_string();
                let head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n";
                let _ = write!(stream, "{head}Content-Length: {}\r\n\r\n{body}", body.len());
            }
        });
        Self { address, keys }
    }

    fn publish(&self, keys: Option<Vec<Value>>) {
        *self.keys.lock().unwrap() = keys;
    }
}

/// H1: a key that was stolen and revoked works no longer than `jwks_max_stale`, although the endpoint of the issuer is down, and not
/// after it is back.
#[test]
fn h1_revoked_key_expires_while_the_endpoint_of_the_issuer_is_down() {
    let (stolen, new) = (Signer::new("stolen"), Signer::new("new"));
    let issuer = Issuer::start(vec![stolen.jwk()]);
    let at = Installation::new(&format!(
        "[auth.jwt]\nissuer = 'https://id.example'\naudience = 'baton'\nalgorithms = ['ES256']\njwks_url = 'http://{}/keys'\n\
         jwks_max_stale = '{}s'\n",
        issuer.address,
        MAX_STALE.as_secs()
    ));
    let served = Served::start(at.dir());
    let status = |token: &str| at.send(&served, token, "GET", "/api/v1/threads", None).0;
    let token = stolen.token();
    assert_eq!(status(&token), 200);
    // While the issuer can be reached, its keys never get too old.
    let up = Instant::now();
    while up.elapsed() < MAX_STALE + Duration::from_secs(2) {
        assert_eq!(status(&token), 200);
        std::thread::sleep(Duration::from_millis(400));
    }
    // Revoked, and at the same moment the endpoint is down.
    issuer.publish(None);
    let down = Instant::now();
    let mut accepted = Duration::ZERO;
    // One more fetch may have been answered before, so the keys are at most that old at the end of this time.
    while down.elapsed() < MAX_STALE + Duration::from_secs(2) {
        match status(&token) {
            200 => accepted = down.elapsed(),
            503 => {}
            other => panic!("{other}"),
        }
        std::thread::sleep(Duration::from_millis(400));
    }
    assert!(accepted < MAX_STALE + Duration::from_secs(1), "accepted for {accepted:?}");
    assert_eq!(status(&token), 503, "until the issuer is back");
    assert_eq!(status(&new.token()), 503);
    issuer.publish(Some(vec![new.jwk()]));
    let until = Instant::now() + crate::served::LONG;
    while status(&new.token()) != 200 {
        assert!(Instant::now() < until, "the new keys are never fetched");
        std::thread::sleep(Duration::from_secs(2));
    }
    assert_eq!(status(&token), 401, "revoked");
}
