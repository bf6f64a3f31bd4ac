//! The Agent Skills available to an agent.

use serde::Serialize;

/// The folder name of a skill: lower-case letters, digits and single hyphens, at most 64 characters.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct SkillName(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a skill name: use lower-case letters, digits and single hyphens, at most 64 characters"
)]
pub struct InvalidSkillName(pub String);

impl SkillName {
    pub fn parse(text: &str) -> Result<Self, InvalidSkillName> {
        let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
        let hyphens_are_single = !text.starts_with('-') && !text.ends_with('-') && !text.contains("--");
        if !text.is_empty() && text.len() <= 64 && text.bytes().all(allowed) && hyphens_are_single {
            Ok(Self(text.to_owned()))
        } else {
            Err(InvalidSkillName(text.to_owned()))
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Skills {
    /// All installed skills, including those created later.
    All,
    #[serde(untagged)]
    Named(Vec<SkillName>),
}

impl Default for Skills {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl Skills {
    pub fn is_none(&self) -> bool {
        matches!(self, Self::Named(names) if names.is_empty())
    }
}

#[cfg(test)]
mod tests {
    use super::SkillName;

    #[test]
    fn names_follow_the_agent_skills_rules() {
        assert!(SkillName::parse("slack-alert-2").is_ok());
        for bad in ["", "-a", "a-", "a--b", "A", "a_b", "a b", &"a".repeat(65)] {
            assert!(SkillName::parse(bad).is_err(), "{bad}");
        }
    }
}
