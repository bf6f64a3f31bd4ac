//! Resolves model names to providers.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::{Agent, ModelName};
use baton_core::model::{ModelFacts, ToolChoice};
use baton_core::usage::Tokens;
use baton_core::workflow::WorkflowGuide;
use baton_core::{HumanDuration, Model};
use futures_util::future::join_all;

use crate::failure::Failure;
use crate::model_speed::ModelSpeeds;

/// Maximum length of a chain of aliases.
const MAX_ALIASES: usize = 8;

/// The configured providers, aliases, default model and timeouts.
#[derive(Debug, Clone)]
pub struct ModelRegistry {
    providers: BTreeMap<String, Arc<dyn Model>>,
    aliases: BTreeMap<String, ModelName>,
    default: ModelName,
    pub(crate) timeouts: ModelTimeouts,
    /// Shared by clones.
    speeds: Arc<ModelSpeeds>,
    /// The models of sub-agents, if they differ.
    sub_agents: Option<Arc<Self>>,
}

/// Timeouts and retries of model calls.
#[derive(Debug, Clone, Copy)]
pub struct ModelTimeouts {
    pub first_chunk: Duration,
    pub between_chunks: Duration,
    /// Attempts per model of the fallback list.
    pub attempts: u32,
    /// Delay before the first retry. It doubles with each attempt, up to 32-fold, and is randomized between half and all of it.
    pub back_off: Duration,
    /// If a provider asks for a longer wait, the next model is tried instead.
    pub longest_wait: Duration,
}

impl Default for ModelTimeouts {
    fn default() -> Self {
        Self {
            first_chunk: Duration::from_mins(2),
            between_chunks: Duration::from_mins(1),
            attempts: 3,
            back_off: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
        }
    }
}

/// One model of one provider.
#[derive(Debug, Clone)]
pub struct ModelCandidate {
    pub provider: Arc<dyn Model>,
    pub model: String,
    /// With the time factor that was measured, if there is one.
    pub facts: ModelFacts,
    speeds: Arc<ModelSpeeds>,
}

impl ModelCandidate {
    fn new(provider: &Arc<dyn Model>, model: &str, speeds: &Arc<ModelSpeeds>) -> Self {
        let mut facts = provider.facts(model);
        if facts.timeouts.is_measured {
            let measured = speeds.factor(provider.provider(), model);
            facts.timeouts.factor = measured.unwrap_or(facts.timeouts.factor);
        }
        let speeds = Arc::clone(speeds);
        Self { provider: Arc::clone(provider), model: model.to_owned(), facts, speeds }
    }

    /// Adds a finished call to the measurement of the model's speed.
    pub(crate) fn record_speed(&self, tokens: Tokens, took: Duration) {
        if self.facts.timeouts.is_measured {
            self.speeds.record(self.provider.provider(), &self.model, tokens, took);
        }
    }

    /// The choice as the model's endpoint accepts it.
    pub(crate) fn tool_choice(&self, wanted: ToolChoice) -> ToolChoice {
        match wanted {
            ToolChoice::Required if !(self.facts.supports.tools && self.facts.supports.tool_choice) => {
                ToolChoice::Auto
            }
            wanted => wanted,
        }
    }
}

impl ModelRegistry {
    pub fn new(default: ModelName) -> Self {
        let timeouts = ModelTimeouts::default();
        Self {
            providers: BTreeMap::new(),
            aliases: BTreeMap::new(),
            default,
            timeouts,
            speeds: Arc::default(),
            sub_agents: None,
        }
    }

    #[must_use]
    pub fn with_timeouts(self, timeouts: ModelTimeouts) -> Self {
        Self { timeouts, ..self }
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

    /// The same providers and aliases with another default model, for sub-agents too.
    #[must_use]
    pub fn with_default(&self, default: ModelName) -> Self {
        let sub_agents =
            self.sub_agents.as_ref().map(|models| Arc::new(models.with_default(default.clone())));
        Self { default, sub_agents, ..self.clone() }
    }

    /// The same models, with others for sub-agents.
    #[must_use]
    pub fn with_sub_agents(self, models: Self) -> Self {
        Self { sub_agents: Some(Arc::new(models)), ..self }
    }

    /// The models of sub-agents.
    pub(crate) fn for_sub_agents(self: &Arc<Self>) -> &Arc<Self> {
        self.sub_agents.as_ref().unwrap_or(self)
    }

    /// The models of an agent, in order of preference. Unknown names are skipped. If all are unknown, the default model is used.
    pub fn candidates(&self, agent: &Agent) -> Result<Vec<ModelCandidate>, Failure> {
        let mut found: Vec<ModelCandidate> =
            agent.model.iter().filter_map(|name| self.resolve(name)).collect();
        if found.is_empty() {
            found.extend(self.resolve(&self.default));
        }
        if found.is_empty() { Err(Failure::NoModel(self.default.to_string())) } else { Ok(found) }
    }

    /// The first of [`ModelRegistry::candidates`].
    fn first_candidate(&self, agent: &Agent) -> Option<ModelCandidate> {
        agent.model.iter().find_map(|name| self.resolve(name)).or_else(|| self.resolve(&self.default))
    }

    /// Asks the endpoints of an agent's models for what is not known about them. See [`Model::learn`].
    pub(crate) async fn learn(&self, agent: &Agent) {
        let candidates = self.candidates(agent).unwrap_or_default();
        join_all(candidates.iter().map(|one| one.provider.learn(&one.model))).await;
    }

    /// What the time limits of an agent's file are multiplied by, because its first model is slow.
    pub(crate) fn time_factor(&self, agent: &Agent) -> NonZeroU32 {
        self.first_candidate(agent).map_or(NonZeroU32::MIN, |first| first.facts.timeouts.factor)
    }

    /// A time limit for `agents`, multiplied for the slowest of their models.
    pub(crate) fn scaled_timeout<'a>(
        &self,
        limit: HumanDuration,
        agents: impl IntoIterator<Item = &'a Arc<Agent>>,
    ) -> HumanDuration {
        let factor = agents.into_iter().map(|agent| self.time_factor(agent)).max();
        factor.map_or(limit, |factor| limit.times(factor))
    }

    /// The rules that lead the user through a workflow in place of the agent's first model, if its provider has such rules.
    pub(crate) fn guide(&self, agent: &Agent) -> Option<Arc<dyn WorkflowGuide>> {
        self.first_candidate(agent)?.provider.workflow_guide()
    }

    /// The models for work where speed matters more than quality: the alias `fast`, or those of the agent.
    pub(crate) fn fast_candidates(&self, agent: &Agent) -> Result<Vec<ModelCandidate>, Failure> {
        match self.resolve(&ModelName::Alias("fast".to_owned())) {
            Some(quick) => Ok(vec![quick]),
            None => self.candidates(agent),
        }
    }

    /// The default model as `provider/model`. If it cannot be resolved, its configured name.
    pub fn default_model(&self) -> String {
        let found = self.resolve(&self.default);
        found.map_or_else(
            || self.default.to_string(),
            |candidate| format!("{}/{}", candidate.provider.provider(), candidate.model),
        )
    }

    fn resolve(&self, name: &ModelName) -> Option<ModelCandidate> {
        let mut name = name;
        for _ in 0..MAX_ALIASES {
            match name {
                ModelName::Provider { provider, model } => {
                    return Some(ModelCandidate::new(self.providers.get(provider)?, model, &self.speeds));
                }
                // A provider with a single model, such as `offline`, is named without a slash.
                ModelName::Alias(alias) => match (self.aliases.get(alias), self.providers.get(alias)) {
                    (Some(next), _) if next != name => name = next,
                    (_, Some(provider)) => return Some(ModelCandidate::new(provider, alias, &self.speeds)),
                    _ if alias == "default" => name = &self.default,
                    _ => return None,
                },
            }
        }
        None
    }
}
