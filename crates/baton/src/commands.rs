//! One file per command. Results go to stdout, everything else to stderr.

pub mod agents;
pub mod approvals;
mod archive;
pub mod audit;
pub mod backup;
mod cast;
pub mod chat;
pub mod completions;
pub mod doctor;
mod editor;
pub mod graph;
pub mod handoff;
pub mod init;
pub mod keys;
mod lines;
pub mod openapi;
pub mod patterns;
mod reference;
pub mod run;
pub mod runs;
pub mod serve;
pub mod sessions;
mod signals;
pub mod skills;
pub mod threads;
pub mod usage;
pub mod users;
pub mod validate;

use std::io::{ErrorKind, Write as _};
use std::path::Path;
use std::sync::{Arc, OnceLock};

use baton_core::{TenantId, ThreadId, UserId};
use baton_engine::{Agents, RunCaller};

use crate::cli::Common;
use crate::config::ConfigError;
use crate::exit::Exit;
use crate::project::Project;

/// The project that a command without paths works on: the one around the current folder.
fn project(common: &Common) -> Result<Project, ConfigError> {
    Project::open_profile(Path::new(""), common.config.as_deref(), common.profile(), &common.agents)
}

/// All agents of a project, for a command that has them work.
fn everybody(project: &Project) -> anyhow::Result<Arc<Agents>> {
    let roster = project.draft().finish().map_err(|error| {
        Exit::Invalid.because(anyhow::Error::from(error).context("`baton validate` explains what is wrong"))
    })?;
    Ok(Arc::new(roster.iter().map(|agent| (agent.name.clone(), Arc::clone(agent))).collect()))
}

/// The tenant that `--tenant` names. Set once, before the command begins.
static TENANT: OnceLock<TenantId> = OnceLock::new();

/// Whose data commands work on that need no server.
fn tenant() -> TenantId {
    let default = || TenantId::parse("default").expect("a valid id");
    TENANT.get().cloned().unwrap_or_else(default)
}

/// Whose data a command works on.
#[derive(Debug, Clone, clap::Args)]
pub struct TenantArg {
    /// The tenant whose data is read or changed [default: default]
    #[arg(long, value_name = "TENANT", global = true)]
    tenant: Option<TenantId>,
}

impl TenantArg {
    /// Makes it the tenant of this process.
    pub fn select(&self) {
        if let Some(tenant) = &self.tenant {
            let _ = TENANT.set(tenant.clone());
        }
    }

    pub fn is_given(&self) -> bool {
        self.tenant.is_some()
    }
}

/// A command with subcommands that work on the data of a tenant.
#[derive(Debug, clap::Args)]
pub struct OfTenant<C: clap::Subcommand> {
    #[command(flatten)]
    pub tenant: TenantArg,
    #[command(subcommand)]
    pub command: C,
}

impl<C: clap::Subcommand> OfTenant<C> {
    /// Selects the tenant and returns the subcommand.
    pub fn selected(&self) -> &C {
        self.tenant.select();
        &self.command
    }
}

/// On whose behalf.
fn user() -> UserId {
    UserId::parse("local").expect("a valid id")
}

/// Without a server everyone is the local user.
fn local(thread_id: ThreadId) -> RunCaller {
    RunCaller { tenant: tenant(), user: user(), thread_id }
}

/// Writes a result. A reader that has gone, as in `baton graph | head`, is not an error.
fn print(text: &str) -> std::io::Result<()> {
    match write(text) {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}

/// The same for a command that has to know when the reader closed the pipe.
fn write(text: &str) -> std::io::Result<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Results for programs.
fn print_json(value: &impl serde::Serialize) -> anyhow::Result<()> {
    Ok(print(&(serde_json::to_string_pretty(value)? + "\n"))?)
}
