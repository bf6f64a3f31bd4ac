//! A message and its run, and everything else that happens in the thread.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use baton_core::event::Event;
use baton_core::message::Part;
use baton_core::store::{Cancel, OnBusy, PageRequest, RunQuery, RunRecord, RunStatus};
use baton_core::{HandoffId, Rights, RunId, StoreError, TenantStore, ThreadId, TraceParent};
use baton_engine::{Agents, Engine, Overrides, RunCaller, RunHandle, RunRequest, RunTask};
use baton_server::stream::follow::{Follow, Of};
use uuid::Uuid;

use super::screen::{ChatScreen, Looks, Passed, Show};
use super::standing::ChatStatus;
use crate::commands;
use crate::commands::run::explain;
use crate::commands::signals::{ShutdownRequest, Signals};
use crate::entry::EntryChoice;
use crate::exit::Exit;

/// How often the store is asked for events of other processes.
const GLANCE: Duration = Duration::from_secs(5);
/// How long an event that was kept may take to be heard; then it is read.
const LAG: Duration = Duration::from_millis(200);
/// How long the end of a run that has ended is looked for. One that could not be kept is not there.
const MISSING: Duration = Duration::from_secs(2);
/// How long the last lines may take after a signal to end.
const HURRY: Duration = Duration::from_millis(300);
/// Runs that are looked at to see whether something is going on.
const NEWEST: u32 = 50;

pub(super) struct Chat {
    pub(super) engine: Arc<Engine>,
    pub(super) store: Arc<dyn TenantStore>,
    pub(super) looks: Arc<Looks>,
    pub(super) entry: EntryChoice,
    pub(super) screen: ChatScreen,
    pub(super) signals: Signals,
    pub(super) trace: TraceParent,
    pub(super) thread: ThreadId,
    /// The number of the last event that was shown, or need not be.
    pub(super) position: u64,
    /// What the person was asked to continue when the chat was opened, until the first message.
    pub(super) offer: Option<ResumeOffer>,
    /// Requests that the person wants to decide later.
    pub(super) postponed: BTreeSet<Uuid>,
}

/// Unfinished work that the person was asked to continue.
#[derive(Debug, Clone, Copy)]
pub(super) enum ResumeOffer {
    /// The newest of this conversation.
    Here,
    /// Of another conversation; it moves to this one.
    Elsewhere(HandoffId),
}

/// Whether the conversation goes on.
pub(super) enum Next {
    Stay,
    Leave(Exit),
}

impl Chat {
    pub(super) fn new(
        engine: Arc<Engine>,
        agents: &Arc<Agents>,
        entry: EntryChoice,
        signals: Signals,
        trace: TraceParent,
    ) -> Self {
        let store = engine.parts.store.tenant(&commands::tenant());
        let looks = Arc::new(Looks::of(agents));
        let screen = ChatScreen::open(Arc::clone(&looks));
        let (thread, position, offer) = (ThreadId::random(), 0, None);
        let postponed = BTreeSet::new();
        Self { engine, store, looks, entry, screen, signals, trace, thread, position, offer, postponed }
    }

    pub(super) fn caller(&self) -> RunCaller {
        commands::local(self.thread)
    }

    /// Who has the conversation. A store that does not answer is no reason to end it.
    pub(super) async fn standing(&self) -> ChatStatus {
        match ChatStatus::of(&self.engine, &*self.store, self.thread, &self.looks).await {
            Ok(standing) => standing,
            Err(error) => {
                self.fail(&error).await;
                ChatStatus::default()
            }
        }
    }

    pub(super) async fn fail(&self, error: &(impl std::fmt::Display + ?Sized)) {
        let style = anstyle::AnsiColor::Red.on_default().bold();
        self.screen.show(Show::Told(format!("{style}error:{style:#} {error}"))).await;
    }

    /// Waits until all is written, so that the person can be asked for the next word.
    pub(super) async fn rest(&mut self) -> Next {
        self.signals.first = None;
        tokio::select! {
            is_read = self.screen.rest() => if is_read { Next::Stay } else { Next::Leave(Exit::ReaderGone) },
            exit = self.signals.any() => Next::Leave(exit),
        }
    }

    /// Waits for the last word to be written, unless a signal asks the process to end. A person is shown how to come back.
    pub(super) async fn close(self, exit: Exit, is_typed: bool) -> std::io::Result<Exit> {
        let Self { screen, mut signals, position, thread, .. } = self;
        let closed = async {
            if is_typed && position > 0 {
                screen.show(Show::Aside(format!("continue with: baton chat -r {thread}"))).await;
            }
            screen.close().await
        };
        let patience = if exit == Exit::Ok { Duration::MAX } else { HURRY };
        tokio::select! {
            closed = closed => closed.map(|()| exit),
            exit = signals.any() => Ok(exit),
            () = tokio::time::sleep(patience) => Ok(exit),
        }
    }

    /// Says it, and shows what is answered.
    pub(super) async fn say(&mut self, message: String) -> Next {
        let (agent, chosen) = self.entry.first(&self.looks.agents, &message);
        self.screen.show(Show::Awaited(agent.clone())).await;
        let request = RunRequest {
            caller: self.caller(),
            agent,
            input: vec![Part::text(message)],
            overrides: Overrides::default(),
            on_busy: OnBusy::Enqueue,
            entry: chosen,
            task: RunTask::Answer,
            rights: Rights::all(),
            trace: Some(self.trace.clone()),
            metadata: None,
        };
        let started = tokio::select! {
            // A run that is there can be cancelled as it should be.
            biased;
            run = self.engine.start(request) => run,
            exit = self.signals.any() => return Next::Leave(exit),
        };
        match started {
            Ok(run) => self.attend(run).await,
            Err(failure) => {
                self.fail(&failure).await;
                Next::Stay
            }
        }
    }

    /// Shows what happens until the run has ended. The first signal cancels it, a second one leaves.
    pub(super) async fn attend(&mut self, mut run: RunHandle) -> Next {
        let run_id = run.id;
        let mut follow = self.follow();
        // What the run itself tells is only listened to in order to know when something should have been heard.
        let (mut told, mut is_over, mut can_follow) = (0, false, true);
        let is_shown = loop {
            let is_behind = can_follow && told > follow.position();
            tokio::select! {
                passed = self.screen.pass_on(&mut follow), if can_follow => match passed {
                    Ok(Passed::Event(event)) if is_end_of(&event, run_id) => break true,
                    Ok(Passed::Gone) => return Next::Leave(Exit::ReaderGone),
                    Ok(_) => {}
                    Err(error) => {
                        self.fail(&error).await;
                        can_follow = false;
                    }
                },
                event = run.events.recv(), if !is_over => match event {
                    Some(event) if event.kind.is_kept() => told = told.max(event.seq),
                    Some(_) => {}
                    None => is_over = true,
                },
                () = tokio::time::sleep(LAG), if is_behind => follow.rejoin(),
                () = tokio::time::sleep(MISSING), if is_over && !is_behind => break false,
                asked = self.signals.next() => match asked {
                    ShutdownRequest::ToEnd => run.cancel(),
                    ShutdownRequest::ToQuit(exit) => return Next::Leave(exit),
                },
            }
        };
        self.position = follow.position();
        drop(follow);
        self.conclude(run, is_shown).await
    }

    /// A run whose end could not be shown is explained from what this process knows.
    async fn conclude(&mut self, run: RunHandle, is_shown: bool) -> Next {
        let run_id = run.id;
        let finished = tokio::select! {
            finished = run.finish() => finished,
            exit = self.signals.second() => return Next::Leave(exit),
        };
        if !is_shown && self.screen.rest().await {
            explain(run_id, &finished);
        }
        match self.signals.first {
            // A stopped process or a closed terminal ends the chat, not only the run.
            Some(exit) if exit != Exit::Interrupted => Next::Leave(exit),
            _ => Next::Stay,
        }
    }

    pub(super) fn follow(&self) -> Follow {
        let (live, store) = (&self.engine.parts.live, Arc::clone(&self.store));
        Follow::new(live, store, self.thread, Of::Thread, self.position).glancing(GLANCE)
    }

    /// Shows what happens until nothing goes on in the thread.
    pub(super) async fn settle(&mut self) -> Next {
        let mut follow = self.follow();
        loop {
            let open = match self.unfinished(follow.position()).await {
                Ok(Some(open)) => open,
                Ok(None) => break,
                Err(error) => {
                    self.fail(&error).await;
                    break;
                }
            };
            if let Some(next) = self.until_something_ends(&mut follow, &open).await {
                return next;
            }
        }
        self.position = follow.position();
        Next::Stay
    }

    /// `None` when it is time to look again whether anything goes on.
    async fn until_something_ends(&mut self, follow: &mut Follow, open: &[RunId]) -> Option<Next> {
        loop {
            tokio::select! {
                passed = self.screen.pass_on(follow) => match passed {
                    Ok(Passed::Event(event)) if event.kind.is_end() => return None,
                    Ok(Passed::Gone) => return Some(Next::Leave(Exit::ReaderGone)),
                    Ok(_) => {}
                    Err(error) => {
                        self.fail(&error).await;
                        return Some(Next::Stay);
                    }
                },
                () = tokio::time::sleep(LAG) => {
                    follow.rejoin();
                    return None;
                }
                asked = self.signals.next() => match asked {
                    ShutdownRequest::ToEnd => self.cancel(open).await,
                    ShutdownRequest::ToQuit(exit) => return Some(Next::Leave(exit)),
                },
            }
        }
    }

    async fn cancel(&self, open: &[RunId]) {
        for run in open {
            if let Err(error) = self.engine.cancel(self.store.tenant(), *run, Cancel::Abort).await {
                self.fail(&error).await;
            }
        }
    }

    /// Runs that have not ended; `None` when there are none and everything up to here was shown.
    async fn unfinished(&self, position: u64) -> Result<Option<Vec<RunId>>, StoreError> {
        let open: Vec<RunId> = self.open_runs().await?.into_iter().map(|run| run.run_id).collect();
        // After the runs: when they have ended, everything is there.
        let thread = self.store.thread(self.thread, None).await?;
        Ok((!open.is_empty() || thread.last_seq > position).then_some(open))
    }

    /// The oldest first.
    pub(super) async fn open_runs(&self) -> Result<Vec<RunRecord>, StoreError> {
        let query = RunQuery { thread_id: Some(self.thread), ..RunQuery::default() };
        let mut runs = self.store.runs(query, PageRequest::first(NEWEST)).await?.data;
        runs.retain(|run| matches!(run.status, RunStatus::Queued | RunStatus::Running));
        runs.reverse();
        Ok(runs)
    }
}

fn is_end_of(event: &Event, run: RunId) -> bool {
    event.run_id == run && event.kind.is_end()
}
