//! `[retention]`: how long history is kept.

use baton_core::HumanDuration;
use baton_core::duration::InvalidDuration;
use baton_core::store::HistoryRetention;
use jiff::SignedDuration;
use serde::Deserialize;

use super::TenantRetention;

/// `"forever"`, or a duration such as `"90d"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(try_from = "String")]
pub enum Kept {
    #[default]
    Forever,
    For(HumanDuration),
}

impl TryFrom<String> for Kept {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if text == "forever" {
            return Ok(Self::Forever);
        }
        let parsed = HumanDuration::parse(&text).map(Self::For);
        parsed.map_err(|error: InvalidDuration| format!("{error}, or \"forever\""))
    }
}

impl Kept {
    fn limit(self) -> Option<SignedDuration> {
        match self {
            Self::Forever => None,
            // A longer time than can be counted is forever.
            Self::For(duration) => SignedDuration::try_from(duration.get()).ok(),
        }
    }
}

/// How long history is kept, for all tenants.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct RetentionConfig {
    /// Threads with all they own, since their last use.
    pub threads: Kept,
    /// Events, steps and sessions of a run, since its end.
    pub events: Kept,
    /// Entries of the audit trail, since the seal that covers them.
    pub audit: Kept,
}

impl RetentionConfig {
    /// For a tenant with keys of its own.
    pub fn of_tenant(&self, own: &TenantRetention) -> HistoryRetention {
        HistoryRetention {
            threads: own.threads.unwrap_or(self.threads).limit(),
            events: own.events.unwrap_or(self.events).limit(),
            audit: own.audit.unwrap_or(self.audit).limit(),
        }
    }

    pub fn of_all(&self) -> HistoryRetention {
        self.of_tenant(&TenantRetention::default())
    }
}
