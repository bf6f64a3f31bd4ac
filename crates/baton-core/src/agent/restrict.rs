//! An agent without references to some of the others.

use super::Agent;
use crate::id::AgentName;

impl Agent {
    /// Other agents that it cannot do without: where its chain leads, the members of its team, advisors that have to succeed, the
    /// fallback of its router and, if no destination is permitted, all destinations.
    pub fn required_agents(&self, is_permitted: impl Fn(&AgentName) -> bool) -> Vec<&AgentName> {
        let chain = self.handoff.iter().map(|destination| &destination.to);
        let members = self.team.iter().flat_map(|team| &team.members);
        let advisors = self.advisors.agents.iter().filter(|advisor| advisor.required);
        let mut names: Vec<&AgentName> =
            chain.chain(members).chain(advisors.map(|advisor| &advisor.agent)).collect();
        if let Some(router) = &self.router {
            names.extend(&router.fallback);
            if !router.destinations.iter().any(is_permitted) {
                names.extend(&router.destinations);
            }
        }
        names
    }

    /// The same agent without the agents that it may involve and that are not permitted. Those that it
    /// [requires](Agent::required_agents) stay: involving them fails. `None` if nothing changes.
    pub fn restricted(&self, is_permitted: impl Fn(&AgentName) -> bool) -> Option<Self> {
        let mut own = self.clone();
        own.agents.retain(&is_permitted);
        own.collaborations.retain(|collaboration| is_permitted(&collaboration.agent));
        own.handoffs.retain(|button| is_permitted(&button.agent));
        own.advisors.agents.retain(|advisor| advisor.required || is_permitted(&advisor.agent));
        if let Some(router) = &mut own.router
            && router.destinations.iter().any(&is_permitted)
        {
            router.destinations.retain(&is_permitted);
        }
        (own != *self).then_some(own)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Advisor, Button, Collaboration, Destination, Router, RoutingMode};
    use crate::duration::HumanDuration;

    fn name(text: &str) -> AgentName {
        AgentName::parse(text).unwrap()
    }

    fn advisor(agent: &str, required: bool) -> Advisor {
        Advisor { agent: name(agent), required, timeout: HumanDuration::from_secs(1) }
    }

    #[test]
    fn optional_agents_are_dropped_and_required_ones_reported() {
        let mut agent = Agent::plain(name("a"), "A", "Prompt");
        agent.agents = vec![name("in"), name("out")];
        agent.collaborations = vec![Collaboration { agent: name("out"), when: None, allow_revisit: 0 }];
        agent.handoffs =
            vec![Button { label: "Go".to_owned(), agent: name("out"), prompt: None, send: false }];
        agent.advisors.agents = vec![advisor("out", false), advisor("must", true)];
        agent.handoff = vec![Destination { to: name("next"), when: None }];
        let destinations = vec![name("in"), name("out")];
        let (mode, fallback) = (RoutingMode::Pure, Some(name("last")));
        agent.router = Some(Router { mode, destinations, fallback, may_answer: false });
        let is_permitted = |other: &AgentName| other.as_str() == "in";
        let own = agent.restricted(is_permitted).unwrap();
        assert!(!serde_json::to_string(&own).unwrap().contains("\"out\""));
        assert_eq!((own.agents.len(), own.router.as_ref().unwrap().destinations.len()), (1, 1));
        let required: Vec<&str> =
            agent.required_agents(is_permitted).into_iter().map(AgentName::as_str).collect();
        assert_eq!(required, ["next", "must", "last"]);
        assert_eq!(own.restricted(is_permitted), None, "nothing is left to drop");
    }
}
