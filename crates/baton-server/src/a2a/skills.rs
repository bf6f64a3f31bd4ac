//! What a card says an agent can do: its skills, and its part in handoffs and orchestration.

use baton_a2a::card::Skill;
use baton_a2a::extension::{ExtensionParams, HandoffCapability, OrchestrationCapability};
use baton_core::AgentName;
use baton_core::agent::Agent;
use baton_engine::Agents;

/// The skill of the agent itself.
pub fn own(agent: &Agent) -> Skill {
    skill(agent, &["agent"])
}

/// The skills of those it may call, consult, route, transfer or hand on to, each once.
pub fn delegated(agent: &Agent, agents: &Agents) -> Vec<Skill> {
    let mut names: Vec<&AgentName> = Vec::new();
    for name in partners(agent) {
        if *name != agent.name && !names.contains(&name) {
            names.push(name);
        }
    }
    let known = names.into_iter().filter_map(|name| agents.get(name));
    known.map(|partner| skill(partner, &["delegated"])).collect()
}

fn partners(agent: &Agent) -> impl Iterator<Item = &AgentName> {
    let advisors = agent.advisors.agents.iter().map(|advisor| &advisor.agent);
    let routed = agent.router.iter().flat_map(|router| &router.destinations);
    let members = agent.team.iter().flat_map(|team| &team.members);
    let chained = agent.handoff.iter().map(|destination| &destination.to);
    let transfers = agent.collaborations.iter().map(|collaboration| &collaboration.agent);
    agent.agents.iter().chain(advisors).chain(routed).chain(members).chain(chained).chain(transfers)
}

fn skill(agent: &Agent, tags: &[&str]) -> Skill {
    let triggers = agent.accepts_handoff.iter().flat_map(|terms| &terms.triggers);
    Skill {
        id: agent.name.to_string(),
        name: agent.display_name.clone(),
        description: agent.description.clone(),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        examples: triggers.cloned().collect(),
        ..Skill::default()
    }
}

/// The parameters of the extension. They are those that the engine enforces.
pub fn extension(agent: &Agent) -> ExtensionParams {
    let handoff = capability(agent);
    ExtensionParams {
        handoff_support: handoff.supports_handoff,
        stateful_workflows: agent.workflow.is_some(),
        multi_turn: true,
        hitl_support: true,
        handoff,
        orchestration: orchestration(agent),
    }
}

fn capability(agent: &Agent) -> HandoffCapability {
    let states = agent.workflow.iter().flat_map(|workflow| &workflow.states);
    let workflow_states = states.map(|state| state.name.to_string()).collect();
    match &agent.accepts_handoff {
        None => HandoffCapability { workflow_states, ..HandoffCapability::default() },
        Some(terms) => HandoffCapability {
            supports_handoff: true,
            handoff_triggers: terms.triggers.clone(),
            workflow_states,
            requires_exclusive_control: terms.exclusive,
            max_session_duration_seconds: terms.max_session.get().as_secs(),
        },
    }
}

fn orchestration(agent: &Agent) -> OrchestrationCapability {
    OrchestrationCapability {
        can_orchestrate: !agent.agents.is_empty(),
        can_be_orchestrated: agent.can_be_orchestrated,
        strategies: agent.delegation.strategies.iter().map(|strategy| strategy.word().to_owned()).collect(),
        max_concurrent_delegations: agent.delegation.max_concurrent,
    }
}
