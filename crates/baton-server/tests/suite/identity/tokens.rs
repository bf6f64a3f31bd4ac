//! Tokens of an issuer, as the issuer makes them and as others would like to.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use baton_models::scripted::{Scripted, ScriptedTurn};
use baton_server::identity::jwks;
use baton_server::identity::token::{
    Algorithm, ClaimNames, InvalidTokens, KeySource, TokenTrust, TokenVerifier,
};
use http::StatusCode;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::issuer::{AUDIENCE, ISSUER, Published, SECRET, Signer, claims, now, with};
use super::{plan, refused};
use crate::client::Frames;
use crate::person::{Person, new_thread};
use crate::site::{Plan, Site};

const NOT_VALID: &str = "the credential is not valid";

fn trust(algorithms: &[Algorithm]) -> TokenTrust {
    TokenTrust {
        issuer: ISSUER.to_owned(),
        audience: AUDIENCE.to_owned(),
        algorithms: algorithms.to_vec(),
        secret: None,
        keys: None,
        claims: ClaimNames::default(),
    }
}

async fn trusting(trust: TokenTrust) -> Site {
    let tokens = Arc::new(TokenVerifier::new(trust).unwrap());
    plan().settings(|settings| settings.auth.tokens = Some(tokens)).start().await
}

async fn fetching(published: &Published, pause: Duration) -> Site {
    let mut settings = jwks::JwksSettings::new(&published.url);
    settings.pause = pause;
    let keys = Some(KeySource::Jwks(settings));
    trusting(TokenTrust { keys, ..trust(&[Algorithm::Rs256, Algorithm::Es256]) }).await
}

async fn refuse(site: &Site, token: &str) -> String {
    refused(site.request().bearer_auth(token)).await
}

/// Everything that is checked whatever the token was signed with.
async fn check_claims(site: &Site, signer: &Signer) {
    let ann = site.principal(&signer.sign(&claims())).await;
    assert_eq!((ann.tenant.as_str(), ann.user.as_str()), ("acme", "ann"));
    assert!(ann.may("thread:write") && !ann.may("audit:read"));
    let good = [
        with("roles", Value::Null),
        with("roles", json!(["nonsense", ""])),
        with("aud", json!(["somebody", AUDIENCE])),
        with("exp", json!(now() - 10)),
        with("nbf", json!(now() + 10)),
        with("more", json!({"deep": [1, 2, 3]})),
    ];
    for claims in good {
        assert_eq!(site.status(&signer.sign(&claims)).await, 200, "{claims}");
    }
    let bad = [
        with("iss", json!("https://evil.example")),
        with("iss", json!([ISSUER])),
        with("iss", Value::Null),
        with("aud", json!("somebody")),
        with("aud", json!([])),
        with("aud", Value::Null),
        with("exp", Value::Null),
        with("exp", json!("tomorrow")),
        with("exp", json!(-1)),
        with("nbf", json!(now() + 600)),
        with("nbf", json!("now")),
        with("sub", Value::Null),
        with("sub", json!("")),
        with("sub", json!("a\u{0}b")),
        with("sub", json!(7)),
        with("tenant_id", Value::Null),
        with("tenant_id", json!("")),
        with("tenant_id", json!("x".repeat(256))),
        with("tenant_id", json!(["acme"])),
        with("roles", json!("admin")),
        with("roles", json!([{"name": "admin"}])),
    ];
    for claims in bad {
        assert_eq!(refuse(site, &signer.sign(&claims)).await, NOT_VALID, "{claims}");
    }
    let expired = signer.sign(&with("exp", json!(now() - 600)));
    assert_eq!(refuse(site, &expired).await, "the token has expired");
}

/// What somebody makes of a good token, or without any key.
async fn check_forgeries(site: &Site, signer: &Signer) {
    let token = signer.sign(&claims());
    let parts: Vec<&str> = token.split('.').collect();
    let other = signer.sign(&with("roles", json!(["admin"])));
    let swapped: Vec<&str> = other.split('.').collect();
    let forged = [
        format!("{}.{}.{}", parts[0], swapped[1], parts[2]),
        format!("{}.{}.", parts[0], parts[1]),
        format!("{}.{}.{}", parts[0], parts[1], "AAAA"),
        format!("{}.{}", parts[0], parts[1]),
        format!("{}.{}.{}x", parts[0], parts[1], parts[2]),
        format!(".{}.{}", parts[1], parts[2]),
    ];
    for token in forged {
        assert_eq!(refuse(site, &token).await, NOT_VALID, "{token}");
    }
    for algorithm in ["none", "None", "NONE", "nOnE", "", "HS512", "EdDSA", "PS256"] {
        let token = signer.sign_under(&json!({"alg": algorithm, "typ": "JWT"}), &claims());
        assert_eq!(refuse(site, &token).await, NOT_VALID, "{algorithm}");
        let (unsigned, _) = token.rsplit_once('.').unwrap();
        assert_eq!(refuse(site, &format!("{unsigned}.")).await, NOT_VALID, "{algorithm}");
    }
}

#[tokio::test]
async fn hs256_is_checked_with_the_secret() {
    let secret = Some(SecretString::from(SECRET));
    let site = trusting(TokenTrust { secret, ..trust(&[Algorithm::Hs256]) }).await;
    let signer = Signer::secret(SECRET.as_bytes());
    check_claims(&site, &signer).await;
    check_forgeries(&site, &signer).await;
    let other = Signer::secret(b"another secret that is long enough too");
    assert_eq!(refuse(&site, &other.sign(&claims())).await, NOT_VALID);
    let critical = json!({"alg": "HS256", "crit": ["b64"], "b64": false});
    assert_eq!(refuse(&site, &signer.sign_under(&critical, &claims())).await, NOT_VALID);
    assert_eq!(site.status(&site.key("acme", "bob", &["viewer"]).await).await, 200, "keys are good as well");
    site.end().await;
}

#[tokio::test]
async fn tokens_of_an_address_over_its_limit_are_not_verified() {
    let secret = Some(SecretString::from(SECRET));
    let site = trusting(TokenTrust { secret, ..trust(&[Algorithm::Hs256]) }).await;
    let good = Signer::secret(SECRET.as_bytes()).sign(&claims());
    let forged = Signer::secret(b"another secret that is long enough too").sign(&claims());
    for _ in 0..80 {
        assert_eq!(site.status(&good).await, 200, "verified tokens do not count");
    }
    let mut is_refused = false;
    // More than once: the limit grows again between two requests.
    for _ in 0..20 {
        while site.status(&forged).await != 429 {}
        is_refused |= site.status(&good).await == 429;
    }
    assert!(is_refused);
    site.end().await;
}

#[tokio::test]
async fn rs256_is_checked_with_public_keys() {
    let signer = Signer::rsa();
    let keys = Some(KeySource::Pem(signer.public_pem.clone()));
    let site = trusting(TokenTrust { keys, ..trust(&[Algorithm::Rs256]) }).await;
    check_claims(&site, &signer).await;
    check_forgeries(&site, &signer).await;
    site.end().await;
}

#[tokio::test]
async fn es256_is_checked_with_public_keys_of_which_there_may_be_several() {
    let (old, new) = (Signer::ec(), Signer::ec());
    let keys = Some(KeySource::Pem(format!("{}\n{}", old.public_pem, new.public_pem)));
    let site = trusting(TokenTrust { keys, ..trust(&[Algorithm::Es256]) }).await;
    check_claims(&site, &new.named("whatever")).await;
    check_forgeries(&site, &old).await;
    assert_eq!(refuse(&site, &Signer::ec().sign(&claims())).await, NOT_VALID);
    site.end().await;
}

/// A public key is known to all, so it must never be taken for a secret, nor the secret for a public key.
#[tokio::test]
async fn a_key_checks_only_what_it_is_for() {
    let (rsa, ec) = (Signer::rsa(), Signer::ec());
    let keys = || Some(KeySource::Pem(format!("{}{}", rsa.public_pem, ec.public_pem)));
    let public = trusting(TokenTrust { keys: keys(), ..trust(&[Algorithm::Rs256, Algorithm::Es256]) }).await;
    let secret = Some(SecretString::from(SECRET));
    let algorithms = [Algorithm::Hs256, Algorithm::Rs256, Algorithm::Es256];
    let all = trusting(TokenTrust { keys: keys(), secret, ..trust(&algorithms) }).await;
    let pems = [rsa.public_pem.as_bytes(), rsa.public_pem.trim_end().as_bytes(), ec.public_pem.as_bytes()];
    for pem in pems {
        let forged = Signer::secret(pem);
        for header in ["HS256", "RS256", "ES256"] {
            let token = forged.sign_under(&json!({"alg": header, "typ": "JWT"}), &claims());
            assert_eq!(refuse(&public, &token).await, NOT_VALID, "{header}");
            assert_eq!(refuse(&all, &token).await, NOT_VALID, "{header}");
        }
    }
    let hs = Signer::secret(SECRET.as_bytes());
    for (signer, header) in [(&rsa, "ES256"), (&rsa, "HS256"), (&ec, "RS256"), (&ec, "HS256"), (&hs, "RS256")]
    {
        let token = signer.sign_under(&json!({"alg": header, "typ": "JWT"}), &claims());
        assert_eq!(refuse(&all, &token).await, NOT_VALID, "{header}");
    }
    assert_eq!(refuse(&public, &hs.sign(&claims())).await, NOT_VALID, "it is not allowed there");
    for signer in [&rsa, &ec, &hs] {
        assert_eq!(all.status(&signer.sign(&claims())).await, 200);
    }
    // A key that the token brings along is nobody's.
    let own = Signer::ec();
    let token =
        own.sign_under(&json!({"alg": "ES256", "jwk": own.jwk(), "jku": "http://127.0.0.1:1"}), &claims());
    assert_eq!(refuse(&all, &token).await, NOT_VALID);
    public.end().await;
    all.end().await;
}

/// Every algorithm but those with a shared secret, each with a key of its kind.
#[tokio::test]
async fn all_kinds_of_public_keys_check_their_own_algorithms() {
    use jsonwebtoken::Algorithm as Native;
    let (ec, ec384, ed) = (Signer::ec(), Signer::ec384(), Signer::ed());
    let pems = format!("{}{}{}{}", Signer::rsa().public_pem, ec.public_pem, ec384.public_pem, ed.public_pem);
    let public: Vec<Algorithm> =
        Algorithm::ALL.iter().copied().filter(|algorithm| !algorithm.is_symmetric()).collect();
    let keys = || Some(KeySource::Pem(pems.clone()));
    let only = trusting(TokenTrust { keys: keys(), ..trust(&[Algorithm::Ps256]) }).await;
    let rsa = [Native::RS256, Native::RS384, Native::RS512, Native::PS256, Native::PS384, Native::PS512];
    let signers = rsa.into_iter().map(|algorithm| Signer::rsa().by(algorithm)).chain([ec, ec384, ed]);
    for signer in signers {
        // A server for each of them, because failures are limited per address.
        let all = trusting(TokenTrust { keys: keys(), ..trust(&public) }).await;
        let token = signer.sign(&claims());
        assert_eq!(all.status(&token).await, 200, "{token}");
        let header = jsonwebtoken::decode_header(&token).unwrap().alg;
        let expected = if header == Native::PS256 { 200 } else { 401 };
        assert_eq!(only.status(&token).await, expected, "{header:?} where only PS256 is allowed");
        // The header does not choose the key.
        for other in ["HS256", "RS256", "PS512", "ES256", "ES384", "EdDSA", "ES512", "none"] {
            if format!("{header:?}") != other {
                let token = signer.sign_under(&json!({"alg": other, "typ": "JWT"}), &claims());
                assert_eq!(refuse(&all, &token).await, NOT_VALID, "{header:?} as {other}");
            }
        }
        let forged = Signer::secret(signer.public_pem.as_bytes());
        for header in ["HS256", "RS256", "PS256", "ES384", "EdDSA"] {
            let token = forged.sign_under(&json!({"alg": header}), &claims());
            assert_eq!(refuse(&all, &token).await, NOT_VALID, "a public key is no secret");
        }
        all.end().await;
    }
    only.end().await;
}

/// Issuers name claims as they like, also in nested objects.
#[tokio::test]
async fn claims_are_read_by_the_configured_names() {
    let names = |tenant: &str| ClaimNames {
        user: "email".to_owned(),
        tenant: tenant.to_owned(),
        roles: "realm_access.roles".to_owned(),
    };
    let signer = Signer::secret(SECRET.as_bytes());
    let secret = || Some(SecretString::from(SECRET));
    let own = |tenant: Value| {
        let mut claims = with("sub", Value::Null);
        let fields = claims.as_object_mut().unwrap();
        fields.remove("tenant_id");
        fields.insert("email".to_owned(), json!("ann@example.com"));
        fields.insert("realm_access".to_owned(), json!({ "roles": ["user"] }));
        fields.insert("org".to_owned(), json!({ "id": tenant.clone() }));
        fields.insert("https://example.com/tenant".to_owned(), tenant);
        // What the usual names say does not count.
        fields.insert("roles".to_owned(), json!(["admin"]));
        claims
    };
    for tenant in ["org.id", "https://example.com/tenant"] {
        let trust = TokenTrust { secret: secret(), claims: names(tenant), ..trust(&[Algorithm::Hs256]) };
        let site = trusting(trust).await;
        let ann = site.principal(&signer.sign(&own(json!("acme")))).await;
        assert_eq!((ann.tenant.as_str(), ann.user.as_str()), ("acme", "ann@example.com"));
        assert!(ann.may("thread:write") && !ann.may("admin:*"));
        assert_eq!(refuse(&site, &signer.sign(&claims())).await, NOT_VALID, "the usual names");
        for bad in [json!(7), json!(["acme"]), json!(null), json!("_system")] {
            assert_eq!(refuse(&site, &signer.sign(&own(bad))).await, NOT_VALID);
        }
        site.end().await;
    }
}

/// A revoked key works no longer than `max_stale`, although the issuer cannot be reached.
#[tokio::test]
async fn a_revoked_key_expires_while_the_issuer_is_down() {
    let signer = Signer::ec().named("stolen");
    let published = Published::start(&[signer.jwk()]).await;
    let (start, passed) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let minutes = Arc::clone(&passed);
    let clock = jwks::Clock(Arc::new(move || start + Duration::from_mins(minutes.load(Ordering::SeqCst))));
    let settings =
        jwks::JwksSettings { pause: Duration::ZERO, clock, ..jwks::JwksSettings::new(&published.url) };
    let keys = Some(KeySource::Jwks(settings));
    let site = trusting(TokenTrust { keys, ..trust(&[Algorithm::Es256]) }).await;
    let token = signer.sign(&claims());
    assert_eq!(site.status(&token).await, 200);
    published.answer(StatusCode::BAD_GATEWAY, json!({}));
    passed.store(59, Ordering::SeqCst);
    assert_eq!(site.status(&token).await, 200, "the keys are not too old yet");
    passed.store(60, Ordering::SeqCst);
    assert_eq!(site.status(&token).await, 503);
    assert_eq!(site.status(&token).await, 503, "until the issuer is back");
    published.publish(&[Signer::ec().named("new").jwk()]);
    assert_eq!(refuse(&site, &token).await, NOT_VALID);
    published.publish(&[signer.jwk()]);
    passed.store(200, Ordering::SeqCst);
    assert_eq!(site.status(&token).await, 200);
    site.end().await;
}

#[tokio::test]
async fn published_keys_are_fetched_once_and_again_when_one_is_unknown() {
    let (first, second, third) = (Signer::ec().named("1"), Signer::rsa().named("2"), Signer::ec().named("3"));
    let published = Published::start(&[first.jwk()]).await;
    let site = fetching(&published, Duration::from_hours(1)).await;
    assert_eq!(published.asked(), 0, "nobody needs them yet");
    let tokens: Vec<String> = (0..20).map(|_| first.sign(&claims())).collect();
    let statuses = futures_util::future::join_all(tokens.iter().map(|token| site.status(token))).await;
    assert_eq!((statuses, published.asked()), (vec![200; 20], 1));

    published.publish(&[first.jwk(), second.jwk()]);
    let token = second.sign(&claims());
    let statuses = futures_util::future::join_all((0..20).map(|_| site.status(&token))).await;
    assert_eq!((statuses, published.asked()), (vec![200; 20], 2));

    // Anybody can make up names of keys, so that they are looked for only now and then.
    published.publish(&[third.jwk()]);
    assert_eq!(refuse(&site, &third.sign(&claims())).await, NOT_VALID);
    assert_eq!(refuse(&site, &Signer::ec().named("evil").sign(&claims())).await, NOT_VALID);
    assert_eq!((site.status(&token).await, published.asked()), (200, 2));
    site.end().await;
}

#[tokio::test]
async fn rotated_keys_replace_the_old_ones() {
    let (old, new) = (Signer::ec().named("old"), Signer::ec().named("new"));
    let published = Published::start(&[old.jwk()]).await;
    let site = fetching(&published, Duration::ZERO).await;
    assert_eq!(site.status(&old.sign(&claims())).await, 200);
    assert_eq!(refuse(&site, &new.sign(&claims())).await, NOT_VALID);
    published.publish(&[new.jwk()]);
    assert_eq!(site.status(&new.sign(&claims())).await, 200);
    assert_eq!(refuse(&site, &old.sign(&claims())).await, NOT_VALID, "it was taken back");
    // The name of a key is no proof.
    assert_eq!(refuse(&site, &Signer::ec().named("new").sign(&claims())).await, NOT_VALID);
    site.end().await;
}

/// Only keys to verify RS256 and ES256 with count, whatever else the issuer publishes.
#[tokio::test]
async fn other_published_keys_are_ignored() {
    let (good, encrypting, ps) = (Signer::ec(), Signer::ec().named("enc"), Signer::rsa().named("ps"));
    let mut for_encryption = encrypting.jwk();
    for_encryption["use"] = json!("enc");
    let mut for_ps = ps.jwk();
    for_ps["alg"] = json!("PS256");
    let symmetric = Signer::secret(SECRET.as_bytes()).named("oct");
    let strange = [json!({"kty": "OKP", "crv": "X25519", "x": "AA"}), json!({}), json!(7)];
    let keys = [&[for_encryption, for_ps, symmetric.jwk()][..], &strange, &[good.jwk()]].concat();
    let published = Published::start(&keys).await;
    let site = fetching(&published, Duration::ZERO).await;
    assert_eq!(site.status(&good.sign(&claims())).await, 200, "it has no name, and is the only one");
    for signer in [&encrypting, &ps, &symmetric] {
        assert_eq!(refuse(&site, &signer.sign(&claims())).await, NOT_VALID, "{:?}", signer.id);
    }
    site.end().await;
}

#[tokio::test]
async fn keys_are_kept_when_the_issuer_fails() {
    let (known, unknown) = (Signer::ec().named("1"), Signer::ec().named("2"));
    let published = Published::start(&[known.jwk()]).await;
    let site = fetching(&published, Duration::ZERO).await;
    assert_eq!(site.status(&known.sign(&claims())).await, 200);
    let failures = [
        (StatusCode::INTERNAL_SERVER_ERROR, json!({ "keys": [unknown.jwk()] })),
        // A redirect is not followed: only the address that was configured is trusted.
        (StatusCode::FOUND, json!({ "keys": [unknown.jwk()] })),
        (StatusCode::OK, json!({ "keys": [] })),
        (StatusCode::OK, json!({ "no": "keys" })),
        (StatusCode::OK, json!({ "keys": [unknown.jwk()], "padding": "x".repeat(2 << 20) })),
    ];
    for (status, body) in failures {
        let before = published.asked();
        published.answer(status, body);
        assert_eq!(refuse(&site, &unknown.sign(&claims())).await, NOT_VALID);
        assert_eq!((site.status(&known.sign(&claims())).await, published.asked()), (200, before + 1));
    }
    site.end().await;
}

/// Without keys nobody can tell, and that is not the caller's fault.
#[tokio::test]
async fn without_any_keys_the_server_says_that_it_cannot_tell() {
    let signer = Signer::ec().named("1");
    let published = Published::start(&[signer.jwk()]).await;
    published.answer(StatusCode::BAD_GATEWAY, json!({}));
    let site = fetching(&published, Duration::ZERO).await;
    let answer = site.request().bearer_auth(signer.sign(&claims())).send().await.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &"1".parse().unwrap()));
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "identity_unavailable");
    assert!(!problem.to_string().contains("127.0.0.1"), "{problem}");
    published.publish(&[signer.jwk()]);
    assert_eq!(site.status(&signer.sign(&claims())).await, 200);
    site.end().await;
}

/// A mistake is found when the server starts, not when somebody is refused.
#[test]
fn settings_that_cannot_work_are_refused() {
    let error = |trust: TokenTrust| TokenVerifier::new(trust).unwrap_err();
    let (rsa, ec) = (Signer::rsa(), Signer::ec());
    let pem = |text: &str| Some(KeySource::Pem(text.to_owned()));
    let url = |text: &str| Some(KeySource::Jwks(jwks::JwksSettings::new(text)));
    let hs = [Algorithm::Hs256];
    let rs = [Algorithm::Rs256];
    let short = Some(SecretString::from("short"));
    assert!(matches!(error(trust(&[])), InvalidTokens::Empty));
    assert!(matches!(error(TokenTrust { audience: String::new(), ..trust(&rs) }), InvalidTokens::Empty));
    assert!(matches!(error(trust(&hs)), InvalidTokens::NoSecret));
    assert!(matches!(error(TokenTrust { secret: short, ..trust(&hs) }), InvalidTokens::ShortSecret));
    assert!(matches!(error(trust(&rs)), InvalidTokens::NoKeys));
    for bad in
        ["", "not a key", "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----", &rsa.private_pem]
    {
        assert!(matches!(error(TokenTrust { keys: pem(bad), ..trust(&rs) }), InvalidTokens::Pem(_)), "{bad}");
    }
    let missing = error(TokenTrust { keys: pem(&ec.public_pem), ..trust(&rs) });
    assert!(matches!(missing, InvalidTokens::NoKeyFor(Algorithm::Rs256)), "{missing}");
    for bad in ["", "id.example", "http://id.example/keys", "https://u:p@id.example/keys", "file:///etc/keys"]
    {
        assert!(matches!(error(TokenTrust { keys: url(bad), ..trust(&rs) }), InvalidTokens::Url(_)), "{bad}");
    }
    for good in
        ["https://id.example/keys", "http://127.0.0.1:1/keys", "http://localhost/keys", "http://[::1]/"]
    {
        assert!(TokenVerifier::new(TokenTrust { keys: url(good), ..trust(&rs) }).is_ok(), "{good}");
    }
    let secret = Some(SecretString::from(SECRET));
    let printed = format!("{:?}", TokenVerifier::new(TokenTrust { secret, ..trust(&hs) }).unwrap());
    assert!(!printed.contains("a secret"), "{printed}");
}

/// Whoever listens longer than their token lasts has to come back with a new one.
#[tokio::test]
async fn a_stream_ends_when_its_token_does() {
    let secret = Some(SecretString::from(SECRET));
    let tokens = Arc::new(TokenVerifier::new(TokenTrust { secret, ..trust(&[Algorithm::Hs256]) }).unwrap());
    let model = Scripted::default().script("assistant", [ScriptedTurn::text("Hi.")]);
    let plan = Plan::new(&model).required().settings(|settings| {
        settings.auth.tokens = Some(tokens);
        settings.heartbeat = Duration::from_millis(100);
    });
    let site = plan.start().await;
    let signer = Signer::secret(SECRET.as_bytes());
    let thread = new_thread();
    let lasting = Person { site: &site, key: signer.sign(&claims()) };
    lasting.ask(&thread, "Hello").await;
    // Clocks may be half a minute apart, so this one has a second or two left.
    let ending = Person { site: &site, key: signer.sign(&with("exp", json!(now() - 28))) };
    let mut frames = Frames::of(ending.get(&format!("/api/v1/threads/{thread}/events")).await);
    while frames.next().await.is_some() {}
    assert!(frames.is_cut && frames.asides.iter().any(|line| line.contains("not valid any more")));
    site.end().await;
}
