//! Hops, as the API shows them.

use baton_core::store::{HandoffSession, Hop, HopKind, HopOutcome};
use baton_core::{AgentName, RunId, Usd};
use baton_sanitize::{Mask, sanitize};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::schema::{moment, words};

/// One agent involved another.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct HopView {
    pub hop_id: Uuid,
    /// The run in which it began. Absent if it began outside of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Uuid>, nullable = false)]
    pub run_id: Option<RunId>,
    #[schema(schema_with = words::<HopKind>)]
    pub kind: HopKind,
    #[schema(value_type = String)]
    pub from: AgentName,
    #[schema(value_type = String)]
    pub to: AgentName,
    pub reason: String,
    /// How it ended. Absent while a handoff is open.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, nullable = false)]
    pub outcome: Option<HopOutcome>,
    /// Whether the outcome is `completed`.
    pub success: bool,
    pub latency_ms: u64,
    /// The known cost of all calls below it.
    #[schema(value_type = f64)]
    pub cost_usd: Usd,
    /// When it began.
    #[schema(schema_with = moment)]
    pub at: Timestamp,
}

impl HopView {
    fn of(hop: Hop, outcome: Option<HopOutcome>) -> Self {
        Self {
            hop_id: hop.hop_id,
            run_id: hop.run_id,
            kind: hop.kind,
            from: hop.from,
            to: hop.to,
            reason: sanitize(&hop.reason, Mask::SecretsOnly).into_owned(),
            outcome,
            success: outcome == Some(HopOutcome::Completed),
            latency_ms: hop.latency_ms,
            cost_usd: hop.cost,
            at: hop.at,
        }
    }

    /// The hops of a thread in the order in which they began, with the handoff that is open.
    pub fn chain(hops: Vec<Hop>, open: Option<&HandoffSession>, now: Timestamp) -> Vec<Self> {
        let open = open.map(|handoff| handoff.hop(now).0);
        // A handoff that was resumed has the hop of its earlier end.
        let mut chain: Vec<Self> = hops
            .into_iter()
            .filter(|hop| open.as_ref().is_none_or(|open| open.hop_id != hop.hop_id))
            .map(Self::from)
            .collect();
        if let Some(open) = open {
            let at = chain.partition_point(|hop| hop.at <= open.at);
            chain.insert(at, Self::of(open, None));
        }
        chain
    }
}

impl From<Hop> for HopView {
    fn from(hop: Hop) -> Self {
        let outcome = Some(hop.outcome);
        Self::of(hop, outcome)
    }
}
