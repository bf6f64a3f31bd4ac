//! What a Claude model accepts. Each of these settings is refused by the models on the other side of its version.

/// The version in a model's name; `None` for a model that is not Anthropic's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Abilities {
    version: Option<(u32, u32)>,
}

impl Abilities {
    /// `claude-sonnet-4-5-20250929` and `claude-3-7-sonnet-latest` name their version differently.
    pub fn of(model: &str) -> Self {
        let mut numbers =
            model.split(['-', '.', '@']).filter(|word| word.len() <= 2).filter_map(|word| word.parse().ok());
        let version = numbers.next().map(|major| (major, numbers.next().unwrap_or(0)));
        // This family counts for itself and has been ahead of the others.
        let is_ahead = model.contains("fable") || model.contains("mythos");
        let version = version.map(|version| if is_ahead { version.max((5, 5)) } else { version });
        Self { version: version.filter(|_| model.contains("claude")) }
    }

    fn since(self, version: (u32, u32)) -> bool {
        self.version.is_some_and(|own| own >= version)
    }

    /// `output_config.format`.
    pub fn keeps_to_schemas(self) -> bool {
        self.since((4, 5))
    }

    /// Decides itself how much to think, told only how hard. Its thoughts count as output.
    pub fn adapts(self) -> bool {
        self.since((4, 6))
    }

    /// A level of effort between `high` and `max`, and thoughts that are shown only on request.
    pub fn has_xhigh(self) -> bool {
        self.since((4, 7))
    }

    pub fn samples(self) -> bool {
        !self.since((4, 7))
    }

    /// Thinks unless told not to.
    pub fn thinks_by_default(self) -> bool {
        self.since((5, 0))
    }

    pub fn can_be_forced_to_call(self) -> bool {
        !self.since((5, 5))
    }
}

#[cfg(test)]
mod tests {
    use super::Abilities;

    #[test]
    fn versions() {
        let version = |model| Abilities::of(model).version;
        assert_eq!(version("claude-sonnet-4-5-20250929"), Some((4, 5)));
        assert_eq!(version("claude-3-7-sonnet-latest"), Some((3, 7)));
        assert_eq!(version("claude-sonnet-4-20250514"), Some((4, 0)));
        assert_eq!(version("claude-opus-5"), Some((5, 0)));
        assert_eq!(version("anthropic/claude-opus-5.5"), Some((5, 5)));
        assert_eq!(version("claude-fable-5-1"), Some((5, 5)));
        assert_eq!(version("MiniMax-M2"), None);
        assert_eq!(version("glm-4-6"), None);
    }
}
