//! Who has the conversation, how far they have come, and what was left before it was done.

use std::sync::Arc;

use baton_core::store::HandoffSession;
use baton_core::{AgentName, StoreError, TenantStore, ThreadId};
use baton_engine::handoff::is_resumable;
use baton_engine::{Engine, Failure};
use baton_server::wire::thread::ProgressView;

use super::badge::name;
use super::screen::Looks;
use crate::report::notices::step;
use crate::report::table::{cut, width_of};

/// What is left of a line for what a person types.
const TYPED: usize = 40;
/// Of a name.
const NAME: usize = 40;

#[derive(Debug, Default)]
pub(super) struct ChatStatus {
    pub(super) holder: Option<ThreadHolder>,
    /// The newest first.
    pub(super) resumable: Vec<HandoffSession>,
}

#[derive(Debug)]
pub(super) struct ThreadHolder {
    agent: AgentName,
    name: String,
    progress: Option<ProgressView>,
}

impl ChatStatus {
    pub(super) async fn of(
        engine: &Arc<Engine>,
        store: &dyn TenantStore,
        thread: ThreadId,
        looks: &Looks,
    ) -> Result<Self, Failure> {
        let open = match engine.open_handoff(store.tenant(), thread).await {
            // A conversation begins with its first message.
            Err(Failure::Store(StoreError::ThreadNotFound)) => return Ok(Self::default()),
            open => open?,
        };
        let mut resumable = store.resumable_handoffs(thread).await?;
        resumable.retain(|handoff| {
            looks.agents.get(&handoff.target_agent_id).is_some_and(|agent| is_resumable(agent, handoff))
        });
        let holder = |handoff: &HandoffSession| ThreadHolder {
            agent: handoff.target_agent_id.clone(),
            name: cut(&name(&looks.profiles, &handoff.target_agent_id), NAME),
            progress: ProgressView::of(handoff, &looks.agents),
        };
        Ok(Self { holder: open.as_ref().map(holder), resumable })
    }

    pub(super) fn is_held_by(&self, agent: &AgentName) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.agent == *agent)
    }

    /// What stands before the place where the person types: where they are and, if it fits, on the same line.
    pub(super) fn prompt(&self) -> (Option<String>, String) {
        let Some(holder) = &self.holder else { return (None, "> ".to_owned()) };
        let step = holder.progress.as_ref().map(|at| {
            let answers = (at.questions > 0).then(|| format!(", {}/{} answers", at.answered, at.questions));
            format!(" · step {} of {}{}", at.step, at.total, answers.unwrap_or_default())
        });
        let head = format!("[{}{} · /exit-handoff to leave]", holder.name, step.unwrap_or_default());
        let room = width_of(&std::io::stdin()).unwrap_or(usize::MAX);
        if head.chars().count() + TYPED > room { (Some(head), "> ".to_owned()) } else { (None, head + " > ") }
    }
}

impl ThreadHolder {
    /// For a person who comes back.
    pub(super) fn sentence(&self) -> String {
        let at = self
            .progress
            .as_ref()
            .map(|at| format!(" · {}", step(at.step.into(), at.total.into(), &at.label)));
        format!("{} has this conversation{} · /exit-handoff to leave", self.name, at.unwrap_or_default())
    }
}
