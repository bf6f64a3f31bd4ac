//! What the embedding program adds to the engine: tools, skills and callbacks.

use std::path::PathBuf;
use std::sync::Arc;

use baton_core::SkillSource;
use baton_core::tool::{Risk, Tool, ToolSource};

use crate::patterns::team::hooks::TeamHooks;

/// The tools, skills and callbacks that the agents of all runs may use, and the settings of tool calls.
#[derive(Debug)]
pub struct Extensions {
    pub tools: Vec<Arc<dyn Tool>>,
    pub servers: Option<Arc<dyn ToolSource>>,
    /// Source of Agent Skills, for agents whose files list some.
    pub skills: Option<Arc<dyn SkillSource>>,
    /// Callbacks for team discussions.
    pub team_hooks: Option<Arc<dyn TeamHooks>>,
    /// Bytes of one tool output that a model is shown. Longer output is spooled.
    pub shown_output_bytes: usize,
    /// Tools of this risk or higher need the user's approval. `None` disables the check.
    pub ask_at: Option<Risk>,
    /// The directory that file tools are confined to.
    pub work_dir: PathBuf,
}
