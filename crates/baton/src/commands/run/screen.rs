//! What people and programs see of a run.

use std::io::IsTerminal as _;
use std::sync::atomic::{AtomicU64, Ordering};

use baton_agui::{AgentProfiles, Detail, Projection};
use baton_core::event::{Event, EventKind};
use baton_core::message::Visibility;
use baton_core::{AgentName, MessageId};
use baton_engine::{Agents, RunHandle};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::{RunEnding, explain};
use crate::progress::{AgentNames, Progress};
use crate::report::notices::Notices;
use crate::report::printable;
use crate::{commands, report};

/// How many events may wait to be written.
const WRITER_QUEUE: usize = 64;

/// Everything that is written during a run, by a thread of its own: a reader that does not read must not keep signals from
/// being heard.
pub(in crate::commands) struct RunScreen {
    queue: mpsc::Sender<Event>,
    writer: JoinHandle<(Progress, std::io::Result<()>)>,
    /// The number of the last event that was handed over.
    last_seq: AtomicU64,
}

impl RunScreen {
    pub(super) fn open(agent: &AgentName, agents: &Agents, json: bool) -> Self {
        let (queue, mut events) = mpsc::channel(WRITER_QUEUE);
        let names = agents.values().map(|agent| (agent.name.clone(), agent.public_name().to_owned()));
        let names: AgentNames = names.collect();
        let mut output = AnswerOutput::new(json, agents);
        let mut progress = Progress::new(agent, names, !json);
        let writer = tokio::task::spawn_blocking(move || {
            while let Some(event) = events.blocking_recv() {
                progress.show(&event);
                if let Err(error) = output.show(&event) {
                    return (progress, Err(error));
                }
            }
            (progress, Ok(()))
        });
        Self { queue, writer, last_seq: AtomicU64::new(0) }
    }

    /// Hands one event to the writer. False if there are no more, or if the reader closed the pipe.
    pub(super) async fn pass_on(&self, events: &mut mpsc::Receiver<Event>) -> bool {
        let pass_on = async {
            // A place comes first, so that no event is lost when this is dropped while it waits.
            let place = self.queue.reserve().await.ok()?;
            let event = events.recv().await?;
            self.last_seq.fetch_max(event.seq, Ordering::Relaxed);
            place.send(event);
            Some(())
        };
        tokio::select! {
            passed = pass_on => passed.is_some(),
            () = self.queue.closed() => false,
        }
    }

    /// Nothing was written and nothing will be. The progress line disappears when it is dropped.
    pub(super) async fn clear(self) {
        drop(self.queue);
        drop(self.writer.await);
    }

    /// Waits for the run and for the last word to be written.
    pub(super) async fn close(self, run: RunHandle) -> anyhow::Result<RunEnding> {
        if self.queue.is_closed() {
            // An answer without a reader is not worth its cost.
            run.cancel();
        }
        drop(self.queue);
        let (run_id, last_seq) = (run.id, self.last_seq.into_inner());
        let finished = run.finish().await;
        let (mut progress, written) = self.writer.await?;
        let end = tokio::task::spawn_blocking(move || {
            progress.end(&finished);
            explain(run_id, &finished);
            RunEnding { finished, written, last_seq }
        });
        Ok(end.await?)
    }
}

/// Where the answer goes.
enum AnswerOutput {
    Json(Box<Projection>),
    /// On a terminal the text appears as it is written. In a pipe each message comes when it is whole, so that a turn that
    /// starts again leaves nothing half behind.
    Text {
        live: bool,
        written: bool,
        /// The message that is growing on the terminal, and how much of it is there.
        growing: Option<(MessageId, usize)>,
        notices: Notices,
    },
}

impl AnswerOutput {
    fn new(json: bool, agents: &Agents) -> Self {
        if json {
            let profiles = AgentProfiles::of(agents.values().map(|agent| &**agent));
            Self::Json(Box::new(Projection::new(Detail::Trace).with_profiles(profiles)))
        } else {
            let (live, notices) = (std::io::stdout().is_terminal(), Notices::default());
            Self::Text { live, written: false, growing: None, notices }
        }
    }

    fn show(&mut self, event: &Event) -> std::io::Result<()> {
        match self {
            Self::Json(projection) => {
                let lines = projection
                    .project(event)
                    .iter()
                    .map(serde_json::to_string)
                    .collect::<Result<Vec<_>, _>>()?;
                lines.iter().try_for_each(|line| commands::write(&format!("{line}\n")))?;
            }
            Self::Text { .. } if event.visibility == Visibility::Internal => {}
            Self::Text { live, written, growing, notices } => match &event.kind {
                EventKind::TextStarted { message_id, .. } if *live => {
                    *growing = Some((*message_id, 0));
                    if *written {
                        commands::write("\n")?;
                    }
                }
                EventKind::TextDelta { message_id, delta } if *live => {
                    if let Some((_, shown)) = growing.as_mut().filter(|(id, _)| id == message_id) {
                        *shown += delta.len();
                        commands::write(&printable(delta))?;
                        *written = true;
                    }
                }
                // Whatever was not seen growing comes now.
                EventKind::TextFinished { message_id, text, .. } => {
                    let shown =
                        growing.take().filter(|(id, _)| id == message_id).map_or(0, |(_, shown)| shown);
                    commands::write(&(printable(text.get(shown..).unwrap_or_default()) + "\n"))?;
                    *written = true;
                }
                EventKind::TurnRestarted { .. } => {
                    if *live {
                        commands::write("\n")?;
                    }
                    report::tell("(the answer was cut; it starts again)");
                }
                kind => notices.of(kind).iter().for_each(|notice| report::tell(notice)),
            },
        }
        Ok(())
    }
}
