//! Permissions, as `noun:verb`.

use std::fmt;

use serde::{Deserialize, Serialize};

/// `thread:read`, `skill:create`, … or `admin:*`. The set is open, because roles and agents may define their own.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Permission(String);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a permission: write it as `noun:verb` in lower case, such as `skill:create`")]
pub struct InvalidPermission(pub String);

impl Permission {
    pub fn parse(text: &str) -> Result<Self, InvalidPermission> {
        let word = |s: &str| {
            !s.is_empty()
                && s.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
        };
        match text.split_once(':') {
            Some((noun, verb)) if word(noun) && (word(verb) || verb == "*") => Ok(Self(text.to_owned())),
            _ => Err(InvalidPermission(text.to_owned())),
        }
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for Permission {
    type Error = InvalidPermission;
    fn try_from(text: String) -> Result<Self, InvalidPermission> {
        Self::parse(&text)
    }
}

impl From<Permission> for String {
    fn from(permission: Permission) -> Self {
        permission.0
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Permission;

    #[test]
    fn permissions_are_noun_and_verb() {
        for good in ["skill:create", "admin:*", "orchestration:delegate"] {
            assert!(Permission::parse(good).is_ok(), "{good}");
        }
        for bad in ["", "skill", "skill:", ":create", "Skill:Create", "a:b:c", "skill create"] {
            assert!(Permission::parse(bad).is_err(), "{bad}");
        }
    }
}
