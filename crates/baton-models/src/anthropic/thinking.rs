//! How much a model may think and write.

use baton_core::ModelRequest;
use baton_core::agent::Effort;
use serde_json::{Value, json};

use super::abilities::Abilities;

/// The API wants a limit. This much suits every model,
const MAX_TOKENS: u32 = 8_192;
/// and this much those whose thoughts count as output.
const MAX_TOKENS_WITH_THOUGHTS: u32 = 32_000;
const MIN_BUDGET: u32 = 1_024;

/// How hard to think, in the words of the model's generation.
pub(super) struct Thinking {
    pub max_tokens: u32,
    pub setting: Option<Value>,
    pub effort: Option<&'static str>,
}

impl Thinking {
    /// `forced`: a tool must be called. `mid_turn`: the turn has begun without a thought.
    pub fn plan(request: &ModelRequest<'_>, abilities: Abilities, forced: bool, mid_turn: bool) -> Self {
        let limit = request.sampling.max_output_tokens;
        if abilities.adapts() {
            let max_tokens = limit.unwrap_or(MAX_TOKENS_WITH_THOUGHTS);
            // Nobody may think before a call that is forced.
            let off = (forced && abilities.thinks_by_default()).then(|| json!({"type": "disabled"}));
            let effort = request.sampling.effort.filter(|_| !forced);
            let on = effort.map(|_| adaptive(abilities));
            let effort = effort.map(|effort| effort_word(effort, abilities));
            return Self { max_tokens, setting: on.or(off), effort };
        }
        let budget = request.sampling.effort.filter(|_| !forced && !mid_turn).map(budget);
        // The budget is a part of the limit. Without a limit there is room for both.
        let max_tokens = limit.unwrap_or(MAX_TOKENS + budget.unwrap_or(0));
        let budget = budget.map(|budget| budget.min(max_tokens / 2)).filter(|budget| *budget >= MIN_BUDGET);
        let setting = budget.map(|budget| json!({"type": "enabled", "budget_tokens": budget}));
        Self { max_tokens, setting, effort: None }
    }

    pub fn is_on(&self) -> bool {
        self.setting.is_some()
    }
}

fn adaptive(abilities: Abilities) -> Value {
    if abilities.has_xhigh() {
        json!({"type": "adaptive", "display": "summarized"})
    } else {
        json!({"type": "adaptive"})
    }
}

fn effort_word(effort: Effort, abilities: Abilities) -> &'static str {
    match effort {
        Effort::Minimal | Effort::Low => "low",
        Effort::Medium => "medium",
        Effort::Xhigh if abilities.has_xhigh() => "xhigh",
        Effort::High | Effort::Xhigh => "high",
        Effort::Max => "max",
    }
}

fn budget(effort: Effort) -> u32 {
    match effort {
        Effort::Minimal => MIN_BUDGET,
        Effort::Low => 2_048,
        Effort::Medium => 8_192,
        Effort::High => 16_384,
        Effort::Xhigh => 24_576,
        Effort::Max => 32_000,
    }
}
