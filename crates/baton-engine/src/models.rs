//! Which provider answers for a model name.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_core::Model;
use baton_core::agent::{Agent, ModelName};
use baton_core::model::ModelFacts;

use crate::failure::Failure;

/// Aliases may point to aliases, but not far.
const MAX_ALIASES: usize = 8;

/// All configured models.
#[derive(Debug, Clone)]
pub struct Models {
    providers: BTreeMap<String, Arc<dyn Model>>,
    aliases: BTreeMap<String, ModelName>,
    default: ModelName,
}

/// A provider and the name of one of its models.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub provider: Arc<dyn Model>,
    pub model: String,
    pub facts: ModelFacts,
}

impl Candidate {
    fn new(provider: &Arc<dyn Model>, model: &str) -> Self {
        let facts = provider.facts(model);
        Self { provider: Arc::clone(provider), model: model.to_owned(), facts }
    }
}

impl Models {
    pub fn new(default: ModelName) -> Self {
        Self { providers: BTreeMap::new(), aliases: BTreeMap::new(), default }
    }

    #[must_use]
    pub fn with_provider(mut self, provider: Arc<dyn Model>) -> Self {
        self.providers.insert(provider.provider().to_owned(), provider);
        self
    }

    #[must_use]
    pub fn with_alias(mut self, alias: impl Into<String>, name: ModelName) -> Self {
        self.aliases.insert(alias.into(), name);
        self
    }

    /// Who answers for this agent, in order of preference. A name that leads nowhere is passed over; an agent whose
    /// names all lead nowhere gets the default.
    pub fn candidates(&self, agent: &Agent) -> Result<Vec<Candidate>, Failure> {
        let mut found: Vec<Candidate> = agent.model.iter().filter_map(|name| self.resolve(name)).collect();
        if found.is_empty() {
            found.extend(self.resolve(&self.default));
        }
        if found.is_empty() { Err(Failure::NoModel(self.default.to_string())) } else { Ok(found) }
    }

    /// Whether nobody answers for this agent but a stand-in for a language model.
    pub(crate) fn is_stand_in(&self, agent: &Agent) -> bool {
        let first = self.candidates(agent).ok().and_then(|candidates| candidates.into_iter().next());
        first.is_some_and(|first| first.provider.is_stand_in())
    }

    /// Who answers where speed matters more than wit: the alias `fast`, or whoever answers for the agent.
    pub(crate) fn quick(&self, agent: &Agent) -> Result<Vec<Candidate>, Failure> {
        match self.resolve(&ModelName::Alias("fast".to_owned())) {
            Some(quick) => Ok(vec![quick]),
            None => self.candidates(agent),
        }
    }

    /// The model of agents that name none, as `provider/model`. If it cannot be resolved, the name as it is configured.
    pub fn default_model(&self) -> String {
        let found = self.resolve(&self.default);
        found.map_or_else(
            || self.default.to_string(),
            |candidate| format!("{}/{}", candidate.provider.provider(), candidate.model),
        )
    }

    fn resolve(&self, name: &ModelName) -> Option<Candidate> {
        let mut name = name;
        for _ in 0..MAX_ALIASES {
            match name {
                ModelName::Provider { provider, model } => {
                    return Some(Candidate::new(self.providers.get(provider)?, model));
                }
                // A provider with a single model, such as `offline`, is named without a slash.
                ModelName::Alias(alias) => match (self.aliases.get(alias), self.providers.get(alias)) {
                    (Some(next), _) if next != name => name = next,
                    (_, Some(provider)) => return Some(Candidate::new(provider, alias)),
                    _ if alias == "default" => name = &self.default,
                    _ => return None,
                },
            }
        }
        None
    }
}
