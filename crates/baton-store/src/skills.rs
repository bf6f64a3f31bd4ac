//! Skills that people of a tenant created, and their drafts.

use baton_core::agent::SkillName;
use baton_core::store::{
    AuditEntry, CreatedSkills, NewSkill, Pending, SkillSaving, SkillSummary, StoredSkill,
};
use baton_core::{StoreError, ThreadId};

use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, params};

impl CreatedSkills for Tenant {
    fn put_skill_draft(
        &self,
        thread: ThreadId,
        name: &SkillName,
        text: &str,
        most: u32,
    ) -> Pending<'_, bool> {
        let input = (thread, name.clone(), text.to_owned(), most);
        self.write(JobSubject::Thread(thread), input, |tx, (thread, name, text, most)| {
            Box::pin(put_draft(tx, *thread, name, text, *most))
        })
    }

    fn skill_draft(&self, thread: ThreadId, name: &SkillName) -> Pending<'_, Option<String>> {
        self.read((thread, name.clone()), |tx, (thread, name)| Box::pin(draft(tx, *thread, name)))
    }

    fn save_skill(&self, skill: NewSkill, entry: AuditEntry, most: u32) -> Pending<'_, SkillSaving> {
        let about = skill.thread_id.map_or(JobSubject::Tenant, JobSubject::Thread);
        self.write(about, (skill, entry, most), |tx, (skill, entry, most)| {
            Box::pin(save(tx, skill, entry, *most))
        })
    }

    fn skills(&self) -> Pending<'_, Vec<SkillSummary>> {
        self.read((), |tx, ()| Box::pin(list(tx)))
    }

    fn skill(&self, name: &SkillName) -> Pending<'_, Option<StoredSkill>> {
        self.read(name.clone(), |tx, name| Box::pin(one(tx, name)))
    }

    fn delete_skill(&self, name: &SkillName, entry: AuditEntry) -> Pending<'_, bool> {
        self.write(JobSubject::Tenant, (name.clone(), entry), |tx, (name, entry)| {
            Box::pin(delete(tx, name, entry))
        })
    }
}

const OTHER_DRAFTS: &str =
    "SELECT count(*) FROM skill_drafts WHERE tenant = $1 AND thread_id = $2 AND name <> $3";

const PUT_DRAFT: &str = "
    INSERT INTO skill_drafts (tenant, thread_id, name, text) VALUES ($1, $2, $3, $4)
    ON CONFLICT (tenant, thread_id, name) DO UPDATE SET text = excluded.text";

/// Locks the thread, so that it is not deleted meanwhile.
async fn put_draft(
    tx: &Tx<'_>,
    thread: ThreadId,
    name: &SkillName,
    text: &str,
    most: u32,
) -> Result<bool, StoreError> {
    threads::hold(tx, thread, None).await?;
    let others = tx.first(OTHER_DRAFTS, params![thread, name.as_str()]).await?;
    if others.map_or(Ok(0), |row| row.count(0))? >= u64::from(most) {
        return Ok(false);
    }
    tx.execute(PUT_DRAFT, params![thread, name.as_str(), text]).await?;
    Ok(true)
}

const DRAFT: &str = "SELECT text FROM skill_drafts WHERE tenant = $1 AND thread_id = $2 AND name = $3";

async fn draft(tx: &Tx<'_>, thread: ThreadId, name: &SkillName) -> Result<Option<String>, StoreError> {
    let row = tx.first(DRAFT, params![thread, name.as_str()]).await?;
    row.map(|row| row.text(0).map(str::to_owned)).transpose()
}

const COUNT: &str = "SELECT count(*) FROM skills WHERE tenant = $1";

const SAVE: &str = "
    INSERT INTO skills (tenant, name, description, text, user_id, created_at)
    VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (tenant, name) DO NOTHING";

const DELETE_DRAFT: &str = "DELETE FROM skill_drafts WHERE tenant = $1 AND thread_id = $2 AND name = $3";

async fn save(
    tx: &Tx<'_>,
    skill: &NewSkill,
    entry: &AuditEntry,
    most: u32,
) -> Result<SkillSaving, StoreError> {
    let NewSkill { name, description, text, user_id, thread_id } = skill;
    if let Some(thread) = thread_id {
        threads::hold(tx, *thread, None).await?;
    }
    let saving = match one(tx, name).await? {
        Some(known) => compare(&known, skill),
        None if tx.first(COUNT, &[]).await?.map_or(Ok(0), |row| row.count(0))? >= u64::from(most) => {
            SkillSaving::LimitReached
        }
        None => {
            let params = params![name.as_str(), description.as_str(), text.as_str(), user_id, tx.now()];
            match tx.execute(SAVE, params).await? {
                // Another transaction has saved the name since it was read.
                0 => one(tx, name).await?.map_or(SkillSaving::NameTaken, |known| compare(&known, skill)),
                _ => {
                    tx.audit(entry)?;
                    SkillSaving::Saved
                }
            }
        }
    };
    if let (SkillSaving::Saved | SkillSaving::AlreadySaved, Some(thread)) = (saving, *thread_id) {
        tx.execute(DELETE_DRAFT, params![thread, name.as_str()]).await?;
    }
    Ok(saving)
}

fn compare(known: &StoredSkill, skill: &NewSkill) -> SkillSaving {
    if known.text == skill.text { SkillSaving::AlreadySaved } else { SkillSaving::NameTaken }
}

const LIST: &str = "SELECT name, description FROM skills WHERE tenant = $1";

async fn list(tx: &Tx<'_>) -> Result<Vec<SkillSummary>, StoreError> {
    let rows = tx.query(LIST, &[]).await?;
    let mut skills: Vec<SkillSummary> = rows
        .iter()
        .map(|row| Ok(SkillSummary { name: parse(row, 0)?, description: row.text(1)?.to_owned() }))
        .collect::<Result<_, StoreError>>()?;
    // Sorted here: the order of a database may depend on its language.
    skills.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(skills)
}

const ONE: &str = "SELECT name, description, text, created_at FROM skills WHERE tenant = $1 AND name = $2";

async fn one(tx: &Tx<'_>, name: &SkillName) -> Result<Option<StoredSkill>, StoreError> {
    let Some(row) = tx.first(ONE, params![name.as_str()]).await? else { return Ok(None) };
    Ok(Some(StoredSkill {
        name: parse(&row, 0)?,
        description: row.text(1)?.to_owned(),
        text: row.text(2)?.to_owned(),
        created_at: row.time(3)?,
    }))
}

fn parse(row: &Row, at: usize) -> Result<SkillName, StoreError> {
    let name = SkillName::parse(row.text(at)?);
    name.map_err(|_| StoreError::Unreadable("the name of a skill is not valid".to_owned()))
}

async fn delete(tx: &Tx<'_>, name: &SkillName, entry: &AuditEntry) -> Result<bool, StoreError> {
    let sql = "DELETE FROM skills WHERE tenant = $1 AND name = $2";
    let is_deleted = tx.execute(sql, params![name.as_str()]).await? > 0;
    if is_deleted {
        tx.audit(entry)?;
    }
    Ok(is_deleted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn no_skill_is_read_to_find_another() {
        for sql in [ONE, DRAFT, OTHER_DRAFTS, DELETE_DRAFT, LIST, COUNT] {
            let plan = plan(sql);
            assert!(plan.iter().all(|line| line.starts_with("SEARCH ")), "{sql}: {plan:?}");
        }
    }
}
