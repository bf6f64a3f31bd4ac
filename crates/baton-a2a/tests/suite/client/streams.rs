//! Streams that break, peers without streams, and tasks that have ended.

use baton_core::remote::{RemoteErrorKind, RemoteEvent, RemoteState, RemoteTask};
use serde_json::json;

use super::peer::{Peer, Reply, chunk, error, result, status, task};
use super::{connect, message, read};

/// D11: a stream that breaks is subscribed to again, and the snapshot goes on where it was.
#[tokio::test]
async fn d11_broken_stream_is_subscribed_to_again() {
    for broken in [
        Reply::Cut(vec![task("submitted", &[]), chunk("Hel", false)]),
        Reply::Stream(vec![task("submitted", &[]), chunk("Hel", false)]),
        Reply::Silent(vec![task("submitted", &[]), chunk("Hel", false)]),
    ] {
        let rest = Reply::Stream(vec![task("working", &[("a", "Hello")]), status("completed", true)]);
        let peer = Peer::start([broken, rest]).await;
        let (events, end) = read(connect(&peer.card_url()).send(message("hi"))).await;
        assert_eq!(end.unwrap().text, "Hello");
        let text: String = events
            .iter()
            .filter_map(|event| if let RemoteEvent::Text(text) = event { Some(text.as_str()) } else { None })
            .collect();
        assert_eq!(text, "Hello", "nothing is repeated");
        assert_eq!(peer.methods(), ["message/stream", "tasks/resubscribe"]);
        assert_eq!(peer.seen()[1].body["params"]["id"], "t1");
    }
}

/// D11: a peer that cannot be subscribed to is asked for the task.
#[tokio::test]
async fn d11_task_is_asked_for_if_it_cannot_be_subscribed_to() {
    for refusal in [
        error(-32004, "This operation is not supported"),
        error(-32601, "Method not found"),
        Reply::Stream(vec![json!({ "error": { "code": -32602, "message": "the task has ended" } })]),
    ] {
        let peer = Peer::start([
            Reply::Cut(vec![task("submitted", &[])]),
            refusal,
            result(&task("working", &[])),
            result(&task("completed", &[("a", "Done")])),
        ])
        .await;
        let (_, end) = read(connect(&peer.card_url()).send(message("hi"))).await;
        assert_eq!(end.unwrap().text, "Done");
        assert_eq!(peer.methods(), ["message/stream", "tasks/resubscribe", "tasks/get", "tasks/get"]);
    }
}

#[tokio::test]
async fn peer_without_streams_is_polled() {
    let peer = Peer::start([
        result(&task("submitted", &[])),
        result(&task("working", &[])),
        result(&task("completed", &[("a", "Done")])),
    ])
    .await;
    peer.change(|script| script.card["capabilities"] = json!({}));
    let (events, end) = read(connect(&peer.card_url()).send(message("hi"))).await;
    assert_eq!(end.unwrap().text, "Done");
    let first = RemoteTask { task_id: Some("t1".into()), ..RemoteTask::new_in("c1") };
    assert_eq!(events[0], RemoteEvent::Accepted(first), "the id is known before the result");
    assert_eq!(peer.methods(), ["message/send", "tasks/get", "tasks/get"]);
    assert_eq!(peer.seen()[0].body["params"]["configuration"]["blocking"], false);
}

#[tokio::test]
async fn followed_task_is_not_sent_again() {
    let peer = Peer::start([Reply::Stream(vec![
        task("working", &[("a", "Hel")]),
        chunk("lo", true),
        status("completed", true),
    ])])
    .await;
    let known = RemoteTask { task_id: Some("t1".into()), ..RemoteTask::new_in("c1") };
    let (_, end) = read(connect(&peer.card_url()).follow(known)).await;
    assert_eq!((end.unwrap().text.as_str(), peer.methods().len()), ("Hello", 1));
}

#[tokio::test]
async fn peer_that_stays_away_is_given_up() {
    let peer = Peer::start([Reply::Cut(vec![task("submitted", &[])])]).await;
    peer.change(|script| {
        script.replies.extend((0..20).map(|_| Reply::Cut(Vec::new())));
    });
    let (_, end) = read(connect(&peer.card_url()).send(message("hi"))).await;
    let error = end.unwrap_err();
    assert!(error.kind.is_down() || error.kind == RemoteErrorKind::Malformed, "{error}");
    assert!(peer.seen().len() < 20, "{}", peer.seen().len());
}

/// A message to a task that has ended: its result if it is complete, otherwise the task is lost.
#[tokio::test]
async fn message_to_an_ended_task() {
    for (state, kind) in [("completed", None), ("canceled", Some(RemoteErrorKind::TaskNotFound))] {
        for refusal in [
            error(-32602, "the task has ended"),
            Reply::Stream(vec![json!({ "error": { "code": -32602, "message": "the task has ended" } })]),
        ] {
            let peer = Peer::start([refusal, result(&task(state, &[("a", "Done")]))]).await;
            let mut sent = message("more");
            sent.task.task_id = Some("t1".into());
            let (_, end) = read(connect(&peer.card_url()).send(sent)).await;
            match kind {
                None => assert_eq!(end.unwrap().text, "Done"),
                Some(kind) => assert_eq!(end.unwrap_err().kind, kind),
            }
        }
    }
}

#[tokio::test]
async fn plain_message_is_an_answer() {
    let said = json!({ "kind": "message", "messageId": "m", "role": "agent", "contextId": "c9",
        "parts": [{ "kind": "text", "text": "Hi." }] });
    let peer = Peer::start([Reply::Stream(vec![said])]).await;
    let (events, end) = read(connect(&peer.card_url()).send(message("hi"))).await;
    let end = end.unwrap();
    assert_eq!((end.state, end.text.as_str()), (RemoteState::Completed, "Hi."));
    assert_eq!(events[0], RemoteEvent::Accepted(RemoteTask::new_in("c9")));
}

/// Everything that a peer sends is bounded, and what it invents is skipped.
#[tokio::test]
async fn hostile_streams_end_with_an_error() {
    let endless = (0..40).map(|_| chunk(&"x".repeat(1 << 18), true)).collect();
    let huge = vec![chunk(&"x".repeat(5 << 20), false)];
    for items in [endless, huge, vec![json!({ "kind": "task" })]] {
        let peer = Peer::start([Reply::Stream(items)]).await;
        let (_, end) = read(connect(&peer.card_url()).send(message("hi"))).await;
        assert_eq!(end.unwrap_err().kind, RemoteErrorKind::Malformed);
    }
    let odd = vec![json!({ "kind": "hologram" }), task("dreaming", &[]), status("completed", true)];
    let peer = Peer::start([Reply::Stream(odd)]).await;
    assert!(read(connect(&peer.card_url()).send(message("hi"))).await.1.is_ok());
}
