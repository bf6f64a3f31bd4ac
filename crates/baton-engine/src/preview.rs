//! What an agent would be told and could use, without asking a model and without writing anything down.

use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::chat::{ChatMessage, Reply};
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
use crate::given::Site;
use crate::journal::{Hearers, Journal};
use crate::listener::Listener;
use crate::live::Live;
use crate::outcome::Outcome;
use crate::patterns::chain::Chain;
use crate::patterns::handover::shared;
use crate::patterns::team::imagined::Coordination;
use crate::patterns::{self, advisors, router, team, transfers};
use crate::prompt;
use crate::run::{Input, words};
use crate::scope::{RunState, Scope};
use crate::session::{Answer, Brief};
use crate::toolset::Equipment;

/// What an agent is told and can use.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    pub system: String,
    pub asked: Asked,
    /// The same for a coordinator that decides after each round; `asked` is then its answer after the first.
    pub deciding: Option<Asked>,
}

/// One session of it, as it begins.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// Its task.
    pub message: String,
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

/// What `agent` gets when it is asked `message` first, or when `from` was and involves it: a sub-agent may use less, and whoever
/// is at work above is not offered again. Servers that its file names are asked for their tools. Where others would have written
/// something, a [`placeholder`] stands.
pub async fn preview(
    engine: &Arc<Engine>,
    caller: &Caller,
    agent: &AgentName,
    from: Option<(&AgentName, Via)>,
    message: &str,
) -> Result<Preview, Failure> {
    let first = from.map_or(agent, |(giver, _)| giver);
    let state = Arc::new(imagined(engine, caller, first));
    let find =
        |name: &AgentName| state.agents.get(name).cloned().ok_or_else(|| Failure::NoAgent(name.clone()));
    let root = Scope::root(Arc::clone(&state), find(first)?, &Overrides::default());
    let asked = Input::text(message);
    let (scope, input) = match from {
        Some((_, via)) => involved(&root, &find(agent)?, via, asked).await?,
        None => (root, asked),
    };
    if scope.agent.kind.is_remote() {
        return Err(Failure::Unavailable(agent.clone()));
    }
    let told = advisors::imagined(&scope, &input, |name| placeholder(name, "advises"));
    if let Some(team) = &scope.agent.team {
        let said = |name: &AgentName| placeholder(name, "said");
        let Coordination { deciding, answering } =
            team::imagined::coordination(&scope, team, (&input, &told), said);
        let deciding = match deciding {
            Some((chair, brief)) => Some(Asked::of(&chair, brief).await?.0),
            None => None,
        };
        let (asked, system) = Asked::of(&scope, answering).await?;
        return Ok(Preview { system, asked, deciding });
    }
    let (asked, system) = match &scope.agent.router {
        Some(router) => {
            let (seat, brief) = router::imagined(&scope, router, &input, &told);
            Asked::of(&seat, brief).await?
        }
        None => Asked::of(&scope, Brief::new(&scope, &told, patterns::tools(&scope, &input))).await?,
    };
    Ok(Preview { system, asked, deciding: None })
}

/// Stands for what an agent would have written: `[what legal advises]`.
pub fn placeholder(agent: &AgentName, does: &str) -> String {
    format!("[what {agent} {does}]")
}

impl Asked {
    /// With the system prompt that goes with it.
    async fn of(scope: &Scope, brief: Brief) -> Result<(Self, String), Failure> {
        let message = words(&brief.input.parts);
        let Equipment { toolset, skills } = Equipment::gather(scope, brief.own_tools, brief.given).await;
        let system = prompt::render(scope, &skills)?;
        Ok((Self { message, tools: toolset.specs().into_iter().cloned().collect() }, system))
    }
}

/// The receiver's place below the giver, and what it is told there.
async fn involved(
    giver: &Scope,
    receiver: &Arc<Agent>,
    via: Via,
    asked: Input,
) -> Result<(Scope, Input), Failure> {
    let mut scope = giver.try_enter(receiver, via.into())?;
    let (name, found) = (giver.name(), placeholder(giver.name(), "found out"));
    let reply = Reply { text: found, ..Reply::default() };
    let messages = [ChatMessage::Assistant(reply)];
    let site = Site { scope: giver.clone(), messages: &messages, beside: &[] };
    let input = match via {
        Via::Call | Via::Delegate => Input::text(shared(&giver.agent, asked.words().trim())),
        Via::Advisor => advisors::question(giver, &asked),
        Via::Member => {
            scope.given = Arc::new(team::imagined::of_member(&scope)?);
            let parts = Arc::new(team::imagined::first_turn(giver, &receiver.name, &asked));
            Input { parts, ..Input::default() }
        }
        Via::Handoff => Chain::new(giver, &asked).told(&outcome(giver)),
        Via::Route => router::told(&Site { messages: &[], ..site }, &asked).await?,
        Via::Transfer => transfers::told(&site, &asked, placeholder(name, "gives as its reason")).await?,
    };
    Ok((scope, input))
}

fn outcome(giver: &Scope) -> Outcome {
    let text = placeholder(giver.name(), "answers");
    let answer = Answer { turns: 1, ..Answer::words(text) };
    Outcome { answer, agent: giver.name().clone(), is_shown: false, dissent: Vec::new() }
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
    // On a stage without an audience.
    let hearers = Hearers {
        listener: Listener::nobody(),
        publisher: Live::new().publisher(&caller.tenant, caller.thread_id, run_id),
        tenant: caller.tenant.clone(),
        observer: None,
    };
    let (journal, _) = Journal::open(hearers);
    let claimed = Claimed { claim, run, steps: Vec::new(), rows: Vec::new(), handoff: None };
    let (stop, cancel) = (CancellationToken::new(), CancellationToken::new());
    RunState::new(Arc::clone(engine), store, claimed, journal, stop, cancel)
}
