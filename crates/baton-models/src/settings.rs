//! What the configuration says about a provider and its models. Every key has the name that `baton.toml` uses.

use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};

use baton_core::model::{ModelAssists, ModelFacts, ModelSupport};
use baton_core::usage::Price;
use baton_core::{HumanDuration, Usd};
use serde::Deserialize;

/// The configured properties of a provider, beside its address and key.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProviderSettings {
    pub timeouts: TimeoutSettings,
    /// By the name of the model.
    pub models: BTreeMap<String, ModelSettings>,
}

/// How long calls of a provider may take. A missing key leaves the default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TimeoutSettings {
    pub first_token: Option<HumanDuration>,
    pub silence: Option<HumanDuration>,
    /// Multiplies the time limits of agent files.
    pub factor: Option<NonZeroU32>,
}

/// Configured facts about a model. A missing key leaves what is known otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct ModelSettings {
    pub context_window: Option<NonZeroU64>,
    pub max_output_tokens: Option<NonZeroU32>,
    pub tools: Option<bool>,
    pub parallel_calls: Option<bool>,
    pub structured_output: Option<bool>,
    pub tool_choice: Option<bool>,
    pub images: Option<bool>,
    pub price: Option<PriceSettings>,
    pub assists: AssistSettings,
}

/// Dollars per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "PriceTable")]
pub struct PriceSettings(Price);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PriceTable {
    input: Usd,
    /// Without it, cached input costs as much as any other.
    cached_input: Option<Usd>,
    output: Usd,
}

impl TryFrom<PriceTable> for PriceSettings {
    type Error = &'static str;
    fn try_from(table: PriceTable) -> Result<Self, Self::Error> {
        let PriceTable { input, cached_input, output } = table;
        let cached_input = cached_input.unwrap_or(input);
        if [input, cached_input, output].iter().any(|price| *price < Usd::default()) {
            return Err("a price is not negative");
        }
        Ok(Self(Price { input, cached_input, cache_write: input, output }))
    }
}

/// Which assists of the engine are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AssistSettings {
    pub grounding: Option<bool>,
    pub search_first: Option<bool>,
    pub text_tool_calls: Option<bool>,
    pub workflow_values: Option<bool>,
    pub workflow_evidence: Option<bool>,
    pub agent_tools: Option<bool>,
    pub routing_words: Option<bool>,
    pub repeated_calls: Option<bool>,
}

impl ProviderSettings {
    /// The facts with everything replaced that the configuration says about the model.
    pub(crate) fn apply(&self, model: &str, mut facts: ModelFacts) -> ModelFacts {
        let TimeoutSettings { first_token, silence, factor } = self.timeouts;
        facts.timeouts.first_token = first_token.map(HumanDuration::get).or(facts.timeouts.first_token);
        facts.timeouts.silence = silence.map(HumanDuration::get).or(facts.timeouts.silence);
        facts.timeouts.factor = factor.unwrap_or(facts.timeouts.factor);
        facts.timeouts.is_measured &= factor.is_none();
        self.models.get(model).map_or(facts, |settings| settings.apply(facts))
    }
}

impl ModelSettings {
    fn apply(&self, facts: ModelFacts) -> ModelFacts {
        let ModelSupport { tools, parallel_calls, structured_output, tool_choice, images } = facts.supports;
        let assists = facts.assists;
        ModelFacts {
            price: self.price.map(|PriceSettings(price)| price).or(facts.price),
            context_window: self.context_window.map(NonZeroU64::get).or(facts.context_window),
            max_output_tokens: self.max_output_tokens.map(NonZeroU32::get).or(facts.max_output_tokens),
            supports: ModelSupport {
                tools: self.tools.unwrap_or(tools),
                parallel_calls: self.parallel_calls.unwrap_or(parallel_calls),
                structured_output: self.structured_output.unwrap_or(structured_output),
                tool_choice: self.tool_choice.unwrap_or(tool_choice),
                images: self.images.unwrap_or(images),
            },
            assists: ModelAssists {
                grounding: self.assists.grounding.unwrap_or(assists.grounding),
                search_first: self.assists.search_first.unwrap_or(assists.search_first),
                text_tool_calls: self.assists.text_tool_calls.unwrap_or(assists.text_tool_calls),
                workflow_values: self.assists.workflow_values.unwrap_or(assists.workflow_values),
                workflow_evidence: self.assists.workflow_evidence.unwrap_or(assists.workflow_evidence),
                agent_tools: self.assists.agent_tools.unwrap_or(assists.agent_tools),
                routing_words: self.assists.routing_words.unwrap_or(assists.routing_words),
                repeated_calls: self.assists.repeated_calls.unwrap_or(assists.repeated_calls),
            },
            ..facts
        }
    }
}
