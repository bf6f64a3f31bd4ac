//! Who is asking: keys and tokens, good and bad, and what nobody can choose for themselves.

mod issuer;
mod tokens;

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton_core::store::PageRequest;
use baton_core::{Permission, TenantId};
use baton_models::scripted::{Scripted, ScriptedTurn};
use baton_server::client_address::ClientAddress;
use baton_server::identity::Principal;
use baton_server::identity::roles::PERMISSIONS;
use http::HeaderMap;
use reqwest::RequestBuilder;
use serde_json::Value;

use crate::client::{Frame, Frames};
use crate::person::new_thread;
use crate::site::{LONG, Plan, Site, memory};

const HERE: ClientAddress = ClientAddress(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST));

/// A route that everybody may use who is somebody.
const ANY: &str = "/version";

fn plan() -> Plan {
    Plan::new(&Scripted::default()).required()
}

impl Site {
    fn request(&self) -> RequestBuilder {
        self.http.get(self.url(ANY))
    }

    async fn status(&self, credential: &str) -> u16 {
        let answer = self.request().bearer_auth(credential).send().await.unwrap();
        answer.status().as_u16()
    }

    /// Whom the server takes somebody for.
    async fn principal(&self, credential: &str) -> Arc<Principal> {
        let headers = HeaderMap::from_iter([(
            http::header::AUTHORIZATION,
            format!("Bearer {credential}").parse().unwrap(),
        )]);
        self.app.identity.authenticate(&headers, HERE).await.expect("accepted")
    }
}

/// Refused without a reason that helps to guess, and without what was sent.
async fn refused(request: RequestBuilder) -> String {
    let sent = request.try_clone().unwrap().build().unwrap();
    let answer = request.send().await.unwrap();
    assert_eq!(
        (answer.status().as_u16(), &answer.headers()["www-authenticate"]),
        (401, &"Bearer".parse().unwrap())
    );
    let body = answer.text().await.unwrap();
    for value in sent.headers().get_all("authorization") {
        let secret = value.as_bytes().split(|byte| *byte == b' ').next_back().unwrap_or_default();
        assert!(secret.is_empty() || !body.contains(&*String::from_utf8_lossy(secret)), "{body}");
    }
    let problem: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(problem["code"], "unauthenticated");
    problem["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_key_made_while_the_server_runs_is_good_until_it_is_revoked() {
    let site = plan().start().await;
    let key = site.key("acme", "ann", &["user", "nonsense"]).await;
    let ann = site.principal(&key).await;
    assert_eq!((ann.tenant.as_str(), ann.user.as_str()), ("acme", "ann"));
    assert!(ann.may("thread:write") && !ann.may("trace:read"));
    assert_eq!(site.status(&key).await, 200);

    let acme = site.app.store().tenant(&TenantId::parse("acme").unwrap());
    let kept = acme.keys().await.unwrap().remove(0);
    assert!(key.starts_with(&kept.prefix) && !format!("{kept:?}").contains(&key[20..]));
    acme.revoke_key(kept.key_id).await.unwrap();
    let start = Instant::now();
    while site.status(&key).await == 200 {
        assert!(start.elapsed() < LONG, "it is still accepted");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    assert_eq!(refused(site.request().bearer_auth(&key)).await, "the credential is not valid");
    site.end().await;
}

/// A stream may be open for days.
#[tokio::test]
async fn a_stream_ends_soon_after_its_key_is_revoked() {
    let model = Scripted::default().script("assistant", [ScriptedTurn::text("Hi.")]);
    let plan = Plan::new(&model).required();
    let site = plan.settings(|settings| settings.heartbeat = Duration::from_millis(100)).start().await;
    let (ann, bob) =
        (site.person("acme", "ann", &["user"]).await, site.person("acme", "bob", &["admin"]).await);
    let thread = new_thread();
    ann.ask(&thread, "Hello").await;
    let path = format!("/api/v1/threads/{thread}/events");
    let mut hers = Frames::of(ann.get(&path).await);
    let mut his = Frames::of(bob.get(&path).await);
    let acme = site.app.store().tenant(&TenantId::parse("acme").unwrap());
    let kept = acme.keys().await.unwrap().into_iter().find(|key| key.user_id.as_str() == "ann").unwrap();
    acme.revoke_key(kept.key_id).await.unwrap();
    while hers.next().await.is_some() {}
    assert!(hers.is_cut, "it must not look as if nothing followed");
    let is_told = hers.asides.iter().any(|line| line.contains("not valid any more"));
    assert!(is_told, "{:?}", hers.asides);
    his.until(Frame::is_end).await;
    assert!(tokio::time::timeout(Duration::from_millis(300), his.next()).await.is_err(), "his goes on");
    site.end().await;
}

#[tokio::test]
async fn whoever_shows_nothing_or_nonsense_is_refused() {
    let site = plan().start().await;
    let key = site.key("acme", "ann", &["admin"]).await;
    let with = |value: &[u8]| site.request().header("authorization", value);
    assert!(refused(site.request()).await.contains("`Authorization: Bearer`"));
    let long = format!("Bearer {}", "a".repeat(20_000));
    let cases: Vec<Vec<u8>> = vec![
        b"Bearer".to_vec(),
        b"Bearer ".to_vec(),
        b"Basic YWRtaW46YWRtaW4=".to_vec(),
        format!("Basic {key}").into(),
        key.clone().into(),
        format!("Bearer {}", &key[..key.len() - 1]).into(),
        format!("Bearer {}x", &key[..key.len() - 1]).into(),
        format!("Bearer {}", key.to_uppercase()).into(),
        format!("Bearer {key},{key}").into(),
        b"Bearer a.b.c".to_vec(),
        b"Bearer ..".to_vec(),
        b"Bearer baton_' OR 1=1 --".to_vec(),
        "Bearer ключ.ключ.ключ".into(),
        b"Bearer \xff\xfe".to_vec(),
        long.into(),
    ];
    for case in cases {
        let text = String::from_utf8_lossy(&case[..case.len().min(60)]).into_owned();
        assert_eq!(refused(with(&case)).await, "the credential is not valid", "{text}");
    }
    let good = format!("Bearer {key}");
    let twice = with(good.as_bytes()).header("authorization", &good);
    assert_eq!(refused(twice).await, "the credential is not valid");
    assert_eq!(site.status(&key).await, 200);
    site.end().await;
}

/// 100 KB are too much for any header; whoever notices first says so.
#[tokio::test]
async fn a_huge_credential_is_refused_and_the_server_goes_on() {
    let site = plan().start().await;
    let key = site.key("acme", "ann", &["viewer"]).await;
    let huge = site.request().header("authorization", format!("Bearer {}", "a".repeat(100_000)));
    let status = huge.send().await.map(|answer| answer.status().as_u16());
    assert!(matches!(status, Ok(401 | 431) | Err(_)), "{status:?}");
    assert_eq!(site.status(&key).await, 200);
    site.end().await;
}

/// Browsers cannot set headers of a WebSocket, so the credential may stand among its protocols.
#[tokio::test]
async fn a_web_socket_may_send_its_credential_as_a_protocol() {
    let site = plan().start().await;
    let key = site.key("acme", "ann", &["viewer"]).await;
    let offer = |value: String| site.request().header("sec-websocket-protocol", value);
    let accepted = offer(format!("baton, bearer.{key}")).send().await.unwrap();
    assert_eq!(accepted.status(), 200);
    refused(offer("baton".to_owned())).await;
    refused(offer(format!("baton, bearer.{}", key.replace("baton_", "baton_x")))).await;
    refused(offer(format!("bearer.{key}")).bearer_auth(&key)).await;
    site.end().await;
}

#[tokio::test]
async fn the_credential_alone_decides_the_tenant() {
    let site = plan().start().await;
    let key = site.key("acme", "ann", &["viewer"]).await;
    let mut headers = HeaderMap::new();
    headers.insert("authorization", format!("Bearer {key}").parse().unwrap());
    for name in ["x-tenant-id", "x-tenant", "tenant", "x-user-id", "x-roles", "x-forwarded-user", "cookie"] {
        headers.insert(name, "globex".parse().unwrap());
    }
    let ann = site.app.identity.authenticate(&headers, HERE).await.unwrap();
    assert_eq!((ann.tenant.as_str(), ann.user.as_str()), ("acme", "ann"));
    assert_eq!((&ann.roles[..], ann.may("thread:write")), (&["viewer".to_owned()][..], false));
    let request = site.http.get(site.url("/version?tenant_id=globex")).bearer_auth(&key);
    let sent = request.header("x-tenant-id", "globex").body(r#"{"tenant_id": "globex"}"#).send().await;
    assert_eq!(sent.unwrap().status(), 200);
    let tenants = site.app.store().tenants().await.unwrap();
    assert_eq!(tenants, [TenantId::parse("acme").unwrap()], "nobody else came to be");
    site.end().await;
}

#[tokio::test]
async fn roles_add_up_and_can_be_changed() {
    let permissions = |list: &[&str]| list.iter().map(|text| Permission::parse(text).unwrap()).collect();
    let site = plan()
        .settings(|settings| {
            settings.auth.roles.insert("viewer".to_owned(), permissions(&["agent:read"]));
            settings.auth.roles.insert("auditor".to_owned(), permissions(&["audit:*", "usage:read"]));
        })
        .start()
        .await;
    let held = async |roles: &[&str]| {
        let key = site.key("acme", "ann", roles).await;
        let somebody = site.principal(&key).await;
        PERMISSIONS.iter().copied().filter(|permission| somebody.may(permission)).collect::<Vec<_>>()
    };
    assert_eq!(held(&["viewer"]).await, ["agent:read"]);
    assert_eq!(held(&["viewer", "auditor"]).await, ["agent:read", "usage:read", "audit:read"]);
    assert_eq!(held(&["nobody"]).await, [""; 0]);
    assert_eq!(held(&["admin"]).await, PERMISSIONS);
    assert!(held(&["operator"]).await.contains(&"run:cancel"));
    site.end().await;
}

/// A page that a person visits can make their browser call this machine, under any name that it owns.
#[tokio::test]
async fn open_mode_is_for_this_machine_only() {
    let plan = || Plan::new(&Scripted::default());
    let site =
        plan().settings(|s| s.allowed_origins.push("https://ui.example".parse().unwrap())).start().await;
    let status = async |name: &str, value: &str| {
        let answer = site.request().header(name, value).send().await.unwrap();
        answer.status().as_u16()
    };
    assert_eq!(site.get(ANY).await.status(), 200);
    for (name, value) in [
        ("host", "localhost:8420"),
        ("host", "[::1]:8420"),
        ("origin", "https://ui.example"),
        ("authorization", "Bearer whatever"),
    ] {
        assert_eq!(status(name, value).await, 200, "{name}: {value}");
    }
    for (name, value) in [
        ("host", "evil.example"),
        ("host", "127.0.0.1.evil.example:8420"),
        ("origin", "https://evil.example"),
        ("origin", "null"),
    ] {
        assert_eq!(status(name, value).await, 403, "{name}: {value}");
    }
    let answer = site.request().header("host", "evil.example").send().await.unwrap();
    let problem: Value = answer.json().await.unwrap();
    assert_eq!(problem["code"], "foreign_origin");
    assert!(!problem.to_string().contains("evil.example"), "{problem}");
    assert_eq!(Principal::local(), *site.app.identity.authenticate(&HeaderMap::new(), HERE).await.unwrap());
    site.end().await;
}

/// Keys are in the store, so every server that shares it knows them.
#[tokio::test]
async fn a_key_is_good_on_every_server_of_a_store() {
    let store = memory().await;
    let one = plan().store(Arc::clone(&store)).start().await;
    let two = plan().store(store).start().await;
    let key = one.key("acme", "ann", &["viewer"]).await;
    assert_eq!((one.status(&key).await, two.status(&key).await), (200, 200));
    let acme = two.app.store().tenant(&TenantId::parse("acme").unwrap());
    assert!(acme.threads(None, PageRequest::first(1)).await.unwrap().data.is_empty());
    one.end().await;
    two.end().await;
}
