//! Streams: what is sent, and that nothing is ever missing or twice, whoever comes, goes or dawdles.

use std::sync::Arc;

use baton_core::ThreadId;
use baton_models::scripted::{Scripted, ScriptedTurn};
use serde_json::{Value, json};
use tokio::sync::Semaphore;

use crate::client::{Frame, Frames, Socket, text_of};
use crate::site::{LONG, Plan, Site};

fn thread() -> String {
    ThreadId::random().to_string()
}

fn kinds(frames: &[Frame]) -> Vec<&str> {
    frames.iter().map(Frame::kind).collect()
}

/// A1, D6, H8
#[tokio::test]
async fn a_message_is_answered_with_the_events_of_its_run() {
    let model = Scripted::default()
        .script("assistant", [ScriptedTurn::default().say("Good ").say("morning.").tokens(9, 2)]);
    let site = Plan::new(&model).start().await;
    let thread = thread();
    let mut frames = site.say(&thread, "Hello").await;
    let mut seen = Vec::new();
    while let Some(frame) = frames.next().await {
        seen.push(frame);
    }
    assert_eq!(frames.asides.first().map(String::as_str), Some("retry: 3000"));
    assert_eq!(seen[0].kind(), "RUN_STARTED");
    assert_eq!(seen.iter().filter(|frame| frame.is_end()).count(), 1);
    assert!(seen.last().unwrap().is_end());
    assert_eq!(text_of(&seen), "Good morning.");
    assert!(seen.is_sorted_by_key(|frame| frame.id), "numbers never fall");
    for frame in &seen {
        assert_eq!(frame.event["metadata"]["baton"]["thread_id"], thread);
        assert!(frame.event.as_object().unwrap().values().all(|value| !value.is_null()), "{frame:?}");
    }
    site.end().await;
}

#[tokio::test]
async fn whoever_waits_gets_the_end_of_the_run() {
    let model = Scripted::default().script("assistant", [ScriptedTurn::text("Good morning.").tokens(9, 2)]);
    let site = Plan::new(&model).start().await;
    let thread = thread();
    let path = format!("/api/v1/threads/{thread}/messages");
    let request = site.http.post(site.url(&path)).header("accept", "application/json");
    let answer = request.json(&json!({ "content": "Hello" })).send().await.unwrap();
    assert_eq!(answer.status(), 200);
    let answer: Value = answer.json().await.unwrap();
    assert_eq!(answer["status"], "completed");
    assert_eq!(answer["agent"], "assistant");
    assert_eq!(answer["message"]["parts"], json!([{ "type": "text", "text": "Good morning." }]));
    assert_eq!(answer["usage"]["input_tokens"], 9);
    assert_eq!(answer["results"], json!([]));
    site.end().await;
}

/// Whoever comes back with the number of the last event they have gets exactly what they have not.
#[tokio::test]
async fn a_client_that_leaves_at_any_event_and_comes_back_misses_nothing_and_gets_nothing_twice() {
    let (site, thread, run) = long_run().await;
    for detail in ["person", "trace"] {
        let whole = site.listen(&format!("/api/v1/runs/{run}/events?detail={detail}"), 0).await.all().await;
        assert!(whole.len() > 12, "{:?}", kinds(&whole));
        let paths = [format!("/api/v1/runs/{run}"), format!("/api/v1/threads/{thread}")];
        for path in paths.map(|path| format!("{path}/events?detail={detail}")) {
            leave_and_come_back(&site, &path, &whole).await;
        }
    }
    site.end().await;
}

/// The same over a WebSocket, whose frames have the ids of the server-sent events.
#[tokio::test]
async fn websocket_that_reconnects_at_any_frame_misses_nothing_and_gets_nothing_twice() {
    let (site, thread, run) = long_run().await;
    for detail in ["person", "trace"] {
        let sent = site.listen(&format!("/api/v1/runs/{run}/events?detail={detail}"), 0).await.all().await;
        let mut socket = Socket::join(&site, &thread, &format!("detail={detail}")).await;
        let whole = socket.until_end().await;
        assert_eq!(whole, sent, "the same frames with the same ids");
        for cut in 1..whole.len() {
            let last = whole[cut - 1].id;
            let mut socket = Socket::join(&site, &thread, &format!("detail={detail}&after={last}")).await;
            check_sum(&whole, cut, &socket.until_end().await, detail);
        }
    }
    site.end().await;
}

async fn leave_and_come_back(site: &Site, path: &str, whole: &[Frame]) {
    for cut in 1..whole.len() {
        let last = whole[cut - 1].id;
        let rest = site.listen(path, last).await.until(Frame::is_end).await;
        check_sum(whole, cut, &rest, path);
    }
}

/// What a client had when it left after `cut` frames, and what it got when it came back, are everything.
fn check_sum(whole: &[Frame], cut: usize, rest: &[Frame], path: &str) {
    let had = &whole[..cut];
    let last = had.last().unwrap().id;
    let (first, rest) = split(rest, last);
    // What was not confirmed by its number comes again: its group had not ended.
    let confirmed: Vec<&Frame> = had
        .iter()
        .filter(|frame| frame.event["metadata"]["baton"]["seq"].as_u64().unwrap() <= last)
        .collect();
    let sum: Vec<&Frame> = confirmed.into_iter().chain(rest).collect();
    assert_eq!(sum, whole.iter().collect::<Vec<_>>(), "cut after event {cut} on {path}");
    if last > 0 {
        let kinds = kinds(first);
        assert_eq!(
            kinds[..3],
            ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT"],
            "cut after event {cut}"
        );
    }
}

/// The events that bring a fresh client up to date carry the number it came with; the others are later.
fn split(frames: &[Frame], last: u64) -> (&[Frame], &[Frame]) {
    let seq = |frame: &Frame| frame.event["metadata"]["baton"]["seq"].as_u64().unwrap();
    let at = frames.iter().position(|frame| seq(frame) > last).unwrap_or(frames.len());
    frames.split_at(at)
}

/// A run of many events that has ended: two tools, a thought, and texts between them.
async fn long_run() -> (Site, String, String) {
    let model = Scripted::default().script(
        "assistant",
        [
            ScriptedTurn::default().say("Let me see. ").and_call("nothing", &json!({})),
            ScriptedTurn::default()
                .think("Hm.")
                .say("Once more. ")
                .and_call("nothing", &json!({ "again": true })),
            ScriptedTurn::default().say("It is ").say("ten ").say("past.").tokens(3, 4),
        ],
    );
    let site = Plan::new(&model).start().await;
    let thread = thread();
    let frames = site.say(&thread, "What time is it?").await.all().await;
    let run = frames[0].event["runId"].as_str().unwrap().to_owned();
    (site, thread, run)
}

#[tokio::test]
async fn whoever_comes_in_the_middle_of_a_text_gets_all_of_it() {
    let gate = Arc::new(Semaphore::new(0));
    let turn = ScriptedTurn::default().say("one ").until(&gate).say("two ").until(&gate).say("three");
    let model = Scripted::default().script("assistant", [turn]);
    let site = Plan::new(&model).start().await;
    let thread = thread();
    let mut first = site.say(&thread, "Count").await;
    let mut seen = first.until(|frame| frame.kind() == "TEXT_MESSAGE_CONTENT").await;
    let last = seen.last().unwrap().id;
    gate.add_permits(1);
    seen.extend(first.until(|frame| frame.event["delta"] == "two ").await);

    // One who never was there, one who left in the middle, on the thread and on the run.
    let run = seen[0].event["runId"].as_str().unwrap().to_owned();
    let mut others = Vec::new();
    for (path, after) in [
        (format!("/api/v1/threads/{thread}/events"), 0),
        (format!("/api/v1/threads/{thread}/events"), last),
        (format!("/api/v1/runs/{run}/events"), 0),
        (format!("/api/v1/runs/{run}/events"), last),
    ] {
        let mut frames = site.listen(&path, after).await;
        let so_far = frames.until(|frame| frame.event.to_string().contains("two")).await;
        assert_eq!(text_of(&so_far), "one two ", "{path} after {after}");
        others.push((frames, so_far));
    }
    gate.add_permits(1);
    seen.extend(first.all().await);
    assert_eq!(text_of(&seen), "one two three");
    for (mut frames, mut so_far) in others {
        so_far.extend(frames.until(Frame::is_end).await);
        assert_eq!(text_of(&so_far), "one two three");
        assert_eq!(so_far[0].kind(), "RUN_STARTED");
    }
    site.end().await;
}

/// C-36: a disconnect is not a wish.
#[tokio::test]
async fn a_run_goes_on_when_nobody_listens() {
    let gate = Arc::new(Semaphore::new(0));
    let model = Scripted::default()
        .script("assistant", [ScriptedTurn::default().say("one ").until(&gate).say("two")]);
    let site = Plan::new(&model).start().await;
    let thread = thread();
    let mut frames = site.say(&thread, "Count").await;
    let seen = frames.until(|frame| frame.kind() == "TEXT_MESSAGE_CONTENT").await;
    drop(frames);
    gate.add_permits(1);
    let run = seen[0].event["runId"].as_str().unwrap();
    let whole = site.listen(&format!("/api/v1/runs/{run}/events"), 0).await.all().await;
    assert_eq!(text_of(&whole), "one two");
    assert_eq!(whole.last().unwrap().kind(), "RUN_FINISHED");
    site.end().await;
}

#[tokio::test]
async fn a_thread_is_followed_over_many_runs() {
    let model = Scripted::default()
        .script("assistant", (1..=3).map(|n| ScriptedTurn::text(&format!("Answer {n}. "))));
    let site = Plan::new(&model).start().await;
    let thread = thread();
    site.say(&thread, "One").await.all().await;
    let mut frames = site.listen(&format!("/api/v1/threads/{thread}/events"), 0).await;
    let mut seen = frames.until(Frame::is_end).await;
    for text in ["Two", "Three"] {
        site.say(&thread, text).await.all().await;
        seen.extend(frames.until(Frame::is_end).await);
    }
    assert_eq!(text_of(&seen), "Answer 1. Answer 2. Answer 3. ");
    assert_eq!(seen.iter().filter(|frame| frame.kind() == "RUN_STARTED").count(), 3);
    let last = seen.last().unwrap().id;
    let gone = site.get(&format!("/api/v1/threads/{thread}/events?after={}", last + 1)).await;
    assert_eq!(gone.status(), 410);
    assert_eq!(gone.json::<Value>().await.unwrap()["code"], "cursor_expired");
    let run = seen.last().unwrap().event["runId"].as_str().unwrap();
    let over = site.get(&format!("/api/v1/runs/{run}/events?after={last}")).await;
    assert_eq!(over.status(), 204);
    site.end().await;
}

#[tokio::test]
async fn listeners_that_do_not_read_delay_nobody() {
    const PIECES: usize = 3000;
    let gate = Arc::new(Semaphore::new(0));
    let mut turn = ScriptedTurn::default().until(&gate);
    let piece = "x".repeat(200);
    for _ in 0..PIECES {
        turn = turn.say(&piece);
    }
    let model = Scripted::default().script("assistant", [turn]);
    let site = Plan::new(&model).start().await;
    let thread = thread();
    let mut fast = site.say(&thread, "Go").await;
    let mut seen = fast.until(|frame| frame.kind() == "RUN_STARTED").await;
    let path = format!("/api/v1/threads/{thread}/events");
    let mut slow = Vec::new();
    for _ in 0..20 {
        slow.push(site.listen(&path, 0).await);
    }
    gate.add_permits(1);
    seen.extend(fast.all().await);
    assert_eq!(text_of(&seen).len(), PIECES * piece.len());
    // They were far behind, and still get everything, each piece once.
    for frames in &mut slow {
        let seen = tokio::time::timeout(LONG, frames.until(Frame::is_end)).await.unwrap();
        assert_eq!(text_of(&seen).len(), PIECES * piece.len());
        assert!(seen.is_sorted_by_key(|frame| frame.id));
    }
    site.end().await;
}

/// D15
#[tokio::test]
async fn a_silent_stream_says_that_it_is_alive() {
    let gate = Arc::new(Semaphore::new(0));
    let model = Scripted::default().script("assistant", [ScriptedTurn::default().until(&gate).say("Here.")]);
    let plan =
        Plan::new(&model).settings(|settings| settings.heartbeat = std::time::Duration::from_millis(20));
    let site = plan.start().await;
    let mut frames = site.say(&thread(), "Hello?").await;
    frames.until(|frame| frame.kind() == "RUN_STARTED").await;
    while !frames.asides.iter().any(|line| line.starts_with(':')) {
        // Comments are no events, so something has to end the waiting.
        let waiting = tokio::time::timeout(std::time::Duration::from_millis(200), frames.next());
        let _ = waiting.await;
    }
    gate.add_permits(1);
    frames.until(Frame::is_end).await;
    site.end().await;
}

#[tokio::test]
async fn a_server_that_ends_tells_streams_to_come_back() {
    let gate = Arc::new(Semaphore::new(0));
    let store = crate::site::memory().await;
    let turns = [
        ScriptedTurn::default().say("one ").until(&gate).say("two"),
        ScriptedTurn::default().say("one ").say("two"),
    ];
    let model = Scripted::default().script("assistant", turns);
    let plan = Plan::new(&model).store(Arc::clone(&store));
    let plan = plan.settings(|settings| settings.drain = std::time::Duration::from_millis(50));
    let site = plan.start().await;
    let thread = thread();
    let mut frames = site.say(&thread, "Count").await;
    let mut seen = frames.until(|frame| frame.kind() == "TEXT_MESSAGE_CONTENT").await;
    site.end().await;
    assert!(frames.next().await.is_none());
    assert!(frames.is_cut, "an end in the middle must not look like a whole answer");
    assert!(frames.asides.iter().any(|line| line == "retry: 500"), "{:?}", frames.asides);

    // The next server goes on with the run, and the client with its number.
    let site = Plan::new(&model).store(store).start().await;
    let run = seen[0].event["runId"].as_str().unwrap().to_owned();
    let mut again: Frames = site.listen(&format!("/api/v1/runs/{run}/events"), seen.last().unwrap().id).await;
    seen.extend(again.until(Frame::is_end).await);
    assert_eq!(text_of(&seen), "one two");
    assert_eq!(seen.last().unwrap().kind(), "RUN_FINISHED");
    site.end().await;
}
