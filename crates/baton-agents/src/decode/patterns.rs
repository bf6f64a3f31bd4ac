//! The keys that name other agents.

use baton_core::AgentName;
use baton_core::agent::{
    Advisor, Advisors, AgentKind, Button, Caching, Collaboration, Delegation, Destination, OnQuorumFail,
    Quorum, Router, RoutingMode, Strategy, Team, TerminationMode,
};
use baton_core::choice::snake_case;
use baton_core::duration::HumanDuration;

use super::section::FrontmatterMap;
use super::{AgentDecoder, is_local};
use crate::graph::EdgeKind;
use crate::names::shortened;
use crate::problem::Rule;
use crate::source::Span;
use crate::yaml::{YamlNode, YamlValue};

/// Largest `allow_revisit`. The limit on transfers ends a run long before.
const MAX_REVISITS: u32 = 100;

impl<'a> AgentDecoder<'a> {
    /// `agents:`, plus those a foreign tool list names. Where `agents` serve as a router's destinations they are not
    /// callable as well.
    pub(super) fn callable(
        &mut self,
        head: &FrontmatterMap<'a>,
        mut found: Vec<AgentName>,
        router: Option<&Router>,
    ) -> Vec<AgentName> {
        let are_destinations = router.is_some() && own_destinations(head).is_none();
        let Some(listed) = head.get("agents").filter(|_| !are_destinations) else { return found };
        let is_everyone = |item: &&YamlNode| item.scalar().is_some_and(|scalar| scalar.text == "*");
        self.everyone = Self::items(listed).iter().find(is_everyone).map(|item| item.span);
        let named = Self::items(listed).iter().filter(|item| !is_everyone(item));
        for agent in self.agent_names(named, EdgeKind::Call) {
            if !found.contains(&agent) {
                found.push(agent);
            }
        }
        found
    }

    fn agent_list(&mut self, node: &'a YamlNode, kind: EdgeKind) -> Vec<AgentName> {
        self.agent_names(Self::items(node).iter(), kind)
    }

    fn agent_names(&mut self, items: impl Iterator<Item = &'a YamlNode>, kind: EdgeKind) -> Vec<AgentName> {
        let mut agents = Vec::new();
        for item in items {
            let Some(agent) = self.agent_name(item, kind, None) else { continue };
            if agents.contains(&agent) {
                self.repeated(&agent, item.span);
            } else {
                agents.push(agent);
            }
        }
        agents
    }

    fn repeated(&mut self, agent: &AgentName, span: Span) {
        self.edges.pop();
        self.report(
            Rule::DuplicateKey,
            span,
            format!("`{agent}` is in this list twice"),
            "remove one of them",
        );
    }

    pub(super) fn delegation(&mut self, head: &FrontmatterMap<'a>) -> Delegation {
        const KEYS: &[&str] = &[
            "strategy",
            "strategies",
            "synthesis",
            "timeout",
            "max_concurrent",
            "summarize_results",
            "summary_max_length",
            "cache",
            "resume",
        ];
        let defaults = Delegation::default();
        let Some(section) = head.get("delegation").and_then(|node| self.section(node, "`delegation`", KEYS))
        else {
            return defaults;
        };
        let strategy = section.get("strategy").and_then(|n| self.choice(n)).unwrap_or(defaults.strategy);
        Delegation {
            strategy,
            strategies: self.strategies(section.get("strategies"), strategy, defaults.strategies),
            synthesis: section.get("synthesis").and_then(|n| self.choice(n)).unwrap_or(defaults.synthesis),
            timeout: section.get("timeout").and_then(|n| self.duration(n)).unwrap_or(defaults.timeout),
            max_concurrent: section
                .get("max_concurrent")
                .and_then(|n| self.count(n, 1..=1000))
                .unwrap_or(defaults.max_concurrent),
            summarize_results: section.get("summarize_results").and_then(|n| self.flag(n)).unwrap_or(false),
            summary_max_length: section
                .get("summary_max_length")
                .and_then(|n| self.count(n, 1..=u32::MAX))
                .unwrap_or(defaults.summary_max_length),
            cache: section.get("cache").map(|node| self.caching(node)),
            resume: section.get("resume").and_then(|n| self.flag(n)).unwrap_or(false),
        }
    }

    /// The strategies that may be chosen. Without a list, these are the default ones and `strategy`.
    fn strategies(
        &mut self,
        listed: Option<&'a YamlNode>,
        strategy: Strategy,
        defaults: Vec<Strategy>,
    ) -> Vec<Strategy> {
        let mut strategies = Vec::new();
        for item in listed.map(Self::items).unwrap_or_default() {
            let Some(choice) = self.choice(item) else { continue };
            if strategies.contains(&choice) {
                let message = format!("`{choice}` is in this list twice");
                self.report(Rule::DuplicateKey, item.span, message, "remove one of them");
            } else {
                strategies.push(choice);
            }
        }
        let Some(listed) = listed else {
            strategies = defaults;
            if !strategies.contains(&strategy) {
                strategies.push(strategy);
            }
            return strategies;
        };
        if !strategies.contains(&strategy) {
            let message = format!("`strategies` does not have `{strategy}`, which is the `strategy`");
            self.report(
                Rule::UnknownChoice,
                listed.span,
                message,
                format!("add `{strategy}`, or change `strategy`"),
            );
            strategies.push(strategy);
        }
        strategies
    }

    /// `off` is a word in YAML 1.2 and a boolean in 1.1; both mean the same here.
    fn caching(&mut self, node: &YamlNode) -> Caching {
        match node.scalar() {
            Some(scalar) if scalar.text == "off" || scalar.as_bool() == Some(false) => Caching::Off,
            _ => self.duration(node).map_or(Caching::Off, Caching::For),
        }
    }

    pub(super) fn advisors(&mut self, head: &FrontmatterMap<'a>) -> Advisors {
        const KEYS: &[&str] = &["agents", "min_success", "deadline", "on_quorum_fail"];
        let defaults = Advisors::default();
        let Some(node) = head.get("advisors") else { return defaults };
        if !matches!(node.value, YamlValue::Map(_)) {
            return Advisors { agents: self.advisor_list(node), ..defaults };
        }
        let Some(section) = self.section(node, "`advisors`", KEYS) else { return defaults };
        let agents = section.get("agents").map(|node| self.advisor_list(node)).unwrap_or_default();
        let most = u32::try_from(agents.len()).unwrap_or(u32::MAX);
        Advisors {
            agents,
            min_success: section.get("min_success").and_then(|n| self.count(n, 0..=most)).unwrap_or(0),
            deadline: section.get("deadline").and_then(|n| self.duration(n)).unwrap_or(defaults.deadline),
            on_quorum_fail: section
                .get("on_quorum_fail")
                .and_then(|n| self.choice(n))
                .unwrap_or(OnQuorumFail::Proceed),
        }
    }

    fn advisor_list(&mut self, node: &'a YamlNode) -> Vec<Advisor> {
        let mut advisors: Vec<Advisor> = Vec::new();
        for item in Self::items(node) {
            let Some(advisor) = self.advisor(item) else { continue };
            if advisors.iter().any(|other| other.agent == advisor.agent) {
                self.repeated(&advisor.agent, item.span);
            } else {
                advisors.push(advisor);
            }
        }
        advisors
    }

    fn advisor(&mut self, node: &'a YamlNode) -> Option<Advisor> {
        const TIMEOUT: HumanDuration = HumanDuration::from_secs(60);
        if !matches!(node.value, YamlValue::Map(_)) {
            let agent = self.agent_name(node, EdgeKind::Advise, None)?;
            return Some(Advisor { agent, required: false, timeout: TIMEOUT });
        }
        let section = self.section(node, "an advisor", &["agent", "required", "timeout"])?;
        let required = section.get("required").and_then(|n| self.flag(n)).unwrap_or(false);
        let timeout = section.get("timeout").and_then(|n| self.duration(n)).unwrap_or(TIMEOUT);
        let agent = self.required_agent(
            section.get("agent"),
            section.span,
            EdgeKind::Advise,
            required.then_some("required"),
        )?;
        Some(Advisor { agent, required, timeout })
    }

    /// The agent of a map entry, which cannot be left out.
    fn required_agent(
        &mut self,
        node: Option<&YamlNode>,
        of: Span,
        kind: EdgeKind,
        label: Option<&str>,
    ) -> Option<AgentName> {
        if node.is_none() {
            self.report(Rule::MissingKey, of, "this entry names no agent", "add the name of an agent");
        }
        self.agent_name(node?, kind, label)
    }

    pub(super) fn router(&mut self, head: &FrontmatterMap<'a>) -> Option<Router> {
        let node = head.get("router")?;
        let agents = head.get("agents");
        if !matches!(node.value, YamlValue::Map(_)) {
            return self.flag(node)?.then(|| self.pure_router(node, agents));
        }
        let section = self.section(node, "`router`", &["destinations", "fallback", "may_answer"])?;
        let listed = section.get("destinations").or(agents);
        let destinations = listed.map(|node| self.agent_list(node, EdgeKind::Route)).unwrap_or_default();
        if listed.is_none_or(|list| Self::items(list).is_empty()) {
            self.no_destinations(node.span);
        }
        let fallback =
            section.get("fallback").and_then(|n| self.agent_name(n, EdgeKind::Route, Some("fallback")));
        let may_answer = section.get("may_answer").and_then(|n| self.flag(n)).unwrap_or(false);
        Some(Router { mode: RoutingMode::Full, destinations, fallback, may_answer })
    }

    fn pure_router(&mut self, node: &YamlNode, agents: Option<&'a YamlNode>) -> Router {
        let destinations = agents.map(|node| self.agent_list(node, EdgeKind::Route)).unwrap_or_default();
        if agents.is_none_or(|list| Self::items(list).is_empty()) {
            self.no_destinations(node.span);
        }
        Router { mode: RoutingMode::Pure, destinations, fallback: None, may_answer: false }
    }

    fn no_destinations(&mut self, span: Span) {
        self.report(
            Rule::NoDestinations,
            span,
            "the router has no destinations",
            "list them: `agents: [billing, support]`",
        );
    }

    pub(super) fn handoff(&mut self, head: &FrontmatterMap<'a>) -> Vec<Destination> {
        let Some(node) = head.get("handoff") else { return Vec::new() };
        let items = Self::items(node);
        let destinations: Vec<Destination> = items.iter().filter_map(|item| self.destination(item)).collect();
        let unconditional = destinations.iter().position(|destination| destination.when.is_none());
        if let Some(at) = unconditional.filter(|at| at + 1 < items.len() && destinations.len() == items.len())
        {
            self.report(
                Rule::UnreachableHandoff,
                items[at].span,
                "this entry has no `when` and always wins, so those after it are never used",
                "move it to the end of the list, or give it a `when`",
            );
        }
        destinations
    }

    fn destination(&mut self, node: &'a YamlNode) -> Option<Destination> {
        if !matches!(node.value, YamlValue::Map(_)) {
            return Some(Destination { to: self.agent_name(node, EdgeKind::Chain, None)?, when: None });
        }
        let section = self.section(node, "a `handoff` entry", &["to", "when"])?;
        let when = section.get("when").and_then(|n| self.expression(n));
        let to = self.required_agent(section.get("to"), section.span, EdgeKind::Chain, when.as_deref())?;
        Some(Destination { to, when })
    }

    pub(super) fn team(&mut self, head: &FrontmatterMap<'a>) -> Option<Team> {
        const KEYS: &[&str] = &[
            "members",
            "termination_mode",
            "max_rounds",
            "quorum",
            "member_timeout",
            "coordinator",
            "supervisor",
        ];
        let node = head.get("team")?;
        let section = self.section(node, "`team`", KEYS)?;
        for key in ["coordinator", "supervisor"] {
            section.get(key).into_iter().for_each(|named| self.coordinator(named));
        }
        let listed = section.get("members");
        let members = listed.map(|node| self.agent_list(node, EdgeKind::Member)).unwrap_or_default();
        let asked = listed.map_or(0, |node| Self::items(node).len());
        if asked < 2 {
            let span = listed.map_or(node.span, |node| node.span);
            let message = format!("a team has at least two members, and this one has {asked}");
            self.report(
                Rule::TeamTooSmall,
                span,
                message,
                "add a member, or use `agents:` to call a single agent",
            );
        }
        let size = u32::try_from(asked).unwrap_or(u32::MAX).max(2);
        Some(Team {
            members,
            termination_mode: section
                .get("termination_mode")
                .and_then(|n| self.choice(n))
                .unwrap_or(TerminationMode::CoordinatorDecides),
            max_rounds: section.get("max_rounds").and_then(|n| self.count(n, 1..=1000)).unwrap_or(10),
            quorum: section.get("quorum").and_then(|n| self.quorum(n, size)).unwrap_or(Quorum::All),
            member_timeout: section
                .get("member_timeout")
                .and_then(|n| self.duration(n))
                .unwrap_or(HumanDuration::from_secs(60)),
        })
    }

    /// A file may say that its agent coordinates, and nothing else: a team belongs to who declares it.
    fn coordinator(&mut self, node: &YamlNode) {
        let Some(named) = self.text(node, "the name of this agent") else { return };
        let own = &self.identity.id;
        if named != own.as_str() && named != self.identity.display_name {
            let named = shortened(&named);
            let message =
                format!("the agent that declares a team coordinates it: `{own}`, and not `{named}`");
            let help = format!("remove it, or move `team:` to the file of `{named}`");
            self.report(Rule::UnknownChoice, node.span, message, help);
        }
    }

    fn quorum(&mut self, node: &YamlNode, members: u32) -> Option<Quorum> {
        match node.scalar().map(|scalar| scalar.text.as_str()) {
            Some("all") => Some(Quorum::All),
            Some("majority") => Some(Quorum::Majority),
            Some(text) if text.bytes().all(|b| b.is_ascii_digit()) => {
                self.count(node, 1..=members).map(Quorum::AtLeast)
            }
            _ => {
                self.wrong_type(node, "`all`, `majority` or a number of members");
                None
            }
        }
    }

    /// `collaborations:` and the body line `**Collaborations**: Name (specialty), …`.
    pub(super) fn collaborations(
        &mut self,
        head: &FrontmatterMap<'a>,
        kind: &AgentKind,
    ) -> Vec<Collaboration> {
        let listed = head.get("collaborations").map(Self::items).unwrap_or_default();
        let mut found: Vec<(Collaboration, Span)> =
            listed.iter().filter_map(|item| Some((self.collaboration(item)?, item.span))).collect();
        if is_local(kind) {
            found.extend(self.collaborations_in_body());
        }
        let mut collaborations: Vec<Collaboration> = Vec::new();
        for (collaboration, span) in found {
            if collaborations.iter().any(|other| other.agent == collaboration.agent) {
                let message = format!("`{}` is a collaborator already", collaboration.agent);
                self.report(Rule::DuplicateKey, span, message, "remove one of them");
            } else {
                collaborations.push(collaboration);
            }
        }
        collaborations
    }

    fn collaboration(&mut self, node: &'a YamlNode) -> Option<Collaboration> {
        if !matches!(node.value, YamlValue::Map(_)) {
            return Some(Collaboration {
                agent: self.agent_name(node, EdgeKind::Transfer, None)?,
                when: None,
                allow_revisit: 0,
            });
        }
        let section = self.section(node, "a collaboration", &["agent", "when", "allow_revisit"])?;
        let when = section.get("when").and_then(|n| self.text(n, "text"));
        let agent =
            self.required_agent(section.get("agent"), section.span, EdgeKind::Transfer, when.as_deref())?;
        let allow_revisit =
            section.get("allow_revisit").and_then(|n| self.count(n, 0..=MAX_REVISITS)).unwrap_or(0);
        Some(Collaboration { agent, when, allow_revisit })
    }

    /// VS Code's `handoffs:`. Its `model` and `showContinueOn` have no meaning here.
    pub(super) fn buttons(&mut self, head: &FrontmatterMap<'a>) -> Vec<Button> {
        let listed = head.get("handoffs").map(Self::items).unwrap_or_default();
        listed.iter().filter_map(|item| self.button(item)).collect()
    }

    fn button(&mut self, node: &'a YamlNode) -> Option<Button> {
        const KEYS: &[&str] = &["label", "agent", "prompt", "send", "model", "show_continue_on"];
        let section = self.section(node, "a `handoffs` entry", KEYS)?;
        for (key, name) in [("model", "model"), ("show_continue_on", "showContinueOn")] {
            if let Some(value) = section.get(key) {
                let message = format!("`{name}` of a button has no effect in Baton");
                self.report(
                    Rule::UnusedKey,
                    value.span,
                    message,
                    "nothing to do; the file still works in VS Code",
                );
            }
        }
        let label = section.get("label").and_then(|n| self.text(n, "text"));
        let agent =
            self.required_agent(section.get("agent"), section.span, EdgeKind::Button, label.as_deref())?;
        Some(Button {
            label: label.unwrap_or_else(|| format!("Continue with {agent}")),
            agent,
            prompt: section.get("prompt").and_then(|n| self.text(n, "text")),
            send: section.get("send").and_then(|n| self.flag(n)).unwrap_or(false),
        })
    }
}

/// `destinations` in the map form of `router`.
fn own_destinations<'a>(head: &FrontmatterMap<'a>) -> Option<&'a YamlNode> {
    let YamlValue::Map(entries) = &head.get("router")?.value else { return None };
    let entry = entries.iter().find(|entry| snake_case(&entry.key) == "destinations")?;
    Some(&entry.value).filter(|node| !node.is_null())
}
