//! The store as it should be, in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use baton_core::store::work::RunEnd;
use baton_core::store::{AcceptedRun, Append, Cancel, Claim, NewEvent, NewRun, OnBusy, RunStatus};
use baton_core::{EventKind, Message, Role, RunId, StoreError, TenantStore, ThreadId, UserId, Visibility};

use super::operation::Operation;
use crate::support::{message, owner};

/// A run of the model.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) id: RunId,
    pub(super) status: RunStatus,
    pub(super) cancel: Option<Cancel>,
}

/// A thread of the model.
#[derive(Debug)]
pub(super) struct Thread {
    pub(super) user: UserId,
    pub(super) messages: Vec<String>,
    /// What each says, or nothing for an end that the store wrote.
    pub(super) events: Vec<Option<String>>,
    pub(super) runs: Vec<Run>,
    pub(super) epoch: u64,
    /// The run at work, by its place, and how often its claim has appended.
    pub(super) active: Option<(usize, u64)>,
}

/// Tenants, the thread ids they share, and what each of them should find.
pub(super) struct World {
    pub(super) tenants: Vec<Arc<dyn TenantStore>>,
    pub(super) threads: Vec<ThreadId>,
    pub(super) model: BTreeMap<(usize, usize), Thread>,
    /// The last claim and the last run of each tenant in each thread, also after they are gone.
    pub(super) claims: BTreeMap<(usize, usize), (Claim, u64)>,
    pub(super) last_runs: BTreeMap<(usize, usize), RunId>,
    pub(super) counter: u64,
}

pub(super) fn user(is_bob: bool) -> UserId {
    if is_bob { "bob" } else { "ada" }.parse().unwrap()
}

impl Thread {
    fn is_busy(&self) -> Option<RunId> {
        let queued = self.runs.iter().find(|run| run.status == RunStatus::Queued);
        self.active.map(|(at, _)| &self.runs[at]).or(queued).map(|run| run.id)
    }

    /// The run right before the next one.
    fn last_in_line(&self) -> Option<RunId> {
        let queued = self.runs.iter().rev().find(|run| run.status == RunStatus::Queued);
        queued.or(self.active.map(|(at, _)| &self.runs[at])).map(|run| run.id)
    }
}

impl World {
    pub(super) fn new(tenants: Vec<Arc<dyn TenantStore>>, threads: Vec<ThreadId>) -> Self {
        let (model, claims, last_runs) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { tenants, threads, model, claims, last_runs, counter: 0 }
    }

    pub(super) async fn try_out(&mut self, operation: &Operation) {
        match *operation {
            Operation::Accept { tenant, thread, is_bob, on_busy } => {
                self.accept((tenant, thread), is_bob, on_busy).await;
            }
            Operation::Claim { tenant, thread } => self.claim((tenant, thread)).await,
            Operation::Append { tenant, of, thread, events, messages, ends } => {
                self.append(tenant, (of, thread), (events, messages, ends)).await;
            }
            Operation::Cancel { tenant, of, thread } => self.cancel(tenant, (of, thread)).await,
            Operation::ReadRun { tenant, of, thread } => self.read_run(tenant, (of, thread)).await,
            Operation::ReadThread { tenant, thread, is_bob } => {
                self.read_thread((tenant, thread), is_bob).await;
            }
            Operation::List { tenant } => self.list(tenant).await,
            Operation::Delete { tenant, thread, is_bob } => self.delete((tenant, thread), is_bob).await,
        }
    }

    /// A text that occurs nowhere else.
    fn text(&mut self) -> String {
        self.counter += 1;
        format!("text {}", self.counter)
    }

    async fn accept(&mut self, at: (usize, usize), is_bob: bool, on_busy: OnBusy) {
        let text = self.text();
        let new = NewRun { user_id: user(is_bob), on_busy, ..message(self.threads[at.1], &text) };
        let accepted = self.tenants[at.0].accept(new.clone()).await;
        let thread = self.model.entry(at).or_insert_with(|| Thread {
            user: user(is_bob),
            messages: Vec::new(),
            events: Vec::new(),
            runs: Vec::new(),
            epoch: 0,
            active: None,
        });
        let behind = thread.last_in_line();
        if thread.user != new.user_id {
            return assert_eq!(accepted, Err(StoreError::ThreadNotFound));
        }
        if let (OnBusy::Reject, Some(busy)) = (on_busy, thread.is_busy()) {
            return assert_eq!(accepted, Err(StoreError::ThreadBusy(busy)));
        }
        if let (OnBusy::Interrupt, Some((active, _))) = (on_busy, thread.active) {
            thread.runs[active].cancel = Some(Cancel::Abort);
        }
        let (run_id, message_id) = (new.run_id, new.message.id);
        assert_eq!(accepted, Ok(AcceptedRun { run_id, message_id, is_new: true, behind, after: 0 }));
        thread.messages.push(text);
        thread.runs.push(Run { id: new.run_id, status: RunStatus::Queued, cancel: None });
        self.last_runs.insert(at, new.run_id);
    }

    async fn claim(&mut self, at: (usize, usize)) {
        let claimed = self.tenants[at.0].claim(self.threads[at.1], &owner("worker")).await.unwrap();
        let Some(thread) = self.model.get_mut(&at).filter(|thread| thread.active.is_none()) else {
            return assert_eq!(claimed, None);
        };
        let Some(first) = thread.runs.iter().position(|run| run.status == RunStatus::Queued) else {
            return assert_eq!(claimed, None);
        };
        let claimed = claimed.expect("there is a run to claim");
        thread.epoch += 1;
        thread.active = Some((first, 0));
        thread.runs[first].status = RunStatus::Running;
        assert_eq!((claimed.run.run_id, claimed.claim.epoch), (thread.runs[first].id, thread.epoch));
        self.claims.insert(at, (claimed.claim, 0));
    }

    /// Whether a claim that `of` was given means anything to `tenant`.
    fn holds(&self, tenant: usize, (of, thread): (usize, usize), claim: &Claim) -> bool {
        let held = self.model.get(&(tenant, thread)).filter(|held| held.epoch == claim.epoch);
        tenant == of
            && held.is_some_and(|held| held.active.is_some_and(|(at, _)| held.runs[at].id == claim.run_id))
    }

    async fn append(
        &mut self,
        tenant: usize,
        of: (usize, usize),
        (events, messages, ends): (usize, usize, bool),
    ) {
        let Some((claim, appended)) = self.claims.get(&of).cloned() else { return };
        let said: Vec<String> = (0..messages).map(|_| self.text()).collect();
        let happened: Vec<String> = (0..events).map(|_| self.text()).collect();
        let append = Arc::new(new_append(&claim, appended + 1, &happened, &said, ends));
        let first = self.tenants[tenant].append(&claim, append).await;
        if !self.holds(tenant, of, &claim) {
            return assert_eq!(first, Err(StoreError::Fenced));
        }
        let thread = self.model.get_mut(&of).unwrap();
        assert_eq!(first.unwrap().first_seq, thread.events.len() as u64 + 1);
        thread.events.extend(happened.into_iter().map(Some));
        thread.messages.extend(said);
        if let (true, Some((active, _))) = (ends, thread.active) {
            thread.runs[active].status = RunStatus::Completed;
            thread.active = None;
        }
        self.claims.insert(of, (claim, appended + 1));
    }

    async fn cancel(&mut self, tenant: usize, of: (usize, usize)) {
        let Some(run) = self.last_runs.get(&of) else { return };
        let status = self.tenants[tenant].cancel_run(*run, Cancel::Stop).await;
        let own = self.model.get_mut(&of).filter(|_| tenant == of.0);
        let Some((thread, at)) = own.and_then(|thread| {
            let at = thread.runs.iter().position(|known| known.id == *run)?;
            Some((thread, at))
        }) else {
            return assert_eq!(status, Err(StoreError::NotFound("run")));
        };
        let known = &mut thread.runs[at];
        match known.status {
            RunStatus::Queued => {
                known.status = RunStatus::Cancelled;
                thread.events.push(None);
            }
            RunStatus::Running => known.cancel = known.cancel.or(Some(Cancel::Stop)),
            _ => {}
        }
        assert_eq!(status, Ok(known.status));
    }

    async fn delete(&mut self, at: (usize, usize), is_bob: bool) {
        let deleted = self.tenants[at.0].delete_thread(self.threads[at.1], Some(&user(is_bob))).await;
        let is_own = self.model.get(&at).is_some_and(|thread| thread.user == user(is_bob));
        assert_eq!(deleted, if is_own { Ok(()) } else { Err(StoreError::ThreadNotFound) });
        if is_own {
            self.model.remove(&at);
        }
    }
}

fn new_append(claim: &Claim, number: u64, events: &[String], messages: &[String], ends: bool) -> Append {
    let event = |text: &String| NewEvent {
        at: jiff::Timestamp::now(),
        agent: "assistant".parse().unwrap(),
        path: "assistant".into(),
        visibility: Visibility::User,
        kind: EventKind::Status { text: text.clone() },
    };
    let answer = |text: &String| Message {
        run_id: claim.run_id,
        role: Role::Assistant,
        agent: Some("assistant".parse().unwrap()),
        ..message(claim.thread_id, text).message
    };
    let end = RunEnd { status: RunStatus::Completed, end: baton_core::store::RunEndData::default() };
    Append {
        number,
        events: events.iter().map(event).collect(),
        messages: messages.iter().map(answer).collect(),
        end: ends.then_some(end),
        ..Append::default()
    }
}
