//! Audit entries of the installation: the configuration that the server started with, and each reload of the agent files.

use std::net::SocketAddr;
use std::sync::Arc;

use baton_core::Store;
use baton_core::store::AuditEntry;
use baton_server::RosterState;
use baton_server::identity::key::Digest;
use baton_server::trail::{SYSTEM, system_tenant};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::project::Project;

fn entry(action: &str, decision: &str, detail: Value) -> AuditEntry {
    AuditEntry {
        actor: SYSTEM.to_owned(),
        action: action.to_owned(),
        decision: decision.to_owned(),
        detail,
        ..AuditEntry::default()
    }
}

/// The entry of a started server. The hash shows whether the file has changed since an earlier start.
pub(super) fn started(project: &Project, address: SocketAddr, audit_key: &str) -> AuditEntry {
    let text = project.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok());
    let detail = json!({
        "version": env!("CARGO_PKG_VERSION"),
        "listen": address.to_string(),
        "auth": project.config.auth.mode.to_string(),
        "config_sha256": text.map(|text| Digest::of(&text).hex()),
        "audit_key_id": audit_key,
    });
    entry("server.start", "started", detail)
}

/// Records the start and then every reload, until it is dropped. A failure is logged.
pub(super) async fn record(
    store: Arc<dyn Store>,
    started: AuditEntry,
    mut roster: watch::Receiver<RosterState>,
) {
    let trail = store.tenant(&system_tenant());
    roster.mark_unchanged();
    let mut next = Some(started);
    loop {
        if let Some(entry) = next.take()
            && let Err(error) = trail.record(entry).await
        {
            tracing::warn!(%error, "a change of the configuration could not be recorded in the audit trail");
        }
        if roster.changed().await.is_err() {
            return;
        }
        next = Some(reloaded(&roster.borrow_and_update()));
    }
}

fn reloaded(state: &RosterState) -> AuditEntry {
    if state.is_current() {
        return entry("agents.reload", "loaded", json!({ "agents": state.roster.len() }));
    }
    entry("agents.reload", "rejected", json!({ "problems": state.findings().count() }))
}
