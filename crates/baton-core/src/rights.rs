//! A set of permissions. `noun:*` grants every verb, `admin:*` grants everything.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::permission::Permission;

const EVERYTHING: &str = "admin:*";

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rights(BTreeSet<Permission>);

impl Rights {
    /// All permissions: for administrators and for local use.
    pub fn all() -> Self {
        Permission::parse(EVERYTHING).into_iter().collect()
    }

    /// Whether a permission such as `thread:read` is granted.
    pub fn allow(&self, permission: &str) -> bool {
        let of_its_noun =
            || permission.split_once(':').is_some_and(|(noun, _)| self.has(&format!("{noun}:*")));
        self.has(permission) || self.has(EVERYTHING) || of_its_noun()
    }

    fn has(&self, permission: &str) -> bool {
        self.0.iter().any(|held| held.as_str() == permission)
    }

    pub fn iter(&self) -> impl Iterator<Item = &Permission> {
        self.0.iter()
    }
}

impl FromIterator<Permission> for Rights {
    fn from_iter<T: IntoIterator<Item = Permission>>(permissions: T) -> Self {
        Self(permissions.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rights(list: &[&str]) -> Rights {
        list.iter().map(|text| Permission::parse(text).unwrap()).collect()
    }

    #[test]
    fn an_administrator_may_do_everything_and_others_what_they_have() {
        assert!(Rights::all().allow("skill:create"));
        assert!(rights(&["thread:*"]).allow("thread:write"));
        let viewer = rights(&["thread:read"]);
        assert!(viewer.allow("thread:read") && !viewer.allow("thread:write") && !viewer.allow("thread"));
        assert!(!Rights::default().allow("thread:read"));
    }
}
