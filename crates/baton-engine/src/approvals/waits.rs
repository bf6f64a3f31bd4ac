//! What a run waits for.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use baton_core::store::{Approval, ApprovalRequest, ApprovalStatus, Step, StepKind, StepState};
use baton_core::{RunId, TenantStore};
use uuid::Uuid;

use super::request::WAIT;
use crate::failure::Failure;

/// Path segment of the step that says that the run has parked: `assistant/parked:1`.
const PARKED: &str = "parked:";

/// The open waits of a run, and the decisions that were made before its claim.
#[derive(Debug, Default)]
pub(crate) struct RunWaits {
    /// The run's approvals, read when the first of its waits is found again.
    decided: OnceLock<HashMap<Uuid, Approval>>,
    /// In the order in which the calls were found waiting.
    open: Mutex<Vec<ApprovalRequest>>,
    /// Approvals that earlier attempts asked for, without a recorded outcome.
    asked_before: Mutex<Vec<ApprovalRequest>>,
    /// How often the run has parked.
    parked: u32,
    is_resumed: bool,
}

impl RunWaits {
    /// The waits that `steps` of earlier attempts recorded.
    pub(crate) fn after(steps: &[Step]) -> Self {
        let is_open = |step: &&Step| step.kind == StepKind::Wait && step.state == StepState::Started;
        let asked = steps.iter().filter(is_open).filter(|step| step.path.rsplit('/').next() == Some(WAIT));
        let asked_before: Vec<ApprovalRequest> = asked.filter_map(|step| step.data.read().ok()).collect();
        let parked = |step: &&Step| {
            let last = step.path.rsplit('/').next().unwrap_or_default();
            step.kind == StepKind::Wait && last.starts_with(PARKED)
        };
        let is_resumed = steps.iter().filter(parked).any(|step| step.state == StepState::Started);
        let parked = u32::try_from(steps.iter().filter(parked).count()).unwrap_or(u32::MAX);
        Self { asked_before: Mutex::new(asked_before), parked, is_resumed, ..Self::default() }
    }

    /// Whether this claim continues a run that had parked, as opposed to one whose process died.
    pub(crate) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// The path segment of the last time the run parked, or of the next one.
    pub(crate) fn parked_segment(&self, next: bool) -> String {
        format!("{PARKED}{}", self.parked + u32::from(next))
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ApprovalRequest>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock_asked_before(&self) -> MutexGuard<'_, Vec<ApprovalRequest>> {
        self.asked_before.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The outcome of an approval that an earlier attempt asked for is recorded.
    pub(super) fn settle(&self, approval: Uuid) {
        self.lock_asked_before().retain(|earlier| earlier.approval_id != approval);
    }

    /// Adds a wait.
    pub(super) fn open(&self, request: ApprovalRequest) {
        let mut open = self.lock();
        if !open.iter().any(|known| known.approval_id == request.approval_id) {
            open.push(request);
        }
    }

    /// Removes the waits at and below a path whose result is no longer needed, and returns them.
    pub(crate) fn withdraw(&self, place: &str) -> Vec<ApprovalRequest> {
        let is_gone = |one: &ApprovalRequest| baton_core::event::is_within(&one.path, place);
        self.lock_asked_before().retain(|earlier| !is_gone(earlier));
        self.lock().extract_if(.., |one| is_gone(one)).collect()
    }

    /// What the run waits for now.
    pub(super) fn all_open(&self) -> Vec<ApprovalRequest> {
        self.lock().clone()
    }

    /// Every approval without a recorded outcome, of this attempt and of earlier ones.
    pub(super) fn unsettled(&self) -> Vec<ApprovalRequest> {
        let mut all = self.all_open();
        for earlier in self.lock_asked_before().iter() {
            if !all.iter().any(|known| known.approval_id == earlier.approval_id) {
                all.push(earlier.clone());
            }
        }
        all
    }

    /// An approval as it was when the run was claimed, or when it expired since. `None` if the store does not know it.
    pub(super) async fn approval(
        &self,
        store: &dyn TenantStore,
        run: RunId,
        approval: Uuid,
    ) -> Result<Option<Approval>, Failure> {
        if self.decided.get().is_none() {
            let all = store.run_approvals(run).await?;
            let _ = self.decided.set(all.into_iter().map(|one| (one.request.approval_id, one)).collect());
        }
        let Some(found) = self.decided.get().and_then(|all| all.get(&approval)) else { return Ok(None) };
        // Its time is over, but a decision may have been stored before that: the store decides which it was.
        let is_overdue =
            found.outcome.status == ApprovalStatus::Expired && found.outcome.decided_at.is_none();
        Ok(Some(if is_overdue { store.expire(approval).await? } else { found.clone() }))
    }
}
