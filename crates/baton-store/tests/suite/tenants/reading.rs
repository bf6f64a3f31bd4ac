//! What each tenant finds, compared with what it should.

use baton_core::store::{MessageQuery, NewRun, PageRequest, RunQuery, RunStatus};
use baton_core::{EventKind, RunId, StoreError, ThreadId};

use super::model::{World, user};
use crate::support::message;

impl World {
    pub(super) async fn read_run(&mut self, tenant: usize, of: (usize, usize)) {
        let Some(run) = self.last_runs.get(&of) else { return };
        let found = self.tenants[tenant].run(*run).await.map(|record| (record.status, record.cancel));
        let events = self.tenants[tenant].run_events(*run, 0, 100).await.map(|_| ());
        let own = self.model.get(&of).filter(|_| tenant == of.0);
        let known = own.and_then(|thread| thread.runs.iter().find(|known| known.id == *run));
        let not_found = StoreError::NotFound("run");
        assert_eq!(found, known.map(|run| (run.status, run.cancel)).ok_or(not_found.clone()));
        assert_eq!(events, known.map(|_| ()).ok_or(not_found));
    }

    pub(super) async fn read_thread(&self, at: (usize, usize), is_bob: bool) {
        let (tenant, id) = (&self.tenants[at.0], self.threads[at.1]);
        let query = MessageQuery { limit: 1000, before: None, include_internal: true, include_system: true };
        let messages = tenant.messages(id, query).await;
        let events = tenant.events(id, 0, 1000).await;
        let found = tenant.thread(id, Some(&user(is_bob))).await;
        let Some(thread) = self.model.get(&at) else {
            let not_found = StoreError::ThreadNotFound;
            assert_eq!(messages.unwrap_err(), not_found);
            assert_eq!(events.unwrap_err(), not_found);
            return assert_eq!(found.unwrap_err(), not_found);
        };
        let said: Vec<String> = messages.unwrap().iter().map(|message| message.message.text()).collect();
        assert_eq!(said, thread.messages);
        let events = events.unwrap();
        assert!(events.iter().zip(1..).all(|(event, seq)| event.seq == seq && event.thread_id == id));
        let happened: Vec<Option<String>> = events.into_iter().map(|event| told(event.kind)).collect();
        assert_eq!(happened, thread.events);
        let expected = (thread.user == user(is_bob)).then_some(thread.messages.len() as u64);
        assert_eq!(found.ok().map(|found| found.total_messages), expected);
    }

    pub(super) async fn list(&self, tenant: usize) {
        let page = PageRequest::first(PageRequest::MAX_LIMIT);
        let of_tenant = || self.model.iter().filter(move |((of, _), _)| *of == tenant);
        let found = self.tenants[tenant].threads(None, page.clone()).await.unwrap().data;
        let mut found: Vec<ThreadId> = found.into_iter().map(|thread| thread.thread_id).collect();
        let mut known: Vec<ThreadId> = of_tenant().map(|((_, thread), _)| self.threads[*thread]).collect();
        found.sort();
        known.sort();
        assert_eq!(found, known);
        let runs = self.tenants[tenant].runs(RunQuery::default(), page).await.unwrap().data;
        let mut runs: Vec<(RunId, RunStatus)> =
            runs.into_iter().map(|run| (run.run_id, run.status)).collect();
        let mut known: Vec<(RunId, RunStatus)> =
            of_tenant().flat_map(|(_, thread)| thread.runs.iter().map(|run| (run.id, run.status))).collect();
        runs.sort();
        known.sort();
        assert_eq!(runs, known);
    }

    /// As many as there are, and not one more.
    async fn count_open(&self, tenant: usize) {
        let of_tenant = self.model.iter().filter(|((of, _), _)| *of == tenant);
        let runs = of_tenant.flat_map(|(_, thread)| &thread.runs);
        let open = u32::try_from(runs.filter(|run| !run.status.is_final()).count()).unwrap();
        let new = |most| NewRun { max_active: Some(most), ..message(ThreadId::random(), "one more") };
        let refused = self.tenants[tenant].accept(new(open)).await;
        assert_eq!(refused, Err(StoreError::TooManyRuns(open)));
        let accepted = self.tenants[tenant].accept(new(open + 1)).await;
        assert!(accepted.is_ok(), "{accepted:?}");
    }

    pub(super) async fn compare_all(&self) {
        for tenant in 0..self.tenants.len() {
            self.list(tenant).await;
            self.count_open(tenant).await;
            for thread in 0..self.threads.len() {
                self.read_thread((tenant, thread), false).await;
            }
        }
    }
}

fn told(kind: EventKind) -> Option<String> {
    match kind {
        EventKind::Status { text } => Some(text),
        _ => None,
    }
}
