//! Where skills are: shared ones in the folder itself, those of a tenant and drafts in hidden folders below it.
//!
//! ```text
//! .agents/skills/<name>/SKILL.md                       for all tenants
//! .agents/skills/.tenants/<tenant>/<name>/SKILL.md     made by the people of one tenant
//! .agents/skills/.drafts/<tenant>/<thread>/<name>/…    being made in one conversation
//! ```

use std::path::{Path, PathBuf};

use baton_core::agent::SkillName;
use baton_core::{CallContext, TenantId, ThreadId};

/// Both hidden, so that nobody who looks for shared skills finds what is in them.
const TENANTS: &str = ".tenants";
const DRAFTS: &str = ".drafts";
/// Names of files may have 255 bytes.
const MAX_NAME_BYTES: usize = 200;

/// Whose draft, and in which conversation: two that happen to choose the same name do not overwrite each other's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftOwner {
    pub tenant: TenantId,
    pub thread: ThreadId,
}

impl From<&CallContext> for DraftOwner {
    fn from(context: &CallContext) -> Self {
        Self { tenant: context.tenant.clone(), thread: context.thread_id }
    }
}

pub(super) fn of_tenant(skills: &Path, tenant: &TenantId) -> PathBuf {
    below(skills.join(TENANTS), tenant)
}

/// The drafts of a tenant, a folder for each conversation.
pub(super) fn drafts(skills: &Path, tenant: &TenantId) -> PathBuf {
    below(skills.join(DRAFTS), tenant)
}

pub(super) fn draft(skills: &Path, desk: &DraftOwner, name: &SkillName) -> PathBuf {
    drafts(skills, &desk.tenant).join(desk.thread.to_string()).join(name.as_str())
}

fn below(mut dir: PathBuf, tenant: &TenantId) -> PathBuf {
    dir.extend(tenant_folders(tenant));
    dir
}

/// A tenant's id as names of folders that differ whenever the ids do, also where case does not count. Ids of any
/// characters are possible; long ones need several folders, and the further ones begin with a mark that no skill has.
fn tenant_folders(tenant: &TenantId) -> Vec<String> {
    let (mut folders, mut last) = (Vec::new(), String::new());
    for byte in tenant.as_str().bytes() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => last.push(char::from(byte)),
            _ => last += &format!("%{byte:02x}"),
        }
        if last.len() > MAX_NAME_BYTES {
            folders.push(std::mem::replace(&mut last, "%+".to_owned()));
        }
    }
    folders.push(last);
    folders
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_get_folders_of_their_own() {
        let folders = |id: &str| tenant_folders(&TenantId::parse(id).unwrap()).join("/");
        assert_eq!(folders("acme-1"), "acme-1");
        assert_eq!(folders(".."), "%2e%2e");
        assert_eq!(folders("a/b"), "a%2fb");
        assert_eq!(folders("Acme"), "%41cme");
        assert!(folders(&"ü".repeat(255)).split('/').all(|part| part.len() <= 255));
        assert_ne!(folders(&"a".repeat(240)), folders(&"a".repeat(241)));
    }
}
