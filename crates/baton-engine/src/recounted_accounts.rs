//! Which shared budgets this process has compared with the ledger. The store keeps their amounts, but they fall behind while budgets
//! are switched off.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use baton_core::TenantId;
use baton_core::budget::{BudgetAccount, BudgetKey};

/// Accounts in each of the two generations.
const MAX_RECOUNTED: usize = 1 << 15;

/// The shared budgets whose amounts this process has compared with the ledger. Those that were not used for long are forgotten, and
/// compared once more.
#[derive(Debug, Default)]
pub(crate) struct RecountedAccounts(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    recent: HashSet<(TenantId, BudgetKey)>,
    /// Those that were recent before. They become recent again when they are used.
    older: HashSet<(TenantId, BudgetKey)>,
}

impl Generations {
    fn holds(&mut self, account: &(TenantId, BudgetKey)) -> bool {
        if self.recent.contains(account) {
            return true;
        }
        match self.older.take(account) {
            Some(older) => {
                self.add(older);
                true
            }
            None => false,
        }
    }

    fn add(&mut self, account: (TenantId, BudgetKey)) {
        if self.recent.len() >= MAX_RECOUNTED {
            self.older = std::mem::take(&mut self.recent);
        }
        self.recent.insert(account);
    }
}

impl RecountedAccounts {
    /// The keys of those accounts that are still to be compared.
    pub(crate) fn missing(&self, tenant: &TenantId, accounts: &[BudgetAccount]) -> Vec<BudgetKey> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let keys = accounts.iter().map(|account| (tenant.clone(), account.key.clone()));
        keys.filter(|account| !known.holds(account)).map(|(_, key)| key).collect()
    }

    pub(crate) fn add(&self, tenant: &TenantId, keys: Vec<BudgetKey>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for key in keys {
            known.add((tenant.clone(), key));
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_core::budget::{BudgetLimit, BudgetPeriod, BudgetScope};
    use jiff::Timestamp;

    use super::*;

    fn account(scope: BudgetScope, subject: &str) -> BudgetAccount {
        let (subject, starts_at) = (subject.to_owned(), Timestamp::UNIX_EPOCH);
        let key = BudgetKey { scope, subject, period: BudgetPeriod::Total, starts_at };
        BudgetAccount { key, limit: BudgetLimit::default() }
    }

    #[test]
    fn new_threads_do_not_make_their_tenant_unknown() {
        let (recounted, acme) = (RecountedAccounts::default(), TenantId::parse("acme").unwrap());
        let tenant = account(BudgetScope::Tenant, "");
        for thread in 0..3 * MAX_RECOUNTED {
            let accounts = [account(BudgetScope::Thread, &thread.to_string()), tenant.clone()];
            let missing = recounted.missing(&acme, &accounts);
            assert_eq!(missing.len(), if thread == 0 { 2 } else { 1 }, "{missing:?}");
            recounted.add(&acme, missing);
        }
        let known = recounted.0.lock().unwrap();
        assert!(known.recent.len() + known.older.len() <= 2 * MAX_RECOUNTED);
    }
}
