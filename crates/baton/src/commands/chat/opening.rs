//! The state of a conversation that is continued.

use std::sync::Arc;

use baton_core::message::Message;
use baton_core::store::{MessageQuery, PageRequest, Thread};
use baton_core::{StoreError, TenantStore};
use baton_engine::Engine;
use baton_engine::handoff::{is_resumable, welcome_back_message};

use super::Args;
use super::screen::Show;
use super::talk::{Chat, Next, ResumeOffer};
use crate::commands;

/// Messages that are shown again.
const LAST: u32 = 6;

impl Chat {
    /// Takes up the conversation that is wanted, or a new one.
    pub(super) async fn open(&mut self, args: &Args, is_typed: bool) -> anyhow::Result<Next> {
        let (engine, store) = (Arc::clone(&self.engine), Arc::clone(&self.store));
        let found = tokio::select! {
            found = find(&engine, &*store, args) => found?,
            exit = self.signals.any() => return Ok(Next::Leave(exit)),
        };
        if found.is_none() && args.continued {
            let told = "there is no conversation to continue; this is a new one";
            self.screen.show(Show::Told(told.to_owned())).await;
        }
        if let Some(thread) = found
            && let Next::Leave(exit) = self.take_up(thread).await?
        {
            return Ok(Next::Leave(exit));
        }
        if self.position == 0 && args.resume.is_none() {
            self.offer_other_work().await?;
        }
        if is_typed {
            self.screen.show(Show::Aside("/help lists the commands; Ctrl-D leaves".to_owned())).await;
        }
        Ok(Next::Stay)
    }

    /// Shows what was said last, and waits for a run that is still active.
    async fn take_up(&mut self, thread: Thread) -> anyhow::Result<Next> {
        self.thread = thread.thread_id;
        self.position = thread.last_seq;
        let open = self.open_runs().await?;
        let past = self.store.messages(self.thread, MessageQuery::last(LAST)).await?;
        // What a run says that has not ended is shown as it happens, from its beginning.
        let is_past = |message: &Message| {
            message.agent.is_none() || open.iter().all(|run| run.run_id != message.run_id)
        };
        let past = past.into_iter().map(|past| past.message).filter(is_past).collect();
        self.screen.show(Show::Past(past)).await;
        if let Some(first) = open.first() {
            let begun = self.store.run_events(first.run_id, 0, 1).await?;
            self.position = begun.first().map_or(self.position, |event| event.seq - 1);
            self.screen.show(Show::Awaited(first.agent.clone())).await;
            self.engine.wake_thread(self.store.tenant(), self.thread);
            if let Next::Leave(exit) = self.settle().await {
                return Ok(Next::Leave(exit));
            }
        }
        self.welcome().await;
        Ok(Next::Stay)
    }

    /// In a new conversation: what the person has left unfinished in another one. A yes takes it up here.
    async fn offer_other_work(&mut self) -> anyhow::Result<()> {
        let mut left = self.store.resumable_handoffs_of(&commands::user()).await?;
        left.retain(|one| {
            self.looks.agents.get(&one.target_agent_id).is_some_and(|agent| is_resumable(agent, one))
        });
        if let Some(newest) = left.first() {
            let told =
                format!("{} (yes, or say something else)", welcome_back_message(&self.looks.agents, newest));
            self.offer = Some(ResumeOffer::Elsewhere(newest.handoff_id));
            self.screen.show(Show::Told(told)).await;
        }
        Ok(())
    }

    /// Who has the conversation, or what the person may want to go on with.
    async fn welcome(&mut self) {
        let standing = self.standing().await;
        let told = match (&standing.holder, standing.resumable.first()) {
            (Some(holder), _) => holder.sentence(),
            (None, Some(handoff)) => {
                self.offer = Some(ResumeOffer::Here);
                format!("{} (yes, or /resume)", welcome_back_message(&self.looks.agents, handoff))
            }
            (None, None) => return,
        };
        self.screen.show(Show::Told(told)).await;
    }
}

/// The conversation that is wanted. `None` for a new one.
async fn find(engine: &Engine, store: &dyn TenantStore, args: &Args) -> anyhow::Result<Option<Thread>> {
    // A run whose process is gone need not wait for its lease.
    engine.release_dead_owners().await?;
    let user = commands::user();
    if args.continued {
        return Ok(store.threads(Some(&user), PageRequest::first(1)).await?.data.pop());
    }
    let Some(named) = &args.resume else { return Ok(None) };
    let newest = store.threads(Some(&user), PageRequest::first(PageRequest::MAX_LIMIT));
    let id = named.find(newest, |thread| Some(thread.thread_id)).await?;
    Ok(Some(store.thread(id.ok_or(StoreError::ThreadNotFound)?, Some(&user)).await?))
}
