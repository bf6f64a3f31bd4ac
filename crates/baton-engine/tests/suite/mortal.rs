//! A store that ends its process: at a certain write, before it is made or after, nothing is ever heard of it again. It can also pause
//! its process there.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use baton_core::agent::SkillName;
use baton_core::budget::BudgetKey;
use baton_core::event::Event;
use baton_core::ledger::LedgerRow;
use baton_core::store::approval::{
    Approval, ApprovalQuery, Approvals, Decision, RememberedDecision, Revocation,
};
use baton_core::store::artifact::{Artifact, Artifacts};
use baton_core::store::audit::{Audit, AuditEntry, AuditQuery, AuditScope, AuditVerdict, Audited};
use baton_core::store::cache::Cache;
use baton_core::store::embedding::{Embedding, Embeddings, SectionHash};
use baton_core::store::feedback::{Feedback, Feedbacks};
use baton_core::store::key::{ApiKey, Keys};
use baton_core::store::notification::{NextNotification, Notifications, TakenNotification};
use baton_core::store::output::{OutputHandle, OutputSlice, Outputs};
use baton_core::store::pattern::{Hop, Pattern, Patterns};
use baton_core::store::push::{PushConfig, PushConfigs, PushKey, PushOutcome, TakenPush};
use baton_core::store::run::{
    AcceptedRun, Cancel, Idempotency, NewRun, RunQuery, RunRecord, RunStatus, Runs, SessionRecord,
};
use baton_core::store::thread::{MessageQuery, Thread, ThreadMessage, Threads};
use baton_core::store::usage::{UsageLine, UsageQuery, Usages};
use baton_core::store::work::{Append, Appended, Claim, Claimed, Owner, RunStart, StartedRun, Step, Work};
use baton_core::store::{
    AgentDraft, AgentSaving, AgentSnapshot, AgentsVersion, BudgetAccounts, BudgetState, CreatedAgents,
    CreatedSkills, Erasure, HandoffSession, Handoffs, LeaseRenewal, Lifecycle, NewAgent, NewHandoff,
    NewSkill, Page, PageRequest, Pending, Reservation, Reserved, Retention, SkillSaving, SkillSummary, Store,
    StoreError, StoreLoad, StoredAgent, StoredSkill, Swept,
};
use baton_core::{
    AgentName, HandoffId, MessageId, RunId, SessionId, TenantId, TenantStore, ThreadId, UserId,
};
use jiff::Timestamp;
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long a process lives, in writes.
#[derive(Debug)]
pub(super) struct Life {
    left: AtomicU32,
    /// Whether the last write is made.
    is_last_made: bool,
    pub(super) end: CancellationToken,
    /// Set if the process is paused instead of ended; cancelled when it resumes.
    resumed: Option<CancellationToken>,
    /// Writes to budgets that are made, but whose answers are lost.
    lost_answers: AtomicU32,
}

impl Life {
    pub(super) fn of(writes: u32, is_last_made: bool) -> Arc<Self> {
        let (left, end) = (AtomicU32::new(writes), CancellationToken::new());
        Arc::new(Self { left, is_last_made, end, resumed: None, lost_answers: AtomicU32::new(0) })
    }

    /// Pauses the process before its write of this number, until `resumed` is cancelled.
    pub(super) fn paused_at(writes: u32, resumed: CancellationToken) -> Arc<Self> {
        let (left, end) = (AtomicU32::new(writes), CancellationToken::new());
        let lost_answers = AtomicU32::new(0);
        Arc::new(Self { left, is_last_made: false, end, resumed: Some(resumed), lost_answers })
    }

    /// The process lives on, but the first answers of its budgets are lost.
    pub(super) fn losing(answers: u32) -> Arc<Self> {
        let (left, end) = (AtomicU32::new(u32::MAX), CancellationToken::new());
        Arc::new(Self {
            left,
            is_last_made: false,
            end,
            resumed: None,
            lost_answers: AtomicU32::new(answers),
        })
    }

    /// Like [`Life::write`], and loses the answer if it is one of the first.
    async fn write_budget<'a, T>(&self, write: impl FnOnce() -> Pending<'a, T>) -> Result<T, StoreError> {
        let written = self.write(write).await;
        let lost =
            self.lost_answers.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1));
        match lost {
            Ok(_) => Err(StoreError::Unavailable("the connection was lost".to_owned())),
            Err(_) => written,
        }
    }

    async fn stopped(&self) {
        match &self.resumed {
            Some(resumed) => resumed.cancelled().await,
            None => pending().await,
        }
    }

    async fn write<'a, T>(&self, write: impl FnOnce() -> Pending<'a, T>) -> Result<T, StoreError> {
        match self.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)) {
            Ok(left) if left > 1 => return write().await,
            Ok(_) if self.is_last_made => {
                let _ = write().await;
                self.end.cancel();
                return pending().await;
            }
            Ok(_) => self.end.cancel(),
            Err(_) => {}
        }
        self.stopped().await;
        write().await
    }

    fn read<'a, T: Send + 'a>(&'a self, read: Pending<'a, T>) -> Pending<'a, T> {
        Box::pin(async move {
            if self.end.is_cancelled() {
                self.stopped().await;
            }
            read.await
        })
    }
}

#[derive(Debug)]
pub(super) struct Mortal {
    pub(super) inner: Arc<dyn Store>,
    pub(super) life: Arc<Life>,
}

impl Store for Mortal {
    fn tenant(&self, tenant: &TenantId) -> Arc<dyn TenantStore> {
        Arc::new(MortalTenant { inner: self.inner.tenant(tenant), life: Arc::clone(&self.life) })
    }

    fn tenants(&self) -> Pending<'_, Vec<TenantId>> {
        self.inner.tenants()
    }

    fn agent_versions(&self) -> Pending<'_, Vec<AgentsVersion>> {
        self.inner.agent_versions()
    }

    fn beat(&self, owner: &Owner, lease: Duration) -> Pending<'_, LeaseRenewal> {
        self.life.read(self.inner.beat(owner, lease))
    }

    fn due(&self, limit: u32) -> Pending<'_, Vec<(TenantId, ThreadId)>> {
        self.inner.due(limit)
    }

    fn due_notifications(&self, limit: u32) -> Pending<'_, Vec<(TenantId, Uuid)>> {
        self.inner.due_notifications(limit)
    }

    fn due_push(&self, limit: u32) -> Pending<'_, Vec<(TenantId, PushKey)>> {
        self.inner.due_push(limit)
    }

    fn overdue_approvals(&self, limit: u32) -> Pending<'_, Vec<(TenantId, Uuid)>> {
        self.inner.overdue_approvals(limit)
    }

    fn owners(&self) -> Pending<'_, Vec<Owner>> {
        self.inner.owners()
    }

    fn release(&self, owner: &Owner) -> Pending<'_, u64> {
        self.inner.release(owner)
    }

    fn key(&self, hash: &str) -> Pending<'_, Option<(TenantId, ApiKey)>> {
        self.inner.key(hash)
    }

    fn seal_audit(&self) -> Pending<'_, u64> {
        self.life.read(self.inner.seal_audit())
    }

    fn take_duty(&self, duty: &'static str, owner: &Owner, lease: Duration) -> Pending<'_, bool> {
        self.life.read(self.inner.take_duty(duty, owner, lease))
    }

    fn purge_files(&self) -> Pending<'_, ()> {
        self.life.read(self.inner.purge_files())
    }

    fn ping(&self) -> Pending<'_, ()> {
        self.life.read(self.inner.ping())
    }

    fn load(&self) -> StoreLoad {
        self.inner.load()
    }

    fn close(&self) -> Pending<'_, ()> {
        self.inner.close()
    }
}

#[derive(Debug)]
struct MortalTenant {
    inner: Arc<dyn TenantStore>,
    life: Arc<Life>,
}

impl TenantStore for MortalTenant {
    fn tenant(&self) -> &TenantId {
        self.inner.tenant()
    }

    fn audited(&self, entry: AuditEntry) -> Arc<dyn TenantStore> {
        Arc::new(Self { inner: self.inner.audited(entry), life: Arc::clone(&self.life) })
    }

    fn sweep(&self, retention: Retention) -> Pending<'_, Swept> {
        self.life.read(self.inner.sweep(retention))
    }
}

impl Lifecycle for MortalTenant {
    fn expired_threads(&self, before: Timestamp, limit: u32) -> Pending<'_, Vec<ThreadId>> {
        self.life.read(self.inner.expired_threads(before, limit))
    }
    fn delete_expired_thread(&self, thread: ThreadId, before: Timestamp) -> Pending<'_, bool> {
        self.life.read(self.inner.delete_expired_thread(thread, before))
    }
    fn finish_deletions(&self) -> Pending<'_, ()> {
        self.life.read(self.inner.finish_deletions())
    }
    fn delete_events(
        &self,
        before: Timestamp,
        after: Option<RunId>,
        limit: u32,
    ) -> Pending<'_, Option<RunId>> {
        self.life.read(self.inner.delete_events(before, after, limit))
    }
    fn expired_audit(&self, before: Timestamp) -> Pending<'_, Option<u64>> {
        self.life.read(self.inner.expired_audit(before))
    }
    fn truncate_audit(&self, before: Timestamp, seal: u64) -> Pending<'_, bool> {
        self.life.read(self.inner.truncate_audit(before, seal))
    }
    fn begin_erasure(&self, user: &UserId, entry: AuditEntry) -> Pending<'_, Erasure> {
        self.life.read(self.inner.begin_erasure(user, entry))
    }
    fn open_erasures(&self) -> Pending<'_, Vec<Erasure>> {
        self.life.read(self.inner.open_erasures())
    }
    fn finish_erasure(&self, erasure: Uuid) -> Pending<'_, ()> {
        self.life.read(self.inner.finish_erasure(erasure))
    }
    fn set_file_bytes(&self, thread: ThreadId, bytes: u64) -> Pending<'_, ()> {
        self.life.read(self.inner.set_file_bytes(thread, bytes))
    }
    fn stored_bytes(&self, user: Option<&UserId>) -> Pending<'_, u64> {
        self.life.read(self.inner.stored_bytes(user))
    }
}

impl Approvals for MortalTenant {
    fn approval(&self, approval: Uuid) -> Pending<'_, Approval> {
        self.life.read(self.inner.approval(approval))
    }
    fn approvals(&self, query: ApprovalQuery, page: PageRequest) -> Pending<'_, Page<Approval>> {
        self.life.read(self.inner.approvals(query, page))
    }
    fn run_approvals(&self, run: RunId) -> Pending<'_, Vec<Approval>> {
        self.life.read(self.inner.run_approvals(run))
    }
    fn open_approvals(&self, thread: ThreadId) -> Pending<'_, Vec<Approval>> {
        self.life.read(self.inner.open_approvals(thread))
    }
    fn remembered_decisions(&self, thread: ThreadId) -> Pending<'_, Vec<RememberedDecision>> {
        self.life.read(self.inner.remembered_decisions(thread))
    }
    fn forget_decisions(&self, revocation: Revocation) -> Pending<'_, bool> {
        self.life.read(self.inner.forget_decisions(revocation))
    }
    fn decide(&self, decision: Decision) -> Pending<'_, Approval> {
        self.life.read(self.inner.decide(decision))
    }
    fn expire(&self, approval: Uuid) -> Pending<'_, Approval> {
        self.life.read(self.inner.expire(approval))
    }
}

impl Notifications for MortalTenant {
    fn take_notification(&self, approval: Uuid, lease: Duration) -> Pending<'_, Option<TakenNotification>> {
        self.life.read(self.inner.take_notification(approval, lease))
    }
    fn settle_notification(&self, approval: Uuid, next: NextNotification) -> Pending<'_, ()> {
        self.life.read(self.inner.settle_notification(approval, next))
    }
}

impl PushConfigs for MortalTenant {
    fn put_push_config(&self, config: PushConfig, most: u32) -> Pending<'_, ()> {
        self.life.read(self.inner.put_push_config(config, most))
    }
    fn push_configs(&self, task: RunId) -> Pending<'_, Vec<PushConfig>> {
        self.life.read(self.inner.push_configs(task))
    }
    fn delete_push_config(&self, key: PushKey) -> Pending<'_, bool> {
        self.life.read(self.inner.delete_push_config(key))
    }
    fn take_push(&self, key: PushKey, lease: Duration) -> Pending<'_, Option<TakenPush>> {
        self.life.read(self.inner.take_push(key, lease))
    }
    fn settle_push(&self, key: PushKey, until: Timestamp, outcome: PushOutcome) -> Pending<'_, ()> {
        self.life.read(self.inner.settle_push(key, until, outcome))
    }
}

impl Artifacts for MortalTenant {
    fn put_artifact(&self, artifact: Artifact, user: Option<&UserId>, bytes: Vec<u8>) -> Pending<'_, ()> {
        self.life.read(self.inner.put_artifact(artifact, user, bytes))
    }
    fn artifact(&self, artifact: Uuid) -> Pending<'_, (Artifact, Vec<u8>)> {
        self.life.read(self.inner.artifact(artifact))
    }
    fn artifacts(&self, thread: ThreadId) -> Pending<'_, Vec<Artifact>> {
        self.life.read(self.inner.artifacts(thread))
    }
}

impl Audit for MortalTenant {
    fn record(&self, entry: AuditEntry) -> Pending<'_, ()> {
        self.life.read(self.inner.record(entry))
    }
    fn audit(&self, query: AuditQuery, page: PageRequest) -> Pending<'_, Page<Audited>> {
        self.life.read(self.inner.audit(query, page))
    }
    fn verify_audit(&self, scope: AuditScope) -> Pending<'_, AuditVerdict> {
        self.life.read(self.inner.verify_audit(scope))
    }
    fn sign_audit(&self) -> Pending<'_, AuditVerdict> {
        self.life.read(self.inner.sign_audit())
    }
}

impl Cache for MortalTenant {
    fn cached(&self, key: &str) -> Pending<'_, Option<Value>> {
        self.life.read(self.inner.cached(key))
    }
    fn keep(&self, key: &str, value: Value, expires_at: Timestamp) -> Pending<'_, ()> {
        self.life.read(self.inner.keep(key, value, expires_at))
    }
}

impl Embeddings for MortalTenant {
    fn embeddings(&self, model: &str, after: Option<SectionHash>, limit: u32) -> Pending<'_, Vec<Embedding>> {
        self.life.read(self.inner.embeddings(model, after, limit))
    }
    fn put_embeddings(&self, model: &str, embeddings: Vec<Embedding>) -> Pending<'_, ()> {
        self.life.read(self.inner.put_embeddings(model, embeddings))
    }
    fn delete_embeddings(&self, model: &str, sections: Vec<SectionHash>) -> Pending<'_, ()> {
        self.life.read(self.inner.delete_embeddings(model, sections))
    }
}

impl Feedbacks for MortalTenant {
    fn put_feedback(&self, feedback: Feedback) -> Pending<'_, ()> {
        self.life.read(self.inner.put_feedback(feedback))
    }
    fn feedback(&self, message: MessageId) -> Pending<'_, Vec<Feedback>> {
        self.life.read(self.inner.feedback(message))
    }
    fn ratings(
        &self,
        thread: ThreadId,
        user: &UserId,
        numbers: std::ops::RangeInclusive<u64>,
    ) -> Pending<'_, Vec<(MessageId, baton_core::store::Rating)>> {
        self.life.read(self.inner.ratings(thread, user, numbers))
    }
    fn message(&self, message: MessageId) -> Pending<'_, (ThreadId, ThreadMessage)> {
        self.life.read(self.inner.message(message))
    }
}

impl Handoffs for MortalTenant {
    fn open_handoff(&self, handoff: NewHandoff) -> Pending<'_, HandoffSession> {
        Box::pin(async move { self.life.write(|| self.inner.open_handoff(handoff)).await })
    }
    fn handoff(&self, handoff: HandoffId) -> Pending<'_, HandoffSession> {
        self.life.read(self.inner.handoff(handoff))
    }
    fn open_handoff_of(&self, thread: ThreadId) -> Pending<'_, Option<HandoffSession>> {
        self.life.read(self.inner.open_handoff_of(thread))
    }
    fn open_handoffs_of(&self, threads: &[ThreadId]) -> Pending<'_, Vec<HandoffSession>> {
        self.life.read(self.inner.open_handoffs_of(threads))
    }
    fn handoffs(&self, thread: ThreadId) -> Pending<'_, Vec<HandoffSession>> {
        self.life.read(self.inner.handoffs(thread))
    }
    fn resumable_handoffs_of(&self, user: &UserId) -> Pending<'_, Vec<HandoffSession>> {
        self.life.read(self.inner.resumable_handoffs_of(user))
    }

    fn resumable_handoffs(&self, thread: ThreadId) -> Pending<'_, Vec<HandoffSession>> {
        self.life.read(self.inner.resumable_handoffs(thread))
    }
    fn expired_handoffs(&self, limit: u32) -> Pending<'_, Vec<HandoffSession>> {
        self.life.read(self.inner.expired_handoffs(limit))
    }
    fn completed_durations(&self, target: &AgentName, limit: u32) -> Pending<'_, Vec<Duration>> {
        self.life.read(self.inner.completed_durations(target, limit))
    }
    fn update_handoff(&self, changed: HandoffSession) -> Pending<'_, HandoffSession> {
        Box::pin(async move { self.life.write(|| self.inner.update_handoff(changed)).await })
    }
    fn queue_handoff(&self, handoff: HandoffId, next: Value) -> Pending<'_, bool> {
        Box::pin(async move { self.life.write(|| self.inner.queue_handoff(handoff, next)).await })
    }
    fn unqueue_handoff(&self, handoff: HandoffId) -> Pending<'_, ()> {
        Box::pin(async move { self.life.write(|| self.inner.unqueue_handoff(handoff)).await })
    }
}

impl Keys for MortalTenant {
    fn put_key(&self, key: ApiKey, hash: &str) -> Pending<'_, ()> {
        self.life.read(self.inner.put_key(key, hash))
    }
    fn keys(&self) -> Pending<'_, Vec<ApiKey>> {
        self.life.read(self.inner.keys())
    }
    fn revoke_key(&self, key: Uuid) -> Pending<'_, ApiKey> {
        self.life.read(self.inner.revoke_key(key))
    }
    fn touch_keys(&self, used: Vec<(Uuid, Timestamp)>) -> Pending<'_, ()> {
        self.life.read(self.inner.touch_keys(used))
    }
}

impl Outputs for MortalTenant {
    fn output_slice(
        &self,
        run: RunId,
        handle: OutputHandle,
        offset: u64,
        limit: u32,
    ) -> Pending<'_, OutputSlice> {
        self.life.read(self.inner.output_slice(run, handle, offset, limit))
    }
    fn spooled_bytes(&self) -> Pending<'_, u64> {
        self.life.read(self.inner.spooled_bytes())
    }
}

impl CreatedSkills for MortalTenant {
    fn put_skill_draft(
        &self,
        thread: ThreadId,
        name: &SkillName,
        text: &str,
        most: u32,
    ) -> Pending<'_, bool> {
        let (name, text) = (name.clone(), text.to_owned());
        Box::pin(
            async move { self.life.write(|| self.inner.put_skill_draft(thread, &name, &text, most)).await },
        )
    }
    fn skill_draft(&self, thread: ThreadId, name: &SkillName) -> Pending<'_, Option<String>> {
        self.life.read(self.inner.skill_draft(thread, name))
    }
    fn save_skill(&self, skill: NewSkill, entry: AuditEntry, most: u32) -> Pending<'_, SkillSaving> {
        Box::pin(async move { self.life.write(|| self.inner.save_skill(skill, entry, most)).await })
    }
    fn skills(&self) -> Pending<'_, Vec<SkillSummary>> {
        self.life.read(self.inner.skills())
    }
    fn skill(&self, name: &SkillName) -> Pending<'_, Option<StoredSkill>> {
        self.life.read(self.inner.skill(name))
    }
    fn delete_skill(&self, name: &SkillName, entry: AuditEntry) -> Pending<'_, bool> {
        let name = name.clone();
        Box::pin(async move { self.life.write(|| self.inner.delete_skill(&name, entry)).await })
    }
}

impl CreatedAgents for MortalTenant {
    fn put_agent_draft(
        &self,
        thread: ThreadId,
        name: &AgentName,
        draft: AgentDraft,
        most: u32,
    ) -> Pending<'_, bool> {
        let name = name.clone();
        Box::pin(
            async move { self.life.write(|| self.inner.put_agent_draft(thread, &name, draft, most)).await },
        )
    }
    fn agent_draft(&self, thread: ThreadId, name: &AgentName) -> Pending<'_, Option<AgentDraft>> {
        self.life.read(self.inner.agent_draft(thread, name))
    }
    fn save_agent(&self, agent: NewAgent, entry: AuditEntry, most: u32) -> Pending<'_, AgentSaving> {
        Box::pin(async move { self.life.write(|| self.inner.save_agent(agent, entry, most)).await })
    }
    fn agent_snapshot(&self, known: Option<u64>) -> Pending<'_, Option<AgentSnapshot>> {
        self.life.read(self.inner.agent_snapshot(known))
    }
    fn created_agent(&self, name: &AgentName) -> Pending<'_, Option<StoredAgent>> {
        self.life.read(self.inner.created_agent(name))
    }
    fn delete_agent(&self, name: &AgentName, entry: AuditEntry) -> Pending<'_, bool> {
        let name = name.clone();
        Box::pin(async move { self.life.write(|| self.inner.delete_agent(&name, entry)).await })
    }
}

impl Patterns for MortalTenant {
    fn record_hop(&self, hop: Hop) -> Pending<'_, ()> {
        Box::pin(async move { self.life.write(|| self.inner.record_hop(hop)).await })
    }
    fn hops(&self, thread: ThreadId) -> Pending<'_, Vec<Hop>> {
        self.life.read(self.inner.hops(thread))
    }
    fn last_hops(&self, thread: ThreadId, limit: u32) -> Pending<'_, Vec<Hop>> {
        self.life.read(self.inner.last_hops(thread, limit))
    }
    fn patterns(&self) -> Pending<'_, Vec<Pattern>> {
        self.life.read(self.inner.patterns())
    }
    fn experience(&self) -> Pending<'_, Vec<baton_core::learning::Experience>> {
        self.life.read(self.inner.experience())
    }
    fn settle_hops(&self, before: Timestamp, limit: u32) -> Pending<'_, u64> {
        Box::pin(async move { self.life.write(|| self.inner.settle_hops(before, limit)).await })
    }
}

impl Runs for MortalTenant {
    fn accept(&self, run: NewRun) -> Pending<'_, AcceptedRun> {
        Box::pin(async move { self.life.write(|| self.inner.accept(run)).await })
    }
    fn accepted_before(&self, user: UserId, request: Idempotency) -> Pending<'_, Option<AcceptedRun>> {
        self.life.read(self.inner.accepted_before(user, request))
    }
    fn run(&self, run: RunId) -> Pending<'_, RunRecord> {
        self.life.read(self.inner.run(run))
    }
    fn runs(&self, query: RunQuery, page: PageRequest) -> Pending<'_, Page<RunRecord>> {
        self.life.read(self.inner.runs(query, page))
    }
    fn cancel_run(&self, run: RunId, how: Cancel) -> Pending<'_, RunStatus> {
        self.life.read(self.inner.cancel_run(run, how))
    }
    fn run_events(&self, run: RunId, after: u64, limit: u32) -> Pending<'_, Vec<Event>> {
        self.life.read(self.inner.run_events(run, after, limit))
    }
    fn ledger(&self, run: RunId) -> Pending<'_, Vec<LedgerRow>> {
        self.life.read(self.inner.ledger(run))
    }
    fn steps(&self, run: RunId) -> Pending<'_, Vec<Step>> {
        self.life.read(self.inner.steps(run))
    }
    fn sessions(&self, thread: Option<ThreadId>, page: PageRequest) -> Pending<'_, Page<SessionRecord>> {
        self.life.read(self.inner.sessions(thread, page))
    }
    fn run_sessions(&self, run: RunId) -> Pending<'_, Vec<SessionRecord>> {
        self.life.read(self.inner.run_sessions(run))
    }
    fn session(&self, session: &SessionId) -> Pending<'_, SessionRecord> {
        self.life.read(self.inner.session(session))
    }
}

impl Threads for MortalTenant {
    fn thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, Thread> {
        self.life.read(self.inner.thread(thread, user))
    }
    fn threads(&self, user: Option<&UserId>, page: PageRequest) -> Pending<'_, Page<Thread>> {
        self.life.read(self.inner.threads(user, page))
    }
    fn find_threads(
        &self,
        user: Option<&UserId>,
        text: &str,
        page: PageRequest,
    ) -> Pending<'_, Page<Thread>> {
        self.life.read(self.inner.find_threads(user, text, page))
    }
    fn rename_thread(&self, thread: ThreadId, user: Option<&UserId>, title: &str) -> Pending<'_, Thread> {
        self.life.read(self.inner.rename_thread(thread, user, title))
    }
    fn delete_thread(&self, thread: ThreadId, user: Option<&UserId>) -> Pending<'_, ()> {
        self.life.read(self.inner.delete_thread(thread, user))
    }
    fn messages(&self, thread: ThreadId, query: MessageQuery) -> Pending<'_, Vec<ThreadMessage>> {
        self.life.read(self.inner.messages(thread, query))
    }
    fn last_seqs(&self, threads: &[ThreadId]) -> Pending<'_, Vec<(ThreadId, u64)>> {
        self.life.read(self.inner.last_seqs(threads))
    }
    fn events(&self, thread: ThreadId, after: u64, limit: u32) -> Pending<'_, Vec<Event>> {
        self.life.read(self.inner.events(thread, after, limit))
    }
}

impl BudgetAccounts for MortalTenant {
    fn reserve(&self, reservation: Reservation) -> Pending<'_, Reserved> {
        Box::pin(async move { self.life.write_budget(|| self.inner.reserve(reservation)).await })
    }
    fn is_free(&self, reservation: Reservation) -> Pending<'_, bool> {
        self.life.read(self.inner.is_free(reservation))
    }
    fn release_reservations(&self, run: RunId) -> Pending<'_, ()> {
        Box::pin(async move { self.life.write_budget(|| self.inner.release_reservations(run)).await })
    }
    fn budget_states(&self, keys: Vec<BudgetKey>) -> Pending<'_, Vec<BudgetState>> {
        self.life.read(self.inner.budget_states(keys))
    }
}

impl Usages for MortalTenant {
    fn usage(&self, query: UsageQuery) -> Pending<'_, Vec<UsageLine>> {
        self.life.read(self.inner.usage(query))
    }
}

impl Work for MortalTenant {
    fn start(&self, run: NewRun, start: RunStart) -> Pending<'_, (AcceptedRun, Option<StartedRun>)> {
        Box::pin(async move { self.life.write(|| self.inner.start(run, start)).await })
    }
    fn claim(&self, thread: ThreadId, owner: &Owner) -> Pending<'_, Option<Claimed>> {
        let owner = owner.clone();
        Box::pin(async move { self.life.write(|| self.inner.claim(thread, &owner)).await })
    }
    fn claim_again(&self, thread: ThreadId, owner: &Owner) -> Pending<'_, Option<Claimed>> {
        let owner = owner.clone();
        Box::pin(async move { self.life.write(|| self.inner.claim_again(thread, &owner)).await })
    }
    fn abandon(&self, claim: &Claim) -> Pending<'_, ()> {
        self.life.read(self.inner.abandon(claim))
    }
    fn append(&self, claim: &Claim, append: Arc<Append>) -> Pending<'_, Appended> {
        let claim = claim.clone();
        Box::pin(async move { self.life.write(|| self.inner.append(&claim, append)).await })
    }
}
