//! The roster of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_core::AgentName;
use baton_core::agent::Agent;

/// A roster: agents by name.
pub type Agents = BTreeMap<AgentName, Arc<Agent>>;
