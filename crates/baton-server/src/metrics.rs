//! Metrics for Prometheus.
//!
//! Values cover the whole server. Tenants and threads are not labels: there are too many, and tenants must not see each other's
//! activity. Labels come from files, from the configuration or from this program, never from a request or a model.
//!
//! - [`families`]: the metrics and their names.
//! - [`active_runs`]: runs in progress, for durations.
//! - [`streams`]: open streams. [`scrape`]: values that are read on each scrape.

mod active_runs;
mod families;
mod scrape;
mod streams;

use std::fmt;
use std::time::Duration;

use baton_core::event::{Event, EventKind, HandoffEvent, HandoffPhase, RunOutcome};
use baton_core::ledger::{Called, LedgerRow};
use baton_core::message::Visibility;
use baton_core::store::Rating;
use baton_core::usage::Cost;
use baton_core::{StoreError, TenantId};
use baton_engine::Observer;
use http::{Method, StatusCode};
use jiff::Timestamp;
use prometheus_client::registry::Registry;

pub use scrape::{CONTENT_TYPE, Now};
pub use streams::{Stream, StreamKind};

use crate::problem::Code;
use active_runs::ActiveRuns;
use families::{Families, RequestLabels, ServedLabels};

/// Label of a run that has parked.
const WAITING: &str = "waiting";

/// The metrics. Shared by the engine, which reports its events here, and the server.
pub struct Metrics {
    registry: Registry,
    families: Families,
    active_runs: ActiveRuns,
}

impl Default for Metrics {
    fn default() -> Self {
        let mut registry = Registry::with_prefix("baton");
        let families = Families::register(&mut registry);
        Self { registry, families, active_runs: ActiveRuns::default() }
    }
}

impl Metrics {
    /// Counts an error response.
    pub fn refused(&self, code: Code) {
        self.families.problems.get_or_create(&[("code", code.word())]).inc();
    }

    /// Counts a response. `route` is the matched pattern, so that paths with ids share a label.
    pub fn served(&self, route: &str, method: &Method, status: StatusCode, took: Duration) {
        let (route, method) = (route.to_owned(), known(method));
        let asked = RequestLabels { route, method };
        self.families.request_duration.get_or_create(&asked).observe(took.as_secs_f64());
        let RequestLabels { route, method } = asked;
        let served = ServedLabels { route, method, status: status.as_u16() };
        self.families.requests.get_or_create(&served).inc();
    }

    /// Counts an open stream until the guard is dropped.
    pub fn stream(&self, kind: StreamKind) -> Stream {
        self.families.streams_opened.get_or_create(&[("kind", kind.word())]).inc();
        Stream::open(self.families.streams.get_or_create_owned(&[("kind", kind.word())]))
    }

    /// Counts a subscriber that was too slow and has to read from the store.
    pub fn stream_behind(&self) {
        self.families.streams_behind.inc();
    }

    /// Counts a client that reconnected with its last position.
    pub fn stream_resumed(&self) {
        self.families.streams_resumed.inc();
    }

    /// Counts a rating.
    pub fn rated(&self, rating: Rating) {
        self.families.feedback.get_or_create(&[("rating", rating.word())]).inc();
    }

    /// Counts the phases of handoffs. A resumed handoff does not count as started again.
    fn handed_off(&self, handoff: &HandoffEvent) {
        let phase = match handoff.phase {
            HandoffPhase::Connecting => "started",
            HandoffPhase::Completed => "completed",
            HandoffPhase::Cancelled => "exited",
            HandoffPhase::Error => "failed",
            HandoffPhase::Active | HandoffPhase::Returning => return,
        };
        self.families.handoffs.get_or_create(&families::HandedOff::new(&handoff.to, phase)).inc();
    }

    fn run_ended(&self, event: &Event, status: &'static str) {
        self.families.runs_ended.get_or_create(&families::RunEndLabels::new(&event.agent, status)).inc();
        let Some(run) = self.active_runs.end(event.run_id) else { return };
        let took = families::seconds(run.since, event.at);
        self.families.run_duration.get_or_create(&families::agent(&event.agent)).observe(took);
        if status == WAITING {
            // Its sessions continue when it is resumed.
            return;
        }
        // Sessions that are still open when the run ends are cancelled with it.
        for (agent, since) in run.sessions.into_values() {
            self.families.session_ended(&agent, "cancelled", Some(families::seconds(since, event.at)));
        }
    }

    fn session_started(&self, event: &Event, session: &baton_core::SessionId) {
        self.families.sessions_started.get_or_create(&families::agent(&event.agent)).inc();
        self.active_runs.session_begins(event, session);
        let place = event.path.rsplit('/').next().unwrap_or_default();
        let kind = place.split_once(':').map(|(kind, _)| kind);
        if let Some(kind) =
            ["call", "delegate", "advisor", "member"].into_iter().find(|word| kind == Some(word))
        {
            self.families.delegations.get_or_create(&families::Involved::new(kind, &event.agent)).inc();
        }
    }

    fn session_ended(&self, event: &Event, session: &baton_core::SessionId, outcome: &'static str) {
        let since = self.active_runs.session_ends(event.run_id, session);
        let took = since.map(|since| families::seconds(since, event.at));
        self.families.session_ended(&event.agent, outcome, took);
    }

    /// Measures the time to the first text that the user sees, at the start of a streamed text or with a complete one.
    fn spoken(&self, event: &Event) {
        if event.visibility == Visibility::User
            && let Some(since) = self.active_runs.speaks(event.run_id)
        {
            let waited = families::seconds(since, Timestamp::now());
            self.families.first_token.get_or_create(&families::agent(&event.agent)).observe(waited);
        }
    }
}

impl Observer for Metrics {
    fn on_event(&self, _tenant: &TenantId, event: &Event) {
        match &event.kind {
            EventKind::RunStarted { .. } => {
                self.families.runs_started.get_or_create(&families::agent(&event.agent)).inc();
                self.active_runs.begin(event);
            }
            EventKind::RunFinished { outcome, .. } => self.run_ended(
                event,
                match outcome {
                    RunOutcome::Success => "completed",
                    RunOutcome::Cancelled => "cancelled",
                },
            ),
            EventKind::RunWaiting { .. } => self.run_ended(event, WAITING),
            EventKind::RunResumed { .. } => self.active_runs.begin(event),
            EventKind::RunFailed { code, .. } => {
                self.families.run_failures.get_or_create(&[("code", code.clone())]).inc();
                self.run_ended(event, if code == "interrupted" { "interrupted" } else { "failed" });
            }
            EventKind::SessionStarted { session_id, .. } => self.session_started(event, session_id),
            EventKind::SessionFinished { session_id } => self.session_ended(event, session_id, "ok"),
            EventKind::SessionFailed { session_id, .. } => self.session_ended(event, session_id, "failed"),
            EventKind::TextStarted { .. } | EventKind::TextFinished { .. } => self.spoken(event),
            EventKind::TurnRestarted { .. } => {
                self.families.turns_restarted.inc();
            }
            EventKind::Passed { by, .. } => {
                self.families.hops.get_or_create(&[("kind", by.word())]).inc();
            }
            EventKind::Handoff(handoff) => self.handed_off(handoff),
            _ => {}
        }
    }

    fn on_ledger_rows(&self, _tenant: &TenantId, rows: &[LedgerRow]) {
        for row in rows {
            let took = Duration::from_millis(row.latency_ms).as_secs_f64();
            match &row.call {
                Called::Model { provider, model } => {
                    let called = families::ModelLabels { provider: provider.clone(), model: model.clone() };
                    let is_unknown = matches!(row.cost, Cost::Unknown(_));
                    self.families.model_called(&called, row.outcome, took);
                    self.families.spent(&called, row.tokens, row.cost.known_part(), is_unknown);
                }
                // The name was invented by a model, so it must not become a label.
                Called::Tool { .. } if row.error.as_deref() == Some("unknown_tool") => {
                    self.families.tool_called("unknown", row.outcome, took);
                }
                Called::Tool { tool } => self.families.tool_called(tool, row.outcome, took),
            }
        }
    }

    fn on_store_error(&self, error: &StoreError) {
        self.families.store_errors.get_or_create(&[("code", error.code())]).inc();
    }
}

impl fmt::Debug for Metrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Metrics")
    }
}

/// Maps unknown methods to one label.
fn known(method: &Method) -> &'static str {
    const KNOWN: [&str; 7] = ["GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS"];
    KNOWN.into_iter().find(|word| *word == method.as_str()).unwrap_or("OTHER")
}
