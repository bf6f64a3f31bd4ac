//! Model, sampling, version, limits, history, output schema.

use baton_core::agent::{AgentLimits, Effort, HistoryAccess, ModelName, Sampling};
use baton_core::{choices, duration::HumanDuration};
use semver::Version;

use super::AgentDecoder;
use super::section::FrontmatterMap;
use crate::problem::Rule;
use crate::yaml::{Scalar, YamlNode, YamlValue};

impl<'a> AgentDecoder<'a> {
    pub(super) fn version(&mut self, head: &FrontmatterMap<'a>) -> Version {
        const DEFAULT: Version = Version::new(1, 0, 0);
        let Some((text, node)) =
            head.get("version").and_then(|node| Some((self.text(node, "a version")?, node)))
        else {
            return DEFAULT;
        };
        Version::parse(&text).unwrap_or_else(|_| {
            let padded =
                [format!("{text}.0"), format!("{text}.0.0")].into_iter().find(|t| Version::parse(t).is_ok());
            let help = format!("write `version: {}`", padded.as_deref().unwrap_or("1.0.0"));
            self.report(
                Rule::InvalidVersion,
                node.span,
                format!("`{text}` is not a version: it has three numbers"),
                help,
            );
            DEFAULT
        })
    }

    pub(super) fn models(&mut self, head: &FrontmatterMap<'a>) -> Vec<ModelName> {
        let Some(node) = head.get("model") else { return Vec::new() };
        Self::items(node).iter().filter_map(|item| self.model(item)).collect()
    }

    /// Another tool's model name never fails a load: the default model answers instead.
    fn model(&mut self, node: &YamlNode) -> Option<ModelName> {
        let text = self.text(node, "a model")?;
        let name = match ModelName::parse(&text) {
            Ok(name) => name,
            Err(error) => {
                self.report(
                    Rule::UnknownModel,
                    node.span,
                    error.to_string(),
                    "the default model answers until then",
                );
                return None;
            }
        };
        let (is_known, help) = match &name {
            ModelName::Provider { provider, .. } => (
                self.known.providers.contains(provider),
                format!(
                    "add `[models.providers.{provider}]` with its `base_url` to baton.toml; calls fail until then"
                ),
            ),
            ModelName::Alias(alias) => (
                self.known.model_aliases.contains(alias),
                format!(
                    "add `\"{alias}\"` to `models.aliases` in baton.toml; the default model answers until then"
                ),
            ),
        };
        if !is_known {
            self.report(Rule::UnknownModel, node.span, format!("`{text}` is not a configured model"), help);
        }
        Some(name)
    }

    pub(super) fn sampling(&mut self, head: &FrontmatterMap<'a>) -> Sampling {
        Sampling {
            temperature: head.get("temperature").and_then(|node| self.number(node, 0.0..=2.0)),
            top_p: head.get("top_p").and_then(|node| self.number(node, 0.0..=1.0)),
            max_output_tokens: head.get("max_output_tokens").and_then(|node| self.count(node, 1..=u32::MAX)),
            effort: head.get("effort").and_then(|node| self.effort(node)),
        }
    }

    /// Some tools also take a number, whose scale is their own.
    fn effort(&mut self, node: &YamlNode) -> Option<Effort> {
        if node.scalar().and_then(Scalar::as_number).is_some() {
            let help = "write `low`, `medium` or `high`";
            self.report(Rule::UnusedKey, node.span, "a number for `effort` has no effect in Baton", help);
            return None;
        }
        self.choice(node)
    }

    /// `foreign` holds the limits that another tool's keys set; `limits:` wins.
    pub(super) fn limits(
        &mut self,
        head: &FrontmatterMap<'a>,
        foreign: &ForeignLimits,
        models: &[ModelName],
    ) -> AgentLimits {
        let defaults = AgentLimits::default();
        let mut limits = AgentLimits {
            max_turns: foreign.max_turns.unwrap_or(defaults.max_turns),
            timeout: foreign.timeout.unwrap_or(defaults.timeout),
            ..defaults
        };
        let section = head.get("limits").and_then(|node| {
            let keys = &[
                "max_turns",
                "max_depth",
                "max_transfers",
                "timeout",
                "max_cost_usd",
                "max_tokens",
                "max_parallel_tools",
            ];
            self.section(node, "`limits`", keys)
        });
        let Some(section) = section else { return limits };
        let mut set = |key: &str, field: &mut u32, low: u32| {
            *field = section.get(key).and_then(|node| self.count(node, low..=u32::MAX)).unwrap_or(*field);
        };
        set("max_turns", &mut limits.max_turns, 1);
        set("max_depth", &mut limits.max_depth, 0);
        set("max_transfers", &mut limits.max_transfers, 0);
        set("max_parallel_tools", &mut limits.max_parallel_tools, 1);
        limits.timeout =
            section.get("timeout").and_then(|node| self.duration(node)).unwrap_or(limits.timeout);
        limits.max_cost_usd = section.get("max_cost_usd").and_then(|node| self.money(node));
        if let Some(node) = section.get("max_cost_usd")
            && let Some(model) = self.known.prices.first_unknown(models)
        {
            let message = format!("the price of `{model}` is not known, so that its cost cannot be limited");
            let help = "limit `max_tokens` instead, or use a model whose price is known";
            self.report(Rule::UnpricedModel, node.span, message, help);
        }
        limits.max_tokens = section.get("max_tokens").and_then(|node| self.count(node, 1..=u64::MAX));
        limits
    }

    /// A word, `{last: 5}`, or `last: 5` after it was quoted.
    pub(super) fn history(&mut self, head: &FrontmatterMap<'a>) -> HistoryAccess {
        let Some(node) = head.get("history") else { return HistoryAccess::Conversation };
        let read = match &node.value {
            YamlValue::Map(_) => {
                self.section(node, "`history`", &["last"]).and_then(|section| match section.get("last") {
                    Some(last) => self.count(last, 1..=10_000).map(HistoryAccess::Last),
                    None => {
                        self.wrong_type(node, "`last: 5`");
                        None
                    }
                })
            }
            YamlValue::Scalar(Scalar { text, .. }) if text.starts_with("last:") => {
                let last = text["last:".len()..].trim().parse().ok().filter(|last| *last > 0);
                if last.is_none() {
                    self.wrong_type(node, "`{last: 5}`");
                }
                last.map(HistoryAccess::Last)
            }
            _ => self.choice::<HistoryWord>(node).map(HistoryAccess::from),
        };
        read.unwrap_or(HistoryAccess::Conversation)
    }

    /// The JSON Schema of a top-level key.
    pub(super) fn schema_at(&mut self, head: &FrontmatterMap<'a>, key: &str) -> Option<serde_json::Value> {
        head.get(key).and_then(|node| self.schema(node, &format!("`{key}`")))
    }

    /// A JSON Schema. `what` is its key, for messages.
    pub(super) fn schema(&mut self, node: &YamlNode, what: &str) -> Option<serde_json::Value> {
        let schema = node.to_json();
        if !matches!(node.value, YamlValue::Map(_)) {
            self.wrong_type(node, "a JSON Schema as a map");
            return None;
        }
        let errors = schema_errors(&schema);
        for (pointer, error) in &errors {
            let at = node.at_pointer(pointer);
            let message = format!("{what} is not a valid JSON Schema: {error}");
            self.report(Rule::InvalidSchema, at.span, message, "correct it; the default draft is 2020-12");
        }
        if !errors.is_empty() {
            return None;
        }
        Some(schema)
    }
}

/// What is wrong with a schema, each with where: all that its own schema says, or else what only shows when it is used.
fn schema_errors(schema: &serde_json::Value) -> Vec<(String, String)> {
    let described =
        |error: &jsonschema::ValidationError<'_>| (error.instance_path().to_string(), error.to_string());
    let against_its_own: Vec<_> = match jsonschema::meta::validator_for(schema) {
        Ok(meta) => meta.iter_errors(schema).take(MAX_SCHEMA_ERRORS).map(|error| described(&error)).collect(),
        Err(error) => vec![described(&error)],
    };
    if against_its_own.is_empty() {
        jsonschema::validator_for(schema).err().map(|error| described(&error)).into_iter().collect()
    } else {
        against_its_own
    }
}

/// A schema with more errors than this was never one.
const MAX_SCHEMA_ERRORS: usize = 20;

/// Limits that other tools write at the top level.
#[derive(Debug, Default)]
pub(super) struct ForeignLimits {
    pub(super) max_turns: Option<u32>,
    pub(super) timeout: Option<HumanDuration>,
}

choices! {
    pub enum HistoryWord {
        Conversation = "conversation",
        Full = "full",
        Last = "last",
        Summary = "summary",
        Brief = "brief",
    }
}

/// `last` alone means the last message.
impl From<HistoryWord> for HistoryAccess {
    fn from(word: HistoryWord) -> Self {
        match word {
            HistoryWord::Conversation => Self::Conversation,
            HistoryWord::Full => Self::Full,
            HistoryWord::Last => Self::Last(1),
            HistoryWord::Summary => Self::Summary,
            HistoryWord::Brief => Self::Brief,
        }
    }
}
