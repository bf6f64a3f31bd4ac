//! Whole runs through a scripted model: script in, event log and ledger out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should stop")]

mod durability;
mod limits;
mod listening;
mod outages;
mod sessions;
mod strategies;
mod tools;
mod turns;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use baton_core::agent::{
    Advisors, Agent, Approvals, Badge, Delegation, History, Kind, Limits, ModelName, PlanningStrategy,
    Sampling, Skills, ToolAccess, ToolPattern,
};
use baton_core::event::{Event, EventKind};
use baton_core::message::{Part, Visibility};
use baton_core::store::{OnBusy, Owner, Retention};
use baton_core::tool::{CallContext, Effect, Risk, Tool, ToolError, ToolFuture, ToolSource, ToolSpec};
use baton_core::{AgentName, HumanDuration, TenantId, ThreadId, UserId};
use baton_engine::{
    Agents, Caller, Engine, Finished, Identity, LeaseTimes, Models, Overrides, Parts, Patience, RunRequest,
    Stays,
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

/// An agent called `a` that may use every tool.
fn agent() -> Agent {
    Agent {
        name: AgentName::parse("a").unwrap(),
        display_name: "A".into(),
        description: "Helps.".into(),
        version: "1.0.0".parse().unwrap(),
        kind: Kind::Local,
        model: Vec::new(),
        sampling: Sampling::default(),
        planning_strategy: PlanningStrategy::NativeReact,
        output_schema: None,
        tools: ToolAccess { allow: vec![ToolPattern::parse("*").unwrap()], ..ToolAccess::default() },
        mcp_servers: indexmap::IndexMap::default(),
        skills: Skills::default(),
        approvals: Approvals::default(),
        agents: Vec::new(),
        delegation: Delegation::default(),
        advisors: Advisors::default(),
        router: None,
        team: None,
        handoff: Vec::new(),
        collaborations: Vec::new(),
        accepts_handoff: None,
        workflow: None,
        can_be_orchestrated: true,
        history: History::Conversation,
        sanitize: true,
        limits: Limits::default(),
        badge: Badge { color: "blue".into(), icon: None, hidden: false },
        handoffs: Vec::new(),
        prompt: "You help {{ user }} of {{ tenant }}.".into(),
    }
}

/// A run set up by a test, and what it came to.
struct Setup {
    agent: Agent,
    tools: Vec<Arc<dyn Tool>>,
    models: Models,
    overrides: Overrides,
    ask_at: Option<Risk>,
    servers: Option<Arc<dyn ToolSource>>,
}

impl Setup {
    fn new(model: &Scripted) -> Self {
        let models =
            Models::new(ModelName::parse("scripted/m").unwrap()).with_provider(Arc::new(model.clone()));
        Self {
            agent: agent(),
            tools: Vec::new(),
            models,
            overrides: Overrides::default(),
            ask_at: None,
            servers: None,
        }
    }

    fn agent(mut self, change: impl FnOnce(&mut Agent)) -> Self {
        change(&mut self.agent);
        self
    }

    fn tool(mut self, tool: impl Tool + 'static) -> Self {
        self.tools.push(Arc::new(tool));
        self
    }

    /// The parts of an engine with a store of its own.
    async fn parts(self) -> (Parts, RunRequest) {
        let agent = Arc::new(self.agent);
        let request = RunRequest {
            caller: Caller {
                tenant: TenantId::parse("acme").unwrap(),
                user: UserId::parse("ada").unwrap(),
                thread_id: ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
            },
            agent: agent.name.clone(),
            input: vec![Part::text("What is up?")],
            overrides: self.overrides,
            on_busy: OnBusy::Enqueue,
        };
        let agents: Arc<Agents> = Arc::new(BTreeMap::from([(agent.name.clone(), agent)]));
        let store = baton_store::open("sqlite::memory:", Path::new("")).await.unwrap();
        let parts = Parts {
            models: self.models,
            tools: self.tools,
            servers: self.servers,
            overflow: None,
            ask_at: self.ask_at,
            work_dir: PathBuf::from("."),
            patience: Patience { back_off: Duration::from_millis(10), ..Patience::default() },
            store: Arc::new(store),
            agents: watch::Sender::new(agents).subscribe(),
            identity: Identity { owner: Owner("test".into()), is_gone: |_| false },
            lease: LeaseTimes::default(),
            stays: Stays::UntilDone,
            retention: Retention { workflow_state: SignedDuration::from_hours(720) },
        };
        (parts, request)
    }

    async fn start(self) -> baton_engine::Run {
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
    end: Finished,
}

impl Ran {
    fn answer(&self) -> &str {
        self.end.answer.as_ref().map_or("", |answer| answer.text.as_str())
    }

    /// The event log as text: one line each, ids left out.
    fn log(&self) -> String {
        self.events.iter().map(line).collect()
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
        Self { spec, work, running: Arc::default() }
    }

    fn echo(name: &str) -> Self {
        Self::new(name, |arguments| async move { Ok(format!("got {arguments}")) })
    }

    fn spec(mut self, change: impl FnOnce(&mut ToolSpec)) -> Self {
        change(&mut self.spec);
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
