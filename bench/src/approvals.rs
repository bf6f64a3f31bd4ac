//! Runs that wait for a person: what 10,000 of them take of memory, and how soon a decision continues one.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use baton::core::agent::ModelName;
use baton::core::chat::ChatMessage;
use baton::core::event::EventKind;
use baton::core::model::{Chunk, Finish, Model, ModelFacts, ModelRequest, ReplyStream};
use baton::core::store::{Retention, RunStatus};
use baton::core::tool::{CallContext, Effect, Risk, SHOWN_OUTPUT_BYTES, Tool, ToolFuture, ToolSpec};
use baton::core::{HumanDuration, ToolCallId, UserId};
use baton::engine::{
    ApprovalSettings, DecisionInput, Engine, EngineParts, Extensions, HeartbeatConfig, Interest,
    ModelRegistry, Policy, RunCaller, StreamItem, ThreadChannels, Verdict, WorkerLifetime,
};
use baton_agents::{KnownNames, RosterDraft, SourceFile};
use futures_util::stream;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::turns::request_to;
use crate::{Goals, cpu};

const PARKED: usize = 10_000;
const DECISIONS: usize = 200;

pub fn run(goals: &mut Goals) {
    let folder = tempfile::tempdir().expect("a folder");
    let store = format!("sqlite://{}", folder.path().join("bench.db").display());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let engine = engine(&store).await;
        // Caches and pools are filled first.
        for _ in 0..PARKED / 20 {
            park(&engine).await;
        }
        let before = cpu::memory_of("self");
        let mut waiting = Vec::new();
        for _ in 0..PARKED {
            waiting.push(park(&engine).await);
        }
        engine.idle().await;
        let grown = cpu::memory_of("self").saturating_sub(before) / 1024;
        let grown = f64::from(u32::try_from(grown).expect("less than 4 TiB")) / 1024.0;
        let (workers, tasks) = (engine.active_threads(), runtime.metrics().num_alive_tasks());
        println!("  {PARKED} runs wait: {grown:.1} MiB more, {workers} workers, {tasks} tasks");
        assert_eq!(workers, 0, "a run that waits has no worker");
        goals.below("MiB that 10,000 waiting runs take", grown, 50.0);
        let mut taken = Vec::new();
        for (caller, approval) in waiting.into_iter().step_by(PARKED / DECISIONS) {
            taken.push(decide(&engine, &caller, approval).await);
        }
        taken.sort_unstable();
        let (median, slowest) = (taken[taken.len() / 2], taken[taken.len() - 1]);
        let p95 = taken[taken.len() * 95 / 100];
        println!(
            "  from a decision's commit to its run: median {median:.1?}, p95 {p95:.1?}, slowest {slowest:.1?}; load of the machine {}",
            load()
        );
        goals.below(
            "milliseconds from a decision to its run, the slowest of 200",
            slowest.as_secs_f64() * 1000.0,
            50.0,
        );
    });
}

/// The load averages of the last minutes: times of a busy machine say little.
fn load() -> String {
    std::fs::read_to_string("/proc/loadavg").unwrap_or_default().trim().to_owned()
}

/// Parks a run, and returns whose it is and what it waits for.
async fn park(engine: &Arc<Engine>) -> (RunCaller, Uuid) {
    let request = request_to("a");
    let end = engine.start(request.clone()).await.expect("a run").finish().await;
    assert_eq!(end.status, RunStatus::Waiting, "{:?}", end.failure);
    (request.caller, end.waits_for[0].approval_id)
}

/// From the commit of a decision until the run has continued.
async fn decide(engine: &Arc<Engine>, caller: &RunCaller, approval: Uuid) -> Duration {
    let (tenant, thread) = (&caller.tenant, caller.thread_id);
    let mut heard = engine.parts.live.subscribe(tenant, thread, Interest::Thread);
    let user = UserId::parse("u").expect("an id");
    engine.decide(tenant, approval, &user, DecisionInput::new(Verdict::Approve)).await.expect("a decision");
    let decided = Instant::now();
    loop {
        match heard.recv().await {
            Some(StreamItem::Event(sent)) if matches!(sent.event.kind, EventKind::RunResumed { .. }) => {
                let taken = decided.elapsed();
                engine.idle().await;
                return taken;
            }
            Some(_) => {}
            None => heard.rejoin(),
        }
    }
}

/// Calls the tool, and answers once it has a result.
#[derive(Debug)]
struct Asking;

impl Model for Asking {
    fn provider(&self) -> &'static str {
        "bench"
    }

    fn stream(&self, request: &ModelRequest<'_>) -> ReplyStream {
        let has_result = request.messages.iter().any(|message| matches!(message, ChatMessage::Tool(_)));
        let id = ToolCallId::parse("call_1").expect("an id");
        let chunks = if has_result {
            vec![Chunk::Text("Done.".to_owned()), Chunk::Done(Finish::Stop)]
        } else {
            let call = Chunk::Call { index: 0, id, name: "act".to_owned(), signature: None };
            let arguments = Chunk::Arguments { index: 0, delta: r#"{"what": "it"}"#.to_owned() };
            vec![call, arguments, Chunk::Done(Finish::ToolCalls)]
        };
        Box::pin(stream::iter(chunks.into_iter().map(Ok)))
    }

    fn facts(&self, _model: &str) -> ModelFacts {
        ModelFacts::default()
    }
}

/// A tool that needs approval.
#[derive(Debug)]
struct Act(ToolSpec);

impl Tool for Act {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn call(&self, _arguments: Value, _context: Arc<CallContext>) -> ToolFuture {
        Box::pin(async { Ok("done".to_owned().into()) })
    }
}

fn act() -> Act {
    Act(ToolSpec {
        name: "act".to_owned(),
        description: "Acts.".to_owned(),
        parameters: json!({ "type": "object", "properties": { "what": { "type": "string" } } }),
        effect: Effect::Writes,
        risk: Risk::High,
        timeout: HumanDuration::from_secs(10),
    })
}

async fn engine(store: &str) -> Arc<Engine> {
    let file = "---\ndescription: Helps.\nmodel: bench/m\ntools: [\"*\"]\n---\nYou help.\n";
    let sources = [SourceFile::new("a.md", file)];
    let draft = RosterDraft::parse(&sources, &KnownNames::default(), Vec::new());
    let agents = draft.agents().map(|one| (one.agent.name.clone(), Arc::clone(&one.agent))).collect();
    let store = baton_store::open(store, Path::new("")).await.expect("a store");
    Engine::new(EngineParts {
        models: Arc::new(
            ModelRegistry::new(ModelName::Alias("bench".into())).with_provider(Arc::new(Asking)),
        ),
        extensions: Arc::new(Extensions {
            tools: vec![Arc::new(act())],
            servers: None,
            skills: None,
            agents: None,
            remotes: None,
            team_hooks: None,
            shown_output_bytes: SHOWN_OUTPUT_BYTES,
            approvals: ApprovalSettings::asking_at(Some(Risk::High)),
            work_dir: ".".into(),
            workspaces: None,
        }),
        policy: Arc::new(Policy::default()),
        tenants: baton::engine::Tenants::default(),
        store: Arc::new(store),
        agents: tokio::sync::watch::Sender::new(Arc::new(agents)).subscribe(),
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
