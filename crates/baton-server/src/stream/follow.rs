//! What happens in a thread or a run, from any number on: first what was kept, then what is said, without a gap and without
//! anything twice.
//!
//! Joining comes first and reading second. Whoever speaks has kept before they say, so everything up to the number that the channel
//! knew when it was joined can be read, and everything after it will be heard. When something was missed, or somebody writes who
//! does not speak here, it is the same again from where it stands.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use baton_core::event::{Event, Growing};
use baton_core::{RunId, StoreError, TenantStore, ThreadId};
use baton_engine::{Ear, Heard, Live};

use crate::metrics::Metrics;

/// Events that are read at once.
const PAGE: u32 = 100;
/// How often somebody looks who waits for a run that another process may be at.
const GLANCE: Duration = Duration::from_secs(1);
/// The same for a thread in which nothing needs to happen.
const SELDOM_GLANCE: Duration = Duration::from_secs(5);

/// What is followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Of {
    /// All runs of the thread, for as long as anybody wants.
    Thread,
    /// One run, to its end.
    Run(RunId),
}

#[derive(Debug)]
pub enum Item {
    Event(Arc<Event>),
    /// A text of which pieces were missed, with all of it so far.
    Growing(Box<Growing>),
}

#[derive(Debug)]
pub struct Follow {
    store: Arc<dyn TenantStore>,
    metrics: Option<Arc<Metrics>>,
    ear: Ear,
    thread: ThreadId,
    of: Of,
    /// The number of the last kept event that was passed on, or passed over.
    position: u64,
    ready: VecDeque<Item>,
    stage: Stage,
}

#[derive(Debug)]
enum Stage {
    /// What was kept is read, up to a number if one is known; then these texts are on their way.
    Reading {
        until: Option<u64>,
        growing: Vec<Growing>,
    },
    Hearing,
    Over,
}

impl Follow {
    /// From the first kept event after `position` on.
    pub fn new(
        live: &Arc<Live>,
        store: Arc<dyn TenantStore>,
        thread: ThreadId,
        of: Of,
        position: u64,
    ) -> Self {
        let ear = live.join(store.tenant(), thread);
        let ready = VecDeque::new();
        let mut follow =
            Self { store, metrics: None, ear, thread, of, position, ready, stage: Stage::Hearing };
        follow.read_again();
        follow
    }

    /// The same, and it is counted when it falls behind.
    #[must_use]
    pub fn counted(self, metrics: &Arc<Metrics>) -> Self {
        Self { metrics: Some(Arc::clone(metrics)), ..self }
    }

    /// The number of the last kept event that was passed on.
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The next that happens; `None` after the end of a run. May be dropped while it waits, and called again.
    pub async fn next(&mut self) -> Result<Option<Item>, StoreError> {
        loop {
            if let Some(item) = self.ready.pop_front() {
                self.pass(&item);
                return Ok(Some(item));
            }
            match self.stage {
                Stage::Reading { .. } => self.read().await?,
                Stage::Hearing => self.hear().await,
                Stage::Over => return Ok(None),
            }
        }
    }

    /// Goes on with reading, as if it had just come.
    pub fn rejoin(&mut self) {
        self.ear.rejoin();
        self.read_again();
    }

    fn read_again(&mut self) {
        let now = self.ear.joined();
        let growing = now.growing.into_iter().filter(|text| self.concerns(&text.first)).collect();
        self.stage = Stage::Reading { until: now.head, growing };
    }

    fn concerns(&self, event: &Event) -> bool {
        match self.of {
            Of::Thread => true,
            Of::Run(run) => event.run_id == run,
        }
    }

    fn pass(&mut self, item: &Item) {
        if let Item::Event(event) = item
            && event.kind.is_kept()
        {
            self.position = event.seq;
            if matches!(self.of, Of::Run(_)) && event.kind.is_end() {
                self.ready.clear();
                self.stage = Stage::Over;
            }
        }
    }

    /// One page of what was kept.
    async fn read(&mut self) -> Result<(), StoreError> {
        let page = match self.of {
            Of::Thread => self.store.events(self.thread, self.position, PAGE).await?,
            Of::Run(run) => self.store.run_events(run, self.position, PAGE).await?,
        };
        let Stage::Reading { until, growing } = &mut self.stage else { return Ok(()) };
        let until = until.unwrap_or(u64::MAX);
        let is_last = page.len() < PAGE as usize || page.last().is_some_and(|event| event.seq >= until);
        // What lies beyond will be heard, in its place among the pieces of texts.
        let wanted = page.into_iter().filter(|event| event.seq <= until);
        self.ready.extend(wanted.map(|event| Item::Event(Arc::new(event))));
        if is_last {
            self.ready.extend(std::mem::take(growing).into_iter().map(|text| Item::Growing(Box::new(text))));
            self.stage = Stage::Hearing;
        }
        Ok(())
    }

    async fn hear(&mut self) {
        let pause = if self.of == Of::Thread { SELDOM_GLANCE } else { GLANCE };
        let is_quiet = !self.ear.is_spoken();
        let heard = tokio::select! {
            heard = self.ear.hear() => heard,
            // Nobody speaks here: perhaps another process is at it.
            () = tokio::time::sleep(pause), if is_quiet => return self.rejoin(),
        };
        match heard {
            Some(Heard::Event(event)) if !self.concerns(&event) => {}
            Some(Heard::Event(event)) if self.follows(&event) => self.ready.push_back(Item::Event(event)),
            Some(_) => self.rejoin(),
            None => {
                if let Some(metrics) = &self.metrics {
                    metrics.stream_behind();
                }
                self.rejoin();
            }
        }
    }

    /// Whether nothing lies between this and what was passed on last.
    fn follows(&self, event: &Event) -> bool {
        if !event.kind.is_kept() {
            return true;
        }
        match self.of {
            Of::Thread => event.seq == self.position + 1,
            Of::Run(_) => event.seq > self.position,
        }
    }
}
