//! When keys were used. Noted in memory for each request, and stored by a background task about once a minute.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use baton_core::TenantId;
use jiff::Timestamp;
use uuid::Uuid;

use super::Principal;

/// Keys of which uses are noted between two writes. The uses of further keys are not noted.
const CAPACITY: usize = 10_000;

#[derive(Debug, Default)]
pub(super) struct KeyUses(Mutex<HashMap<Uuid, (TenantId, Timestamp)>>);

impl KeyUses {
    pub(super) fn note(&self, owner: &Principal) {
        let Some(key) = &owner.key else { return };
        let mut uses = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Timestamp::now();
        if let Some((_, at)) = uses.get_mut(&key.key_id) {
            *at = now;
        } else if uses.len() < CAPACITY {
            uses.insert(key.key_id, (owner.tenant.clone(), now));
        }
    }

    /// The last use of each key since the last call.
    pub(super) fn take(&self) -> HashMap<TenantId, Vec<(Uuid, Timestamp)>> {
        let uses = std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut of_tenants: HashMap<TenantId, Vec<(Uuid, Timestamp)>> = HashMap::new();
        for (key, (tenant, at)) in uses {
            of_tenants.entry(tenant).or_default().push((key, at));
        }
        of_tenants
    }
}
