//! What an agent would be told and could use, without asking a model and without writing anything down.

use std::sync::Arc;

use baton_core::store::{Claim, Claimed, RunRecord, RunStatus};
use baton_core::tool::ToolSpec;
use baton_core::{AgentName, RunId, Usage, choices};
use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::bounds::Edge;
use crate::engine::{Caller, Engine, Overrides};
use crate::failure::Failure;
use crate::journal::Journal;
use crate::listener::Listener;
use crate::run::Input;
use crate::scope::{RunState, Scope};
use crate::toolset::Toolset;
use crate::{patterns, prompt};

/// What an agent gets before anything is said.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    pub system: String,
    /// Those of its file and those that the engine gives it, as its model is told of them.
    pub tools: Vec<ToolSpec>,
}

choices! {
    /// How an agent comes to be involved by another one.
    pub enum Via {
        Call = "call",
        Delegate = "delegate",
        Advisor = "advisor",
        Member = "member",
        Handoff = "handoff",
        Route = "route",
        Transfer = "transfer",
    }
}

impl From<Via> for Edge {
    fn from(via: Via) -> Self {
        match via {
            Via::Call => Self::Call,
            Via::Delegate => Self::Delegate,
            Via::Advisor => Self::Advisor,
            Via::Member => Self::Member,
            Via::Handoff => Self::Chain,
            Via::Route => Self::Route,
            Via::Transfer => Self::Transfer,
        }
    }
}

/// The prompt and the tools of `agent` when it is asked first, or when `from` involves it: a sub-agent may use less, and whoever is
/// at work above is not offered again. Servers that its file names are asked for their tools.
pub async fn preview(
    engine: &Arc<Engine>,
    caller: &Caller,
    agent: &AgentName,
    from: Option<(&AgentName, Via)>,
) -> Result<Preview, Failure> {
    let first = from.map_or(agent, |(giver, _)| giver);
    let state = Arc::new(imagined(engine, caller, first));
    let find =
        |name: &AgentName| state.agents.get(name).cloned().ok_or_else(|| Failure::NoAgent(name.clone()));
    let root = Scope::root(Arc::clone(&state), find(first)?, &Overrides::default());
    let scope = match from {
        Some((_, via)) => root.enter(&find(agent)?, via.into())?,
        None => root,
    };
    if scope.agent.kind.is_remote() {
        return Err(Failure::Unavailable(agent.clone()));
    }
    let given = patterns::tools(&scope, &Input::default());
    let toolset = Toolset::gather(&scope, true, given).await;
    let tools = toolset.specs().into_iter().cloned().collect();
    Ok(Preview { system: prompt::render(&scope)?, tools })
}

/// A run that nobody started. Nothing of it is kept: its journal has no scribe.
fn imagined(engine: &Arc<Engine>, caller: &Caller, agent: &AgentName) -> RunState {
    let run_id = RunId::from_uuid(Uuid::now_v7());
    let owner = engine.parts.identity.owner.clone();
    let claim = Claim { thread_id: caller.thread_id, run_id, owner, epoch: 0 };
    let run = RunRecord {
        run_id,
        thread_id: caller.thread_id,
        user_id: caller.user.clone(),
        agent: agent.clone(),
        status: RunStatus::Running,
        created_at: Timestamp::now(),
        started_at: None,
        finished_at: None,
        usage: Usage::default(),
        attempts: 1,
        message_number: 0,
        request: Value::Null,
        end: None,
        cancel: None,
    };
    let store = engine.parts.store.tenant(&caller.tenant);
    let (journal, _) = Journal::open(Listener::nobody());
    let claimed = Claimed { claim, run, steps: Vec::new(), rows: Vec::new() };
    let (stop, cancel) = (CancellationToken::new(), CancellationToken::new());
    RunState::new(Arc::clone(engine), store, claimed, journal, stop, cancel)
}
