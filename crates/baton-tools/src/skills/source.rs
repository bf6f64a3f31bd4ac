//! Skills of files, as the engine asks for them.

use baton_core::agent::SkillName;
use baton_core::skill::{SkillFuture, SkillHeads};
use baton_core::{SkillFile, SkillSource, TenantId};

use super::{SkillError, SkillFolder};
use crate::offload::offload;

impl SkillSource for SkillFolder {
    fn list<'a>(&'a self, tenant: &'a TenantId) -> SkillFuture<'a, SkillHeads> {
        let (skills, tenant) = (self.clone(), tenant.clone());
        Box::pin(offload(move |_| Ok(skills.all(&tenant).into_iter().map(|found| found.head).collect())))
    }

    fn read<'a>(&'a self, tenant: &'a TenantId, name: &'a SkillName) -> SkillFuture<'a, Option<SkillFile>> {
        let (skills, tenant, name) = (self.clone(), tenant.clone(), name.clone());
        Box::pin(offload(move |_| match skills.file(&tenant, &name) {
            Ok(file) => Ok(Some(file)),
            Err(SkillError::Unknown(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }))
    }
}
