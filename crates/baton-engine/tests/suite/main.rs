//! Whole runs through a scripted model: script in, event log and ledger out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod accounting;
mod advisors;
mod approvals;
mod assists;
mod bounds;
mod budgets;
mod by_request;
mod calling;
mod chain;
mod commits;
mod compositions;
mod delegation;
mod durability;
mod faults;
mod files;
mod guardrails;
mod handoffs;
mod hops;
mod interop;
mod learning;
mod limits;
mod listening;
mod masked_teams;
mod masking;
mod mortal;
mod outages;
mod previews;
mod reading;
mod remotes;
mod router;
mod sessions;
mod skills;
mod spool;
mod strategies;
mod team;
mod thread;
mod tools;
mod traces;
mod trail;
mod transfers;
mod turns;
mod workflow;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_core::agent::{Agent, ModelName, ToolAccess, ToolPattern};
use baton_core::event::{Event, EventKind};
use baton_core::message::{Part, Visibility};
use baton_core::store::{OnBusy, Owner, Retention};
use baton_core::tool::{
    CallContext, Effect, Risk, SHOWN_OUTPUT_BYTES, Tool, ToolError, ToolFuture, ToolOutput, ToolSource,
    ToolSpec,
};
use baton_core::{
    AgentName, HumanDuration, Permission, ProducedFile, RemoteAgents, Rights, SkillSource, TenantId,
    ThreadId, UserId,
};
use baton_engine::{
    Agents, ApprovalSettings, ApprovalTerms, Engine, EngineParts, Extensions, HeartbeatConfig, ModelRegistry,
    ModelTimeouts, Overrides, Policy, ProcessIdentity, RunCaller, RunRequest, RunResult, RunTask, TeamHooks,
    ThreadChannels, WorkerLifetime,
};
use baton_models::scripted::Scripted;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::sync::watch;

/// Longer than anything takes, however slow the machine is.
const LONG: Duration = Duration::from_mins(1);

/// Waits until it is so.
async fn eventually(mut is_so: impl AsyncFnMut() -> bool) {
    let so = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(LONG, so).await.expect("it should have happened long ago");
}

fn name(text: &str) -> AgentName {
    AgentName::parse(text).unwrap()
}

/// An agent that may use every tool, shown as its name in capitals.
fn named(text: &str) -> Agent {
    Agent {
        display_name: text.to_uppercase(),
        tools: ToolAccess { allow: vec![ToolPattern::parse("*").unwrap()], ..ToolAccess::default() },
        ..Agent::plain(name(text), "Helps.", "You help {{ user }} of {{ tenant }}.")
    }
}

/// An agent called `a` that may use every tool.
fn agent() -> Agent {
    named("a")
}

/// A run set up by a test, and what it came to.
struct Setup {
    agent: Agent,
    /// All others.
    others: Vec<Agent>,
    policy: Policy,
    input: String,
    tools: Vec<Arc<dyn Tool>>,
    models: ModelRegistry,
    overrides: Overrides,
    task: RunTask,
    rights: Rights,
    ask_at: Option<Risk>,
    expiry: Duration,
    servers: Option<Arc<dyn ToolSource>>,
    skills: Option<Arc<dyn SkillSource>>,
    agents: Option<Arc<dyn baton_core::AgentLibrary>>,
    remotes: Option<Arc<dyn RemoteAgents>>,
    team_hooks: Option<Arc<dyn TeamHooks>>,
}

impl Setup {
    fn new(model: &Scripted) -> Self {
        let models = ModelRegistry::new(ModelName::parse("scripted/m").unwrap())
            .with_provider(Arc::new(model.clone()));
        Self {
            agent: agent(),
            others: Vec::new(),
            policy: Policy::default(),
            input: "What is up?".to_owned(),
            tools: Vec::new(),
            models,
            overrides: Overrides::default(),
            task: RunTask::Answer,
            rights: Rights::all(),
            ask_at: None,
            expiry: ApprovalTerms::DEFAULT_EXPIRY,
            servers: None,
            skills: None,
            agents: None,
            remotes: None,
            team_hooks: None,
        }
    }

    fn agent(mut self, change: impl FnOnce(&mut Agent)) -> Self {
        change(&mut self.agent);
        self
    }

    /// One more agent, which only others involve.
    fn with(mut self, text: &str, change: impl FnOnce(&mut Agent)) -> Self {
        let mut other = named(text);
        change(&mut other);
        self.others.push(other);
        self
    }

    fn policy(mut self, change: impl FnOnce(&mut Policy)) -> Self {
        change(&mut self.policy);
        self
    }

    /// What the run is to do, if not just answer.
    fn task(mut self, task: RunTask) -> Self {
        self.task = task;
        self
    }

    /// For somebody who may do no more than this.
    fn rights(mut self, permissions: &[&str]) -> Self {
        self.rights = permissions.iter().map(|text| Permission::parse(text).unwrap()).collect();
        self
    }

    fn asked(mut self, input: &str) -> Self {
        input.clone_into(&mut self.input);
        self
    }

    fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// The parts of an engine with a store of its own.
    async fn parts(self) -> (EngineParts, RunRequest) {
        let agent = Arc::new(self.agent);
        let request = RunRequest {
            caller: RunCaller {
                tenant: TenantId::parse("acme").unwrap(),
                user: UserId::parse("ada").unwrap(),
                thread_id: ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
            },
            agent: agent.name.clone(),
            input: vec![Part::text(self.input)],
            overrides: self.overrides,
            on_busy: OnBusy::Enqueue,
            entry: None,
            task: self.task,
            rights: self.rights,
            trace: None,
            metadata: None,
        };
        let others = self.others.into_iter().map(Arc::new);
        let agents = others.chain([agent]).map(|agent| (agent.name.clone(), agent));
        let agents: Arc<Agents> = Arc::new(agents.collect());
        let store = baton_store::open("sqlite::memory:", Path::new("")).await.unwrap();
        let timeouts = ModelTimeouts { back_off: Duration::from_millis(10), ..ModelTimeouts::default() };
        let parts = EngineParts {
            models: Arc::new(self.models.with_timeouts(timeouts)),
            extensions: Arc::new(Extensions {
                tools: self.tools,
                servers: self.servers,
                skills: self.skills,
                agents: self.agents,
                remotes: self.remotes,
                team_hooks: self.team_hooks,
                shown_output_bytes: SHOWN_OUTPUT_BYTES,
                approvals: ApprovalSettings {
                    default: ApprovalTerms { ask_at: self.ask_at, expiry: self.expiry },
                    ..ApprovalSettings::default()
                },
                work_dir: PathBuf::from("."),
                workspaces: None,
            }),
            policy: Arc::new(self.policy),
            tenants: baton_engine::Tenants::default(),
            store: Arc::new(store),
            agents: watch::Sender::new(agents).subscribe(),
            identity: ProcessIdentity { owner: Owner("test".into()), is_gone: |_| false },
            lease: HeartbeatConfig::default(),
            flush: Duration::ZERO,
            worker_lifetime: WorkerLifetime::UntilDone,
            retention: Retention { workflow_state: SignedDuration::from_hours(720) }.into(),
            storage: baton_engine::storage::StorageLimits::default(),
            live: ThreadChannels::new(),
            observer: None,
        };
        (parts, request)
    }

    async fn start(self) -> baton_engine::RunHandle {
        let (parts, request) = self.parts().await;
        Engine::new(parts).start(request).await.unwrap()
    }

    async fn run(self) -> Ran {
        let mut run = self.start().await;
        let mut events = Vec::new();
        while let Some(event) = run.events.recv().await {
            events.push(event);
        }
        Ran { events, end: run.join().await }
    }
}

struct Ran {
    events: Vec<Event>,
    end: RunResult,
}

impl Ran {
    fn answer(&self) -> &str {
        self.end.answer.as_ref().map_or("", |answer| answer.text.as_str())
    }

    /// The event log as text: one line each, ids left out.
    fn log(&self) -> String {
        self.events.iter().map(line).collect()
    }

    /// The same for agents that work at the same time: each place's lines together, in order, without ids and times.
    fn by_place(&self) -> String {
        let mut events: Vec<&Event> = self.events.iter().collect();
        events.sort_by_key(|event| event.path.to_string());
        let log: String = events.into_iter().map(line).collect();
        let log = log.replace(&self.events[0].run_id.to_string(), "RUN");
        let mut parts = log.split("latency_ms\\\":");
        let first = parts.next().unwrap_or_default().to_owned();
        parts.fold(first, |log, rest| {
            log + "latency_ms\\\":0" + rest.trim_start_matches(|c: char| c.is_ascii_digit())
        })
    }

    /// The ledger as text, without times.
    fn ledger(&self) -> String {
        let rows = self.end.rows.iter().map(|row| {
            let call = serde_json::to_value(&row.call).unwrap();
            let call = call
                .get("tool")
                .or_else(|| call.get("model"))
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            let tokens = format!("{}+{}", row.tokens.input_tokens, row.tokens.output_tokens);
            let estimated = if row.estimated { "~" } else { "" };
            let error = row.error.as_ref().map(|error| format!(" {error}")).unwrap_or_default();
            format!("{} {call} {estimated}{tokens} {}{error}\n", row.path, row.outcome)
        });
        rows.collect()
    }
}

fn line(event: &Event) -> String {
    let hidden = if event.visibility == Visibility::Internal { "·" } else { " " };
    let what = match &event.kind {
        EventKind::TextStarted { speaker, .. } => format!("text starts ({speaker})"),
        EventKind::TextDelta { delta, .. } => format!("text {delta:?}"),
        EventKind::TextFinished { text, .. } => format!("text ends {text:?}"),
        EventKind::TurnRestarted { .. } => "turn restarted".into(),
        EventKind::Reasoning { delta, .. } => format!("thinks {delta:?}"),
        EventKind::ToolCalled { tool, arguments, .. } => format!("calls {tool}({arguments})"),
        EventKind::ToolReturned { output, failed, .. } => {
            format!("{} {output:?}", if *failed { "fails" } else { "returns" })
        }
        EventKind::Status { text } => format!("status {text:?}"),
        EventKind::RunFinished { outcome, limit, .. } => format!(
            "run finished: {outcome}{}",
            limit.as_ref().map(|l| format!(", limit {l}")).unwrap_or_default()
        ),
        EventKind::RunFailed { code, message, .. } => format!("run failed: {code}: {message}"),
        EventKind::SessionStarted { why: Some(why), .. } => format!("session started: {why:?}"),
        EventKind::SessionFailed { code, message, .. } => format!("session failed: {code}: {message}"),
        EventKind::Passed { by, from, to, reason, heard_by } => {
            format!("{by} {from} → {to}, heard by {heard_by}: {reason:?}")
        }
        EventKind::Broadcast { member, round, text } => format!("{member} in round {round}: {text:?}"),
        EventKind::Voted { member, round, ready, reason } => {
            let vote = if *ready { "ready" } else { "not ready" };
            format!("{member} in round {round} is {vote}: {reason:?}")
        }
        EventKind::TeamEnded { rounds, by, dissent } => {
            format!("team ended after {rounds} rounds by {by}, dissent {}", json!(dissent))
        }
        other => serde_json::to_value(other).unwrap()["kind"].as_str().unwrap_or_default().replace('_', " "),
    };
    format!("{hidden}{:<16} {what}\n", event.path)
}

/// A tool that a test defines by a function.
#[derive(Clone)]
struct TestTool {
    spec: ToolSpec,
    work: Arc<dyn Fn(Value) -> ToolFuture + Send + Sync>,
    /// Calls that run now, and the most there were at once.
    running: Arc<(AtomicUsize, AtomicUsize)>,
    is_untrusted: bool,
}

impl std::fmt::Debug for TestTool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.spec.name)
    }
}

impl TestTool {
    fn new<F>(name: &str, work: impl Fn(Value) -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, ToolError>> + Send + 'static,
    {
        let spec = ToolSpec {
            name: name.to_owned(),
            description: "A test tool.".into(),
            parameters: json!({"type": "object", "properties": {"n": {"type": "integer"}}, "additionalProperties": false}),
            effect: Effect::ReadOnly,
            risk: Risk::Low,
            timeout: HumanDuration::from_secs(60),
        };
        let work = Arc::new(move |arguments| {
            let future = work(arguments);
            Box::pin(async move { future.await.map(Into::into) }) as ToolFuture
        });
        Self { spec, work, running: Arc::default(), is_untrusted: false }
    }

    fn echo(name: &str) -> Self {
        Self::new(name, |arguments| async move { Ok(format!("got {arguments}")) })
    }

    fn spec(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Returns what others wrote.
    fn untrusted(self) -> Self {
        Self { is_untrusted: true, ..self }
    }

    /// Reports what `name` returns for its arguments as an artifact of each call that succeeds.
    fn creates(mut self, name: impl Fn(&Value) -> String + Send + Sync + 'static) -> Self {
        let work = Arc::clone(&self.work);
        self.work = Arc::new(move |arguments| {
            let (name, result) = (name(&arguments), work(arguments));
            Box::pin(async move { Ok(result.await?.with_artifact(name)) })
        });
        self
    }

    /// Also returns these files.
    fn returns(mut self, files: impl Fn() -> Vec<ProducedFile> + Send + Sync + 'static) -> Self {
        let work = Arc::clone(&self.work);
        self.work = Arc::new(move |arguments| {
            let (files, result) = (files(), work(arguments));
            Box::pin(async move { Ok(ToolOutput { files, ..result.await? }) })
        });
        self
    }

    fn most_at_once(&self) -> usize {
        self.running.1.load(Ordering::SeqCst)
    }
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        self.is_untrusted
    }

    fn call(&self, arguments: Value, _context: Arc<CallContext>) -> ToolFuture {
        let (work, running) = ((self.work)(arguments), Arc::clone(&self.running));
        Box::pin(async move {
            let now = running.0.fetch_add(1, Ordering::SeqCst) + 1;
            running.1.fetch_max(now, Ordering::SeqCst);
            let result = work.await;
            running.0.fetch_sub(1, Ordering::SeqCst);
            result
        })
    }
}
