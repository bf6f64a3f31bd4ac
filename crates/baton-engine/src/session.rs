//! One agent's loop: a turn, the tools it asked for, the next turn, until there is an answer.

use baton_core::MessageId;
use baton_core::agent::PlanningStrategy;
use baton_core::chat::{ChatMessage, Reply};
use baton_core::event::EventKind;
use baton_core::message::Part;
use baton_core::model::{Finish, ModelErrorKind, ToolChoice};
use baton_core::store::StepKind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::budget::{Budget, Limit};
use crate::calls::{self, Terms};
use crate::engine::{Approve, Overrides};
use crate::failure::Failure;
use crate::models::Candidate;
use crate::scope::Scope;
use crate::toolset::Toolset;
use crate::turn::{self, Ask, Taken};
use crate::window::{Conversation, estimate};
use crate::{answer, planning, prompt};

/// What a session came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    pub text: String,
    /// The same as JSON, when a schema was asked for.
    pub value: Option<Value>,
    /// The limit that made it end early.
    pub limit: Option<Limit>,
    pub turns: u32,
}

/// Holds a session of the scope's agent on `input`, from its prompt to its answer. `history` is what was said before.
pub async fn hold(
    scope: &Scope,
    history: Vec<ChatMessage>,
    input: Vec<Part>,
    overrides: &Overrides,
) -> Result<Answer, Failure> {
    let conversation = Conversation::new(history, ChatMessage::User { parts: input });
    let mut session = Session::open(scope, conversation, overrides).await?;
    planning::answer(&mut session).await
}

/// A session under way.
pub(crate) struct Session<'a> {
    scope: &'a Scope,
    system: String,
    toolset: Toolset,
    candidates: Vec<Candidate>,
    conversation: Conversation,
    budget: Budget,
    approve: Approve,
    output_schema: Option<Value>,
}

/// How a stretch of work ended.
pub(crate) struct Worked {
    pub(crate) text: String,
    pub(crate) limit: Option<Limit>,
}

/// What a turn is to bring forth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A plan, a step, a review: in whatever words.
    Words,
    /// The answer: JSON of the schema, if there is one.
    Answer,
}

/// Whether the person sees what is said while it is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shown {
    Live,
    /// A plan, a draft, or an answer that must be checked first.
    Not,
}

impl<'a> Session<'a> {
    async fn open(
        scope: &'a Scope,
        conversation: Conversation,
        overrides: &Overrides,
    ) -> Result<Self, Failure> {
        let before = scope.run.spent_before(scope.path());
        let budget = Budget::new(overrides.limits(&scope.agent.limits), before);
        let candidates = scope.run.engine.parts.models.candidates(&scope.agent)?;
        let price = |candidate: &Candidate| candidate.provider.facts(&candidate.model).price;
        if let Some(unpriced) =
            candidates.iter().find(|one| overrides.max_cost_usd.is_some() && price(one).is_none())
        {
            return Err(Failure::Unpriced(format!("{}/{}", unpriced.provider.provider(), unpriced.model)));
        }
        // Starting an MCP server can take long; the session's time and a cancellation count meanwhile.
        let toolset = tokio::select! {
            biased;
            () = scope.run.cancel.cancelled() => return Err(Failure::Cancelled),
            () = tokio::time::sleep_until(budget.deadline()) => Toolset::default(),
            toolset = Toolset::gather(scope) => toolset,
        };
        Ok(Self {
            scope,
            system: prompt::render(scope)?,
            candidates,
            toolset,
            conversation,
            budget,
            approve: overrides.approve,
            output_schema: overrides.output_schema.clone().or_else(|| scope.agent.output_schema.clone()),
        })
    }

    pub(crate) fn strategy(&self) -> PlanningStrategy {
        self.scope.agent.planning_strategy
    }

    pub(crate) fn has_schema(&self) -> bool {
        self.output_schema.is_some()
    }

    /// Tells the model something that the person did not say.
    pub(crate) fn instruct(&mut self, text: impl Into<String>) {
        self.conversation.push(ChatMessage::user(text));
    }

    /// Turns and tools until the model asks for no more tools, or a limit is met and it closes.
    pub(crate) async fn work(&mut self, shown: Shown, form: Form) -> Result<Worked, Failure> {
        loop {
            if let Some(limit) = self.limit_met()? {
                return self.close(limit, shown).await;
            }
            let Taken { reply, finish, .. } = match self.turn(shown, ToolChoice::Auto, form).await {
                Err(Failure::TimeUp) => return self.close(Limit::Time, shown).await,
                other => other?,
            };
            let calls = reply.calls.clone();
            let text = reply.text.clone();
            self.conversation.push(ChatMessage::Assistant(reply));
            if calls.is_empty() {
                let limit = (finish == Finish::Length).then_some(Limit::Length);
                return Ok(Worked { text, limit });
            }
            let scope = self.place(self.budget.turns());
            let terms = Terms {
                at_once: self.budget.max_parallel_tools(),
                approve: self.approve,
                deadline: self.budget.deadline(),
            };
            for result in calls::run(&scope, &self.toolset, &calls, terms).await? {
                self.conversation.push(ChatMessage::Tool(result));
            }
            if scope.run.cancel.is_cancelled() {
                return Err(Failure::Cancelled);
            }
        }
    }

    /// The limit that does not allow another turn. A turn that was taken before a crash was allowed then, or was a closing one.
    fn limit_met(&self) -> Result<Option<Limit>, Failure> {
        match self.place(self.budget.turns() + 1).finished::<Taken>()? {
            Some(taken) => Ok(taken.closing),
            None if self.scope.run.stop.is_cancelled() => Ok(Some(Limit::Stopped)),
            None => Ok(self.budget.met(self.scope.run.ledger.spent(self.scope.path()))),
        }
    }

    /// Where a turn happens.
    fn place(&self, turn: u32) -> Scope {
        self.scope.at(&format!("turn:{turn}"))
    }

    /// One turn without tools, for a plan or a review. `None` when no turn is left for it.
    pub(crate) async fn think(&mut self, instruction: &str) -> Result<Option<String>, Failure> {
        if self.limit_met()?.is_some() {
            return Ok(None);
        }
        self.instruct(instruction);
        match self.turn(Shown::Not, ToolChoice::None, Form::Words).await {
            Err(Failure::TimeUp) => Ok(None),
            Err(failure) => Err(failure),
            Ok(Taken { reply, .. }) => Ok(Some(self.keep_words(reply))),
        }
    }

    /// Keeps what was said in a turn without tools. Calls that came all the same will never be answered.
    fn keep_words(&mut self, reply: Reply) -> String {
        let text = reply.text.clone();
        self.conversation.push(ChatMessage::Assistant(Reply { calls: Vec::new(), ..reply }));
        text
    }

    /// The one turn after a limit: an answer from what is there, without tools.
    async fn close(&mut self, limit: Limit, shown: Shown) -> Result<Worked, Failure> {
        let reason = limit.reason();
        let text = format!("{reason}; one closing turn follows");
        self.place(self.budget.turns() + 1).trace(EventKind::Status { text }).await;
        self.instruct(format!(
            "This has to end here: {reason}. Do not use tools any more. Give the best answer you can from \
             what you have, and say plainly what is missing."
        ));
        self.budget = self.budget.closing(limit);
        let taken = self.turn(shown, ToolChoice::None, Form::Answer).await?;
        let mut text = self.keep_words(taken.reply);
        if text.trim().is_empty() && !self.has_schema() {
            text = format!("I could not finish: {reason} before there was an answer.");
            if shown == Shown::Live {
                self.say(&text).await?;
            }
        }
        Ok(Worked { text, limit: Some(limit) })
    }

    async fn turn(
        &mut self,
        shown: Shown,
        tool_choice: ToolChoice<'_>,
        form: Form,
    ) -> Result<Taken, Failure> {
        self.budget.count_turn();
        let place = self.place(self.budget.turns());
        let scope = if shown == Shown::Live { place } else { place.internal() };
        let specs = self.toolset.specs();
        let fixed = estimate::text(&self.system) + specs.iter().map(|spec| estimate::tool(spec)).sum::<u64>();
        let window =
            self.candidates.first().and_then(|first| first.provider.facts(&first.model).context_window);
        self.conversation.fit(&scope, window, fixed).await;
        for last_try in [false, true] {
            let ask = Ask {
                system: &self.system,
                messages: self.conversation.messages(),
                tools: &specs,
                tool_choice,
                output_schema: self.output_schema.as_ref().filter(|_| form == Form::Answer),
                deadline: self.budget.deadline(),
                closing: self.budget.closing_at(),
            };
            match turn::take(&scope, &self.candidates, ask).await {
                Err(Failure::Model(error)) if error.kind == ModelErrorKind::ContextTooLong && !last_try => {
                    if !self.conversation.shorten(&scope).await {
                        return Err(error.into());
                    }
                }
                other => return other,
            }
        }
        unreachable!("the second try returns")
    }

    /// Makes an answer of the last words: checks it against the schema if there is one, with one turn to repair it.
    pub(crate) async fn conclude(&mut self, worked: Worked, shown: Shown) -> Result<Answer, Failure> {
        let mut text = worked.text;
        let mut value = None;
        if let Some(schema) = self.output_schema.clone() {
            let checked = match answer::check(&schema, &text) {
                Ok(checked) => checked,
                Err(mistakes) => {
                    self.instruct(format!(
                        "Your answer does not satisfy the required JSON Schema: {mistakes}. Answer again with only the corrected \
                         JSON."
                    ));
                    let taken = self.turn(Shown::Not, ToolChoice::None, Form::Answer).await?;
                    answer::check(&schema, &self.keep_words(taken.reply)).map_err(Failure::InvalidOutput)?
                }
            };
            text = checked.to_string();
            value = Some(checked);
        }
        if shown == Shown::Not {
            self.say(&text).await?;
        }
        Ok(Answer { text, value, limit: worked.limit, turns: self.budget.turns() })
    }

    /// Shows a finished text that was not streamed. There is at most one in a session.
    async fn say(&self, text: &str) -> Result<(), Failure> {
        let place = self.scope.at("say");
        if place.is_finished() {
            return Ok(());
        }
        let event = EventKind::TextFinished {
            message_id: MessageId::from_uuid(Uuid::now_v7()),
            speaker: self.scope.agent.display_name.clone(),
            text: text.to_owned(),
        };
        place.finish(StepKind::Say, &text, vec![place.event(event)], Vec::new()).await
    }
}
