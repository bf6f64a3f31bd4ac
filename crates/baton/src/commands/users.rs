//! `baton users`: all data of a user, exported or erased.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use baton_core::{Store as _, StoreError, TenantId, UserId, Workspaces};
use baton_engine::{export, lifecycle};
use futures_util::StreamExt as _;

use super::archive::{self, Archive};
use super::{print, write};
use crate::cli::Common;
use crate::confinement;
use crate::exit::Exit;
use crate::project::Project;
use crate::report::tell;

/// The actor in the audit trail: the person with access to the store.
const ACTOR: &str = "system";
/// While the store is unavailable.
const RETRIES: u32 = 10;
const RETRY_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Print all data of a user, one JSON object per line
    Export {
        #[arg(value_name = "USER")]
        user: UserId,
        /// The tenant that the user belongs to
        #[arg(long, value_name = "TENANT", default_value = "default")]
        tenant: TenantId,
    },
    /// Erase a user: their conversations, files, keys and name; costs are kept under a pseudonym
    Erase {
        #[arg(value_name = "USER")]
        user: UserId,
        /// The tenant that the user belongs to
        #[arg(long, value_name = "TENANT", default_value = "default")]
        tenant: TenantId,
        /// Do not ask
        #[arg(long, short)]
        yes: bool,
    },
}

pub fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    match command {
        Command::Export { user, tenant } => {
            let project = super::project(common)?;
            archive::with_project(&project, async |archive| {
                print_export(archive, &project, user, tenant).await
            })
        }
        Command::Erase { user, tenant, yes } => {
            let project = super::project(common)?;
            archive::with_project(&project, async |archive| {
                erase(archive, &project, user, tenant, *yes).await
            })
        }
    }
}

async fn print_export(
    archive: &Archive,
    project: &Project,
    user: &UserId,
    tenant: &TenantId,
) -> anyhow::Result<Exit> {
    let workspaces = confinement::workspaces(project).map(|found| Arc::new(found) as Arc<dyn Workspaces>);
    let mut lines = pin!(export::export(archive.store.tenant(tenant), workspaces, user.clone()));
    while let Some(line) = lines.next().await {
        write(&format!("{}\n", line?))?;
    }
    Ok(Exit::Ok)
}

async fn erase(
    archive: &Archive,
    project: &Project,
    user: &UserId,
    tenant: &TenantId,
    yes: bool,
) -> anyhow::Result<Exit> {
    let question = format!("Erase the user {user} of {tenant} with all their data? [y/N] ");
    if !yes && !super::threads::confirmed(&question)? {
        tell("kept");
        return Ok(Exit::Ok);
    }
    archive.release_dead_owners().await?;
    let workspaces = confinement::workspaces(project);
    let workspaces = workspaces.as_ref().map(|found| found as &dyn Workspaces);
    let erasure = lifecycle::request_erasure(&*archive.store.tenant(tenant), user, ACTOR, None).await?;
    for attempt in 0..=RETRIES {
        match lifecycle::erase(&archive.store, workspaces, tenant, &erasure).await {
            Err(error) if attempt < RETRIES && is_repeatable(&error) => tokio::time::sleep(RETRY_DELAY).await,
            done => {
                done?;
                break;
            }
        }
    }
    print(&format!("erased the user {user} of {tenant} ({})\n", erasure.erasure_id))?;
    Ok(Exit::Ok)
}

/// A conflict is a thread that was deleted or listed anew in the meantime.
fn is_repeatable(error: &StoreError) -> bool {
    error.is_transient() || matches!(error, StoreError::Conflict(_))
}
