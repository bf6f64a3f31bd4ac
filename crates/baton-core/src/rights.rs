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

    /// Whether everything that `other` grants is granted by these too.
    pub fn cover(&self, other: &Self) -> bool {
        other.0.iter().all(|permission| self.allow(permission.as_str()))
    }

    /// The permissions that both grant.
    #[must_use]
    pub fn intersect(&self, other: &Self) -> Self {
        let of_both = |one: &Self, two: &Self| -> Vec<Permission> {
            one.0.iter().filter(|permission| two.allow(permission.as_str())).cloned().collect()
        };
        of_both(self, other).into_iter().chain(of_both(other, self)).collect()
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

    #[test]
    fn an_intersection_grants_what_both_grant() {
        let cases: [(&[&str], &[&str], &[&str]); 6] = [
            (&["admin:*"], &["thread:read"], &["thread:read"]),
            (&["thread:*", "audit:read"], &["thread:read", "audit:*"], &["thread:read", "audit:read"]),
            (&["thread:read"], &["thread:write"], &[]),
            (&["thread:read"], &["admin:*"], &["thread:read"]),
            (&["admin:*"], &["admin:*"], &["admin:*"]),
            (&["thread:*"], &[], &[]),
        ];
        for (one, two, both) in cases {
            assert_eq!(rights(one).intersect(&rights(two)), rights(both), "{one:?} {two:?}");
            assert_eq!(rights(two).intersect(&rights(one)), rights(both), "{two:?} {one:?}");
            assert!(rights(one).cover(&rights(both)) && rights(two).cover(&rights(both)));
        }
        assert!(!rights(&["admin:keys"]).cover(&Rights::all()) && !rights(&["a:b"]).cover(&rights(&["a:*"])));
    }
}
