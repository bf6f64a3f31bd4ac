//! Agents that people of a tenant created, and their drafts.

use baton_core::store::{
    AgentDraft, AgentSaving, AgentSnapshot, AuditEntry, CreatedAgents, NewAgent, Pending, StoredAgent,
};
use baton_core::{AgentName, StoreError, ThreadId};

use crate::closing::know_tenant;
use crate::job::JobSubject;
use crate::tenant::Tenant;
use crate::threads;
use crate::tx::Tx;
use crate::value::{Row, params};

impl CreatedAgents for Tenant {
    fn put_agent_draft(
        &self,
        thread: ThreadId,
        name: &AgentName,
        draft: AgentDraft,
        most: u32,
    ) -> Pending<'_, bool> {
        let input = (thread, name.clone(), draft, most);
        self.write(JobSubject::Thread(thread), input, |tx, (thread, name, draft, most)| {
            Box::pin(put_draft(tx, *thread, name, draft, *most))
        })
    }

    fn agent_draft(&self, thread: ThreadId, name: &AgentName) -> Pending<'_, Option<AgentDraft>> {
        self.read((thread, name.clone()), |tx, (thread, name)| Box::pin(draft(tx, *thread, name)))
    }

    fn save_agent(&self, agent: NewAgent, entry: AuditEntry, most: u32) -> Pending<'_, AgentSaving> {
        let about = agent.thread_id.map_or(JobSubject::Tenant, JobSubject::Thread);
        self.write(about, (agent, entry, most), |tx, (agent, entry, most)| {
            Box::pin(save(tx, agent, entry, *most))
        })
    }

    fn agent_snapshot(&self, known: Option<u64>) -> Pending<'_, Option<AgentSnapshot>> {
        self.read(known, |tx, known| Box::pin(snapshot(tx, *known)))
    }

    fn created_agent(&self, name: &AgentName) -> Pending<'_, Option<StoredAgent>> {
        self.read(name.clone(), |tx, name| Box::pin(one(tx, name)))
    }

    fn delete_agent(&self, name: &AgentName, entry: AuditEntry) -> Pending<'_, bool> {
        self.write(JobSubject::Tenant, (name.clone(), entry), |tx, (name, entry)| {
            Box::pin(delete(tx, name, entry))
        })
    }
}

const OTHER_DRAFTS: &str =
    "SELECT count(*) FROM agent_drafts WHERE tenant = $1 AND thread_id = $2 AND name <> $3";

const PUT_DRAFT: &str = "
    INSERT INTO agent_drafts (tenant, thread_id, name, text, replaces) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT (tenant, thread_id, name) DO UPDATE SET text = excluded.text, replaces = excluded.replaces";

/// Locks the thread, so that it is not deleted meanwhile.
async fn put_draft(
    tx: &Tx<'_>,
    thread: ThreadId,
    name: &AgentName,
    draft: &AgentDraft,
    most: u32,
) -> Result<bool, StoreError> {
    threads::hold(tx, thread, None).await?;
    let others = tx.first(OTHER_DRAFTS, params![thread, name]).await?;
    if others.map_or(Ok(0), |row| row.count(0))? >= u64::from(most) {
        return Ok(false);
    }
    let AgentDraft { text, replaces } = draft;
    tx.execute(PUT_DRAFT, params![thread, name, text.as_str(), replaces.as_deref()]).await?;
    Ok(true)
}

const DRAFT: &str =
    "SELECT text, replaces FROM agent_drafts WHERE tenant = $1 AND thread_id = $2 AND name = $3";

async fn draft(tx: &Tx<'_>, thread: ThreadId, name: &AgentName) -> Result<Option<AgentDraft>, StoreError> {
    let Some(row) = tx.first(DRAFT, params![thread, name]).await? else { return Ok(None) };
    let replaces = row.optional(1, Row::text)?.map(str::to_owned);
    Ok(Some(AgentDraft { text: row.text(0)?.to_owned(), replaces }))
}

const COUNT: &str = "SELECT count(*) FROM created_agents WHERE tenant = $1";

const INSERT: &str = "
    INSERT INTO created_agents (tenant, name, text, user_id, created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $5)
    ON CONFLICT (tenant, name) DO NOTHING";

/// Nothing if another transaction has changed it since it was read.
const UPDATE: &str = "
    UPDATE created_agents SET text = $3, user_id = $4, updated_at = $5 WHERE tenant = $1 AND name = $2 AND text = $6";

const DELETE_DRAFT: &str = "DELETE FROM agent_drafts WHERE tenant = $1 AND thread_id = $2 AND name = $3";

const RAISE_VERSION: &str = "
    INSERT INTO agent_versions (tenant, version) VALUES ($1, 1)
    ON CONFLICT (tenant) DO UPDATE SET version = agent_versions.version + 1";

async fn save(
    tx: &Tx<'_>,
    agent: &NewAgent,
    entry: &AuditEntry,
    most: u32,
) -> Result<AgentSaving, StoreError> {
    if let Some(thread) = agent.thread_id {
        threads::hold(tx, thread, None).await?;
    }
    let saving = match one(tx, &agent.name).await? {
        Some(known) if known.text == agent.text => AgentSaving::AlreadySaved,
        Some(known) if agent.replaces.as_ref() == Some(&known.text) => write(tx, agent, entry).await?,
        Some(_) => AgentSaving::Changed,
        // The agent to change was deleted meanwhile.
        None if agent.replaces.is_some() => AgentSaving::Changed,
        None if tx.first(COUNT, &[]).await?.map_or(Ok(0), |row| row.count(0))? >= u64::from(most) => {
            AgentSaving::LimitReached
        }
        None => write(tx, agent, entry).await?,
    };
    if let (AgentSaving::Saved | AgentSaving::AlreadySaved, Some(thread)) = (saving, agent.thread_id) {
        tx.execute(DELETE_DRAFT, params![thread, &agent.name]).await?;
    }
    Ok(saving)
}

/// Writes a new agent, or a new text of one.
async fn write(tx: &Tx<'_>, agent: &NewAgent, entry: &AuditEntry) -> Result<AgentSaving, StoreError> {
    let NewAgent { name, text, replaces, user_id, .. } = agent;
    let written = match replaces {
        None => tx.execute(INSERT, params![name, text.as_str(), user_id, tx.now()]).await?,
        Some(before) => {
            tx.execute(UPDATE, params![name, text.as_str(), user_id, tx.now(), before.as_str()]).await?
        }
    };
    if written == 0 {
        let now = one(tx, name).await?;
        let is_same = now.is_some_and(|now| now.text == *text);
        return Ok(if is_same { AgentSaving::AlreadySaved } else { AgentSaving::Changed });
    }
    know_tenant(tx).await?;
    tx.execute(RAISE_VERSION, &[]).await?;
    tx.audit(entry)?;
    Ok(AgentSaving::Saved)
}

const VERSION: &str = "SELECT version FROM agent_versions WHERE tenant = $1";

const LIST: &str = "SELECT name, text, created_at, updated_at FROM created_agents WHERE tenant = $1";

/// Reads the version first: if an agent changes in between, the version is too old, and the next look finds another one.
async fn snapshot(tx: &Tx<'_>, known: Option<u64>) -> Result<Option<AgentSnapshot>, StoreError> {
    let version = tx.first(VERSION, &[]).await?.map_or(Ok(0), |row| row.count(0))?;
    if known == Some(version) {
        return Ok(None);
    }
    let rows = tx.query(LIST, &[]).await?;
    let mut agents = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    // Sorted here: the order of a database may depend on its language.
    agents.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(Some(AgentSnapshot { version, agents }))
}

const ONE: &str =
    "SELECT name, text, created_at, updated_at FROM created_agents WHERE tenant = $1 AND name = $2";

async fn one(tx: &Tx<'_>, name: &AgentName) -> Result<Option<StoredAgent>, StoreError> {
    tx.first(ONE, params![name]).await?.as_ref().map(read).transpose()
}

fn read(row: &Row) -> Result<StoredAgent, StoreError> {
    Ok(StoredAgent {
        name: row.parse(0)?,
        text: row.text(1)?.to_owned(),
        created_at: row.time(2)?,
        updated_at: row.time(3)?,
    })
}

async fn delete(tx: &Tx<'_>, name: &AgentName, entry: &AuditEntry) -> Result<bool, StoreError> {
    let sql = "DELETE FROM created_agents WHERE tenant = $1 AND name = $2";
    let is_deleted = tx.execute(sql, params![name]).await? > 0;
    if is_deleted {
        tx.execute(RAISE_VERSION, &[]).await?;
        tx.audit(entry)?;
    }
    Ok(is_deleted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threads::history::tests::plan;

    #[test]
    fn no_agent_is_read_to_find_another() {
        for sql in [ONE, DRAFT, OTHER_DRAFTS, DELETE_DRAFT, LIST, COUNT, VERSION] {
            let plan = plan(sql);
            assert!(plan.iter().all(|line| line.starts_with("SEARCH ")), "{sql}: {plan:?}");
        }
    }
}
