//! A message to an agent that has the thread, and the moment in which it gets it, beside one bare call of the same model that answers
//! at once. What Baton adds to the first token is all that a person could notice.

use std::sync::Arc;
use std::time::{Duration, Instant};

use baton::core::event::EventKind;
use baton::core::{Part, ThreadId};
use baton::engine::{Engine, RunRequest};
use baton_agents::SourceFile;
use futures_util::StreamExt as _;
use serde_json::json;

use crate::Goals;
use crate::provider::ProviderProcess;
use crate::turns::{engine_of, request_to};

const RUNS: u32 = 100;
const ROUNDS: usize = 5;

pub fn run(goals: &mut Goals) {
    let provider = ProviderProcess::start();
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite://{}", folder.path().join("bench.db").display());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let client = reqwest::Client::new();
        let engine = engine_of(&sources(), &provider.base_url, &store).await;
        let (mut bare, mut plain) = (Duration::MAX, Duration::MAX);
        let (mut held, mut taking) = (Duration::MAX, Duration::MAX);
        for _ in 0..ROUNDS {
            bare = bare.min(mean(|| bare_call(&client, &provider)).await);
            plain = plain.min(in_a_thread(&engine).await);
            taking = taking.min(mean(|| first_word(&engine, asking("main", ThreadId::random(), OPEN), "maker")).await);
            held = held.min(in_a_handoff(&engine).await);
        }
        println!(
            "  first token: a bare call {bare:.1?}, a message to an agent {plain:.1?}, to a holder {held:.1?}, a handoff that begins {taking:.1?}"
        );
        let added = |way: Duration| way.saturating_sub(bare).as_secs_f64() * 1000.0;
        goals.below("a message to a holder: milliseconds added to the bare call", added(held), 10.0);
        goals.below("a handoff that begins: milliseconds added to the bare call", added(taking), 20.0);
        let ratio = held.as_secs_f64() / plain.as_secs_f64();
        goals.below("a message to a holder / to an agent without a handoff", ratio, 1.5);
    });
}

const OPEN: &str = "I want to create a skill";

fn sources() -> Vec<Arc<SourceFile>> {
    let main = "---\ndescription: Helps.\nmodel: bench/word\ncollaborations: [maker]\n---\nYou help.\n";
    let maker = "---\ndescription: Makes.\nmodel: bench/word\naccepts_handoff: { triggers: [create a skill], trigger_mode: auto }\n---\nYou make.\n";
    let plain = "---\ndescription: Helps.\nmodel: bench/word\n---\nYou help.\n";
    vec![
        SourceFile::new("main.md", main),
        SourceFile::new("maker.md", maker),
        SourceFile::new("plain.md", plain),
    ]
}

fn asking(agent: &str, thread: ThreadId, text: &str) -> RunRequest {
    let mut request = request_to(agent);
    request.caller.thread_id = thread;
    request.input = vec![Part::text(text)];
    request
}

/// One handoff, and then messages in it.
async fn in_a_handoff(engine: &Arc<Engine>) -> Duration {
    let thread = ThreadId::random();
    first_word(engine, asking("main", thread, OPEN), "maker").await;
    mean(|| first_word(engine, asking("main", thread, "Go on"), "maker")).await
}

/// As many messages to an agent that was simply asked.
async fn in_a_thread(engine: &Arc<Engine>) -> Duration {
    let thread = ThreadId::random();
    first_word(engine, asking("plain", thread, "Hello"), "plain").await;
    mean(|| first_word(engine, asking("plain", thread, "Go on"), "plain")).await
}

async fn mean<F: Future<Output = Duration>>(once: impl Fn() -> F) -> Duration {
    let mut sum = Duration::ZERO;
    for _ in 0..RUNS {
        sum += once().await;
    }
    sum / RUNS
}

/// From the message to the first piece of text, which has to be of a certain agent.
async fn first_word(engine: &Arc<Engine>, request: RunRequest, speaker: &str) -> Duration {
    let start = Instant::now();
    let mut run = engine.start(request).await.expect("a run");
    let mut first = None;
    while let Some(event) = run.events.recv().await {
        if first.is_none() && matches!(event.kind, EventKind::TextDelta { .. }) {
            assert_eq!(event.agent.as_str(), speaker);
            first = Some(start.elapsed());
        }
    }
    let finished = run.join().await;
    assert!(finished.failure.is_none(), "{:?}", finished.failure);
    assert_eq!(finished.rows.len(), 1, "one call, and no other");
    first.expect("a text")
}

async fn bare_call(client: &reqwest::Client, provider: &ProviderProcess) -> Duration {
    let start = Instant::now();
    let messages =
        [json!({"role": "system", "content": "You help."}), json!({"role": "user", "content": "Hi"})];
    let body = json!({"model": "word", "stream": true, "messages": messages});
    let response = client.post(format!("{}/chat/completions", provider.base_url)).json(&body).send().await;
    let mut stream = response.expect("an answer").bytes_stream();
    let mut first = None;
    while let Some(chunk) = stream.next().await {
        chunk.expect("bytes");
        first.get_or_insert_with(|| start.elapsed());
    }
    first.expect("a text")
}
