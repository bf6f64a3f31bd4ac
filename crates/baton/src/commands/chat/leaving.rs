//! Handoffs that the person leaves, and those that they go on with.

use baton_core::{HandoffId, Rights};
use baton_engine::ExitRequest;
use baton_engine::handoff::is_yes;

use super::screen::Show;
use super::standing::ChatStatus;
use super::talk::{Chat, Next, ResumeOffer};

/// What `/resume` says in a new conversation: the work of another one is taken up with a message.
const CONTINUE: &str = "continue";

impl Chat {
    fn wish(&self) -> ExitRequest {
        ExitRequest {
            caller: self.caller(),
            is_administrator: false,
            rights: Rights::all(),
            trace: Some(self.trace.clone()),
            address: None,
        }
    }

    /// Gives the conversation back, and shows what is said to that.
    pub(super) async fn exit_handoff(&mut self, standing: &ChatStatus) -> Next {
        if standing.holder.is_none() {
            self.screen.show(Show::Told("there is no handoff to leave".to_owned())).await;
            return Next::Stay;
        }
        let left = tokio::select! {
            left = self.engine.exit_handoff(self.wish()) => left,
            exit = self.signals.any() => return Next::Leave(exit),
        };
        match left {
            Ok(_) => self.settle().await,
            Err(failure) => {
                self.fail(&failure).await;
                Next::Stay
            }
        }
    }

    /// Sends the message, or resumes the handoff if the user agrees.
    pub(super) async fn reply(&mut self, message: String, standing: &ChatStatus) -> Next {
        match self.offer.take() {
            Some(ResumeOffer::Here) if is_yes(&message) => self.resume(standing).await,
            Some(ResumeOffer::Elsewhere(handoff)) => self.reply_elsewhere(handoff, message).await,
            _ => self.say(message).await,
        }
    }

    /// Sends the reply to the question of the chat, which the engine does not know of. If that cannot be recorded, the question stays.
    async fn reply_elsewhere(&mut self, handoff: HandoffId, message: String) -> Next {
        let tenant = self.store.tenant();
        if let Err(error) = self.engine.record_offer(tenant, handoff, self.thread, &message).await {
            self.fail(&error).await;
            self.offer = Some(ResumeOffer::Elsewhere(handoff));
            return Next::Stay;
        }
        self.say(message).await
    }

    /// Goes on with what was left last.
    pub(super) async fn resume(&mut self, standing: &ChatStatus) -> Next {
        if let Some(ResumeOffer::Elsewhere(handoff)) = self.offer.take() {
            return self.reply_elsewhere(handoff, CONTINUE.to_owned()).await;
        }
        let Some(handoff) = standing.resumable.first().filter(|_| standing.holder.is_none()) else {
            let told = if standing.holder.is_some() {
                "it is already going on"
            } else {
                "there is nothing to go on with"
            };
            self.screen.show(Show::Told(told.to_owned())).await;
            return Next::Stay;
        };
        self.screen.show(Show::Awaited(handoff.target_agent_id.clone())).await;
        let resumed = tokio::select! {
            resumed = self.engine.resume_handoff(self.wish(), handoff.handoff_id) => resumed,
            exit = self.signals.any() => return Next::Leave(exit),
        };
        match resumed {
            Ok(_) => self.settle().await,
            Err(failure) => {
                self.fail(&failure).await;
                Next::Stay
            }
        }
    }
}
