//! Budgets: what was spent and what is left.

use baton_core::Usd;
use baton_core::budget::{BudgetPeriod, BudgetReport, BudgetScope};
use jiff::Timestamp;
use serde::Serialize;
use utoipa::ToSchema;

use super::schema::{moment, words};

/// One budget. Amounts of money are dollars as exact decimals: `0.0125`. A limit that is not there does not apply, and nothing
/// remains of it.
#[derive(Debug, Serialize, ToSchema)]
pub struct BudgetView {
    #[schema(schema_with = words::<BudgetScope>)]
    pub scope: BudgetScope,
    /// The user or thread.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub subject: Option<String>,
    #[schema(schema_with = words::<BudgetPeriod>)]
    pub period: BudgetPeriod,
    /// When it starts again: at midnight UTC, of the next day or of the first of the next month.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(schema_with = moment)]
    pub ends_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_cost_usd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub max_tokens: Option<u64>,
    pub spent_usd: String,
    pub spent_tokens: u64,
    /// The most that calls in progress can take.
    pub reserved_usd: String,
    pub reserved_tokens: u64,
    /// What is left, without what is reserved.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remaining_usd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub remaining_tokens: Option<u64>,
    /// The whole percentage that is spent, of the limit that is used most.
    pub percent: u32,
}

impl From<BudgetReport> for BudgetView {
    fn from(report: BudgetReport) -> Self {
        Self {
            scope: report.scope,
            subject: Some(report.subject).filter(|subject| !subject.is_empty()),
            period: report.period,
            ends_at: report.ends_at,
            max_cost_usd: report.limit.max_cost_usd.map(dollars),
            max_tokens: report.limit.max_tokens,
            spent_usd: dollars(report.spent.cost()),
            spent_tokens: report.spent.tokens,
            reserved_usd: dollars(report.reserved.cost()),
            reserved_tokens: report.reserved.tokens,
            remaining_usd: report.remaining.max_cost_usd.map(dollars),
            remaining_tokens: report.remaining.max_tokens,
            percent: report.percent,
        }
    }
}

fn dollars(usd: Usd) -> String {
    usd.to_string().replace('$', "")
}
