//! Cards: where they are, how long they are used, and which address is taken.

use baton_core::remote::{Reachability, RemoteAgents as _, RemoteErrorKind, RemoteHandoff};
use baton_core::{AgentName, ThreadId};
use serde_json::json;

use super::peer::{Peer, Reply, error, status, task};
use super::{agent, client, connect, message, read};

fn done() -> Reply {
    Reply::Stream(vec![task("completed", &[("a", "Done")]), status("completed", true)])
}

/// The address of the agent is enough; the card is fetched once and renewed with its tag.
#[tokio::test]
async fn card_is_found_and_cached() {
    let peer = Peer::start([done(), done(), done()]).await;
    peer.change(|script| {
        script.card_headers = vec![("etag", "\"1\"".to_owned()), ("cache-control", "max-age=0".to_owned())];
    });
    let far = connect(&peer.address);
    for _ in 0..3 {
        assert_eq!(read(far.send(message("hi"))).await.1.unwrap().text, "Done");
    }
    assert_eq!(
        peer.card_requests(),
        3,
        "it is asked for again when its time is over, and an unchanged one is used"
    );
    peer.change(|script| {
        script.replies.extend([done(), done()]);
        script.card_headers = vec![("cache-control", "max-age=600".to_owned())];
    });
    for _ in 0..2 {
        read(far.send(message("hi"))).await.1.unwrap();
    }
    assert_eq!(peer.card_requests(), 4);
}

#[tokio::test]
async fn unusable_cards_are_explained() {
    let peer = Peer::start([]).await;
    let reason = async || match connect(&peer.card_url()).reachability().await {
        Reachability::Unreachable(reason) => reason,
        reachable @ Reachability::Reachable { .. } => panic!("{reachable:?}"),
    };
    peer.change(|script| script.card["skills"] = json!("x".repeat(2 << 20)));
    assert!(reason().await.contains("more than 1048576 bytes"));
    peer.change(|script| script.card = json!({ "name": 5 }));
    assert!(reason().await.contains("cannot be read"));
    peer.change(|script| script.card_headers = vec![("location", "http://127.0.0.2:1/card.json".to_owned())]);
    assert!(reason().await.contains("redirects to another place"));
    let gone = connect("http://127.0.0.1:1/card.json").reachability().await;
    assert!(
        matches!(&gone, Reachability::Unreachable(reason) if reason.contains("cannot be reached")),
        "{gone:?}"
    );
}

#[tokio::test]
async fn grpc_alone_is_not_usable() {
    let peer = Peer::start([]).await;
    peer.change(|script| script.card["preferredTransport"] = json!("GRPC"));
    let error = read(connect(&peer.card_url()).send(message("hi"))).await.1.unwrap_err();
    assert!(error.message.contains("JSON-RPC or REST") && error.message.contains("GRPC"), "{error}");
}

/// An address that does not know the method is left for the next one of the card.
#[tokio::test]
async fn next_address_is_tried() {
    let peer = Peer::start([error(-32601, "Method not found"), done(), done()]).await;
    let other = format!("{}/other", peer.address);
    peer.change(|script| {
        script.card["additionalInterfaces"] = json!([{ "url": other, "transport": "JSONRPC" }]);
    });
    let far = connect(&peer.card_url());
    for _ in 0..2 {
        assert_eq!(read(far.send(message("hi"))).await.1.unwrap().text, "Done");
    }
    let paths: Vec<String> = peer.seen().into_iter().map(|seen| seen.path).collect();
    assert_eq!(paths, ["/rpc", "/other", "/other"], "the one that works is kept");
}

/// C-3: a peer with the extension is offered the thread as data, any other one by a plain message.
#[tokio::test]
async fn c03_handoff_is_offered_in_the_words_of_the_peer() {
    const URI: &str = "https://baton.dev/a2a/extensions/orchestration/v1";
    let peer = Peer::start([done(), done()]).await;
    let mut offered = message("Context and all. Make a skill.");
    offered.handoff = Some(Box::new(RemoteHandoff {
        thread_id: ThreadId::random(),
        source_agent_id: AgentName::parse("assistant").unwrap(),
        context_summary: "s".repeat(3_000),
        history_count: 3,
        recent_messages: Vec::new(),
        reason: "r".repeat(600),
        preserve_state: true,
        return_expected: true,
        words: "Make a skill.".to_owned(),
        metadata: json!({ "context": { "name": "x" } }),
    }));
    read(connect(&peer.card_url()).send(offered.clone())).await.1.unwrap();
    peer.change(|script| {
        let params = json!({ "handoff_support": true });
        script.card["capabilities"]["extensions"] = json!([{ "uri": URI, "params": params }]);
    });
    read(connect(&peer.card_url()).send(offered)).await.1.unwrap();
    let seen = peer.seen();
    let parts = |at: usize| seen[at].body["params"]["message"]["parts"].clone();
    assert_eq!(parts(0), json!([{ "kind": "text", "text": "Context and all. Make a skill." }]));
    let data = &parts(1)[0]["data"];
    assert_eq!((&data["type"], &data["target_agent_id"]), (&json!("handoff"), &json!("far")));
    assert_eq!(data["handoff_reason"].as_str().unwrap().len(), 500);
    assert_eq!(data["context_summary"].as_str().unwrap().len(), 2_000);
    assert_eq!(data["handoff_metadata"]["context"]["name"], "x");
    assert_eq!(parts(1)[1]["text"], "Make a skill.");
    assert_eq!(seen[1].header("x-a2a-extensions"), URI);
    assert_eq!(seen[1].body["params"]["message"]["extensions"], json!([URI]));
}

/// D11: an agent that is down is not asked for a while.
#[tokio::test]
async fn d11_circuit_opens() {
    let agents = client();
    let far = agents.connect(&agent("http://127.0.0.1:1/card.json", None)).unwrap();
    for _ in 0..5 {
        let error = read(far.send(message("hi"))).await.1.unwrap_err();
        assert_eq!(error.kind, RemoteErrorKind::Unreachable);
    }
    // Another connection to the same agent shares its state.
    let again = agents.connect(&agent("http://127.0.0.1:1/card.json", None)).unwrap();
    let error = read(again.send(message("hi"))).await.1.unwrap_err();
    assert!(error.message.contains("is not asked again"), "{error}");
}

/// A repeated message is the same request, so that a peer can recognize it.
#[tokio::test]
async fn repeated_message_is_the_same_request() {
    let peer = Peer::start([done(), done()]).await;
    for _ in 0..2 {
        read(connect(&peer.card_url()).send(message("hi"))).await.1.unwrap();
    }
    let seen = peer.seen();
    assert_eq!(seen[0].body, seen[1].body);
    assert_eq!(seen[0].header("idempotency-key"), seen[1].header("idempotency-key"));
    assert_eq!(seen[0].body["params"]["message"]["contextId"], "our-thread");
}
