//! When calls wait for a person, and for how long.

use std::collections::BTreeMap;
use std::time::Duration;

use baton_core::TenantId;
use baton_core::tool::Risk;

/// The operator's settings, for all tenants and for some of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ApprovalSettings {
    pub default: ApprovalTerms,
    /// By the name of the tenant.
    pub tenants: BTreeMap<String, ApprovalTerms>,
}

/// When a call waits, and for how long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ApprovalTerms {
    /// Tools of this risk or higher wait. `None`: only those that an agent's file lists under `ask`.
    pub ask_at: Option<Risk>,
    /// How long a call waits before it counts as denied.
    pub expiry: Duration,
}

impl ApprovalTerms {
    pub const DEFAULT_EXPIRY: Duration = Duration::from_hours(24);
}

impl Default for ApprovalTerms {
    fn default() -> Self {
        Self { ask_at: Some(Risk::High), expiry: Self::DEFAULT_EXPIRY }
    }
}

impl ApprovalSettings {
    /// The same for all tenants, with the default expiry.
    pub fn asking_at(ask_at: Option<Risk>) -> Self {
        let default = ApprovalTerms { ask_at, ..ApprovalTerms::default() };
        Self { default, tenants: BTreeMap::new() }
    }

    pub fn of(&self, tenant: &TenantId) -> &ApprovalTerms {
        self.tenants.get(tenant.as_str()).unwrap_or(&self.default)
    }
}
