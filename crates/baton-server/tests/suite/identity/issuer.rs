//! Somebody who issues tokens, and publishes keys on loopback.

use std::sync::{Arc, Mutex, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::encoding::{AsDer as _, Pkcs8V1Der, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    KeyPair as _,
};
use axum::Json;
use axum::routing::get;
use base64::Engine as _;
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
use http::StatusCode;
use jsonwebtoken::jwk::Jwk;
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use serde_json::{Value, json};
use tokio::task::JoinHandle;

pub const ISSUER: &str = "https://id.example";
pub const AUDIENCE: &str = "baton";
pub const SECRET: &str = "a secret that is long enough for HS256";

/// A key pair with its name.
pub struct Signer {
    pub id: Option<String>,
    algorithm: Algorithm,
    key: EncodingKey,
    pub public_pem: String,
    pub private_pem: String,
}

fn pem(label: &str, der: &[u8]) -> String {
    let text = BASE64_STANDARD.encode(der);
    let lines: Vec<&str> = text.as_bytes().chunks(64).map(|line| str::from_utf8(line).unwrap()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

impl Signer {
    /// Making one takes a moment, so each test makes only one.
    pub fn rsa() -> Self {
        static PEMS: OnceLock<(String, String)> = OnceLock::new();
        let (private_pem, public_pem) = PEMS
            .get_or_init(|| {
                let pair = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
                let private: Pkcs8V1Der<'_> = pair.as_der().unwrap();
                let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
                (pem("PRIVATE KEY", private.as_ref()), pem("PUBLIC KEY", public.as_ref()))
            })
            .clone();
        let key = EncodingKey::from_rsa_pem(private_pem.as_bytes()).unwrap();
        Self { id: None, algorithm: Algorithm::RS256, key, public_pem, private_pem }
    }

    pub fn ec() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let private_pem = pem("PRIVATE KEY", pair.to_pkcs8v1().unwrap().as_ref());
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        let key = EncodingKey::from_ec_pem(private_pem.as_bytes()).unwrap();
        let public_pem = pem("PUBLIC KEY", public.as_ref());
        Self { id: None, algorithm: Algorithm::ES256, key, public_pem, private_pem }
    }

    pub fn ec384() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap();
        let private_pem = pem("PRIVATE KEY", pair.to_pkcs8v1().unwrap().as_ref());
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        let key = EncodingKey::from_ec_pem(private_pem.as_bytes()).unwrap();
        let public_pem = pem("PUBLIC KEY", public.as_ref());
        Self { id: None, algorithm: Algorithm::ES384, key, public_pem, private_pem }
    }

    pub fn ed() -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        let private_pem = pem("PRIVATE KEY", pair.to_pkcs8v1().unwrap().as_ref());
        let public: PublicKeyX509Der<'_> = pair.public_key().as_der().unwrap();
        let key = EncodingKey::from_ed_pem(private_pem.as_bytes()).unwrap();
        let public_pem = pem("PUBLIC KEY", public.as_ref());
        Self { id: None, algorithm: Algorithm::EdDSA, key, public_pem, private_pem }
    }

    /// With another algorithm of the same kind of key.
    pub fn by(mut self, algorithm: Algorithm) -> Self {
        self.algorithm = algorithm;
        self
    }

    pub fn secret(secret: &[u8]) -> Self {
        let key = EncodingKey::from_secret(secret);
        let (public_pem, private_pem) = (String::new(), String::new());
        Self { id: None, algorithm: Algorithm::HS256, key, public_pem, private_pem }
    }

    pub fn named(mut self, id: &str) -> Self {
        self.id = Some(id.to_owned());
        self
    }

    pub fn sign(&self, claims: &Value) -> String {
        let header = Header { kid: self.id.clone(), ..Header::new(self.algorithm) };
        jsonwebtoken::encode(&header, claims, &self.key).unwrap()
    }

    /// With any header, whatever it says about the algorithm.
    pub fn sign_under(&self, header: &Value, claims: &Value) -> String {
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let message = format!("{}.{}", part(header), part(claims));
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &self.key, self.algorithm).unwrap();
        format!("{message}.{signature}")
    }

    pub fn jwk(&self) -> Value {
        let mut jwk = Jwk::from_encoding_key(&self.key, self.algorithm).unwrap();
        jwk.common.key_id.clone_from(&self.id);
        serde_json::to_value(jwk).unwrap()
    }
}

pub fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().try_into().unwrap()
}

/// Claims that are all right.
pub fn claims() -> Value {
    json!({
        "iss": ISSUER,
        "aud": AUDIENCE,
        "exp": now() + 600,
        "sub": "ann",
        "tenant_id": "acme",
        "roles": ["user"],
    })
}

/// The same with one of them changed, or left out if it is null.
pub fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    if value.is_null() {
        claims.as_object_mut().unwrap().remove(name);
    } else {
        claims[name] = value;
    }
    claims
}

/// Where keys are published. What it answers can be changed, and how often it was asked is counted.
pub struct Published {
    pub url: String,
    answer: Arc<Mutex<(StatusCode, Value, usize)>>,
    serving: JoinHandle<()>,
}

impl Published {
    pub async fn start(keys: &[Value]) -> Self {
        let answer = Arc::new(Mutex::new((StatusCode::OK, json!({ "keys": keys }), 0)));
        let shared = Arc::clone(&answer);
        let route = get(async move || {
            let mut answer = shared.lock().unwrap();
            answer.2 += 1;
            (answer.0, [("location", "http://127.0.0.1:1/")], Json(answer.1.clone()))
        });
        let router = axum::Router::new().route("/keys", route);
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, answer, serving }
    }

    pub fn publish(&self, keys: &[Value]) {
        self.answer(StatusCode::OK, json!({ "keys": keys }));
    }

    pub fn answer(&self, status: StatusCode, body: Value) {
        let mut answer = self.answer.lock().unwrap();
        (answer.0, answer.1) = (status, body);
    }

    pub fn asked(&self) -> usize {
        self.answer.lock().unwrap().2
    }
}

impl Drop for Published {
    fn drop(&mut self) {
        self.serving.abort();
    }
}
