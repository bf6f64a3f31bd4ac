//! Model names and sampling parameters.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::choices;

/// A model as agent files name it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum ModelName {
    /// `openai/gpt-5-mini`. The model part may contain slashes.
    Provider { provider: String, model: String },
    /// `fast`, `offline`, `sonnet`: resolved through `models.aliases`.
    Alias(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a model: write `provider/model`, such as `openai/gpt-5-mini`, or an alias")]
pub struct InvalidModel(pub String);

impl ModelName {
    pub fn parse(text: &str) -> Result<Self, InvalidModel> {
        let is_word = |s: &str| !s.is_empty() && !s.contains(char::is_control) && s.trim() == s;
        match text.split_once('/') {
            Some((provider, model)) if is_word(provider) && is_word(model) => {
                Ok(Self::Provider { provider: provider.to_owned(), model: model.to_owned() })
            }
            None if is_word(text) => Ok(Self::Alias(text.to_owned())),
            _ => Err(InvalidModel(text.to_owned())),
        }
    }
}

impl TryFrom<String> for ModelName {
    type Error = InvalidModel;
    fn try_from(text: String) -> Result<Self, InvalidModel> {
        Self::parse(&text)
    }
}

impl From<ModelName> for String {
    fn from(name: ModelName) -> Self {
        name.to_string()
    }
}

impl fmt::Display for ModelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Provider { provider, model } => write!(f, "{provider}/{model}"),
            Self::Alias(alias) => f.write_str(alias),
        }
    }
}

/// Sampling parameters. `None` leaves the choice to the provider.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Sampling {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub top_p: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
}

choices! {
    /// Reasoning effort of the model.
    pub enum Effort {
        Minimal = "minimal",
        Low = "low",
        Medium = "medium",
        High = "high",
        Xhigh = "xhigh",
        Max = "max",
    }
}

#[cfg(test)]
mod tests {
    use super::ModelName;

    #[test]
    fn providers_and_aliases() {
        let provider = |text| match ModelName::parse(text) {
            Ok(ModelName::Provider { provider, model }) => Some((provider, model)),
            _ => None,
        };
        assert_eq!(provider("openai/gpt-5-mini"), Some(("openai".into(), "gpt-5-mini".into())));
        assert_eq!(provider("openrouter/meta/llama"), Some(("openrouter".into(), "meta/llama".into())));
        assert_eq!(provider("sonnet"), None);
        assert!(ModelName::parse("Claude Sonnet 4.5 (copilot)").is_ok());
        for bad in ["", "/x", "x/", " "] {
            assert!(ModelName::parse(bad).is_err(), "{bad:?}");
        }
    }
}
