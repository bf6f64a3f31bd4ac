//! Calls and questions that the conversation waits for.

use baton_core::StoreError;
use baton_core::store::{Approval, ApprovalKind};
use baton_engine::{DecideError, DecisionInput};

use super::screen::Show;
use super::talk::{Chat, Next};
use crate::commands::approvals::format;
use crate::commands::approvals::prompt::{self, Reply};
use crate::commands::lines::InputLines;
use crate::commands::user;
use crate::exit::Exit;

impl Chat {
    /// Asks for a decision about everything that waits, one after the other, as far as the person does not postpone it. Each decision
    /// lets the run continue. In a pipe a question is answered by the next line, and a call that needs approval ends the chat.
    pub(super) async fn settle_requests(&mut self, lines: &mut InputLines) -> anyhow::Result<Next> {
        while let Some(approval) = self.next_request().await? {
            let request = &approval.request;
            if !lines.is_typed && request.kind == ApprovalKind::Tool {
                return Ok(self.leave_waiting(&approval).await);
            }
            let asked = format::asked(request, &self.looks.names);
            let gap = if lines.is_typed { "\n" } else { "" };
            self.screen.show(Show::Told(format!("{gap}{asked}"))).await;
            if let Next::Leave(exit) = self.rest().await {
                return Ok(Next::Leave(exit));
            }
            let reply = tokio::select! {
                reply = prompt::ask(lines, request) => reply?,
                exit = self.signals.any() => Reply::Leave(exit),
            };
            let next = match reply {
                Reply::Decided(input) => self.decide(&approval, *input).await?,
                Reply::Later if !lines.is_typed => self.leave_waiting(&approval).await,
                Reply::Later => {
                    self.postponed.insert(request.approval_id);
                    self.screen.show(Show::Aside("left for later; /approvals asks again".to_owned())).await;
                    Next::Stay
                }
                Reply::Leave(exit) => Next::Leave(exit),
            };
            if let Next::Leave(exit) = next {
                return Ok(Next::Leave(exit));
            }
        }
        Ok(Next::Stay)
    }

    /// Asks again what was postponed.
    pub(super) async fn reconsider(&mut self) -> Next {
        if std::mem::take(&mut self.postponed).is_empty() {
            self.screen.show(Show::Told("nothing was left for later".to_owned())).await;
        }
        Next::Stay
    }

    async fn next_request(&self) -> anyhow::Result<Option<Approval>> {
        let open = match self.store.open_approvals(self.thread).await {
            // A conversation begins with its first message.
            Err(StoreError::ThreadNotFound | StoreError::NotFound(_)) => return Ok(None),
            open => open?,
        };
        // A workflow's question is answered by what the person says next, as everything in a conversation is.
        let mut awaited = open.into_iter().filter(|approval| !approval.request.is_workflow_question());
        Ok(awaited.find(|approval| !self.postponed.contains(&approval.request.approval_id)))
    }

    async fn decide(&mut self, approval: &Approval, input: DecisionInput) -> anyhow::Result<Next> {
        let decided =
            self.engine.decide(self.store.tenant(), approval.request.approval_id, &user(), input).await;
        match decided {
            Ok(_) => {
                let tenant = self.store.tenant();
                let run = self.engine.attend(tenant, self.thread, approval.run_id, self.position);
                Ok(self.attend(run).await)
            }
            // The person is asked again, unless it is settled.
            Err(
                error @ (DecideError::Invalid { .. } | DecideError::Settled(_) | DecideError::Changed(_)),
            ) => {
                self.screen.show(Show::Told(error.to_string())).await;
                Ok(Next::Stay)
            }
            Err(DecideError::Store(error)) => Err(error.into()),
            Err(error) => Err(error.into()),
        }
    }

    async fn leave_waiting(&self, approval: &Approval) -> Next {
        for hint in format::decision_hints(std::slice::from_ref(&approval.request)) {
            self.screen.show(Show::Told(hint)).await;
        }
        Next::Leave(Exit::Waiting)
    }
}
