//! Push notifications of A2A tasks, and signed agent cards.

use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::provider::{Provider, Reply};
use crate::run::project;
use crate::served::{LONG, Served};
use crate::webhook::{Delivery, receiver};

fn with_a2a(replies: Vec<Reply>, a2a: &str) -> (Provider, tempfile::TempDir) {
    let provider = Provider::start(replies);
    let dir = project(&provider.base_url, "display_name: Helper");
    let config = dir.path().join("baton.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    std::fs::write(&config, format!("{text}\n[a2a]\n{a2a}\n")).unwrap();
    (provider, dir)
}

fn rpc(served: &Served, method: &str, params: &Value) -> Value {
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
    let text = served.read("POST", "/", "application/json", &body.to_string());
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn message(push: &Value) -> Value {
    json!({
        "message": { "kind": "message", "messageId": "m-1", "role": "user", "parts": [{ "kind": "text", "text": "Hello" }] },
        "configuration": { "blocking": false, "pushNotificationConfig": push },
    })
}

fn config(url: &str) -> Value {
    json!({ "url": url, "token": "t-1", "authentication": { "schemes": ["Bearer"], "credentials": "c-1" } })
}

/// The deliveries until the task has ended.
fn until_end(heard: &Receiver<Delivery>) -> Vec<(Delivery, Value)> {
    let mut all = Vec::new();
    loop {
        let delivery = heard.recv_timeout(LONG).expect("a delivery");
        let task: Value = serde_json::from_str(&delivery.body).unwrap();
        let is_end = task["status"]["state"] == "completed";
        all.push((delivery, task));
        // The first one is answered with an error, and sent again.
        if is_end && all.len() > 1 {
            return all;
        }
    }
}

#[test]
fn d10_a_client_is_told_of_its_task_again_after_an_error() {
    let (url, heard) = receiver(&[500, 204]);
    let (provider, dir) = with_a2a(vec![Reply::Text(&["Hello ", "back."])], "push_allow_private = true");
    let served = Served::start(dir.path());
    let task = rpc(&served, "message/send", &message(&config(&url)))["result"].clone();
    let deliveries = until_end(&heard);
    for (delivery, told) in &deliveries {
        assert_eq!((&told["kind"], &told["id"]), (&json!("task"), &task["id"]), "{told}");
        assert_eq!(delivery.header("x-a2a-notification-token"), "t-1");
        assert_eq!(delivery.header("authorization"), "Bearer c-1");
    }
    let (_, last) = deliveries.last().unwrap();
    assert_eq!(last["artifacts"][0]["parts"][0]["text"], "Hello back.");
    assert!(heard.recv_timeout(Duration::from_secs(7)).is_err(), "nothing follows the end");
    provider.finish();
}

/// What was not confirmed is delivered by the next process, in the form of the version that the client speaks.
#[test]
fn d10_a_notification_survives_a_kill() {
    let (url, heard) = receiver(&[500, 200]);
    let (provider, dir) = with_a2a(vec![Reply::Text(&["Hello."])], "push_allow_private = true");
    let mut served = Served::start(dir.path());
    let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": {
        "message": { "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "text": "Hello" }] },
        "configuration": { "taskPushNotificationConfig": { "url": url } },
    } });
    let text = served.read("POST", "/?A2A-Version=1.0", "application/json", &body.to_string());
    assert!(text.contains("TASK_STATE_COMPLETED"), "{text}");
    heard.recv_timeout(LONG).unwrap();
    served.child.kill().unwrap();
    served.child.wait().unwrap();
    let served = Served::start(dir.path());
    let mut state = Value::Null;
    while state != "TASK_STATE_COMPLETED" {
        let delivery = heard.recv_timeout(LONG * 3).expect("a delivery");
        assert_eq!(delivery.header("content-type"), "application/a2a+json");
        let told: Value = serde_json::from_str(&delivery.body).unwrap();
        state = told["task"]["status"]["state"].clone();
    }
    drop(served);
    provider.finish();
}

#[test]
fn d10_configurations_are_kept_shown_and_deleted() {
    let (provider, dir) = with_a2a(vec![Reply::Text(&["Hello."])], "push_allow_private = true");
    let served = Served::start(dir.path());
    let mut params = message(&Value::Null);
    params["configuration"] = json!({});
    let task = rpc(&served, "message/send", &params)["result"]["id"].clone();
    // The port is closed, so every delivery fails.
    let set = |id: Value| {
        let mut config = config("http://127.0.0.1:9/hooks");
        config["id"] = id;
        rpc(
            &served,
            "tasks/pushNotificationConfig/set",
            &json!({ "taskId": task, "pushNotificationConfig": config }),
        )
    };
    assert_eq!(set(Value::Null)["result"]["pushNotificationConfig"]["id"], task, "the default id");
    for at in 1..10 {
        assert_eq!(set(json!(format!("c-{at}")))["result"]["taskId"], task);
    }
    assert_eq!(set(json!("one-too-many"))["error"]["code"], -32602);
    let list = |served: &Served| rpc(served, "tasks/pushNotificationConfig/list", &json!({ "id": task }));
    assert_eq!(list(&served)["result"].as_array().unwrap().len(), 10);
    let one = json!({ "id": task, "pushNotificationConfigId": "c-3" });
    let got = rpc(&served, "tasks/pushNotificationConfig/get", &one);
    assert_eq!(got["result"]["pushNotificationConfig"]["authentication"]["credentials"], "c-1");
    let deleted = rpc(&served, "tasks/pushNotificationConfig/delete", &one);
    assert_eq!(deleted.get("result"), Some(&Value::Null), "{deleted}");
    assert_eq!(list(&served)["result"].as_array().unwrap().len(), 9);
    for bad in [json!({ "url": "http://127.0.0.1:9/", "token": "a\r\nX: y" }), json!({ "url": "ftp://x" })] {
        let params = json!({ "taskId": task, "pushNotificationConfig": bad });
        assert_eq!(rpc(&served, "tasks/pushNotificationConfig/set", &params)["error"]["code"], -32602);
    }
    let unknown = json!({ "id": "0193b7c0-0000-7000-8000-000000000000" });
    assert_eq!(rpc(&served, "tasks/pushNotificationConfig/list", &unknown)["error"]["code"], -32001);
    provider.finish();
}

#[test]
fn private_addresses_are_refused_by_default() {
    let (provider, dir) = with_a2a(vec![], "");
    let served = Served::start(dir.path());
    let refused = rpc(&served, "message/send", &message(&config("http://127.0.0.1:9/hooks")));
    let text = refused["error"]["message"].as_str().unwrap();
    assert!(text.contains("not on the public internet") && text.contains("push_allow_private"), "{text}");
    provider.finish();
}

fn serve_signed(dir: &Path) -> Served {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
    let der = STANDARD.encode(pair.to_pkcs8v1().unwrap().as_ref());
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{der}\n-----END PRIVATE KEY-----\n");
    Served::start_with(dir, &[], &[("BATON_CARD_KEY", pem.as_str())])
}

#[test]
fn cards_are_signed_with_the_key_that_is_served() {
    let (provider, dir) = with_a2a(vec![], "");
    let served = serve_signed(dir.path());
    let keys = serde_json::from_value(served.get("/.well-known/jwks.json")).unwrap();
    for path in ["/.well-known/agent-card.json", "/.well-known/agent-card.json?A2A-Version=1.0", "/v1/card"] {
        let card = served.get(path);
        assert!(baton_a2a::signature::verify(&card, &keys).is_ok(), "{path}: {card}");
    }
    provider.finish();
}

/// A remote agent is used only if its card is signed by a trusted key, if there are such keys.
#[test]
fn cards_of_remote_agents_are_checked_against_trusted_keys() {
    let (provider, dir) = with_a2a(vec![], "");
    let served = serve_signed(dir.path());
    let card = format!("http://{}/.well-known/agent-card.json", served.address);
    let (other_provider, other_dir) = with_a2a(vec![], "");
    let other = serve_signed(other_dir.path());
    let shown = |keys: &Value| {
        let client = tempfile::tempdir().unwrap();
        std::fs::create_dir(client.path().join("agents")).unwrap();
        let agent = format!("---\ndescription: Elsewhere.\nkind: remote\nagent_card_url: {card}\n---\n");
        std::fs::write(client.path().join("agents/partner.md"), agent).unwrap();
        std::fs::write(client.path().join("keys.json"), keys.to_string()).unwrap();
        std::fs::write(client.path().join("baton.toml"), "[a2a]\ntrusted_keys = \"keys.json\"\n").unwrap();
        crate::baton(client.path(), &["agents", "show", "partner", "--format", "json"])
    };
    let trusted = shown(&served.get("/.well-known/jwks.json"));
    assert!(trusted.stdout.contains("\"reachable\": true"), "{}{}", trusted.stdout, trusted.stderr);
    let untrusted = shown(&other.get("/.well-known/jwks.json"));
    assert!(untrusted.stdout.contains("\"reachable\": false"), "{}{}", untrusted.stdout, untrusted.stderr);
    assert!(untrusted.stdout.contains("trusted"), "{}", untrusted.stdout);
    let broken = shown(&json!("no keys"));
    assert_eq!(broken.code, 3, "{}{}", broken.stdout, broken.stderr);
    provider.finish();
    other_provider.finish();
}
