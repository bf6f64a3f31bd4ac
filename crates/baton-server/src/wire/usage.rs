//! Tokens and money.

use baton_core::store::{UsageBy, UsageLine, UsageQuery};
use baton_core::usage::Cost;
use baton_core::{ThreadId, Usage, UserId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use utoipa::openapi::schema::Object;
use utoipa::{IntoParams, ToSchema};

use super::budget::BudgetView;
use super::schema::{moment, words};

/// What something took. A cost that is not known is never shown as zero: `cost_known` is false, and `cost_usd` is the known part.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct UsageView {
    pub input_tokens: u64,
    pub output_tokens: u64,
    /// Part of the input tokens: read from the provider's prompt cache.
    pub cached_tokens: u64,
    /// Part of the input tokens: written to the provider's prompt cache, where that has a price of its own.
    pub cache_write_tokens: u64,
    /// Part of the output tokens.
    pub reasoning_tokens: u64,
    /// Dollars, as an exact decimal: `0.0125`.
    #[schema(pattern = r"^-?[0-9]+\.[0-9]{2,9}$")]
    pub cost_usd: String,
    pub cost_known: bool,
    /// Some tokens were counted from the text, because a provider reported none.
    pub estimated: bool,
}

impl From<Usage> for UsageView {
    fn from(usage: Usage) -> Self {
        Self {
            input_tokens: usage.tokens.input_tokens,
            output_tokens: usage.tokens.output_tokens,
            cached_tokens: usage.tokens.cached_tokens,
            cache_write_tokens: usage.tokens.cache_write_tokens,
            reasoning_tokens: usage.tokens.reasoning_tokens,
            cost_usd: usage.cost.known_part().to_string().replace('$', ""),
            cost_known: matches!(usage.cost, Cost::Known(_)),
            estimated: usage.estimated,
        }
    }
}

/// What is added up, and for whom.
#[derive(Debug, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct UsageParams {
    /// What sums are made for. Days are those of UTC.
    #[param(schema_with = by)]
    pub by: Option<UsageBy>,
    /// Only what was done for this user.
    #[param(value_type = Option<String>, min_length = 1, max_length = 255)]
    pub user_id: Option<UserId>,
    /// Only calls that began then or later,
    #[param(schema_with = moment)]
    pub since: Option<Timestamp>,
    /// and before then.
    #[param(schema_with = moment)]
    pub until: Option<Timestamp>,
    /// Adds the budget of this thread to `budgets`. The sums stay those of the tenant.
    #[param(value_type = Option<String>, format = Uuid)]
    pub thread_id: Option<ThreadId>,
}

impl From<UsageParams> for UsageQuery {
    fn from(params: UsageParams) -> Self {
        let UsageParams { by, user_id, since, until, .. } = params;
        Self { by: by.unwrap_or(UsageBy::Agent), user_id, since, until }
    }
}

fn by() -> Object {
    let mut words = words::<UsageBy>();
    words.default = Some(UsageBy::Agent.word().into());
    words
}

/// The sums, and the budgets as they are now.
#[derive(Debug, Serialize, ToSchema)]
pub struct UsageReport {
    pub data: Vec<UsageLineView>,
    /// Always null: there is one page.
    pub next_cursor: Option<String>,
    /// Empty if none is configured.
    pub budgets: Vec<BudgetView>,
}

/// One sum.
#[derive(Debug, Serialize, ToSchema)]
pub struct UsageLineView {
    /// The agent, user, model or day.
    pub key: String,
    pub runs: u64,
    pub model_calls: u64,
    pub tool_calls: u64,
    pub usage: UsageView,
}

impl From<UsageLine> for UsageLineView {
    fn from(line: UsageLine) -> Self {
        let UsageLine { key, runs, model_calls, tool_calls, usage } = line;
        Self { key, runs, model_calls, tool_calls, usage: usage.into() }
    }
}
