//! The places of a run as a tree, each with what happened there and what it took, alone and with everything below.

use std::time::Duration;

use baton_core::ledger::{CallOutcome, Called, LedgerRow};
use baton_core::store::{SessionRecord, Step, StepKind, StepState};
use baton_core::{SessionId, Usage};
use baton_engine::session_info::SessionInfo;
use indexmap::{IndexMap, IndexSet};
use jiff::Timestamp;
use serde::Serialize;

/// One place of the tree. It is there because something was recorded or paid for at it or below it.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct TreeNode {
    pub(super) path: String,
    /// `session`, `turn`, `tool`, …
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<StepKind>,
    /// Whose part begins here.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub(super) who: Option<SessionInfo>,
    /// The model or the tool that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) called: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) session_id: Option<SessionId>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) state: Option<StepState>,
    /// How many model or tool calls there were here, and how many of them did not succeed.
    pub(super) calls: usize,
    pub(super) failed_calls: usize,
    pub(super) own: Spent,
    /// With everything below.
    pub(super) total: Spent,
    pub(super) children: Vec<Self>,
}

/// What calls took.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(into = "SpentWire")]
pub(super) struct Spent {
    pub(super) usage: Usage,
    /// From the beginning of the first call to the end of the last.
    span: Option<(Timestamp, Timestamp)>,
}

/// Programs want to know how long, not when.
#[derive(Serialize)]
struct SpentWire {
    #[serde(flatten)]
    usage: Usage,
    time_ms: u64,
}

impl From<Spent> for SpentWire {
    fn from(spent: Spent) -> Self {
        Self { usage: spent.usage, time_ms: u64::try_from(spent.time().as_millis()).unwrap_or(u64::MAX) }
    }
}

impl Spent {
    pub(super) fn time(self) -> Duration {
        self.span.and_then(|(from, to)| to.duration_since(from).try_into().ok()).unwrap_or_default()
    }

    fn add(&mut self, other: Self) {
        self.usage += other.usage;
        self.span = match (self.span, other.span) {
            (Some((a, b)), Some((c, d))) => Some((a.min(c), b.max(d))),
            (a, b) => a.or(b),
        };
    }
}

/// Roots and children in the order in which they began.
pub(super) fn grow(steps: &[Step], rows: &[LedgerRow], sessions: &[SessionRecord]) -> Vec<TreeNode> {
    let sessions = sessions.iter().map(|session| (&session.session_id, session)).collect();
    let mut records = Records { sessions, ..Records::default() };
    for step in steps {
        records.at(&step.path).step = Some(step);
    }
    for row in rows {
        records.at(&row.path).rows.push(row);
    }
    records.nodes("")
}

/// What is known of each place, by the path of the one above it.
#[derive(Default)]
struct Records<'a> {
    children: IndexMap<&'a str, IndexSet<&'a str>>,
    places: IndexMap<&'a str, TreePlace<'a>>,
    sessions: IndexMap<&'a SessionId, &'a SessionRecord>,
}

#[derive(Default)]
struct TreePlace<'a> {
    step: Option<&'a Step>,
    rows: Vec<&'a LedgerRow>,
}

impl<'a> Records<'a> {
    /// The place at a path, which makes those above it known too.
    fn at(&mut self, path: &'a str) -> &mut TreePlace<'a> {
        let mut below = path;
        loop {
            let above = below.rsplit_once('/').map_or("", |(above, _)| above);
            let is_new = self.children.entry(above).or_default().insert(below);
            if !is_new || above.is_empty() {
                return self.places.entry(path).or_default();
            }
            below = above;
        }
    }

    fn nodes(&self, path: &str) -> Vec<TreeNode> {
        let children = self.children.get(path).into_iter().flatten();
        children.map(|child| self.node(child)).collect()
    }

    fn node(&self, path: &str) -> TreeNode {
        let nothing = TreePlace::default();
        let place = self.places.get(path).unwrap_or(&nothing);
        let children = self.nodes(path);
        let own = place.spent();
        let mut total = own;
        for child in &children {
            total.add(child.total);
        }
        TreeNode {
            path: path.to_owned(),
            kind: place.step.map(|step| step.kind),
            who: place.step.and_then(|step| self.who(step)),
            called: place.called(),
            session_id: place.session_id(),
            state: place.step.map(|step| step.state),
            calls: place.rows.len(),
            failed_calls: place.rows.iter().filter(|row| row.outcome != CallOutcome::Ok).count(),
            own,
            total,
            children,
        }
    }
}

impl Records<'_> {
    fn who(&self, step: &Step) -> Option<SessionInfo> {
        let is_beginning = step.kind == StepKind::Session;
        let session = self.sessions.get(&step.session_id).filter(|_| is_beginning)?;
        Some(SessionInfo::of(step, session))
    }
}

impl TreePlace<'_> {
    fn spent(&self) -> Spent {
        let mut spent = Spent::default();
        for row in &self.rows {
            let took = Duration::from_millis(row.latency_ms);
            let ended = row.started_at.checked_add(took).unwrap_or(row.started_at);
            spent.add(Spent { usage: row.usage(), span: Some((row.started_at, ended)) });
        }
        spent
    }

    /// What was paid for last: earlier calls at the same place are attempts that did not succeed.
    fn called(&self) -> Option<String> {
        let paid = self.rows.last().map(|row| match &row.call {
            Called::Model { provider, model } => format!("{provider}/{model}"),
            Called::Tool { tool } => tool.clone(),
        });
        // A tool that never returned has no row, one that did says its name.
        let word = |key| self.step?.data.field::<String>(key);
        let is_tool = self.step.is_some_and(|step| step.kind == StepKind::Tool);
        paid.or_else(|| word("tool").or_else(|| word("name")).filter(|_| is_tool))
    }

    fn session_id(&self) -> Option<SessionId> {
        let of_step = self.step.map(|step| &step.session_id);
        of_step.or(self.rows.first().map(|row| &row.session_id)).cloned()
    }
}

#[cfg(test)]
mod tests {
    use baton_core::ledger::CallOutcome;
    use baton_core::usage::{Cost, Tokens};
    use baton_core::{AgentName, RunId, Usd};
    use serde_json::json;

    use super::*;

    const RUN: &str = "01890a5d-ac96-774b-bcce-b302099a8057";

    fn step(path: &str, kind: StepKind, state: StepState) -> Step {
        Step {
            path: path.to_owned(),
            session_id: SessionId::root(RunId::parse(RUN).unwrap()),
            kind,
            state,
            data: json!({"tool": "shell"}).into(),
            at: Timestamp::from_second(0).unwrap(),
        }
    }

    fn row(path: &str, second: i64, input_tokens: u64, outcome: CallOutcome) -> LedgerRow {
        LedgerRow {
            run_id: RunId::parse(RUN).unwrap(),
            session_id: SessionId::root(RunId::parse(RUN).unwrap()),
            agent: AgentName::parse("a").unwrap(),
            path: path.to_owned(),
            call: Called::Model { provider: "local".into(), model: "m".into() },
            tokens: Tokens { input_tokens, ..Tokens::default() },
            estimated: false,
            cost: Cost::Known(Usd::from_nanos(1)),
            started_at: Timestamp::from_second(second).unwrap(),
            latency_ms: 1500,
            outcome,
            error: None,
        }
    }

    #[test]
    fn every_place_has_its_own_and_everything_below() {
        let steps = [
            step("a", StepKind::Session, StepState::Started),
            step("a/turn:1", StepKind::Turn, StepState::Finished),
            step("a/turn:1/tool:1", StepKind::Tool, StepState::Started),
        ];
        let rows = [
            row("a/turn:1", 0, 5, CallOutcome::Failed),
            row("a/turn:1", 3, 7, CallOutcome::Ok),
            // Nothing was recorded above it.
            row("a/advisor:b/turn:1", 10, 100, CallOutcome::Ok),
        ];
        let [root] = &grow(&steps, &rows, &[])[..] else { panic!("one root") };
        assert_eq!((root.own.usage.tokens.total(), root.total.usage.tokens.total()), (0, 112));
        assert_eq!(root.total.time(), Duration::from_millis(11_500));
        let paths: Vec<&str> = root.children.iter().map(|child| child.path.as_str()).collect();
        assert_eq!(paths, ["a/turn:1", "a/advisor:b"]);
        let turn = &root.children[0];
        assert_eq!((turn.calls, turn.failed_calls, turn.own.usage.tokens.total()), (2, 1, 12));
        assert_eq!(turn.called.as_deref(), Some("local/m"));
        assert_eq!(turn.children[0].called.as_deref(), Some("shell"));
        assert_eq!(root.children[1].total.usage.tokens.total(), 100);
        let json = serde_json::to_value(turn).unwrap();
        assert_eq!((&json["own"]["time_ms"], &json["own"]["input_tokens"]), (&json!(4500), &json!(12)));
    }
}
