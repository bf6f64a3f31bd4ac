//! One message to several agents, and what each of them brings.

use baton_core::agent::{Strategy, Synthesis};
use baton_core::store::{RunEndData, RunRecord};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::run::{RunErrorView, SubAgentResult};
use super::usage::UsageView;
use crate::strict::Checked;

/// Who is to be asked what, and on which terms.
#[derive(Debug, Deserialize, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DelegationRequest {
    /// Names of agents. One that is named twice is asked once.
    #[schema(min_items = 1, max_items = 100, example = json!(["web-research", "internal-docs"]))]
    pub agents: Vec<String>,
    /// All that they see.
    #[schema(min_length = 1, example = "What do we know about cargo bikes?")]
    pub message: String,
    /// `parallel`, unless said otherwise.
    #[schema(nullable = false)]
    pub strategy: Option<StrategyWord>,
    /// How long each of them may take. All together have as long as the main agent's `limits.timeout`.
    #[schema(minimum = 1, maximum = 600_000, default = 30_000, nullable = false)]
    pub timeout_ms: Option<u64>,
    /// `concat`, unless said otherwise.
    #[schema(nullable = false)]
    pub synthesis: Option<SynthesisWord>,
}

impl Checked for DelegationRequest {}

/// How they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StrategyWord {
    /// All at once.
    Parallel,
    /// One after the other.
    Sequential,
    /// Until one of them succeeds; the others are stopped.
    FirstSuccess,
}

impl From<StrategyWord> for Strategy {
    fn from(word: StrategyWord) -> Self {
        match word {
            StrategyWord::Parallel => Self::Parallel,
            StrategyWord::Sequential => Self::Sequential,
            StrategyWord::FirstSuccess => Self::FirstSuccess,
        }
    }
}

/// What is made of their results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SynthesisWord {
    /// One text with their names. No model is needed for it.
    Concat,
    /// The main agent writes an answer of them.
    Llm,
    /// Nothing.
    None,
}

impl From<SynthesisWord> for Synthesis {
    fn from(word: SynthesisWord) -> Self {
        match word {
            SynthesisWord::Concat => Self::Concat,
            SynthesisWord::Llm => Self::Model,
            SynthesisWord::None => Self::None,
        }
    }
}

/// The outcome.
#[derive(Debug, Serialize, ToSchema)]
pub struct DelegationView {
    pub run_id: String,
    /// As of every run. One in which all agents failed is `completed` too: that they failed is its result.
    pub status: String,
    /// One for each agent, in the order of the request.
    pub results: Vec<SubAgentResult>,
    /// One text of the results; null when none was wanted or the run did not come to it.
    pub synthesis: Option<String>,
    pub usage: UsageView,
    /// Why the run as a whole did not complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub error: Option<RunErrorView>,
}

impl DelegationView {
    pub fn of(record: RunRecord, results: Vec<baton_core::SubAgentResult>) -> Self {
        let RunEndData { answer, code, message, .. } = record.end.unwrap_or_default();
        Self {
            run_id: record.run_id.to_string(),
            status: record.status.to_string(),
            results: results.into_iter().map(Into::into).collect(),
            synthesis: answer,
            usage: record.usage.into(),
            error: code.map(|code| RunErrorView { code, message: message.unwrap_or_default() }),
        }
    }
}
