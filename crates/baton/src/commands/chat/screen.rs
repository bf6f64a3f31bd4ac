//! Everything that a chat writes, by a thread of its own: a reader that does not read must not keep signals from being heard.

use std::sync::Arc;

use baton_agui::AgentProfiles;
use baton_core::AgentName;
use baton_core::StoreError;
use baton_core::event::Event;
use baton_core::message::Message;
use baton_engine::Agents;
use baton_server::stream::follow::{Follow, Item};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

use super::view::ChatView;
use crate::progress::AgentNames;

/// How much may wait to be written.
const WRITER_QUEUE: usize = 64;

/// What is known of agents by those who show them.
#[derive(Debug)]
pub(super) struct Looks {
    pub(super) agents: Arc<Agents>,
    pub(super) profiles: AgentProfiles,
    pub(super) names: AgentNames,
}

impl Looks {
    pub(super) fn of(agents: &Arc<Agents>) -> Self {
        let names = agents.values().map(|agent| (agent.name.clone(), agent.public_name().to_owned()));
        let profiles = AgentProfiles::of(agents.values().map(|agent| &**agent));
        Self { agents: Arc::clone(agents), profiles, names: names.collect() }
    }
}

pub(super) enum Show {
    Item(Item),
    Past(Vec<Message>),
    /// This agent is about to run.
    Awaited(AgentName),
    /// The result of a command.
    Result(String),
    /// Beside the conversation.
    Told(String),
    Aside(String),
    /// No agent runs. Answered when everything before it is written.
    Rest(oneshot::Sender<()>),
}

/// What was handed to the writer.
pub(super) enum Passed {
    Event(Arc<Event>),
    Other,
    /// The reader closed the pipe.
    Gone,
}

pub(super) struct ChatScreen {
    queue: mpsc::Sender<Show>,
    writer: JoinHandle<std::io::Result<()>>,
}

impl ChatScreen {
    pub(super) fn open(looks: Arc<Looks>) -> Self {
        let (queue, mut shown) = mpsc::channel(WRITER_QUEUE);
        let writer = tokio::task::spawn_blocking(move || {
            let mut view = ChatView::new(looks);
            while let Some(show) = shown.blocking_recv() {
                write(&mut view, show)?;
            }
            view.rest();
            Ok(())
        });
        Self { queue, writer }
    }

    /// Waits where there is no room. Nothing is written any more once the reader has gone.
    pub(super) async fn show(&self, show: Show) {
        let _ = self.queue.send(show).await;
    }

    /// Hands the next that happens to the writer. May be dropped while it waits.
    pub(super) async fn pass_on(&self, follow: &mut Follow) -> Result<Passed, StoreError> {
        let pass_on = async {
            // A place comes first, so that nothing is lost when this is dropped while it waits.
            let Ok(place) = self.queue.reserve().await else { return Ok(Passed::Gone) };
            let Some(item) = follow.next().await? else { return Ok(Passed::Other) };
            let passed = match &item {
                Item::Event(published) => Passed::Event(Arc::clone(&published.event)),
                Item::Growing(_) => Passed::Other,
            };
            place.send(Show::Item(item));
            Ok(passed)
        };
        tokio::select! {
            passed = pass_on => passed,
            () = self.queue.closed() => Ok(Passed::Gone),
        }
    }

    /// Waits until everything is written. False if the reader closed the pipe.
    pub(super) async fn rest(&self) -> bool {
        let (done, is_done) = oneshot::channel();
        self.show(Show::Rest(done)).await;
        is_done.await.is_ok()
    }

    /// Waits for the last word to be written.
    pub(super) async fn close(self) -> std::io::Result<()> {
        drop(self.queue);
        self.writer.await.unwrap_or(Ok(()))
    }
}

fn write(view: &mut ChatView, show: Show) -> std::io::Result<()> {
    match show {
        Show::Item(item) => view.show(&item),
        Show::Past(messages) => view.past(&messages),
        Show::Awaited(agent) => {
            view.wait_for(&agent);
            Ok(())
        }
        Show::Result(text) => view.result(&text),
        Show::Told(text) => view.tell(&text),
        Show::Aside(text) => view.aside(&text),
        Show::Rest(done) => {
            view.rest();
            let _ = done.send(());
            Ok(())
        }
    }
}
