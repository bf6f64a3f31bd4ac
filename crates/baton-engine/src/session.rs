//! One agent's loop: a turn, the tools it asked for, the next turn, until there is an answer.

use std::sync::Arc;

use baton_core::MessageId;
use baton_core::agent::PlanningStrategy;
use baton_core::chat::{ChatMessage, Reply, ToolCall};
use baton_core::event::EventKind;
use baton_core::model::{Finish, ModelErrorKind, ToolChoice};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::budget::{Budget, Limit};
use crate::calls::{self, Answered, Terms};
use crate::failure::Failure;
use crate::given::{Ending, Given};
use crate::models::Candidate;
use crate::outcome::Outcome;
use crate::run::Input;
use crate::scope::Scope;
use crate::toolset::{Equipment, Toolset};
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
    /// The message that it was heard as, if it was heard as it grew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_id: Option<MessageId>,
}

impl Answer {
    /// Words that no turn brought.
    pub(crate) fn words(text: impl Into<String>) -> Self {
        Self { text: text.into(), value: None, limit: None, turns: 0, message_id: None }
    }
}

/// What a session is held about, and on which terms.
#[derive(Debug)]
pub(crate) struct Brief {
    pub(crate) input: Input,
    /// Tools from the engine, beside those that the agent's file lists.
    pub(crate) given: Vec<Arc<dyn Given>>,
    /// Whether the agent has the tools of its file.
    pub(crate) own_tools: bool,
    /// Whether the person sees the text as it grows. Not before it is certain that it is the answer.
    pub(crate) shown: Shown,
    /// Said when the model answers in words although only a tool may end the session.
    pub(crate) insist: Option<String>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) at_limit: AtLimit,
}

/// What a session does when a limit is met.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtLimit {
    /// One closing turn, so that there is an answer.
    Close,
    /// It is left undecided: somebody else closes.
    End,
}

impl Brief {
    /// A session as the agent's file describes it.
    pub(crate) fn new(scope: &Scope, input: &Input, given: Vec<Arc<dyn Given>>) -> Self {
        let may_pass = given.iter().any(|tool| tool.may_silence());
        let shown = if scope.is_for_the_person() && !may_pass { Shown::Live } else { Shown::Not };
        Self {
            input: input.clone(),
            given,
            own_tools: true,
            shown,
            insist: None,
            max_turns: None,
            at_limit: AtLimit::Close,
        }
    }
}

/// How a session ended.
#[derive(Debug)]
pub(crate) enum Ended {
    Answered(Concluded),
    /// A tool ended it.
    By(Ending),
    /// It had to be ended by a tool, and was not; this was said instead.
    Undecided(String),
}

impl Ended {
    /// The outcome of a session that had to come to one.
    pub(crate) fn outcome(self, scope: &Scope) -> Outcome {
        let (answer, is_shown) = match self {
            Self::By(Ending::Passed(outcome)) => return *outcome,
            Self::By(Ending::Returned) => return Outcome::nothing(scope.name()),
            Self::Answered(Concluded { answer, shown }) => {
                (answer, shown == Shown::Live && scope.is_for_the_person())
            }
            Self::By(Ending::Concluded(text)) | Self::Undecided(text) => (Answer::words(text), false),
        };
        Outcome { answer, agent: scope.name().clone(), is_shown, dissent: Vec::new() }
    }
}

/// An answer, and whether it has been seen growing.
#[derive(Debug)]
pub(crate) struct Concluded {
    pub(crate) answer: Answer,
    pub(crate) shown: Shown,
}

/// Why a session does not go on.
#[derive(Debug)]
pub(crate) enum Break {
    Failed(Failure),
    Ended(Box<Ended>),
}

impl Break {
    fn ended(ended: Ended) -> Self {
        Self::Ended(Box::new(ended))
    }
}

impl From<Failure> for Break {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Holds a session of the scope's agent, from its prompt to its end.
pub(crate) async fn hold(scope: &Scope, brief: Brief) -> Result<Ended, Failure> {
    let mut session = Session::open(scope, brief).await?;
    match planning::answer(&mut session).await {
        Ok(concluded) => Ok(Ended::Answered(concluded)),
        Err(Break::Ended(ended)) => Ok(*ended),
        Err(Break::Failed(failure)) => Err(failure),
    }
}

/// How often a model that has to use a tool is told so.
const INSISTS: u32 = 2;

/// A session under way.
pub(crate) struct Session<'a> {
    scope: &'a Scope,
    system: String,
    /// Estimated tokens of the system prompt and the tools, which stay the same from turn to turn.
    fixed_tokens: u64,
    toolset: Toolset,
    candidates: Vec<Candidate>,
    conversation: Conversation,
    budget: Budget,
    /// What the caller asked for. Without it that of the agent counts: see [`Session::schema`].
    output_schema: Option<Arc<Value>>,
    shown: Shown,
    insist: Option<String>,
    insists_left: u32,
    at_limit: AtLimit,
}

/// How a stretch of work ended.
pub(crate) struct Worked {
    pub(crate) text: String,
    pub(crate) limit: Option<Limit>,
    /// What it was heard as. None: it is not what the model said, so nobody has seen it.
    message_id: Option<MessageId>,
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
    async fn open(scope: &'a Scope, brief: Brief) -> Result<Self, Failure> {
        let budget = Budget::new(&scope.bounds, brief.max_turns);
        let candidates = scope.run.engine.parts.models.candidates(&scope.agent)?;
        if let Some(unpriced) =
            candidates.iter().find(|one| scope.bounds.needs_prices && one.facts.price.is_none())
        {
            return Err(Failure::Unpriced(format!("{}/{}", unpriced.provider.provider(), unpriced.model)));
        }
        // Starting an MCP server can take long; the session's time and a cancellation count meanwhile. The engine's own tools are there
        // in any case: whoever got the baton before a crash still has it, even if the giver's time is over.
        let Equipment { toolset, skills } = tokio::select! {
            biased;
            () = scope.cancel.cancelled() => return Err(Failure::Cancelled),
            equipment = Equipment::gather(scope, brief.own_tools, brief.given.clone()) => equipment,
            () = tokio::time::sleep_until(budget.deadline()) => Equipment::of(brief.given),
        };
        let Input { history, parts, output_schema, .. } = brief.input;
        let task = ChatMessage::User { parts: Arc::unwrap_or_clone(parts) };
        let system = prompt::render(scope, &skills)?;
        let tools = toolset.specs().into_iter().map(estimate::tool).sum::<u64>();
        Ok(Self {
            scope,
            fixed_tokens: estimate::text(&system) + tools,
            system,
            candidates,
            toolset,
            conversation: Conversation::new(history, task),
            budget,
            output_schema,
            shown: brief.shown,
            insists_left: INSISTS,
            insist: brief.insist,
            at_limit: brief.at_limit,
        })
    }

    pub(crate) fn shown(&self) -> Shown {
        self.shown
    }

    pub(crate) fn strategy(&self) -> PlanningStrategy {
        self.scope.agent.planning_strategy
    }

    pub(crate) fn has_schema(&self) -> bool {
        self.schema().is_some()
    }

    fn schema(&self) -> Option<&Value> {
        self.output_schema.as_deref().or(self.scope.agent.output_schema.as_ref())
    }

    /// Tells the model something that the person did not say.
    pub(crate) fn instruct(&mut self, text: impl Into<String>) {
        self.conversation.push(ChatMessage::user(text));
    }

    /// Turns and tools until the model asks for no more tools, a tool ends the session, or a limit is met and it closes.
    pub(crate) async fn work(&mut self, shown: Shown, form: Form) -> Result<Worked, Break> {
        loop {
            if let Some(limit) = self.limit_met()? {
                return self.close(limit, shown).await;
            }
            let Taken { reply, finish, message_id, .. } =
                match self.turn(shown, self.tool_choice(), form).await {
                    Err(Failure::TimeUp) => return self.close(Limit::Time, shown).await,
                    other => other?,
                };
            let calls = reply.calls.clone();
            let text = reply.text.clone();
            self.conversation.push(ChatMessage::Assistant(reply));
            if calls.is_empty() && self.insist.is_some() {
                self.insist_once_more(text)?;
                continue;
            }
            if calls.is_empty() {
                let limit = (finish == Finish::Length).then_some(Limit::Length);
                return Ok(Worked { text, limit, message_id });
            }
            self.call(&calls).await?;
        }
    }

    /// Only a tool may end the session: the model is told so, some times.
    fn insist_once_more(&mut self, said: String) -> Result<(), Break> {
        match &self.insist {
            Some(text) if self.insists_left > 0 => {
                self.insists_left -= 1;
                let text = text.clone();
                self.instruct(text);
                Ok(())
            }
            _ => Err(Break::ended(Ended::Undecided(said))),
        }
    }

    fn tool_choice(&self) -> ToolChoice<'static> {
        if self.insist.is_some() { ToolChoice::Required } else { ToolChoice::Auto }
    }

    /// Runs the tools of the newest turn. One of them may end the session.
    async fn call(&mut self, calls: &[ToolCall]) -> Result<(), Break> {
        let scope = self.place(self.budget.turns());
        let terms = Terms { at_once: self.budget.max_parallel_tools(), deadline: self.budget.deadline() };
        let Answered { results, ending } =
            calls::run(&scope, &self.toolset, calls, &self.conversation, terms).await?;
        for result in results {
            self.conversation.push(ChatMessage::Tool(result));
        }
        if let Some(ending) = ending {
            return Err(Break::ended(Ended::By(ending)));
        }
        if scope.cancel.is_cancelled() {
            return Err(Failure::Cancelled.into());
        }
        Ok(())
    }

    /// The limit that does not allow another turn. A turn that was taken before a crash was allowed then, or was a closing one.
    fn limit_met(&self) -> Result<Option<Limit>, Failure> {
        match self.place(self.budget.turns() + 1).finished::<Taken>()? {
            Some(taken) => Ok(taken.closing),
            None if self.scope.run.stop.is_cancelled() => Ok(Some(Limit::Stopped)),
            None => Ok(self.budget.met(&self.scope.run)),
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
    async fn close(&mut self, limit: Limit, shown: Shown) -> Result<Worked, Break> {
        if self.insist.is_some() || self.at_limit == AtLimit::End {
            return Err(Break::ended(Ended::Undecided(limit.reason())));
        }
        let reason = limit.reason();
        let text = format!("{reason}; one closing turn follows");
        self.place(self.budget.turns() + 1).trace(EventKind::Status { text }).await;
        self.instruct(format!(
            "This has to end here: {reason}. Do not use tools any more. Give the best answer you can from \
             what you have, and say plainly what is missing."
        ));
        self.budget = self.budget.closing(limit);
        let taken = self.turn(shown, ToolChoice::None, Form::Answer).await?;
        let message_id = taken.message_id;
        let mut text = self.keep_words(taken.reply);
        if text.trim().is_empty() && !self.has_schema() {
            text = format!("I could not finish: {reason} before there was an answer.");
            return Ok(Worked { text, limit: Some(limit), message_id: None });
        }
        Ok(Worked { text, limit: Some(limit), message_id })
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
        let window = self.candidates.first().and_then(|first| first.facts.context_window);
        self.conversation.fit(&scope, window, self.fixed_tokens).await;
        for last_try in [false, true] {
            let ask = Ask {
                system: &self.system,
                messages: self.conversation.messages(),
                tools: &specs,
                tool_choice,
                output_schema: self.schema().filter(|_| form == Form::Answer),
                input_estimate: self.fixed_tokens + self.conversation.tokens(),
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

    /// The text as JSON of the schema, or what is wrong with it. `None`: there is no schema.
    fn checked(&self, text: &str) -> Option<Result<Value, String>> {
        self.schema().map(|schema| answer::check(schema, text))
    }

    /// Makes an answer of the last words: checks it against the schema if there is one, with one turn to repair it.
    pub(crate) async fn conclude(&mut self, worked: Worked, shown: Shown) -> Result<Concluded, Break> {
        let (mut text, mut message_id) = (worked.text, worked.message_id);
        // What the model did not say has not been seen.
        let shown = if message_id.is_none() { Shown::Not } else { shown };
        let mut value = None;
        if let Some(first) = self.checked(&text) {
            let checked = match first {
                Ok(checked) => checked,
                Err(mistakes) => {
                    self.instruct(format!(
                        "Your answer does not satisfy the required JSON Schema: {mistakes}. Answer again with only the corrected \
                         JSON."
                    ));
                    let taken = self.turn(Shown::Not, ToolChoice::None, Form::Answer).await?;
                    message_id = taken.message_id;
                    let again = self.keep_words(taken.reply);
                    self.checked(&again).expect("there is a schema").map_err(Failure::InvalidOutput)?
                }
            };
            text = checked.to_string();
            value = Some(checked);
        }
        let turns = self.budget.turns();
        let answer = Answer { text, value, limit: worked.limit, turns, message_id };
        Ok(Concluded { answer, shown })
    }
}
