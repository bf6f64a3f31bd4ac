//! What a role allows: the table of the contract, changed and extended by the operator.

use std::collections::BTreeMap;

use baton_core::{Permission, Rights, TenantId};

pub const THREAD_READ: &str = "thread:read";
pub const THREAD_WRITE: &str = "thread:write";
pub const AGENT_READ: &str = "agent:read";
pub const AGENT_WRITE: &str = "agent:write";
pub const SKILL_CREATE: &str = "skill:create";
pub const DELEGATE: &str = "orchestration:delegate";
pub const HANDOFF_INITIATE: &str = "handoff:initiate";
pub const HANDOFF_CANCEL: &str = "handoff:cancel";
pub const APPROVAL_DECIDE: &str = "approval:decide";
pub const RUN_CANCEL: &str = "run:cancel";
pub const TRACE_READ: &str = "trace:read";
pub const USAGE_READ: &str = "usage:read";
pub const AUDIT_READ: &str = "audit:read";
/// Create, list and revoke the API keys of the tenant.
pub const KEYS_MANAGE: &str = "admin:keys";
/// The numbers of the whole server, all tenants together. Only for operators of the installation.
pub const METRICS_READ: &str = "metrics:read";
/// Erasing and exporting all data of a user. No role but `admin` has it by default.
pub const ADMIN_USERS: &str = "admin:users";
/// What concerns the whole installation, such as its audit trail. Only for operators of the installation.
pub const SYSTEM_READ: &str = "system:read";
/// Permissions that reach beyond a tenant. A role that grants them, `admin` included, does so only in the tenants of `auth.operators`.
pub const INSTALLATION: &[&str] = &[METRICS_READ, SYSTEM_READ];
/// Everything, also what has no name here.
pub const EVERYTHING: &str = "admin:*";

/// Every permission that some route or tool asks for, and the one that stands for all.
pub const PERMISSIONS: &[&str] = &[
    THREAD_READ,
    THREAD_WRITE,
    AGENT_READ,
    AGENT_WRITE,
    SKILL_CREATE,
    DELEGATE,
    HANDOFF_INITIATE,
    HANDOFF_CANCEL,
    APPROVAL_DECIDE,
    RUN_CANCEL,
    TRACE_READ,
    USAGE_READ,
    AUDIT_READ,
    KEYS_MANAGE,
    METRICS_READ,
    ADMIN_USERS,
    SYSTEM_READ,
    EVERYTHING,
];

pub const ADMIN: &str = "admin";

const VIEWER: &[&str] = &[THREAD_READ, AGENT_READ];
const USER: &[&str] = &[THREAD_WRITE, DELEGATE, HANDOFF_INITIATE, APPROVAL_DECIDE];
const BUILDER: &[&str] = &[SKILL_CREATE, AGENT_WRITE];
const OPERATOR: &[&str] = &[TRACE_READ, RUN_CANCEL, HANDOFF_CANCEL, APPROVAL_DECIDE, USAGE_READ, AUDIT_READ];

/// Each role with the lists that it is made of.
const TABLE: &[(&str, &[&[&str]])] = &[
    ("viewer", &[VIEWER]),
    ("user", &[VIEWER, USER]),
    ("builder", &[VIEWER, USER, BUILDER]),
    ("operator", &[VIEWER, OPERATOR]),
    (ADMIN, &[&[EVERYTHING]]),
];

/// All roles there are, each with what it allows, and the tenants that operate the installation.
#[derive(Debug, Clone)]
pub struct Roles {
    roles: BTreeMap<String, Vec<Permission>>,
    operators: Vec<TenantId>,
}

impl Roles {
    /// The usual ones; `own` replaces them by name, or adds to them.
    pub fn new(own: &BTreeMap<String, Vec<Permission>>) -> Self {
        let usual = TABLE.iter().map(|(role, lists)| {
            let texts = lists.iter().copied().flatten();
            let permissions = texts.map(|text| Permission::parse(text).expect("a valid permission"));
            ((*role).to_owned(), permissions.collect())
        });
        let mut roles: BTreeMap<_, _> = usual.collect();
        roles.extend(own.clone());
        Self { roles, operators: Vec::new() }
    }

    /// Sets the tenants whose users may hold the permissions of [`INSTALLATION`].
    #[must_use]
    pub fn operated_by(self, operators: &[TenantId]) -> Self {
        Self { operators: operators.to_vec(), ..self }
    }

    pub fn is_operator(&self, tenant: &TenantId) -> bool {
        self.operators.contains(tenant)
    }

    /// What the roles of a key allow, limited to its scopes.
    pub fn limited(&self, roles: &[String], scopes: Option<&[Permission]>) -> Rights {
        let rights = self.rights(roles);
        match scopes {
            None => rights,
            Some(scopes) => rights.intersect(&scopes.iter().cloned().collect()),
        }
    }

    /// What they allow together. A role that is not known allows nothing.
    pub fn rights(&self, roles: &[String]) -> Rights {
        roles.iter().filter_map(|role| self.roles.get(role)).flatten().cloned().collect()
    }

    pub fn has(&self, role: &str) -> bool {
        self.roles.contains_key(role)
    }

    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.roles.keys().map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allowed(roles: &Roles, held: &[&str]) -> Vec<&'static str> {
        let held: Vec<String> = held.iter().map(ToString::to_string).collect();
        let rights = roles.rights(&held);
        PERMISSIONS.iter().copied().filter(|permission| rights.allow(permission)).collect()
    }

    #[test]
    fn the_table_is_that_of_the_contract() {
        let roles = Roles::new(&BTreeMap::new());
        assert_eq!(allowed(&roles, &["viewer"]), ["thread:read", "agent:read"]);
        assert_eq!(
            allowed(&roles, &["user"]),
            [
                "thread:read",
                "thread:write",
                "agent:read",
                "orchestration:delegate",
                "handoff:initiate",
                "approval:decide"
            ]
        );
        assert_eq!(
            allowed(&roles, &["builder"]),
            [
                "thread:read",
                "thread:write",
                "agent:read",
                "agent:write",
                "skill:create",
                "orchestration:delegate",
                "handoff:initiate",
                "approval:decide"
            ]
        );
        assert_eq!(
            allowed(&roles, &["operator"]),
            [
                "thread:read",
                "agent:read",
                "handoff:cancel",
                "approval:decide",
                "run:cancel",
                "trace:read",
                "usage:read",
                "audit:read"
            ]
        );
        assert_eq!(allowed(&roles, &["admin"]), PERMISSIONS);
    }

    #[test]
    fn roles_add_up_and_unknown_ones_are_worth_nothing() {
        let own = BTreeMap::from([
            ("viewer".to_owned(), vec![Permission::parse("agent:read").unwrap()]),
            ("auditor".to_owned(), vec![Permission::parse("audit:*").unwrap()]),
        ]);
        let roles = Roles::new(&own);
        assert_eq!(allowed(&roles, &["viewer", "auditor"]), ["agent:read", "audit:read"]);
        assert_eq!(allowed(&roles, &["Admin", "root", ""]), [""; 0]);
        assert!(allowed(&roles, &["user"]).contains(&"thread:read"), "it does not change with `viewer`");
        assert!(roles.names().eq(["admin", "auditor", "builder", "operator", "user", "viewer"]));
    }
}
