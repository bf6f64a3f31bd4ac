//! `[tenants.<name>]`: what one tenant has in place of the settings for all.

use std::num::NonZeroU32;
use std::path::PathBuf;

use baton_core::agent::{AgentPattern, ModelName};
use baton_core::budget::Budgets;
use baton_core::{AgentName, HumanDuration};
use serde::Deserialize;

use super::{ApprovalLevel, Kept};

/// A key that is left out is as for all tenants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantConfig {
    /// The agents that the tenant may see and use. `None`: all of them.
    pub agents: Option<Vec<AgentPattern>>,
    /// Folders with agents that only this tenant sees, beside those of `[agents]`. Relative to the folder of `baton.toml`.
    pub agent_dirs: Vec<PathBuf>,
    /// The agent that answers first.
    pub main: Option<AgentName>,
    /// The model of agents whose files name none.
    pub model: Option<ModelName>,
    pub limits: TenantLimits,
    /// The limits that are set here replace those of `[budgets]`.
    pub budgets: Budgets,
    pub approvals: TenantApprovals,
    pub retention: TenantRetention,
    /// Folders with documents for this tenant, beside those of `[tools.search_docs]`.
    pub docs: Vec<PathBuf>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantLimits {
    pub requests_per_minute: Option<NonZeroU32>,
    pub max_concurrent_runs: Option<u32>,
    pub max_spooled_bytes: Option<u64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantApprovals {
    pub ask_at: Option<ApprovalLevel>,
    pub expiry: Option<HumanDuration>,
}

/// Replaces the keys of `[retention]`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TenantRetention {
    pub threads: Option<Kept>,
    pub events: Option<Kept>,
    pub audit: Option<Kept>,
}
