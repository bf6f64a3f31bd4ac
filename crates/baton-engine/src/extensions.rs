//! What the embedding program adds to the engine: tools, skills and callbacks.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use baton_core::tool::{Tool, ToolSource};
use baton_core::{AgentLibrary, AgentName, RemoteAgents, RunId, SkillSource, TenantId, ThreadId, Workspaces};
use serde::{Deserialize, Serialize};

use crate::approvals::ApprovalSettings;

/// The tools, skills and callbacks that the agents of all runs may use, and the settings of tool calls.
#[derive(Debug)]
pub struct Extensions {
    pub tools: Vec<Arc<dyn Tool>>,
    pub servers: Option<Arc<dyn ToolSource>>,
    /// Source of Agent Skills, for agents whose files list some.
    pub skills: Option<Arc<dyn SkillSource>>,
    /// Agents that people created, and the rules of agent files. Without it no agent can be created.
    pub agents: Option<Arc<dyn AgentLibrary>>,
    /// Connects to remote agents. Without it they are unavailable.
    pub remotes: Option<Arc<dyn RemoteAgents>>,
    /// Callbacks for team discussions.
    pub team_hooks: Option<Arc<dyn TeamHooks>>,
    /// Bytes of one tool output that a model is shown. Longer output is spooled.
    pub shown_output_bytes: usize,
    /// When tool calls wait for a person.
    pub approvals: ApprovalSettings,
    /// The directory of the project. Tools are confined to it if threads have no workspaces.
    pub work_dir: PathBuf,
    /// The folders that the tools of each thread are confined to.
    pub workspaces: Option<Arc<dyn Workspaces>>,
}

/// Callbacks around the rounds of a team. They are called between rounds, one at a time, and must return quickly because the team
/// waits. Decisions are journaled with the round; if the process dies just before that, the hooks are called again.
pub trait TeamHooks: Send + Sync + fmt::Debug {
    /// Called for each post of a member.
    fn on_broadcast(&self, _at: &TeamRound, _member: &AgentName, _text: &str) {}

    /// Called for each vote of a member.
    fn on_vote(&self, _at: &TeamRound, _member: &AgentName, _vote: &Vote) {}

    /// Returns messages to all members before the round begins.
    fn inject(&self, _at: &TeamRound) -> Vec<String> {
        Vec::new()
    }

    /// Whether another round may follow. If `false`, the coordinator answers.
    fn should_continue(&self, _at: &TeamRound) -> bool {
        true
    }
}

/// Identifies a round of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TeamRound {
    pub tenant: TenantId,
    pub thread_id: ThreadId,
    pub run_id: RunId,
    pub coordinator: AgentName,
    /// Starts at 1.
    pub round: u32,
}

/// A member's vote on ending the discussion.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Vote {
    pub ready: bool,
    pub reason: String,
}
