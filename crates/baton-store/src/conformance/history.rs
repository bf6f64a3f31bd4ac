//! What was said and what happened.

use baton_core::store::{Append, MessageQuery, RunStatus, ThreadMessage};
use baton_core::{EventKind, Message, Part, Role, Store, ThreadId, Visibility};
use serde_json::json;

use super::fixture::{LEASE, TestWorker, answered, happened, new_run, tenant};

fn texts(messages: &[ThreadMessage]) -> Vec<String> {
    messages.iter().map(|message| message.message.text()).collect()
}

/// Ten unless asked for more; nothing that a person does not see unless asked for it.
pub async fn a12_recent_messages_are_the_last_in_order(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let mut messages: Vec<Message> =
        (2..=30).map(|n| answered(worker.run, "assistant", &format!("message {n}"))).collect();
    for (at, message) in messages.iter_mut().enumerate() {
        match at % 3 {
            0 => message.visibility = Visibility::Internal,
            1 => message.role = Role::System,
            _ => {}
        }
    }
    worker.append(Append { messages, ..Append::default() }).await;
    let ask = async |query| worker.tenant.messages(worker.thread, query).await.unwrap();
    let seen = ask(MessageQuery::default()).await;
    let numbers: Vec<u64> = seen.iter().map(|message| message.number).collect();
    assert_eq!(numbers, [1, 4, 7, 10, 13, 16, 19, 22, 25, 28]);
    assert_eq!(texts(&seen)[9], "message 28");
    let numbers = async |include_internal, include_system, before| {
        let found = ask(MessageQuery { limit: 4, before, include_internal, include_system }).await;
        found.iter().map(|message| message.number).collect::<Vec<u64>>()
    };
    assert_eq!(numbers(true, true, None).await, [27, 28, 29, 30]);
    assert_eq!(numbers(true, false, None).await, [25, 26, 28, 29]);
    assert_eq!(numbers(false, true, None).await, [25, 27, 28, 30]);
    assert_eq!(numbers(false, false, Some(7)).await, [1, 4]);
    assert_eq!(numbers(false, false, Some(1)).await, [0; 0]);
}

/// Also what was said between agents, for those who may read it.
pub async fn a13_a6_messages_of_every_agent_are_in_one_conversation(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let mut between = answered(worker.run, "assistant", "What do you know?");
    between.visibility = Visibility::Internal;
    let messages = vec![
        between.clone(),
        answered(worker.run, "research", "This."),
        Message {
            parts: vec![Part::Data { data: json!({"found": [1, null, "x"]}) }],
            ..answered(worker.run, "knowledge", "")
        },
    ];
    worker.append(Append { messages: messages.clone(), ..Append::default() }).await;
    worker.end(RunStatus::Completed).await;
    let query = MessageQuery { include_internal: true, ..MessageQuery::default() };
    let found = worker.tenant.messages(worker.thread, query).await.unwrap();
    let kept: Vec<Message> = found.into_iter().skip(1).map(|message| message.message).collect();
    assert_eq!(kept, messages);
}

/// Nothing is ever forgotten, however long the conversation.
pub async fn a14_history_can_be_read_back_to_its_beginning(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    for hundred in 0..3 {
        let messages =
            (0..100).map(|n| answered(worker.run, "assistant", &format!("{hundred}.{n}"))).collect();
        worker.append(Append { messages, ..Append::default() }).await;
    }
    let (mut before, mut numbers) = (None, Vec::new());
    loop {
        let query = MessageQuery { limit: 40, before, ..MessageQuery::default() };
        let piece = worker.tenant.messages(worker.thread, query).await.unwrap();
        let Some(first) = piece.first() else { break };
        before = Some(first.number);
        numbers.extend(piece.iter().rev().map(|message| message.number));
    }
    numbers.reverse();
    assert_eq!(numbers, (1..=301).collect::<Vec<u64>>());
}

/// Per thread, whichever run they belong to.
pub async fn events_are_numbered_without_gaps(store: &dyn Store) {
    let mut worker = TestWorker::start(store).await;
    let (tenant, thread, first_run) = (worker.tenant.clone(), worker.thread, worker.run);
    assert_eq!(worker.tell(&["a", "b"]).await, 1);
    assert_eq!(worker.tell(&[]).await, 3, "where the next one would be");
    assert_eq!(worker.tell(&["c"]).await, 3);
    worker.end(RunStatus::Completed).await;
    tenant.accept(new_run(thread, "And?")).await.unwrap();
    let mut worker = TestWorker::claim(&tenant, thread, LEASE).await;
    assert_eq!(worker.tell(&["d"]).await, 4);
    let seqs = |events: Vec<baton_core::Event>| events.iter().map(|event| event.seq).collect::<Vec<u64>>();
    let events = tenant.events(thread, 0, 100).await.unwrap();
    let said: Vec<&EventKind> = events.iter().map(|event| &event.kind).collect();
    assert_eq!(said[2], &EventKind::Status { text: "c".to_owned() });
    assert_eq!((events[2].thread_id, events[2].run_id), (thread, first_run));
    assert_eq!(seqs(events), [1, 2, 3, 4]);
    assert_eq!(seqs(tenant.events(thread, 1, 2).await.unwrap()), [2, 3]);
    assert_eq!(seqs(tenant.events(thread, 4, 2).await.unwrap()), [0; 0]);
    assert_eq!(seqs(tenant.run_events(first_run, 1, 100).await.unwrap()), [2, 3]);
    assert_eq!(seqs(tenant.run_events(worker.run, 0, 100).await.unwrap()), [4]);
}

/// A NUL, which PostgreSQL keeps in no text, quotes, and everything beyond ASCII.
pub async fn every_character_survives(store: &dyn Store) {
    let (tenant, thread) = (tenant(store), ThreadId::random());
    let wild = "a\u{0}b '\"; -- \\u0000 \u{1F9E1} \u{202E} \n\t$1 ?";
    let run = new_run(thread, wild);
    tenant.accept(run.clone()).await.unwrap();
    let kept = tenant.messages(thread, MessageQuery::default()).await.unwrap();
    assert_eq!(kept[0].message, run.message);
    let mut worker = TestWorker::claim(&tenant, thread, LEASE).await;
    assert_eq!(worker.claimed.run.request, run.request);
    worker.append(Append { events: vec![happened(wild)], ..Append::default() }).await;
    let events = tenant.events(thread, 0, 1).await.unwrap();
    assert_eq!(events[0].kind, EventKind::Status { text: wild.to_owned() });
}
