//! What is counted and what it is called. `docs/observability.md` lists the same.

use std::collections::HashSet;
use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, PoisonError};

use baton_core::ledger::CallOutcome;
use baton_core::usage::Tokens;
use baton_core::{AgentName, Usd};
use jiff::Timestamp;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// MCP servers name their own tools. This many have a label of their own; the rest is counted together.
const MOST_TOOLS: usize = 1000;

/// One label with a word that is known here.
type Word = [(&'static str, &'static str); 1];

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RunEndLabels {
    agent: String,
    status: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct Involved {
    kind: &'static str,
    agent: String,
}

/// `agent` is the one that has the thread.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct HandedOff {
    agent: String,
    phase: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct AgentLabels {
    agent: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct OutcomeLabels {
    agent: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ModelLabels {
    pub(super) provider: String,
    pub(super) model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ModelCall {
    provider: String,
    model: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct TokensOf {
    provider: String,
    model: String,
    kind: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ToolCallLabels {
    tool: String,
    outcome: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ToolLabels {
    tool: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct RequestLabels {
    pub(super) route: String,
    pub(super) method: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ServedLabels {
    pub(super) route: String,
    pub(super) method: &'static str,
    pub(super) status: u16,
}

impl RunEndLabels {
    pub(super) fn new(agent: &AgentName, status: &'static str) -> Self {
        Self { agent: agent.to_string(), status }
    }
}

impl Involved {
    pub(super) fn new(kind: &'static str, agent: &AgentName) -> Self {
        Self { kind, agent: agent.to_string() }
    }
}

impl HandedOff {
    pub(super) fn new(agent: &AgentName, phase: &'static str) -> Self {
        Self { agent: agent.to_string(), phase }
    }
}

pub(super) fn agent(name: &AgentName) -> AgentLabels {
    AgentLabels { agent: name.to_string() }
}

/// From one moment to another. A clock that was set back in between says nothing.
pub(super) fn seconds(since: Timestamp, until: Timestamp) -> f64 {
    until.duration_since(since).as_secs_f64().max(0.0)
}

/// Buckets of a histogram of seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Buckets(&'static [f64]);

impl MetricConstructor<Histogram> for Buckets {
    fn new_metric(&self) -> Histogram {
        Histogram::new(self.0.iter().copied())
    }
}

/// What answers at once, and what a model takes.
const SHORT: Buckets =
    Buckets(&[0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0]);
const LONG: Buckets =
    Buckets(&[0.05, 0.1, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0]);

type Seconds<L> = Family<L, Histogram, Buckets>;
type Money = Counter<f64, AtomicU64>;

fn histograms<L: Clone + std::hash::Hash + Eq>(buckets: Buckets) -> Seconds<L> {
    Family::new_with_constructor(buckets)
}

pub(super) struct Families {
    pub(super) runs_started: Family<AgentLabels, Counter>,
    pub(super) runs_ended: Family<RunEndLabels, Counter>,
    pub(super) run_failures: Family<[(&'static str, String); 1], Counter>,
    pub(super) run_duration: Seconds<AgentLabels>,
    pub(super) first_token: Seconds<AgentLabels>,
    pub(super) turns_restarted: Counter,
    pub(super) sessions_started: Family<AgentLabels, Counter>,
    sessions_ended: Family<OutcomeLabels, Counter>,
    agent_work: Family<AgentLabels, Money>,
    pub(super) delegations: Family<Involved, Counter>,
    pub(super) hops: Family<Word, Counter>,
    pub(super) handoffs: Family<HandedOff, Counter>,
    model_calls: Family<ModelCall, Counter>,
    model_duration: Seconds<ModelLabels>,
    tokens: Family<TokensOf, Counter>,
    cost: Family<ModelLabels, Money>,
    cost_unknown: Family<ModelLabels, Counter>,
    tool_calls: Family<ToolCallLabels, Counter>,
    tool_duration: Seconds<ToolLabels>,
    tools: Mutex<HashSet<String>>,
    pub(super) requests: Family<ServedLabels, Counter>,
    pub(super) request_duration: Seconds<RequestLabels>,
    pub(super) problems: Family<Word, Counter>,
    pub(super) streams: Family<Word, Gauge>,
    pub(super) streams_opened: Family<Word, Counter>,
    pub(super) streams_behind: Counter,
    pub(super) streams_resumed: Counter,
    pub(super) feedback: Family<Word, Counter>,
    pub(super) store_errors: Family<Word, Counter>,
}

impl Families {
    fn new() -> Self {
        Self {
            runs_started: Family::default(),
            runs_ended: Family::default(),
            run_failures: Family::default(),
            run_duration: histograms(LONG),
            first_token: histograms(LONG),
            turns_restarted: Counter::default(),
            sessions_started: Family::default(),
            sessions_ended: Family::default(),
            agent_work: Family::default(),
            delegations: Family::default(),
            hops: Family::default(),
            handoffs: Family::default(),
            model_calls: Family::default(),
            model_duration: histograms(LONG),
            tokens: Family::default(),
            cost: Family::default(),
            cost_unknown: Family::default(),
            tool_calls: Family::default(),
            tool_duration: histograms(LONG),
            tools: Mutex::default(),
            requests: Family::default(),
            request_duration: histograms(SHORT),
            problems: Family::default(),
            streams: Family::default(),
            streams_opened: Family::default(),
            streams_behind: Counter::default(),
            streams_resumed: Counter::default(),
            feedback: Family::default(),
            store_errors: Family::default(),
        }
    }

    pub(super) fn register(registry: &mut Registry) -> Self {
        let all = Self::new();
        all.register_runs(registry);
        all.register_calls(registry);
        all.register_server(registry);
        all
    }

    fn register_runs(&self, to: &mut Registry) {
        to.register("runs_started", "Runs that began here", self.runs_started.clone());
        to.register("runs_ended", "Runs that ended here", self.runs_ended.clone());
        to.register("run_failures", "Runs that failed, by the code of the error", self.run_failures.clone());
        let help = "From the beginning of a run to its end";
        to.register_with_unit("run_duration", help, Unit::Seconds, self.run_duration.clone());
        let help = "From the beginning of a run to the first text that the person sees";
        to.register_with_unit("time_to_first_token", help, Unit::Seconds, self.first_token.clone());
        to.register("turns_restarted", "Texts that were cut and came again", self.turns_restarted.clone());
        to.register("sessions_started", "Parts of agents that began", self.sessions_started.clone());
        to.register("sessions_ended", "Parts of agents that ended", self.sessions_ended.clone());
        to.register_with_unit("agent_work", "Time that agents ran", Unit::Seconds, self.agent_work.clone());
        to.register("delegations", "Agents that others had do something", self.delegations.clone());
        to.register("hops", "Passes of the baton within runs", self.hops.clone());
        to.register("handoffs", "Handoffs of threads", self.handoffs.clone());
        to.register("feedback", "What people said about answers", self.feedback.clone());
    }

    fn register_calls(&self, to: &mut Registry) {
        to.register("model_calls", "Calls of models", self.model_calls.clone());
        let help = "How long models took to answer in full";
        to.register_with_unit("model_call_duration", help, Unit::Seconds, self.model_duration.clone());
        to.register(
            "tokens",
            "Tokens; cached ones and cache writes are also input, reasoning is also output",
            self.tokens.clone(),
        );
        let dollars = Unit::Other("usd".to_owned());
        to.register_with_unit("cost", "What calls with a known price cost", dollars, self.cost.clone());
        to.register("cost_unknown", "Calls whose price is not known", self.cost_unknown.clone());
        to.register("tool_calls", "Calls of tools", self.tool_calls.clone());
        to.register_with_unit(
            "tool_call_duration",
            "How long tools took",
            Unit::Seconds,
            self.tool_duration.clone(),
        );
    }

    fn register_server(&self, to: &mut Registry) {
        to.register("http_requests", "Requests that were answered", self.requests.clone());
        let help = "From a request to the beginning of its answer";
        to.register_with_unit("http_request_duration", help, Unit::Seconds, self.request_duration.clone());
        to.register("problems", "Requests that were refused or failed, by code", self.problems.clone());
        to.register("streams_open", "Listeners", self.streams.clone());
        to.register("streams_opened", "Listeners that came", self.streams_opened.clone());
        to.register("streams_behind", "Times that a listener was too slow", self.streams_behind.clone());
        to.register("streams_resumed", "Listeners that came back", self.streams_resumed.clone());
        to.register("store_errors", "Writes of runs that the store did not take", self.store_errors.clone());
    }

    pub(super) fn session_ended(&self, agent: &AgentName, outcome: &'static str, took: Option<f64>) {
        self.sessions_ended.get_or_create(&OutcomeLabels { agent: agent.to_string(), outcome }).inc();
        if let Some(took) = took {
            self.agent_work.get_or_create(&self::agent(agent)).inc_by(took);
        }
    }

    pub(super) fn model_called(&self, called: &ModelLabels, outcome: CallOutcome, took: f64) {
        let ModelLabels { provider, model } = called.clone();
        self.model_calls.get_or_create(&ModelCall { provider, model, outcome: outcome.word() }).inc();
        self.model_duration.get_or_create(called).observe(took);
    }

    pub(super) fn spent(&self, called: &ModelLabels, tokens: Tokens, cost: Usd, is_unknown: bool) {
        let kinds = [
            ("input", tokens.input_tokens),
            ("output", tokens.output_tokens),
            ("cached_input", tokens.cached_tokens),
            ("cache_write", tokens.cache_write_tokens),
            ("reasoning", tokens.reasoning_tokens),
        ];
        for (kind, count) in kinds.into_iter().filter(|(_, count)| *count > 0) {
            let ModelLabels { provider, model } = called.clone();
            self.tokens.get_or_create(&TokensOf { provider, model, kind }).inc_by(count);
        }
        // A correction may be negative, and a counter never falls.
        self.cost.get_or_create(called).inc_by(f64::from(cost).max(0.0));
        if is_unknown {
            self.cost_unknown.get_or_create(called).inc();
        }
    }

    pub(super) fn tool_called(&self, tool: &str, outcome: CallOutcome, seconds: f64) {
        let tool = self.told_apart(tool).to_owned();
        self.tool_calls.get_or_create(&ToolCallLabels { tool: tool.clone(), outcome: outcome.word() }).inc();
        self.tool_duration.get_or_create(&ToolLabels { tool }).observe(seconds);
    }

    fn told_apart<'a>(&self, tool: &'a str) -> &'a str {
        let mut tools = self.tools.lock().unwrap_or_else(PoisonError::into_inner);
        if tools.contains(tool) {
            return tool;
        }
        if tools.len() >= MOST_TOOLS {
            return "other";
        }
        tools.insert(tool.to_owned());
        tool
    }
}
