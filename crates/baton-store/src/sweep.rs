//! Deletes expired data.

use std::sync::Arc;

use baton_core::store::{AuditEntry, Lifecycle as _, Pending, Retention, Swept};
use baton_core::{StoreError, TenantId, TenantStore};
use jiff::Timestamp;

use crate::budgets;
use crate::job::JobSubject;
use crate::outputs;
use crate::tenant::Tenant;
use crate::tx::Tx;
use crate::value::params;

impl TenantStore for Tenant {
    fn tenant(&self) -> &TenantId {
        &self.tenant
    }

    fn audited(&self, entry: AuditEntry) -> Arc<dyn TenantStore> {
        let (database, tenant) = (self.database.clone(), self.tenant.clone());
        Arc::new(Self { database, tenant, audit: Some(Arc::new(entry)) })
    }

    fn sweep(&self, retention: Retention) -> Pending<'_, Swept> {
        Box::pin(async move {
            let once =
                self.write(JobSubject::Tenant, retention, |tx, retention| Box::pin(sweep(tx, *retention)));
            let mut swept = once.await?;
            let mut deleted = swept.spooled_outputs;
            while deleted == outputs::DELETED_AT_ONCE {
                deleted =
                    self.write(JobSubject::Tenant, (), |tx, ()| Box::pin(outputs::delete_ended(tx))).await?;
                swept.spooled_outputs += deleted;
            }
            self.finish_deletions().await?;
            Ok(swept)
        })
    }
}

/// The handoffs themselves are kept.
const WORKFLOW_STATES: &str = "
    DELETE FROM workflow_states
    WHERE tenant = $1 AND updated_at < $2
        AND NOT EXISTS (
            SELECT 1 FROM handoffs AS h
            WHERE h.tenant = $1 AND h.handoff_id = workflow_states.handoff_id
                AND h.state <> 'completed' AND h.state <> 'cancelled' AND h.state <> 'error'
        )";

async fn sweep(tx: &Tx<'_>, retention: Retention) -> Result<Swept, StoreError> {
    let now = tx.now();
    let oldest = now.saturating_sub(retention.workflow_state).unwrap_or(Timestamp::MIN);
    let idempotency = "DELETE FROM idempotency WHERE tenant = $1 AND expires_at <= $2";
    let results = "DELETE FROM results WHERE tenant = $1 AND expires_at <= $2";
    budgets::sweep(tx).await?;
    Ok(Swept {
        workflow_states: tx.execute(WORKFLOW_STATES, params![oldest]).await?,
        idempotency_records: tx.execute(idempotency, params![now]).await?,
        cached_results: tx.execute(results, params![now]).await?,
        spooled_outputs: outputs::delete_ended(tx).await?,
    })
}
