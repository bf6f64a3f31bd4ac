//! Shows the prompt and the tools that an agent would get, without calling a model or writing to the store.

use std::sync::Arc;

use baton_core::agent::Agent;
use baton_core::chat::{ChatMessage, Reply};
use baton_core::store::{RunRecord, RunStatus};
use baton_core::tool::ToolSpec;
use baton_core::{AgentName, RunId, StoreError, Usage, choices};
use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::bounds::InvocationKind;
use crate::cancellation::CancelTokens;
use crate::engine::Engine;
use crate::engine_tool::CallSite;
use crate::failure::Failure;
use crate::handoff::start;
use crate::input::{Input, text_of};
use crate::invocation;
use crate::journal::{EventSink, Journal};
use crate::lease::HandoffLease;
use crate::listener::Listener;
use crate::live::ThreadChannels;
use crate::outcome::Answer;
use crate::outcome::Outcome;
use crate::patterns::chain::Chain;
use crate::patterns::team::preview::CoordinatorPreview;
use crate::patterns::{self, advisors, router, team, transfers};
use crate::prompt;
use crate::redaction::redact;
use crate::request::{Overrides, RunCaller};
use crate::run_state::{Before, RunState};
use crate::scope::Scope;
use crate::session::SessionSpec;
use crate::toolset::ToolsAndSkills;

/// The prompt and the tools of an agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Preview {
    pub system: String,
    pub asked: PreviewedSession,
    /// The session of a coordinator that decides after each round. `asked` is then its answer after the first round.
    pub deciding: Option<PreviewedSession>,
}

/// A session as it starts.
#[derive(Debug, Clone, PartialEq)]
pub struct PreviewedSession {
    /// The task.
    pub message: String,
    /// The tools of its file and of the engine, as the model sees them.
    pub tools: Vec<ToolSpec>,
}

choices! {
    /// How another agent invokes the previewed one.
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

impl From<Via> for InvocationKind {
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

/// Returns what `agent` gets when it is asked `message` on the caller's thread, or when `from` is asked and invokes it. An agent that
/// holds the thread, or takes it over by a transfer, has the tools of a holder and the state of its workflow. A sub-agent may have fewer
/// tools, and its ancestors are not offered to it. The MCP servers that its file names are asked for their tools. A
/// [`placeholder`] replaces the text that other agents would write.
pub async fn preview(
    engine: &Arc<Engine>,
    caller: &RunCaller,
    agent: &AgentName,
    from: Option<(&AgentName, Via)>,
    message: &str,
) -> Result<Preview, Failure> {
    let first = from.map_or(agent, |(giver, _)| giver);
    let state = Arc::new(preview_run_state(engine, caller, first));
    let find =
        |name: &AgentName| state.agents.get(name).cloned().ok_or_else(|| Failure::NoAgent(name.clone()));
    let first_agent = find(first)?;
    let bounds = invocation::root_bounds(&state, &first_agent, &Overrides::default());
    let root = Scope::root(Arc::clone(&state), first_agent, bounds);
    let asked = Input::text(message);
    let (scope, input) = match from {
        Some((_, via)) => involved(&root, &find(agent)?, via, asked).await?,
        None => (held(root).await?, asked),
    };
    if scope.agent().kind.is_remote() {
        return Err(Failure::Unavailable(agent.clone()));
    }
    let advised_input =
        advisors::with_placeholder_advice(&scope, &input, |name| placeholder(name, "advises"));
    if let Some(team) = &scope.agent().team {
        let said = |name: &AgentName| placeholder(name, "said");
        let CoordinatorPreview { deciding, answering } =
            team::preview::coordination(&scope, team, (&input, &advised_input), said);
        let deciding = match deciding {
            Some((chair, spec)) => Some(PreviewedSession::of(&chair, spec).await?.0),
            None => None,
        };
        let (asked, system) = PreviewedSession::of(&scope, answering).await?;
        return Ok(Preview { system, asked, deciding });
    }
    let (asked, system) = match &scope.agent().router {
        Some(router) => {
            let (session_scope, spec) = router::preview_choice(&scope, router, &input, &advised_input);
            PreviewedSession::of(&session_scope, spec).await?
        }
        None => {
            PreviewedSession::of(
                &scope,
                SessionSpec::new(&scope, &advised_input, patterns::tools(&scope, &input)),
            )
            .await?
        }
    };
    Ok(Preview { system, asked, deciding: None })
}

/// The placeholder for text that an agent would write: `[what legal advises]`.
pub fn placeholder(agent: &AgentName, does: &str) -> String {
    format!("[what {agent} {does}]")
}

impl PreviewedSession {
    /// Returns the session and its system prompt.
    async fn of(scope: &Scope, spec: SessionSpec) -> Result<(Self, String), Failure> {
        let candidates = scope.models().candidates(scope.agent()).unwrap_or_default();
        let message = text_of(&prompt::with_note(scope, &candidates, spec.input.parts.to_vec()));
        let ToolsAndSkills { toolset, skills } =
            ToolsAndSkills::collect(scope, spec.own_tools, spec.engine_tools).await;
        let system = prompt::render(scope, &skills)?;
        Ok((Self { message, tools: toolset.offered(scope).into_iter().cloned().collect() }, system))
    }
}

/// The scope with the lease by which its agent holds the thread now, if it does. Its workflow is then at the stored state.
async fn held(scope: Scope) -> Result<Scope, Failure> {
    let run = &scope.run;
    let open = match run.store.open_handoff_of(run.caller.thread_id).await {
        Err(StoreError::ThreadNotFound) => None,
        open => open?,
    };
    Ok(match open.filter(|handoff| handoff.target_agent_id == *scope.name()) {
        Some(handoff) => scope.with_lease(&Arc::new(HandoffLease::new(handoff))),
        None => scope,
    })
}

/// The receiver's scope below the giver, and its input.
async fn involved(
    giver: &Scope,
    receiver: &Arc<Agent>,
    via: Via,
    asked: Input,
) -> Result<(Scope, Input), Failure> {
    let mut scope = invocation::try_enter(giver, receiver, via.into())?;
    let (name, found) = (giver.name(), placeholder(giver.name(), "found out"));
    let reply = Reply { text: found, ..Reply::default() };
    let messages = [ChatMessage::Assistant(reply)];
    let site = CallSite { scope: giver.clone(), messages: &messages, shown: None, other_results: &[] };
    let input = match via {
        Via::Call | Via::Delegate => Input::text(redact(giver.agent(), asked.words().trim())),
        Via::Advisor => advisors::question(giver, &asked),
        Via::Member => {
            let engine_tools = team::preview::of_member(&scope)?;
            let parts = Arc::new(team::preview::first_turn(giver, &receiver.name, &asked));
            Input { parts, engine_tools, ..Input::default() }
        }
        Via::Handoff => Chain::new(giver, &asked).next_input(&outcome(giver)),
        Via::Route => router::destination_input(&CallSite { messages: &[], ..site }, &asked).await?,
        Via::Transfer => {
            let reason = placeholder(name, "gives as its reason");
            if start::is_thread_handoff(giver, receiver) {
                let (lease, input) = transfers::handoff_input(&site, receiver, &asked, reason).await?;
                scope = scope.with_lease(&Arc::new(lease));
                input
            } else {
                transfers::transfer_input(&site, &asked, reason).await?
            }
        }
    };
    Ok((scope, input))
}

fn outcome(giver: &Scope) -> Outcome {
    let text = placeholder(giver.name(), "answers");
    let answer = Answer { turns: 1, ..Answer::without_turn(text) };
    Outcome { answer, agent: giver.name().clone(), is_shown: false, dissent: Vec::new() }
}

/// The state of a run that does not exist. Its journal has no writer, so nothing is stored.
fn preview_run_state(engine: &Arc<Engine>, caller: &RunCaller, agent: &AgentName) -> RunState {
    let run_id = RunId::from_uuid(Uuid::now_v7());
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
    let Engine { parts, .. } = &**engine;
    let store = parts.store.tenant(&caller.tenant);
    // A channel without subscribers.
    let sink = EventSink {
        listener: Listener::detached(),
        publisher: ThreadChannels::new().publisher(&caller.tenant, caller.thread_id, run_id),
        tenant: caller.tenant.clone(),
        observer: None,
    };
    let (journal, _) = Journal::open(sink);
    let before = Before { steps: Vec::new(), rows: Vec::new(), handoff: None };
    let ends = CancelTokens { stop: CancellationToken::new(), cancel: CancellationToken::new() };
    RunState::new(engine.run_resources(&caller.tenant), store, &run, before, journal, ends)
}
