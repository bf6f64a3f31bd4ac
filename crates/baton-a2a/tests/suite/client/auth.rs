//! Credentials: what is sent, what is renewed, and what is never said.

use baton_core::agent::{RemoteAuth, SecretName};
use baton_core::remote::{RemoteAgents as _, RemoteErrorKind};
use serde_json::{Value, json};

use super::peer::{Peer, Reply, status, task};
use super::{SECRET, agent, client, message, read};

fn done() -> Reply {
    Reply::Stream(vec![task("completed", &[("a", "Done")]), status("completed", true)])
}

fn secret() -> SecretName {
    SecretName::parse("$PARTNER_KEY").unwrap()
}

#[tokio::test]
async fn credentials_are_sent_as_the_file_says() {
    let basic = RemoteAuth::Basic { username: "ada".into(), password: secret() };
    for (auth, header, value) in [
        (RemoteAuth::Bearer { token: secret() }, "authorization", format!("Bearer {SECRET}")),
        (RemoteAuth::ApiKey { header: "X-Key".into(), key: secret() }, "x-key", SECRET.to_owned()),
        (basic, "authorization", "Basic YWRhOmh1bnRlcjItdmVyeS1zZWNyZXQ=".to_owned()),
    ] {
        let peer = Peer::start([done()]).await;
        let far = client().connect(&agent(&peer.card_url(), Some(auth))).unwrap();
        read(far.send(message("hi"))).await.1.unwrap();
        assert_eq!(peer.seen()[0].header(header), value);
    }
}

/// A token is fetched once, used again, and renewed when the peer refuses it.
#[tokio::test]
async fn oauth2_tokens_are_cached_and_renewed() {
    let token = |text: &str| Reply::Json(200, json!({ "access_token": text, "expires_in": 3600 }));
    let refused = Reply::Json(401, Value::Null);
    let login = Peer::start([token("t1"), token("t2")]).await;
    let peer = Peer::start([done(), done(), refused, done()]).await;
    let auth = RemoteAuth::OAuth2 {
        token_url: format!("{}/token", login.address),
        client_id: "baton".into(),
        client_secret: secret(),
        scopes: vec!["a".into(), "b".into()],
    };
    let far = client().connect(&agent(&peer.card_url(), Some(auth))).unwrap();
    for _ in 0..3 {
        assert_eq!(read(far.send(message("hi"))).await.1.unwrap().text, "Done");
    }
    let tokens: Vec<String> =
        peer.seen().iter().map(|seen| seen.header("authorization").to_owned()).collect();
    assert_eq!(tokens, ["Bearer t1", "Bearer t1", "Bearer t1", "Bearer t2"]);
    let asked = login.seen();
    assert_eq!(asked.len(), 2);
    assert_eq!(asked[0].body, json!("grant_type=client_credentials&scope=a+b"));
    assert!(asked[0].header("authorization").starts_with("Basic "));
}

#[tokio::test]
async fn errors_say_what_to_do_and_no_secret() {
    let bearer = || Some(RemoteAuth::Bearer { token: secret() });
    let peer = Peer::start([Reply::Json(401, Value::Null)]).await;
    let far = client().connect(&agent(&peer.card_url(), bearer())).unwrap();
    let refused = read(far.send(message("hi"))).await.1.unwrap_err();
    assert_eq!(refused.kind, RemoteErrorKind::Auth);
    assert!(refused.message.contains("check the secret") && !refused.message.contains(SECRET), "{refused}");

    let missing = RemoteAuth::Bearer { token: SecretName::parse("$NOT_SET").unwrap() };
    let unset = client().connect(&agent(&peer.card_url(), Some(missing))).unwrap_err();
    assert!(unset.message.contains("`NOT_SET`") && unset.message.contains("is not set"), "{unset}");

    let login = Peer::start([Reply::Json(400, json!({ "error": "invalid_client" }))]).await;
    let auth = RemoteAuth::OAuth2 {
        token_url: format!("{}/token?x={SECRET}", login.address),
        client_id: "baton".into(),
        client_secret: secret(),
        scopes: Vec::new(),
    };
    let far = client().connect(&agent(&peer.card_url(), Some(auth))).unwrap();
    let refused = read(far.send(message("hi"))).await.1.unwrap_err();
    assert!(refused.message.contains("invalid_client") && !refused.message.contains(SECRET), "{refused}");
}

/// A card that names another host does not get the credentials there.
#[tokio::test]
async fn credentials_and_messages_do_not_leave_their_host() {
    let peer = Peer::start([]).await;
    peer.change(|script| script.card["url"] = json!("http://evil.example/rpc"));
    let auth = Some(RemoteAuth::Bearer { token: secret() });
    let far = client().connect(&agent(&peer.card_url(), auth)).unwrap();
    let error = read(far.send(message("hi"))).await.1.unwrap_err();
    assert_eq!(error.kind, RemoteErrorKind::Refused);
    assert!(error.message.contains("agent_card_json"), "{error}");
    let open = client().connect(&agent(&peer.card_url(), None)).unwrap();
    let error = read(open.send(message("hi"))).await.1.unwrap_err();
    assert_eq!(error.kind, RemoteErrorKind::Refused, "messages do not either");
}
