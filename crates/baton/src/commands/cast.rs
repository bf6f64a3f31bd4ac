//! Who can be asked, and who answers first.

use std::sync::Arc;

use baton_agents::Roster;
use baton_engine::Agents;

use super::agents::find;
use crate::cli::Common;
use crate::entry::{EntryChoice, Unknown};
use crate::exit::Exit;
use crate::project::Project;
use crate::{report, tenants};

/// A project whose agents can be asked something.
pub(super) struct Cast {
    pub(super) project: Project,
    pub(super) agents: Arc<Agents>,
    pub(super) entry: EntryChoice,
}

impl Cast {
    /// `named` is who the person wants to answer. `None` when agent files have errors, which were printed.
    pub(super) fn read(common: &Common, named: Option<&str>) -> anyhow::Result<Option<Self>> {
        let project = super::project(common)?;
        let mut draft = project.draft_of(&super::tenant());
        if report::errors_of(&draft) {
            return Ok(None);
        }
        // The store is opened only for a name that no file has.
        if named.is_some_and(|text| find(&draft, text).is_err()) {
            draft = super::agents::with_created(&project, &super::tenant(), draft)?;
        }
        let named = named.map(|text| find(&draft, text)).transpose();
        let named = named.map_err(|error| Exit::Usage.because(error))?;
        let roster = draft.finish()?;
        let agents: Arc<Agents> =
            Arc::new(roster.iter().map(|agent| (agent.name.clone(), Arc::clone(agent))).collect());
        let all: Vec<_> = agents.values().map(|agent| &**agent).collect();
        tenants::refuse(&project, &all)?;
        let entry = match named {
            Some(name) => EntryChoice::Agent(name),
            None => EntryChoice::for_tenant(&project.config, Some(&super::tenant()), &agents)
                .map_err(|unknown| no_agent(&unknown, &roster))?,
        };
        Ok(Some(Self { project, agents, entry }))
    }
}

/// The configuration names an agent that does not exist.
fn no_agent(unknown: &Unknown, roster: &Roster) -> anyhow::Error {
    let nearest = unknown.name().map(|name| roster.nearest(name.as_str())).unwrap_or_default();
    let help = match nearest.first() {
        Some(near) => format!("did you mean `{near}`?"),
        None => "`baton agents list` prints them all".to_owned(),
    };
    Exit::Invalid.because(anyhow::anyhow!("{unknown}; {help}"))
}
