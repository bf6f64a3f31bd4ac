//! `[tenants.<name>]` against the agents and models: what cannot work is an error with its place in `baton.toml`.

use std::ops::Range;

use baton_core::TenantId;
use baton_core::agent::{Agent, AgentPattern, ModelName};

use crate::config::{Config, TenantConfig, position_in_tenant};
use crate::project::Project;

/// A mistake in the section of one tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantProblem {
    pub tenant: TenantId,
    pub message: String,
    pub help: String,
    /// The key and the value that are wrong.
    key: &'static str,
    value: String,
}

impl TenantProblem {
    /// Where the value is in the text of `baton.toml`.
    pub fn position(&self, text: &str) -> Option<Range<usize>> {
        position_in_tenant(text, self.tenant.as_str(), self.key, &self.value)
    }
}

impl std::fmt::Display for TenantProblem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "`tenants.{}.{}`: {}; {}", self.tenant, self.key, self.message, self.help)
    }
}

/// All mistakes in the sections of tenants without agents of their own, in the order of the tenants.
pub fn problems(config: &Config, agents: &[&Agent]) -> Vec<TenantProblem> {
    let shared = config.tenants.iter().filter(|(_, own)| own.agent_dirs.is_empty());
    shared.flat_map(|(tenant, own)| TenantCheck { config, tenant, own, agents }.all()).collect()
}

/// The mistakes in the section of one tenant, whose agents these are.
pub fn problems_of(config: &Config, tenant: &TenantId, agents: &[&Agent]) -> Vec<TenantProblem> {
    let own = config.tenants.get(tenant);
    own.map(|own| TenantCheck { config, tenant, own, agents }.all()).unwrap_or_default()
}

/// The first mistake as the error of a command, with its line.
pub fn refuse(project: &Project, agents: &[&Agent]) -> anyhow::Result<()> {
    let Some(problem) = problems(&project.config, agents).into_iter().next() else { return Ok(()) };
    let text = project.file.as_ref().and_then(|file| std::fs::read_to_string(file).ok()).unwrap_or_default();
    let line = problem.position(&text).map(|at| text[..at.start].matches('\n').count() + 1);
    let at = line.map(|line| format!("line {line}: ")).unwrap_or_default();
    let file = project.file.as_deref().unwrap_or(crate::config::FILE_NAME.as_ref());
    Err(crate::exit::Exit::Invalid.because(anyhow::anyhow!("{} is invalid: {at}{problem}", file.display())))
}

struct TenantCheck<'a> {
    config: &'a Config,
    tenant: &'a TenantId,
    own: &'a TenantConfig,
    agents: &'a [&'a Agent],
}

impl TenantCheck<'_> {
    fn all(&self) -> Vec<TenantProblem> {
        let patterns = self.own.agents.as_deref().unwrap_or_default();
        let mut found: Vec<TenantProblem> =
            patterns.iter().filter_map(|pattern| self.matches_something(pattern)).collect();
        found.extend(self.main());
        found.extend(self.model());
        if found.is_empty() {
            found.extend(self.required());
        }
        found
    }

    fn problem(&self, key: &'static str, value: &str, message: String, help: String) -> TenantProblem {
        TenantProblem { tenant: self.tenant.clone(), message, help, key, value: value.to_owned() }
    }

    fn is_permitted(&self, agent: &baton_core::AgentName) -> bool {
        self.own.agents.as_ref().is_none_or(|patterns| patterns.iter().any(|one| one.matches(agent)))
    }

    fn matches_something(&self, pattern: &AgentPattern) -> Option<TenantProblem> {
        if self.agents.iter().any(|agent| pattern.matches(&agent.name)) {
            return None;
        }
        let text = pattern.as_str();
        let message = if pattern.is_exact() {
            format!("there is no agent `{text}`")
        } else {
            format!("`{text}` matches no agent")
        };
        Some(self.problem("agents", text, message, "`baton agents list` prints them all".to_owned()))
    }

    fn main(&self) -> Option<TenantProblem> {
        if let Some(main) = &self.own.main {
            let is_there = self.agents.iter().any(|agent| agent.name == *main);
            let message = match (is_there, self.is_permitted(main)) {
                (true, true) => return None,
                (false, _) => format!("there is no agent `{main}`"),
                (true, false) => format!("`{main}` is not among the tenant's agents"),
            };
            return Some(self.problem("main", main.as_str(), message, "name one of its agents".to_owned()));
        }
        let first = self.own.agents.as_ref()?.first().map(AgentPattern::as_str).unwrap_or_default();
        match self.config.agents.main.agent() {
            Some(main) if !self.is_permitted(main) => {
                let message = format!("the main agent `{main}` is not among the tenant's agents");
                let help = format!("add it, or set `main` in `[tenants.{}]`", self.tenant);
                Some(self.problem("agents", first, message, help))
            }
            _ if !self.agents.iter().any(|agent| self.is_permitted(&agent.name)) => {
                let message = "the tenant has no agent".to_owned();
                Some(self.problem("agents", first, message, "name one, or leave `agents` out".to_owned()))
            }
            _ => None,
        }
    }

    fn model(&self) -> Option<TenantProblem> {
        let model = self.own.model.as_ref()?;
        let known = Project::known_models(self.config);
        let is_known = match model {
            ModelName::Alias(alias) => known.model_aliases.contains(alias),
            ModelName::Provider { provider, .. } => known.providers.contains(provider),
        };
        let help = "write `provider/model` of a provider of `[models.providers]`, or an alias of `[models]`";
        let message = || format!("there is no model `{model}`");
        (!is_known).then(|| self.problem("model", &model.to_string(), message(), help.to_owned()))
    }

    /// An agent of the tenant that cannot do without one that is not.
    fn required(&self) -> Option<TenantProblem> {
        let patterns = self.own.agents.as_ref()?;
        let mut own = self.agents.iter().filter(|agent| self.is_permitted(&agent.name));
        own.find_map(|agent| {
            let required = agent.required_agents(|other| self.is_permitted(other));
            let missing = required.into_iter().find(|other| !self.is_permitted(other))?;
            let pattern = patterns.iter().find(|pattern| pattern.matches(&agent.name))?;
            let message =
                format!("`{}` needs the agent `{missing}`, which the tenant does not have", agent.name);
            Some(self.problem("agents", pattern.as_str(), message, format!("add `{missing}`")))
        })
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use baton_core::AgentName;
    use baton_core::agent::Destination;

    use super::*;
    use crate::config::FILE_NAME;

    fn agent(name: &str) -> Agent {
        Agent::plain(AgentName::parse(name).unwrap(), "Helps.", "You help.")
    }

    #[test]
    fn mistakes_in_the_section_of_a_tenant_are_found_with_their_place() {
        let mut support = agent("support");
        support.handoff = vec![Destination { to: AgentName::parse("billing").unwrap(), when: None }];
        let agents = [&agent("assistant"), &support, &agent("billing")];
        for (text, expected) in [
            ("agents = [\"assistant\", \"support\", \"billing\"]", None),
            ("agents = [\"*\"]\nmodel = \"fast\"", None),
            ("agents = [\"bil*\"]\nmain = \"billing\"\nmodel = \"openai/x\"", None),
            ("main = \"billing\"", None),
            ("agents = [\"assistant\", \"suport\"]", Some(("there is no agent `suport`", "\"suport\""))),
            ("agents = [\"assistant\", \"x-*\"]", Some(("`x-*` matches no agent", "\"x-*\""))),
            ("agents = [\"billing\"]", Some(("the main agent `assistant` is not among", "\"billing\""))),
            ("main = \"nobody\"", Some(("there is no agent `nobody`", "\"nobody\""))),
            (
                "agents = [\"assistant\"]\nmain = \"billing\"",
                Some(("`billing` is not among the tenant's agents", "\"billing\"")),
            ),
            ("model = \"nowhere/m\"", Some(("there is no model `nowhere/m`", "\"nowhere/m\""))),
            ("model = \"quick\"", Some(("there is no model `quick`", "\"quick\""))),
            (
                "agents = [\"assistant\", \"support\"]",
                Some(("`support` needs the agent `billing`", "\"support\"")),
            ),
        ] {
            let text = format!("[tenants.acme]\n{text}\n");
            let config = Config::parse(&text, Path::new(FILE_NAME), std::iter::empty()).unwrap();
            let found = problems(&config, &agents);
            match expected {
                None => assert_eq!(found, [], "{text}"),
                Some((message, place)) => {
                    assert_eq!(found.len(), 1, "{text}: {found:?}");
                    assert!(found[0].message.contains(message), "{text}: {found:?}");
                    assert_eq!(&text[found[0].position(&text).unwrap()], place, "{text}");
                }
            }
        }
    }
}
