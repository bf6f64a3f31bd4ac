//! Handoffs that the person leaves, and those that they go on with.

use baton_core::Rights;
use baton_engine::ExitRequest;

use super::screen::Show;
use super::standing::ChatStatus;
use super::talk::{Chat, Next};

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

    /// Goes on with what was left last.
    pub(super) async fn resume(&mut self, standing: &ChatStatus) -> Next {
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
