//! Single values: text, numbers, durations, words of a closed set, lists.

use std::ops::RangeInclusive;

use baton_core::choice::Choice;
use baton_core::duration::HumanDuration;
use baton_core::money::Usd;

use super::AgentDecoder;
use super::section::FrontmatterMap;
use super::template::{self, NameRole, TEMPLATES, TemplateMention, is_filter, is_global, is_test};
use crate::names::{nearest, shortened};
use crate::problem::Rule;
use crate::yaml::{YamlNode, YamlValue};

/// What a condition can see.
const CONDITION_VARIABLES: &[&str] = &["input", "output", "user"];

impl<'a> AgentDecoder<'a> {
    pub(super) fn wrong_type(&mut self, node: &YamlNode, expected: &str) {
        let message = format!("this is {}, and {expected} is expected", node.describe());
        self.report(Rule::WrongType, node.span, message, format!("write {expected}"));
    }

    pub(super) fn text(&mut self, node: &YamlNode, expected: &str) -> Option<String> {
        match node.scalar() {
            Some(scalar) if !node.is_null() => Some(scalar.text.trim_end().to_owned()),
            _ => {
                self.wrong_type(node, expected);
                None
            }
        }
    }

    pub(super) fn text_at(&mut self, head: &FrontmatterMap<'a>, key: &str) -> Option<String> {
        head.get(key).and_then(|node| self.text(node, "text"))
    }

    pub(super) fn flag(&mut self, node: &YamlNode) -> Option<bool> {
        let flag = node.scalar().and_then(crate::yaml::Scalar::as_bool);
        if flag.is_none() {
            self.wrong_type(node, "`true` or `false`");
        }
        flag
    }

    pub(super) fn flag_at(&mut self, head: &FrontmatterMap<'a>, key: &str, default: bool) -> bool {
        head.get(key).and_then(|node| self.flag(node)).unwrap_or(default)
    }

    pub(super) fn count<N: TryFrom<u64> + Into<u64> + Copy>(
        &mut self,
        node: &YamlNode,
        range: RangeInclusive<N>,
    ) -> Option<N> {
        let Some(number) = node.scalar().and_then(crate::yaml::Scalar::as_number) else {
            self.wrong_type(node, "a whole number");
            return None;
        };
        let (low, high) = ((*range.start()).into(), (*range.end()).into());
        let within = number.as_u64().filter(|value| (low..=high).contains(value));
        if within.is_none() {
            let bounds = if high >= u64::from(u32::MAX) {
                format!("at least {low}")
            } else {
                format!("{low} to {high}")
            };
            let message = format!("{number} is out of range: a whole number, {bounds}");
            self.report(Rule::OutOfRange, node.span, message, format!("write a whole number, {bounds}"));
        }
        within.and_then(|value| N::try_from(value).ok())
    }

    pub(super) fn number(&mut self, node: &YamlNode, range: RangeInclusive<f64>) -> Option<f64> {
        let number =
            node.scalar().and_then(crate::yaml::Scalar::as_number).and_then(|number| number.as_f64());
        match number {
            Some(number) if range.contains(&number) => Some(number),
            Some(number) => {
                let bounds = format!("{} to {}", range.start(), range.end());
                let message = format!("{number} is out of range: {bounds}");
                self.report(Rule::OutOfRange, node.span, message, format!("write a number from {bounds}"));
                None
            }
            None => {
                self.wrong_type(node, "a number");
                None
            }
        }
    }

    pub(super) fn money(&mut self, node: &YamlNode) -> Option<Usd> {
        let text = self.text(node, "an amount in dollars, such as 0.25")?;
        match text.parse() {
            Ok(amount) => Some(amount),
            Err(error) => {
                self.report(Rule::OutOfRange, node.span, error.to_string(), "write a number such as 0.25");
                None
            }
        }
    }

    pub(super) fn duration(&mut self, node: &YamlNode) -> Option<HumanDuration> {
        let text = self.text(node, "a duration, such as 30s")?;
        match HumanDuration::parse(&text) {
            Ok(duration) => Some(duration),
            Err(error) => {
                let guess = text.trim().bytes().all(|b| b.is_ascii_digit()) && !text.is_empty();
                let help = if guess {
                    format!("write `{text}s` if seconds are meant")
                } else {
                    "write `500ms`, `30s`, `5m` or `1h`".into()
                };
                self.report(Rule::InvalidDuration, node.span, error.to_string(), help);
                None
            }
        }
    }

    pub(super) fn choice<C: Choice>(&mut self, node: &YamlNode) -> Option<C> {
        let words = || C::ALL.iter().map(|(word, _)| *word);
        let listed = || words().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
        let text = self.text(node, "a word")?;
        let choice = C::parse(&text);
        if choice.is_none() {
            let near = nearest(&baton_core::choice::snake_case(&text), words(), |_| 2);
            let help = near.first().map_or_else(
                || format!("write one of {}", listed()),
                |near| format!("did you mean `{near}`?"),
            );
            self.report(Rule::UnknownChoice, node.span, format!("`{text}` is none of {}", listed()), help);
        }
        choice
    }

    pub(super) fn choice_at<C: Choice>(&mut self, head: &FrontmatterMap<'a>, key: &str, default: C) -> C {
        head.get(key).and_then(|node| self.choice(node)).unwrap_or(default)
    }

    /// The items of a list; a single value is a list of one.
    pub(super) fn items(node: &'a YamlNode) -> &'a [YamlNode] {
        match &node.value {
            YamlValue::List(items) => items,
            _ => std::slice::from_ref(node),
        }
    }

    pub(super) fn texts(&mut self, node: &'a YamlNode) -> Vec<String> {
        Self::items(node).iter().filter_map(|item| self.text(item, "text")).collect()
    }

    /// A minijinja expression, checked and kept as text.
    pub(super) fn expression(&mut self, node: &YamlNode) -> Option<String> {
        let text = match node.scalar().and_then(crate::yaml::Scalar::as_bool) {
            Some(flag) => flag.to_string(),
            None => self.text(node, "a condition, such as `\"refund\" in output`")?,
        };
        match TEMPLATES.compile_expression(&text) {
            Ok(_) => self.mentions_in_condition(&text, node),
            Err(error) => {
                let detail = error.detail().unwrap_or("it cannot be read").to_owned();
                self.report(
                    Rule::InvalidExpression,
                    node.span,
                    format!("the condition is not a valid expression: {detail}"),
                    "write a minijinja expression over `output`, `input` and `user`, such as `\"approved\" in output`",
                );
            }
        }
        // Kept even so: an entry with a broken condition is still a conditional one.
        Some(text)
    }

    /// The first name that a condition would stumble over. A condition is one line; its first mistake is enough.
    fn mentions_in_condition(&mut self, text: &str, node: &YamlNode) {
        let see = "conditions see `output`, `input` and `user`";
        let wrong = template::mentions_in_expression(text).into_iter().find_map(
            |TemplateMention { name, role, .. }| {
                let shown = shortened(name);
                match role {
                    NameRole::Variable if !CONDITION_VARIABLES.contains(&name) && !is_global(name) => {
                        let near = nearest(name, CONDITION_VARIABLES.iter().copied(), |_| 2);
                        let help = near.first().map(|near| format!("did you mean `{near}`?"));
                        Some((format!("the condition uses `{shown}`, which does not exist"), help))
                    }
                    NameRole::Call if !is_global(name) => {
                        Some((format!("no function is called `{shown}`"), None))
                    }
                    NameRole::Filter if !is_filter(name) => {
                        Some((format!("no filter is called `{shown}`"), None))
                    }
                    NameRole::Test if !is_test(name) => Some((format!("no test is called `{shown}`"), None)),
                    _ => None,
                }
            },
        );
        if let Some((message, help)) = wrong {
            self.report(Rule::InvalidExpression, node.span, message, help.unwrap_or_else(|| see.to_owned()));
        }
    }
}
