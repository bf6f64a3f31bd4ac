//! A session of a remote agent: messages and replies, until there is an answer.

use std::sync::Arc;

use baton_core::agent::Return;
use baton_core::message::Part;
use baton_core::remote::{
    RemoteAgent, RemoteErrorKind, RemoteHandoff, RemoteLink, RemoteMessage, RemoteState, RemoteTask,
};
use baton_core::usage::Usage;
use serde_json::Value;

use super::exchange::{self, ExchangeTerms, FinishedExchange, OpenExchange};
use super::{connect, context, handoff, message};
use crate::approvals::remote_question::{self, QuestionOutcome};
use crate::bounds::LimitKind;
use crate::budget::Budget;
use crate::failure::Failure;
use crate::guard::GuardSide;
use crate::guardrails;
use crate::input::Input;
use crate::lease::HandoffLease;
use crate::outcome::{Answer, Outcome};
use crate::scope::Scope;
use crate::structured_output;

/// Runs a session of the scope's agent on `input`.
pub(crate) async fn run(scope: &Scope, input: &Input) -> Result<Outcome, Failure> {
    let remote = connect(&scope.run.extensions, scope.agent())?;
    let context = context::of_thread(scope).await;
    let schema = input.output_schema.as_deref().or(scope.agent().output_schema.as_ref());
    let budget = Budget::new(&scope.session.bounds, None);
    let held = scope.session.lease.as_ref().and_then(|lease| lease.session().notes.remote);
    let link = held.map(|link| *link).unwrap_or_default();
    let mut session = RemoteSession { scope, remote, budget, schema, link };
    let (next, restart) = session.first_message(input, &context);
    let result = session.work(next, restart).await;
    context::keep(scope, &context, &session.link.task).await;
    if let Some(lease) = &scope.session.lease {
        handoff::keep_link(scope, lease, session.link.clone()).await;
        if let Ok((_, done)) = &result {
            session.return_thread(lease, done).await;
        }
    }
    result.map(|(outcome, _)| outcome)
}

/// The next message, before its place in the session is known.
struct NextMessage {
    task: RemoteTask,
    parts: Vec<Part>,
    handoff: Option<RemoteHandoff>,
    /// The first answer after the agent has accepted a thread: nothing is sent.
    unread: Option<Box<RemoteLink>>,
}

impl NextMessage {
    /// A message that continues the task.
    fn text(task: RemoteTask, text: String) -> Self {
        Self { task, parts: vec![Part::text(text)], handoff: None, unread: None }
    }

    fn at(self, place: &Scope) -> RemoteMessage {
        message::build(place, self.task, self.parts, self.handoff)
    }
}

struct RemoteSession<'a> {
    scope: &'a Scope,
    remote: Arc<dyn RemoteAgent>,
    budget: Budget,
    /// The schema of the answer.
    schema: Option<&'a Value>,
    /// The remote task as of the newest exchange.
    link: RemoteLink,
}

impl RemoteSession<'_> {
    /// The first message, and the one to send instead if the agent does not know the task. An agent that holds the thread continues
    /// its task; every other one begins a new task in the context.
    fn first_message(&self, input: &Input, context: &str) -> (NextMessage, Option<NextMessage>) {
        let context_id = self.link.task.context_id.clone().unwrap_or_else(|| context.to_owned());
        let task = RemoteTask::new_in(context_id);
        let parts = message::first_parts(&self.scope.at("turn:1"), input, self.schema);
        let Some(lease) = &self.scope.session.lease else {
            return (NextMessage { task, parts, handoff: None, unread: None }, None);
        };
        let offer = Some(message::offer(self.scope, &lease.session(), input));
        let first = NextMessage { task, parts, handoff: offer, unread: None };
        if self.link.is_unread {
            let unread = Some(Box::new(self.link.clone()));
            return (
                NextMessage { unread, ..NextMessage::text(self.link.task.clone(), String::new()) },
                None,
            );
        }
        if self.link.task.task_id.is_none() {
            return (first, None);
        }
        let parts = input.parts.to_vec();
        (NextMessage { parts, ..NextMessage::text(self.link.task.clone(), String::new()) }, Some(first))
    }

    /// Exchanges messages until the agent has answered.
    async fn work(
        &mut self,
        first: NextMessage,
        mut restart: Option<NextMessage>,
    ) -> Result<(Outcome, FinishedExchange), Failure> {
        let (mut next, mut repairs) = (first, 1);
        loop {
            let done = match (self.exchange(next).await, restart.take()) {
                (Err(Failure::Remote { error, .. }), Some(again))
                    if error.kind == RemoteErrorKind::TaskNotFound =>
                {
                    next = again;
                    continue;
                }
                (done, _) => done?,
            };
            let place = self.scope.at(&format!("turn:{}", self.budget.turns()));
            let is_held = self.scope.session.lease.is_some();
            match done.end.state {
                state if state.is_waiting() && !is_held => {
                    let answer = self.ask(&place, &done).await?;
                    next = NextMessage::text(done.task, answer);
                }
                RemoteState::Completed | RemoteState::InputRequired | RemoteState::AuthRequired => {
                    match self.value(&done) {
                        Err(mistakes) if repairs > 0 && done.limit.is_none() => {
                            repairs -= 1;
                            let text = format!(
                                "Your answer does not satisfy the required JSON Schema: {mistakes}. Answer again with only the \
                                 corrected JSON."
                            );
                            let context = done.task.context_id.unwrap_or_default();
                            next = NextMessage::text(RemoteTask::new_in(context), text);
                        }
                        Err(mistakes) => return Err(Failure::InvalidOutput(mistakes)),
                        Ok(value) => return Ok((self.conclude(&place, &done, value).await?, done)),
                    }
                }
                RemoteState::Failed | RemoteState::Canceled | RemoteState::Rejected => {
                    return self.without_answer(done);
                }
            }
        }
    }

    async fn exchange(&mut self, next: NextMessage) -> Result<FinishedExchange, Failure> {
        let place = self.scope.at(&format!("turn:{}", self.budget.turns() + 1));
        if !place.step().is_recorded() {
            match self.budget.limit_met(&self.scope.run.recorder.ledger) {
                Some(limit @ (LimitKind::Cost | LimitKind::Tokens)) => {
                    let message = format!(
                        "the budget was used up ({limit}) before `{}` could begin",
                        self.scope.name()
                    );
                    return Err(Failure::BudgetExhausted { message, limit });
                }
                Some(LimitKind::Time) => return Err(Failure::DeadlineReached),
                Some(limit) => return Err(handoff::failure(self.scope, &limit.reason())),
                None => {}
            }
        }
        self.budget.count_turn();
        let agent = self.scope.agent();
        let terms = ExchangeTerms {
            deadline: self.budget.deadline(),
            is_streamed: self.scope.is_user_facing()
                && self.schema.is_none()
                && agent.guardrails.output.is_empty(),
            shows_questions: self.scope.session.lease.is_some(),
            billed: self.link.billed,
        };
        let remote = Arc::clone(&self.remote);
        let open = || match next.unread.clone() {
            Some(link) => Ok(OpenExchange::following(remote, link.task, link.opening)),
            None => OpenExchange::new(&place, remote, next.at(&place)),
        };
        let result = exchange::run(&place, terms, &mut self.link.task, open).await;
        let is_open = match &result {
            Ok(done) => done.end.state.is_waiting(),
            Err(Failure::Remote { error, .. }) => error.kind != RemoteErrorKind::TaskNotFound,
            Err(_) => true,
        };
        (self.link.is_unread, self.link.opening) = (false, None);
        if let Ok(done) = &result {
            (self.link.task, self.link.billed) = (done.task.clone(), done.billed);
        }
        if !is_open {
            // A task that has ended is not continued, and the next one starts to count anew.
            self.link.task = RemoteTask { task_id: None, seen: Vec::new(), ..self.link.task.clone() };
            self.link.billed = Usage::default();
        }
        result
    }

    /// Asks the user what the agent wants to know. The run waits for the answer.
    async fn ask(&self, place: &Scope, done: &FinishedExchange) -> Result<String, Failure> {
        let outcome = remote_question::ask(place, &done.end, &done.task).await?;
        let reason = match outcome {
            QuestionOutcome::Answered(text) => return Ok(text),
            QuestionOutcome::Refused(reason) => reason,
        };
        if let Some(task) = &done.task.task_id {
            self.remote.cancel_in_background(task);
        }
        Err(handoff::failure(self.scope, &reason))
    }

    /// The answer as JSON, if there is a schema.
    fn value(&self, done: &FinishedExchange) -> Result<Option<Value>, String> {
        let schema = self.schema.filter(|_| done.end.state == RemoteState::Completed);
        schema.map(|schema| structured_output::validate(schema, &done.reply.text)).transpose()
    }

    async fn conclude(
        &self,
        place: &Scope,
        done: &FinishedExchange,
        value: Option<Value>,
    ) -> Result<Outcome, Failure> {
        let turns = self.budget.turns();
        let mut text = value.as_ref().map_or_else(|| done.reply.text.clone(), ToString::to_string);
        if text.trim().is_empty() && done.end.handoff.is_none() {
            "(The agent finished without a text.)".clone_into(&mut text);
        }
        let mut answer =
            Answer { text, value, limit: done.limit, turns, message_id: done.message_id, files: Vec::new() };
        if !self.scope.agent().guardrails.output.is_empty()
            && let Some(violation) = guardrails::check_output(place, &answer.text).await?
        {
            if !self.scope.session.is_root() {
                return Err(guardrails::failure(self.scope.name(), GuardSide::Output, violation));
            }
            self.scope.run.recorder.files.withhold();
            let limit = done.limit;
            answer = Answer { limit, turns, ..Answer::without_turn(violation.for_user(GuardSide::Output)) };
        }
        let is_shown = answer.message_id.is_some() && self.scope.is_user_facing();
        Ok(Outcome { answer, agent: self.scope.name().clone(), is_shown, dissent: Vec::new() })
    }

    /// A task that ended without an answer. A holder may have returned the thread with it.
    fn without_answer(&self, done: FinishedExchange) -> Result<(Outcome, FinishedExchange), Failure> {
        if self.scope.session.lease.is_some() && done.end.handoff.is_some() {
            let mut outcome = Outcome::nothing(self.scope.name());
            outcome.answer.turns = self.budget.turns();
            return Ok((outcome, done));
        }
        let said = done.end.answer();
        let said = if said.is_empty() { String::new() } else { format!(": {}", handoff::quoted(&said)) };
        let what = match done.end.state {
            RemoteState::Rejected => "it rejected the task",
            RemoteState::Canceled => "its task was cancelled there",
            _ => "its task failed",
        };
        Err(handoff::failure(self.scope, &format!("{what}{said}")))
    }

    /// Returns the thread if the agent has.
    async fn return_thread(&self, lease: &Arc<HandoffLease>, done: &FinishedExchange) {
        let returns = self.scope.agent().accepts_handoff.as_ref().map(|terms| terms.returns);
        if let Some((end, summary, artifacts)) = handoff::returned(done, returns == Some(Return::OnComplete))
        {
            crate::handoff::finish::start_return(self.scope, lease, end, &summary, &artifacts).await;
        }
    }
}
