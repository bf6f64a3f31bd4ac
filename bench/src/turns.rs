//! One streamed turn of 200 tokens through a session, beside the same request made with a bare HTTP client.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::num::NonZeroU64;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton::core::agent::ModelName;
use baton::core::event::EventKind;
use baton::core::store::{OnBusy, Retention};
use baton::core::tool::SHOWN_OUTPUT_BYTES;
use baton::core::{AgentName, Part, Rights, TenantId, ThreadId, UserId};
use baton::engine::{
    ApprovalSettings, Engine, EngineParts, Extensions, HeartbeatConfig, ModelRegistry, Overrides, Policy,
    RunCaller, RunRequest, RunTask, ThreadChannels, WorkerLifetime,
};
use baton_agents::{KnownNames, RosterDraft, SourceFile};
use baton_models::settings::ModelSettings;
use baton_models::{Endpoint, ProviderSettings, WireFormat};
use futures_util::StreamExt as _;
use serde_json::json;

use crate::provider::{ProviderProcess, TOKENS};
use crate::{Goals, cpu};

const TURNS: u32 = 200;
const ROUNDS: usize = 5;
const CANCELS: usize = 20;

/// What one way of doing it took, per turn.
#[derive(Debug, Clone, Copy)]
struct TurnCost {
    wall: Duration,
    cpu: Duration,
    first_token: Duration,
}

impl TurnCost {
    const WORST: Self = Self { wall: Duration::MAX, cpu: Duration::MAX, first_token: Duration::MAX };

    /// Noise only ever adds time, so the best of each is nearest to the truth.
    fn best(self, other: Self) -> Self {
        Self {
            wall: self.wall.min(other.wall),
            cpu: self.cpu.min(other.cpu),
            first_token: self.first_token.min(other.first_token),
        }
    }
}

pub fn run(goals: &mut Goals) {
    let provider = ProviderProcess::start();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let folder = tempfile::tempdir().expect("a folder");
    let file = format!("sqlite://{}", folder.path().join("bench.db").display());
    let (bare, reader, session, durable) = runtime.block_on(async {
        let client = reqwest::Client::new();
        let in_memory = engine(&provider.base_url, "sqlite::memory:").await;
        let on_disk = engine(&provider.base_url, &file).await;
        let (mut bare, mut reader) = (TurnCost::WORST, TurnCost::WORST);
        let (mut session, mut durable) = (TurnCost::WORST, TurnCost::WORST);
        for _ in 0..ROUNDS {
            bare = bare.best(measure(|| bare_turn(&client, &provider, ReadingMode::Bytes)).await);
            reader = reader.best(measure(|| bare_turn(&client, &provider, ReadingMode::Text)).await);
            session = session.best(measure(|| session_turn(&in_memory)).await);
            durable = durable.best(measure(|| session_turn(&on_disk)).await);
        }
        (bare, reader, session, durable)
    });
    let costs = [
        ("bare client, bytes", bare),
        ("bare client, text", reader),
        ("a run, in memory", session),
        ("a run, on disk", durable),
    ];
    for (name, cost) in costs {
        println!(
            "  {TOKENS} tokens, {name:<18}: {:>7.1?} wall, {:>7.1?} cpu, first token {:>7.1?}",
            cost.wall, cost.cpu, cost.first_token
        );
    }
    println!("  added cpu per turn: {:.1?}", session.cpu.saturating_sub(reader.cpu));
    let ratio = |other: TurnCost| session.wall.as_secs_f64() / other.wall.as_secs_f64();
    println!("  a client that does not read the text: ratio {:.3}", ratio(bare));
    goals.below(
        "wall time of a turn, run in memory to a bare client that reads the text",
        ratio(reader),
        1.5,
    );
    let added = session.first_token.saturating_sub(bare.first_token);
    goals.below("milliseconds added to the first token", added.as_secs_f64() * 1000.0, 1.0);
    let slowest = (0..CANCELS).map(|_| runtime.block_on(cancel())).max().unwrap_or_default();
    goals.below(
        "milliseconds from cancelling to a closed connection, slowest of 20",
        slowest.as_secs_f64() * 1000.0,
        100.0,
    );
}

/// Cancels a run in the middle of a stream. Returns how long it takes until the provider's connection is closed.
async fn cancel() -> Duration {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let base_url = format!("http://{}/v1", listener.local_addr().expect("an address"));
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a connection");
        let _ = stream.read(&mut [0; 16_384]);
        let frame = json!({"id": "1", "choices": [{"index": 0, "delta": {"content": "I was"}, "finish_reason": null}]});
        let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n";
        stream.write_all(format!("{head}data: {frame}\n\n").as_bytes()).expect("an answer");
        let _ = stream.read_to_end(&mut Vec::new());
        Instant::now()
    });
    let engine = engine(&base_url, "sqlite::memory:").await;
    let mut run = engine.start(request()).await.expect("a run");
    while let Some(event) = run.events.recv().await {
        if matches!(event.kind, EventKind::TextDelta { .. }) {
            break;
        }
    }
    let start = Instant::now();
    run.cancel();
    let finished = run.finish().await;
    assert_eq!(finished.rows[0].outcome.word(), "cancelled");
    server.join().expect("the server") - start
}

async fn measure<F: Future<Output = Duration>>(turn: impl Fn() -> F) -> TurnCost {
    let (cpu, start) = (cpu::time(), Instant::now());
    let mut first_token = Duration::ZERO;
    for _ in 0..TURNS {
        first_token += turn().await;
    }
    TurnCost {
        wall: start.elapsed() / TURNS,
        cpu: cpu::time().saturating_sub(cpu) / TURNS,
        first_token: first_token / TURNS,
    }
}

/// Sends the same request and reads the answer to its end. Returns the time to the first byte of it. With `Text` it also does
/// what everybody has to do who wants the text: cut the lines and read the JSON.
async fn bare_turn(client: &reqwest::Client, provider: &ProviderProcess, reading: ReadingMode) -> Duration {
    let start = Instant::now();
    let body = json!({
        "model": "m", "stream": true, "stream_options": {"include_usage": true},
        "messages": [{"role": "system", "content": "You help."}, {"role": "user", "content": "Tell me something."}],
    });
    let url = format!("{}/chat/completions", provider.base_url);
    let response = client.post(url).json(&body).send().await.expect("an answer");
    let mut stream = response.bytes_stream();
    let mut first = None;
    let (mut bytes, mut text, mut buffer) = (0, String::new(), Vec::new());
    while let Some(chunk) = stream.next().await {
        first.get_or_insert_with(|| start.elapsed());
        let chunk = chunk.expect("bytes");
        bytes += chunk.len();
        if reading == ReadingMode::Text {
            buffer.extend_from_slice(&chunk);
            read_lines(&mut buffer, &mut text);
        }
    }
    assert!(bytes > TOKENS * 100 && (reading == ReadingMode::Bytes || text.len() > TOKENS * 6));
    first.expect("a first chunk")
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReadingMode {
    Bytes,
    Text,
}

#[derive(serde::Deserialize)]
struct TurnFrame<'a> {
    #[serde(borrow)]
    choices: Vec<FrameChoice<'a>>,
}

#[derive(serde::Deserialize)]
struct FrameChoice<'a> {
    #[serde(borrow)]
    delta: TurnDelta<'a>,
}

#[derive(serde::Deserialize)]
struct TurnDelta<'a> {
    #[serde(borrow)]
    content: Option<std::borrow::Cow<'a, str>>,
}

fn read_lines(buffer: &mut Vec<u8>, text: &mut String) {
    let end = buffer.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
    for line in buffer[..end].split(|byte| *byte == b'\n') {
        let Some(data) = line.strip_prefix(b"data: ").filter(|data| *data != b"[DONE]") else { continue };
        let frame: TurnFrame<'_> = serde_json::from_slice(data).expect("JSON");
        text.extend(frame.choices.into_iter().filter_map(|choice| choice.delta.content));
    }
    buffer.drain(..end);
}

async fn session_turn(engine: &Arc<Engine>) -> Duration {
    let start = Instant::now();
    let mut run = engine.start(request()).await.expect("a run");
    let (mut first, mut bytes) = (None, 0);
    while let Some(event) = run.events.recv().await {
        if let EventKind::TextDelta { delta, .. } = event.kind {
            first.get_or_insert_with(|| start.elapsed());
            bytes += delta.len();
        }
    }
    assert!(bytes > TOKENS * 6);
    assert_eq!(run.join().await.usage.tokens.output_tokens, 200);
    first.expect("a first delta")
}

fn request() -> RunRequest {
    request_to("a")
}

/// A message to one agent, in a thread of its own.
pub fn request_to(agent: &str) -> RunRequest {
    RunRequest {
        caller: RunCaller {
            tenant: TenantId::parse("t").expect("an id"),
            user: UserId::parse("u").expect("an id"),
            thread_id: ThreadId::random(),
        },
        agent: AgentName::parse(agent).expect("a name"),
        input: vec![Part::text("Tell me something.")],
        overrides: Overrides::default(),
        on_busy: OnBusy::Enqueue,
        entry: None,
        task: RunTask::Answer,
        rights: Rights::all(),
        trace: None,
        metadata: None,
    }
}

async fn engine(base_url: &str, store: &str) -> Arc<Engine> {
    let source = SourceFile::new("a.md", "---\ndescription: Helps.\nmodel: bench/m\n---\nYou help.\n");
    engine_of(&[source], base_url, store).await
}

/// An engine with these agents.
pub async fn engine_of(sources: &[Arc<SourceFile>], base_url: &str, store: &str) -> Arc<Engine> {
    let draft = RosterDraft::parse(sources, &KnownNames::default(), Vec::new());
    let agents = draft.agents().map(|one| (one.agent.name.clone(), Arc::clone(&one.agent)));
    let agents: Arc<BTreeMap<_, _>> = Arc::new(agents.collect());
    let model = ModelSettings { context_window: NonZeroU64::new(128_000), ..ModelSettings::default() };
    let endpoint = Endpoint {
        provider: "bench".into(),
        base_url: Some(base_url.to_owned()),
        key: None,
        // Known, so that the server is not asked for it.
        settings: ProviderSettings {
            models: [("m".to_owned(), model)].into(),
            ..ProviderSettings::default()
        },
    };
    let model = baton_models::connect(WireFormat::OpenAi, endpoint, baton_models::ModelHttpClient::default());
    let store = baton_store::open(store, Path::new("")).await.expect("a store");
    Engine::new(EngineParts {
        models: Arc::new(ModelRegistry::new(ModelName::Alias("bench".into())).with_provider(model)),
        extensions: Arc::new(Extensions {
            tools: Vec::new(),
            servers: None,
            skills: None,
            agents: None,
            remotes: None,
            team_hooks: None,
            shown_output_bytes: SHOWN_OUTPUT_BYTES,
            approvals: ApprovalSettings::asking_at(None),
            work_dir: ".".into(),
            workspaces: None,
        }),
        // High enough for a hundred at once.
        tenants: baton::engine::Tenants::default(),
        policy: Arc::new(Policy {
            max_concurrent_delegations: 100,
            max_live_children: 100,
            ..Policy::default()
        }),
        store: Arc::new(store),
        agents: tokio::sync::watch::Sender::new(agents).subscribe(),
        identity: baton::identity::identity(),
        lease: HeartbeatConfig::default(),
        flush: Duration::from_millis(50),
        worker_lifetime: WorkerLifetime::UntilDone,
        retention: Retention { workflow_state: jiff::SignedDuration::from_hours(1) }.into(),
        storage: baton::engine::storage::StorageLimits::default(),
        live: ThreadChannels::new(),
        observer: None,
    })
}
