//! One agent's loop: a turn, the tools it asked for, the next turn, until there is an answer. [`planning`] varies it.

mod planning;

use std::sync::Arc;

use baton_core::MessageId;
use baton_core::agent::{Grounding, PlanningStrategy};
use baton_core::chat::{ChatMessage, Reply, ToolCall};
use baton_core::event::EventKind;
use baton_core::model::{Finish, ModelErrorKind, ToolChoice};
use serde_json::Value;

use crate::bounds::LimitKind;
use crate::budget::Budget;
use crate::engine_tool::{EngineTool, SessionEnding};
use crate::failure::Failure;
use crate::grounding::{self, EvidenceCheck, EvidenceRequest};
use crate::guard::{self, GuardSide, Violation};
use crate::guardrails;
use crate::input::Input;
use crate::models::ModelCandidate;
use crate::outcome::{Answer, Outcome};
use crate::repeated_calls::RepeatedCalls;
use crate::run_files;
use crate::scope::Scope;
use crate::tool_calls::{self, CallLimits, ToolResults};
use crate::toolset::{ToolsAndSkills, Toolset};
use crate::turn::{self, TurnRequest, TurnResult, WITHHELD};
use crate::window::{Conversation, estimate};
use crate::workflow::extraction::{self, SessionModel, WorkflowCheck};
use crate::{prompt, reservation, structured_output};

/// What a session works on, and how.
#[derive(Debug)]
pub(crate) struct SessionSpec {
    pub(crate) input: Input,
    /// Tools of the engine, in addition to those that the agent's file lists.
    pub(crate) engine_tools: Vec<Arc<dyn EngineTool>>,
    /// Whether the session has the tools of the agent's file.
    pub(crate) own_tools: bool,
    /// Whether text is streamed to the user. It is not while it may turn out not to be the answer.
    pub(crate) shown: TextVisibility,
    /// The reminder for a model that answers with text although only a tool may end the session.
    pub(crate) insist: Option<String>,
    pub(crate) max_turns: Option<u32>,
    pub(crate) on_limit: OnLimit,
}

/// What a session does when it meets a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnLimit {
    /// Takes one closing turn, so that there is an answer.
    Close,
    /// Ends undecided, and the caller of the session continues.
    End,
}

impl SessionSpec {
    /// A session as the agent's file defines it.
    pub(crate) fn new(scope: &Scope, input: &Input, engine_tools: Vec<Arc<dyn EngineTool>>) -> Self {
        let may_pass = engine_tools.iter().any(|tool| tool.may_change_speaker());
        let shown = if scope.is_user_facing() && !may_pass {
            TextVisibility::Streamed
        } else {
            TextVisibility::Hidden
        };
        Self {
            input: input.clone(),
            engine_tools,
            own_tools: true,
            shown,
            insist: None,
            max_turns: None,
            on_limit: OnLimit::Close,
        }
    }
}

/// How a session ended.
#[derive(Debug)]
pub(crate) enum SessionEnd {
    Answered(FinalAnswer),
    /// A tool ended the session.
    ByTool(SessionEnding),
    /// A tool had to end the session and did not. Contains the model's text, or the limit that was met.
    Undecided(String),
}

impl SessionEnd {
    /// Turns the end of a session into an outcome.
    pub(crate) fn outcome(self, scope: &Scope) -> Outcome {
        let (answer, is_shown) = match self {
            Self::ByTool(SessionEnding::Passed(outcome)) => return *outcome,
            Self::ByTool(SessionEnding::Returned) => return Outcome::nothing(scope.name()),
            Self::Answered(FinalAnswer { answer, shown }) => {
                (answer, shown == TextVisibility::Streamed && scope.is_user_facing())
            }
            Self::ByTool(SessionEnding::Concluded(text)) | Self::Undecided(text) => {
                (Answer::without_turn(text), false)
            }
        };
        Outcome { answer, agent: scope.name().clone(), is_shown, dissent: Vec::new() }
    }
}

/// An answer, and whether it was streamed.
#[derive(Debug)]
pub(crate) struct FinalAnswer {
    pub(crate) answer: Answer,
    pub(crate) shown: TextVisibility,
}

/// Why a session stops before it has an answer.
#[derive(Debug)]
pub(crate) enum SessionBreak {
    Failed(Failure),
    Ended(Box<SessionEnd>),
}

impl SessionBreak {
    fn ended(ended: SessionEnd) -> Self {
        Self::Ended(Box::new(ended))
    }
}

impl From<Failure> for SessionBreak {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Runs a session of the scope's agent to its end.
pub(crate) async fn run_session(scope: &Scope, spec: SessionSpec) -> Result<SessionEnd, Failure> {
    let mut session = Box::pin(Session::open(scope, spec)).await?;
    match session.answer().await {
        Ok(concluded) => Ok(SessionEnd::Answered(concluded)),
        Err(SessionBreak::Ended(ended)) => Ok(*ended),
        Err(SessionBreak::Failed(failure)) => Err(failure),
    }
}

/// How often a model is reminded that it has to use a tool.
const MAX_REMINDERS: u32 = 2;

/// In place of the mistakes of an answer that a judge has not decided on.
const NOT_QUOTED: &str = "it is not quoted, because no judge has allowed it";

/// Reminds a model that answers with text although only a tool may end the session.
struct Reminder {
    text: String,
    left: u32,
}

/// A session in progress.
pub(crate) struct Session<'a> {
    scope: &'a Scope,
    system: String,
    /// Estimated tokens of the system prompt and the tools, which do not change between turns.
    fixed_tokens: u64,
    toolset: Toolset,
    candidates: Vec<ModelCandidate>,
    conversation: Conversation,
    budget: Budget,
    /// The caller's schema. The agent's own applies if there is none: see [`Session::schema`].
    output_schema: Option<Arc<Value>>,
    shown: TextVisibility,
    reminder: Option<Reminder>,
    on_limit: OnLimit,
    evidence: EvidenceCheck,
    repeated: RepeatedCalls,
    /// The text of the task, for an agent that requires evidence.
    question: String,
    workflow: WorkflowCheck,
    /// Why a guardrail withheld the text of the newest turn.
    withheld: Option<Violation>,
}

/// The result of a loop of turns.
pub(crate) struct WorkResult {
    pub(crate) text: String,
    pub(crate) limit: Option<LimitKind>,
    /// The id of the message. `None` if the text is not the model's, so it was not published.
    message_id: Option<MessageId>,
    shown: TextVisibility,
}

/// What a turn is to produce.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OutputKind {
    /// A plan, a step or a review, as free text.
    Text,
    /// The answer, as JSON of the schema if there is one.
    Answer,
}

/// Whether the user sees a text while it is streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TextVisibility {
    Streamed,
    /// A plan, a draft, or an answer that has to be validated first.
    Hidden,
}

impl<'a> Session<'a> {
    async fn open(scope: &'a Scope, spec: SessionSpec) -> Result<Self, Failure> {
        let budget = Budget::new(&scope.session.bounds, spec.max_turns);
        let needs_prices = reservation::needs_prices(scope);
        let candidates = scope.models().candidates(scope.agent())?;
        if let Some(unpriced) = candidates.iter().find(|one| needs_prices && one.facts.price.is_none()) {
            return Err(reservation::unpriced(unpriced));
        }
        // Starting an MCP server can take long; the deadline and cancellation apply meanwhile. At the deadline the session keeps
        // the engine's own tools: after a crash, a replayed transfer needs its tool even if the giver's time is over.
        let ToolsAndSkills { toolset, skills } = tokio::select! {
            biased;
            () = scope.cancel.cancelled() => return Err(Failure::Cancelled),
            equipment = ToolsAndSkills::collect(scope, spec.own_tools, spec.engine_tools.clone()) => equipment,
            () = tokio::time::sleep_until(budget.deadline()) => ToolsAndSkills::of(spec.engine_tools),
        };
        let question =
            if scope.agent().grounding == Grounding::Required { spec.input.words() } else { String::new() };
        let Input { history, parts, output_schema, .. } = spec.input;
        let parts = prompt::with_note(scope, &candidates, Arc::unwrap_or_clone(parts));
        let task = ChatMessage::User { parts };
        let system = prompt::render(scope, &skills)?;
        let tools = toolset.specs().into_iter().map(estimate::tool).sum::<u64>();
        let evidence = EvidenceCheck::new(scope, &toolset, &candidates);
        let workflow = WorkflowCheck::new(scope, &candidates);
        Ok(Self {
            scope,
            evidence,
            repeated: RepeatedCalls::new(&candidates),
            question,
            workflow,
            withheld: None,
            fixed_tokens: estimate::text(&system) + tools,
            system,
            candidates,
            toolset,
            conversation: Conversation::new(history, task),
            budget,
            output_schema,
            shown: spec.shown,
            reminder: spec.insist.map(|text| Reminder { text, left: MAX_REMINDERS }),
            on_limit: spec.on_limit,
        })
    }

    /// Works on the task with the agent's strategy.
    async fn answer(&mut self) -> Result<FinalAnswer, SessionBreak> {
        // An answer with a schema is not shown before it is validated.
        let shown = if self.schema().is_some() { TextVisibility::Hidden } else { self.shown };
        let worked = match self.scope.agent().planning_strategy {
            PlanningStrategy::NativeReact => self.work(shown, OutputKind::Answer).await?,
            // Boxed: most sessions use none of them.
            PlanningStrategy::PlanAndReact => Box::pin(planning::plan_and_react(self, shown)).await?,
            PlanningStrategy::PlanAndExecute => Box::pin(planning::plan_and_execute(self, shown)).await?,
            PlanningStrategy::Spar => Box::pin(planning::spar(self)).await?,
        };
        let concluded = self.conclude(worked).await?;
        if self.scope.agent().guardrails.output.is_empty() {
            return Ok(concluded);
        }
        Box::pin(self.guarded(concluded)).await
    }

    /// Checks the answer by the agent's guardrails, and allows one turn to repair it. An answer that is withheld again is refused: the
    /// invoking agent gets a failure, a user a sentence in its place.
    async fn guarded(&mut self, first: FinalAnswer) -> Result<FinalAnswer, SessionBreak> {
        let Some(mut violation) = self.violation(&first.answer).await? else { return Ok(first) };
        if first.answer.limit.is_none() && self.limit_met()?.is_none() {
            self.instruct(format!(
                "Your answer was withheld, and the user has not seen it: {}. Answer again in a way that is allowed, and do not \
                 mention this.",
                violation.reason
            ));
            match self.turn(TextVisibility::Hidden, ToolChoice::None, OutputKind::Answer).await {
                Ok(taken) => {
                    let (message_id, shown) = (taken.message_id, TextVisibility::Hidden);
                    let text = self.keep_words(taken.reply);
                    let worked = WorkResult { text, limit: None, message_id, shown };
                    let again = self.conclude(worked).await?;
                    match self.violation(&again.answer).await? {
                        Some(still) => violation = still,
                        None => return Ok(again),
                    }
                }
                Err(Failure::DeadlineReached | Failure::BudgetExhausted { .. }) => {}
                Err(failure) => return Err(failure.into()),
            }
        }
        if !self.scope.session.is_root() {
            return Err(guardrails::failure(self.scope.name(), GuardSide::Output, violation).into());
        }
        self.scope.run.recorder.files.withhold();
        let answer = Answer {
            limit: first.answer.limit,
            turns: self.budget.turns(),
            ..Answer::without_turn(violation.for_user(GuardSide::Output))
        };
        Ok(FinalAnswer { answer, shown: TextVisibility::Hidden })
    }

    /// Why the answer, which the newest turn gave, is withheld.
    async fn violation(&mut self, answer: &Answer) -> Result<Option<Violation>, Failure> {
        let place = self.place(self.budget.turns());
        match self.withheld.take() {
            Some(violation) => {
                guardrails::record(&place, GuardSide::Output, &violation).await?;
                Ok(Some(violation))
            }
            None => guardrails::check_output(&place, &answer.text).await,
        }
    }

    /// Whether an agent decides on the answer. Its text is then neither shown nor quoted before that.
    fn has_judge(&self) -> bool {
        guard::has_judge(&self.scope.agent().guardrails.output)
    }

    fn schema(&self) -> Option<&Value> {
        self.output_schema.as_deref().or(self.scope.agent().output_schema.as_ref())
    }

    /// Adds an instruction of the engine, as a user message.
    pub(crate) fn instruct(&mut self, text: impl Into<String>) {
        self.conversation.push(ChatMessage::user(text));
    }

    /// Takes turns and executes tools until the model calls no more tools, a tool ends the session, or a limit is met and the
    /// session closes.
    pub(crate) async fn work(
        &mut self,
        shown: TextVisibility,
        form: OutputKind,
    ) -> Result<WorkResult, SessionBreak> {
        if self.evidence.may_search_first() {
            Box::pin(self.search_first()).await?;
        }
        loop {
            if let Some(limit) = self.limit_met()? {
                return Box::pin(self.close(limit, shown)).await;
            }
            let holds_text = self.evidence.holds_text() || self.workflow.holds_text();
            let shown_now = if holds_text { TextVisibility::Hidden } else { shown };
            let TurnResult { reply, finish, message_id, .. } =
                match self.turn(shown_now, self.tool_choice(), form).await {
                    Err(Failure::DeadlineReached) => {
                        return Box::pin(self.close(LimitKind::Time, shown)).await;
                    }
                    // It says which budget is used up.
                    Err(failure @ Failure::BudgetExhausted { .. }) if self.has_nothing_to_close() => {
                        return Err(failure.into());
                    }
                    Err(Failure::BudgetExhausted { limit, .. }) => {
                        return Box::pin(self.close(limit, shown)).await;
                    }
                    other => other?,
                };
            self.evidence.count_turn();
            let calls = reply.calls.clone();
            let text = reply.text.clone();
            self.conversation.push(ChatMessage::Assistant(reply));
            if !calls.is_empty() {
                let is_shown = shown_now == TextVisibility::Streamed && self.scope.is_user_facing();
                Box::pin(self.call(&calls, message_id.filter(|_| is_shown))).await?;
                if let Some(text) = self.workflow.take_answer().filter(|_| form == OutputKind::Answer) {
                    return Ok(WorkResult { text, limit: None, message_id: None, shown: shown_now });
                }
                continue;
            }
            if self.reminder.is_some() {
                self.remind(text)?;
                continue;
            }
            if Box::pin(self.ask_for_evidence()).await? {
                continue;
            }
            if form == OutputKind::Answer
                && self.scope.session.lease.is_some()
                && let Some(text) = Box::pin(self.complete_workflow(&text)).await?
            {
                return Ok(WorkResult { text, limit: None, message_id: None, shown: shown_now });
            }
            let limit = (finish == Finish::Length).then_some(LimitKind::Length);
            return Ok(WorkResult { text, limit, message_id, shown: shown_now });
        }
    }

    /// Reminds the model that only a tool may end the session, [`MAX_REMINDERS`] times. Then the session ends undecided.
    fn remind(&mut self, said: String) -> Result<(), SessionBreak> {
        match &mut self.reminder {
            Some(reminder) if reminder.left > 0 => {
                reminder.left -= 1;
                let text = reminder.text.clone();
                self.instruct(text);
                Ok(())
            }
            _ => {
                // It becomes part of a failure or of another agent's prompt.
                let said = if self.has_judge() { WITHHELD.to_owned() } else { said };
                Err(SessionBreak::ended(SessionEnd::Undecided(said)))
            }
        }
    }

    /// Whether the session may go on after the newest turn, which answered. One that went on before a crash has decided.
    fn may_go_on(&self) -> Result<bool, Failure> {
        let is_decided = self.place(self.budget.turns() + 1).step().is_recorded();
        Ok(!is_decided && self.limit_met()?.is_none())
    }

    /// Searches for the question in place of the model's first working turn.
    async fn search_first(&mut self) -> Result<(), SessionBreak> {
        let may_search = self.may_go_on()?;
        let place = self.place(self.budget.turns());
        let call = self.evidence.first_search(&place, &self.toolset, &self.question, may_search).await?;
        let Some(call) = call else { return Ok(()) };
        self.conversation
            .push(ChatMessage::Assistant(Reply { calls: vec![call.clone()], ..Reply::default() }));
        self.call(&[call], None).await?;
        if !self.evidence.requires_tool() {
            self.conversation.add_to_result(&grounding::question_after_search(&self.question));
        }
        Ok(())
    }

    /// Asks the model again if its newest turn answered without evidence although the agent's file requires it.
    async fn ask_for_evidence(&mut self) -> Result<bool, SessionBreak> {
        // The answer counts if a limit forbids another turn.
        let may_ask = self.evidence.holds_text() && self.may_go_on()?;
        let place = self.place(self.budget.turns());
        let request = self.evidence.ask_again(&place, &self.toolset, &self.question, may_ask).await?;
        match request {
            None => return Ok(false),
            Some(EvidenceRequest::Instruct(text)) => self.instruct(text),
            Some(EvidenceRequest::Search(call)) => {
                self.conversation.replace_reply(Reply { calls: vec![call.clone()], ..Reply::default() });
                self.call(&[call], None).await?;
            }
        }
        Ok(true)
    }

    /// Records what the user's message says if the model answered without doing so. Returns the answer to give instead.
    async fn complete_workflow(&self, said: &str) -> Result<Option<String>, Failure> {
        let may_read = self.workflow.holds_text() && self.may_go_on()?;
        let place = self.place(self.budget.turns());
        let model = SessionModel {
            candidates: &self.candidates,
            system: &self.system,
            deadline: self.budget.deadline(),
            last_answer: self.conversation.last_answer(),
        };
        extraction::complete_turn(&place, model, said, may_read).await
    }

    fn tool_choice(&self) -> ToolChoice {
        let requires_tool = self.reminder.is_some() || self.evidence.requires_tool();
        match requires_tool {
            true => ToolChoice::Required,
            false if self.workflow.must_speak() || self.repeated.must_answer() => ToolChoice::None,
            false => ToolChoice::Auto,
        }
    }

    /// Executes the tool calls of the newest turn. One of them may end the session.
    async fn call(&mut self, calls: &[ToolCall], shown: Option<MessageId>) -> Result<(), SessionBreak> {
        let scope = self.place(self.budget.turns());
        let limits =
            CallLimits { max_parallel: self.budget.max_parallel_tools(), deadline: self.budget.deadline() };
        let ToolResults { mut results, ending } =
            tool_calls::run(&scope, &self.toolset, calls, &self.conversation, shown, limits).await?;
        let succeeded = results.iter().filter(|result| !result.failed).map(|result| result.name.as_str());
        self.evidence.add_results(&self.toolset, succeeded);
        self.workflow.add_results(self.scope, calls, &results);
        if ending.is_none() {
            // Boxed: a record is large, and most sessions write none here.
            Box::pin(self.repeated.add(&scope, calls)).await?;
        }
        let has_files = results.iter().any(|result| !result.files.is_empty());
        if has_files && self.candidates.iter().any(|candidate| candidate.facts.supports.images) {
            Box::pin(run_files::load_images(self.scope, &mut results)).await;
        }
        for result in results {
            self.conversation.push(ChatMessage::Tool(result));
        }
        if has_files {
            self.conversation.drop_old_images();
        }
        if let Some(ending) = ending {
            return Err(SessionBreak::ended(SessionEnd::ByTool(ending)));
        }
        if scope.cancel.is_cancelled() {
            return Err(Failure::Cancelled.into());
        }
        Ok(())
    }

    /// The limit that forbids another turn. What was recorded before a crash decides, even if limits or clocks differ now.
    fn limit_met(&self) -> Result<Option<LimitKind>, Failure> {
        if !self.scope.run.recorder.steps.is_empty() {
            let next = self.budget.turns() + 1;
            if let Some(taken) = self.place(next).step().finished::<TurnResult>()? {
                return Ok(taken.closing);
            }
            if let Some(limit) = self.recorded_closing(next + 1)? {
                return Ok(Some(limit));
            }
        }
        if self.scope.run.control.stop.is_cancelled() {
            return Ok(Some(LimitKind::Stopped));
        }
        Ok(self.budget.limit_met(&self.scope.run.recorder.ledger))
    }

    /// The limit of a closing turn that was recorded before a crash. The turn before it may be missing: one that ran out of time is
    /// not recorded.
    fn recorded_closing(&self, turn: u32) -> Result<Option<LimitKind>, Failure> {
        Ok(self.place(turn).step().finished::<TurnResult>()?.and_then(|taken| taken.closing))
    }

    /// The scope of a turn.
    fn place(&self, turn: u32) -> Scope {
        self.scope.at(&format!("turn:{turn}"))
    }

    /// Takes one turn without tools, for a plan or a review. Returns `None` if a limit does not allow it.
    pub(crate) async fn think(&mut self, instruction: &str) -> Result<Option<String>, Failure> {
        if self.limit_met()?.is_some() {
            return Ok(None);
        }
        self.instruct(instruction);
        match self.turn(TextVisibility::Hidden, ToolChoice::None, OutputKind::Text).await {
            Err(Failure::DeadlineReached | Failure::BudgetExhausted { .. }) => Ok(None),
            Err(failure) => Err(failure),
            Ok(TurnResult { reply, .. }) => Ok(Some(self.keep_words(reply))),
        }
    }

    /// Adds the text of a turn without tools to the conversation. Tool calls of the reply are dropped, because they get no
    /// results.
    fn keep_words(&mut self, reply: Reply) -> String {
        let text = reply.text.clone();
        self.conversation.push(ChatMessage::Assistant(Reply { calls: Vec::new(), ..reply }));
        text
    }

    /// Whether the session takes a closing turn at a limit.
    fn closes(&self) -> bool {
        self.reminder.is_none() && self.on_limit == OnLimit::Close
    }

    /// Whether neither the agent nor an agent that it invoked has got a reply. A closing turn may exceed a budget, so a session
    /// without anything to answer from fails instead: each agent of a large fan-out would exceed the budget by one call.
    fn has_nothing_to_close(&self) -> bool {
        self.closes() && !self.scope.run.recorder.ledger.has_success(self.scope.path())
    }

    /// Takes the closing turn after a limit: an answer from what is there, without tools.
    async fn close(&mut self, limit: LimitKind, shown: TextVisibility) -> Result<WorkResult, SessionBreak> {
        if !self.closes() {
            return Err(SessionBreak::ended(SessionEnd::Undecided(limit.reason())));
        }
        if matches!(limit, LimitKind::Cost | LimitKind::Tokens) && self.has_nothing_to_close() {
            let message =
                format!("the budget was used up ({limit}) before `{}` could begin", self.scope.name());
            return Err(Failure::BudgetExhausted { message, limit }.into());
        }
        let next = self.budget.turns() + 1;
        if self.recorded_closing(next)?.is_none() && self.recorded_closing(next + 1)?.is_some() {
            self.budget.count_turn();
        }
        let reason = limit.reason();
        let text = format!("{reason}; one closing turn follows");
        self.place(self.budget.turns() + 1).trace(EventKind::Status { text }).await;
        self.instruct(format!(
            "This has to end here: {reason}. Do not use tools any more. Give the best answer you can from \
             what you have, and say plainly what is missing."
        ));
        self.budget = self.budget.for_closing_turn(limit);
        let taken = self.turn(shown, ToolChoice::None, OutputKind::Answer).await?;
        let message_id = taken.message_id;
        let mut text = self.keep_words(taken.reply);
        if text.trim().is_empty() && self.schema().is_none() {
            text = format!("I could not finish: {reason} before there was an answer.");
            return Ok(WorkResult { text, limit: Some(limit), message_id: None, shown });
        }
        Ok(WorkResult { text, limit: Some(limit), message_id, shown })
    }

    async fn turn(
        &mut self,
        shown: TextVisibility,
        tool_choice: ToolChoice,
        form: OutputKind,
    ) -> Result<TurnResult, Failure> {
        self.budget.count_turn();
        let place = self.place(self.budget.turns());
        let scope = if shown == TextVisibility::Streamed { place } else { place.internal() };
        let specs = self.toolset.offered(self.scope);
        let window = self.candidates.first().and_then(|first| first.facts.context_window);
        self.conversation.fit(&scope, window, self.fixed_tokens).await;
        for last_try in [false, true] {
            let turn_request = TurnRequest {
                system: &self.system,
                messages: self.conversation.messages(),
                tools: &specs,
                text_calls: (tool_choice != ToolChoice::None).then_some(&self.toolset),
                tool_choice,
                output_schema: self.schema().filter(|_| form == OutputKind::Answer),
                guards: &self.scope.agent().guardrails.output,
                input_estimate: self.fixed_tokens + self.conversation.tokens(),
                deadline: self.budget.deadline(),
                closing: self.budget.closing_at(),
            };
            match turn::run_turn(&scope, &self.candidates, turn_request).await {
                Err(Failure::Model(error)) if error.kind == ModelErrorKind::ContextTooLong && !last_try => {
                    if !Box::pin(self.conversation.shorten(&scope)).await {
                        return Err(error.into());
                    }
                }
                other => {
                    let mut taken = other?;
                    taken.reply.text = taken.unjudged.take().unwrap_or(taken.reply.text);
                    self.withheld = taken.withheld.take();
                    return Ok(taken);
                }
            }
        }
        unreachable!("the second try returns")
    }

    /// Validates the text against the schema. Returns `None` if there is no schema.
    fn checked(&self, text: &str) -> Option<Result<Value, String>> {
        self.schema().map(|schema| structured_output::validate(schema, text))
    }

    /// The failure of an answer that does not satisfy the schema. The mistakes quote values of the answer.
    fn invalid_output(&self, mistakes: String) -> Failure {
        let mistakes = if self.has_judge() { NOT_QUOTED.to_owned() } else { mistakes };
        Failure::InvalidOutput(mistakes)
    }

    /// Makes the answer of the last text. If there is a schema, validates it and allows one turn to repair it.
    async fn conclude(&mut self, worked: WorkResult) -> Result<FinalAnswer, SessionBreak> {
        let (mut text, mut message_id) = (worked.text, worked.message_id);
        // A text that is not the model's was not published.
        let shown = if message_id.is_none() { TextVisibility::Hidden } else { worked.shown };
        let mut value = None;
        if let Some(first) = self.checked(&text).filter(|_| self.withheld.is_none()) {
            let checked = match first {
                Ok(checked) => checked,
                Err(mistakes) => {
                    self.instruct(format!(
                        "Your answer does not satisfy the required JSON Schema: {mistakes}. Answer again with only the corrected \
                         JSON."
                    ));
                    let repair = self.turn(TextVisibility::Hidden, ToolChoice::None, OutputKind::Answer);
                    match Box::pin(repair).await {
                        // An invalid answer is better than none. The limit tells the caller that it was cut short.
                        Err(failure @ (Failure::DeadlineReached | Failure::BudgetExhausted { .. })) => {
                            let turns = self.budget.turns();
                            let limit = worked.limit.or(Some(failure.limit_met()));
                            let answer = Answer { text, value, limit, turns, message_id, files: Vec::new() };
                            return Ok(FinalAnswer { answer, shown });
                        }
                        Err(failure) => return Err(failure.into()),
                        Ok(taken) => {
                            message_id = taken.message_id;
                            let again = self.keep_words(taken.reply);
                            self.checked(&again)
                                .expect("there is a schema")
                                .map_err(|mistakes| self.invalid_output(mistakes))?
                        }
                    }
                }
            };
            text = checked.to_string();
            value = Some(checked);
        }
        let turns = self.budget.turns();
        let answer = Answer { text, value, limit: worked.limit, turns, message_id, files: Vec::new() };
        Ok(FinalAnswer { answer, shown })
    }
}
