//! Signatures as in <https://www.standardwebhooks.com>: HMAC-SHA256 over id, time and body, so that a receiver can verify them with an
//! existing library.

use std::fmt;

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use secrecy::{ExposeSecret as _, SecretString};

/// A secret with this prefix is a key in Base64; any other is the key itself.
const ENCODED: &str = "whsec_";
/// Shorter keys can be guessed.
const MIN_BYTES: usize = 16;

pub(super) struct SigningKey(hmac::Key);

impl SigningKey {
    pub(super) fn new(secret: &SecretString) -> anyhow::Result<Self> {
        let secret = secret.expose_secret();
        let key = match secret.strip_prefix(ENCODED) {
            Some(encoded) => STANDARD
                .decode(encoded)
                .map_err(|_| anyhow::anyhow!("the part after `{ENCODED}` is not Base64"))?,
            None => secret.as_bytes().to_vec(),
        };
        anyhow::ensure!(key.len() >= MIN_BYTES, "it has to have at least {MIN_BYTES} bytes");
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, &key)))
    }

    /// The value of the header `webhook-signature`.
    pub(super) fn sign(&self, id: &str, timestamp: i64, body: &[u8]) -> String {
        let mut context = hmac::Context::with_key(&self.0);
        context.update(format!("{id}.{timestamp}.").as_bytes());
        context.update(body);
        format!("v1,{}", STANDARD.encode(context.sign()))
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SigningKey(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(secret: &str) -> anyhow::Result<SigningKey> {
        SigningKey::new(&SecretString::from(secret))
    }

    /// The example of the specification.
    #[test]
    fn signatures_are_those_of_the_specification() {
        let key = key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let signed = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, br#"{"test": 2432232314}"#);
        assert_eq!(signed, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
        assert_eq!(format!("{key:?}"), "SigningKey(…)");
    }

    #[test]
    fn weak_secrets_are_refused() {
        assert!(key("short").is_err());
        assert!(key("whsec_???").is_err());
        assert!(key("sixteen bytes ok").is_ok());
    }
}
