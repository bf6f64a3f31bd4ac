//! Agents that people of a tenant created.

use std::sync::Arc;

use baton_agents::{Diagnostic, RosterDraft};
use baton_core::store::AuditEntry;
use baton_core::{AgentName, Store, TenantId};
use serde_json::json;

use crate::agent_catalog;
use crate::commands::{print, tenant};
use crate::exit::Exit;
use crate::project::Project;
use crate::report::{tell, visible};
use crate::wiring;

/// The actor of audit entries.
const ACTOR: &str = "system";

/// The draft with the created agents of a tenant. Those that cannot be used are reported. Nothing is opened if there is no store yet.
pub(in crate::commands) fn with_created(
    project: &Project,
    tenant: &TenantId,
    draft: RosterDraft,
) -> anyhow::Result<RosterDraft> {
    if !wiring::has_store(project) || draft.problems().iter().any(Diagnostic::is_error) {
        return Ok(draft);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store: Arc<dyn Store> = match wiring::store(project).await {
            Ok(store) => Arc::new(store),
            // The agents of files need no store.
            Err(error) => {
                tell(&format!("agents that people created are left out: {error:#}"));
                return Ok(draft);
            }
        };
        let (merged, left_out) =
            agent_catalog::with_created(project, Arc::clone(&store), tenant, draft).await?;
        store.close().await?;
        for problem in left_out.iter().filter(|problem| problem.is_error()) {
            tell(&format!(
                "a created agent cannot be used and is left out: {}",
                visible(&problem.to_string())
            ));
        }
        Ok(merged)
    })
}

pub(super) fn delete(project: &Project, called: &str) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let store = wiring::store(project).await?;
        let name = AgentName::parse(called).map_err(|error| Exit::Usage.because(error))?;
        let entry = AuditEntry {
            actor: ACTOR.to_owned(),
            action: "agent.delete".to_owned(),
            decision: "allowed".to_owned(),
            detail: json!({ "agent": name.as_str() }),
            ..AuditEntry::default()
        };
        let is_deleted = store.tenant(&tenant()).delete_agent(&name, entry).await?;
        wiring::seal(&store).await;
        store.close().await?;
        if !is_deleted {
            let is_file = project.draft_of(&tenant()).agent(&name).is_some();
            let help = if is_file {
                "it is an agent of a file: delete the file"
            } else {
                "`baton agents list` prints them all"
            };
            anyhow::bail!("no created agent is called `{name}`; {help}");
        }
        print(&format!("deleted the agent `{name}` of the tenant `{}`\n", tenant()))?;
        Ok(Exit::Ok)
    })
}
