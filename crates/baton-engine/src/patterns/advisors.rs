//! `advisors:`: other agents that comment on the request in parallel before the agent answers. Their advice is fenced material.

use baton_core::agent::{Advisor, Advisors, OnQuorumFail};
use baton_core::{AgentName, HumanDuration};
use futures_util::{StreamExt, stream};
use tokio::time::Instant;

use crate::bounds::InvocationKind;
use crate::child_timeout;
use crate::failure::Failure;
use crate::input::{BlockKind, PromptEnvelope};
use crate::input::{Input, InputSource};
use crate::invocation;
use crate::redaction::{head, redact};
use crate::scope::Scope;

/// Recorded reason of a consultation, which the file declares and no agent decides.
const CONSULT_REASON: &str = "consulted before the answer";

/// Maximum length of all advice together, in characters. Keeps a verbose advisor from filling the agent's context.
const MAX_ADVICE_CHARS: usize = 100_000;

/// Which keys set the time limit of an advisor.
const TIMEOUT_HINT: &str = " (set by `timeout` and `deadline` under `advisors`)";

/// Result of one advisor.
#[derive(Debug)]
struct AdvisorResult {
    /// Index in the agent's file.
    at: usize,
    advisor: AgentName,
    advice: Result<String, Failure>,
}

impl AdvisorResult {
    /// The advice, or the part of it that the advisor wrote before its time limit expired.
    fn text(&self) -> Option<&str> {
        match &self.advice {
            Ok(text) | Err(Failure::TimedOut { partial: Some(text), .. }) => Some(text),
            Err(_) => None,
        }
    }

    /// Why there is no advice, as a clause that names the advisor. `None` if there is advice.
    fn missing(&self) -> Option<String> {
        let failure = self.advice.as_ref().err()?;
        let hint = if matches!(failure, Failure::TimedOut { .. }) { TIMEOUT_HINT } else { "" };
        Some(format!("`{}`: {failure}{hint}", self.advisor))
    }
}

/// Returns the input with the advice of all advisors. A failed advisor appears as a block with its error. Fails if too few of
/// them succeed and `on_quorum_fail` is `refuse`, or if a required one fails.
pub(crate) async fn consult(scope: &Scope, input: &Input) -> Result<Input, Failure> {
    let advisors = &scope.agent().advisors;
    if advisors.agents.is_empty() {
        return Ok(input.clone());
    }
    let consultation = Consultation::new(scope, advisors, input);
    let results = Box::pin(consultation.consult_all()).await?;
    let got = results.iter().filter(|result| result.advice.is_ok()).count();
    let is_enough = got as u64 >= u64::from(advisors.min_success);
    if !is_enough && advisors.on_quorum_fail == OnQuorumFail::Refuse {
        let missing = results.iter().filter_map(AdvisorResult::missing).collect();
        let (asked, needed) = (results.len(), advisors.min_success);
        return Err(Failure::TooLittleAdvice { got, asked, needed, missing });
    }
    Ok(with_advice(scope, input, results))
}

/// Appends the results in the order of the file.
fn with_advice(scope: &Scope, input: &Input, results: Vec<AdvisorResult>) -> Input {
    let mut message = PromptEnvelope::of(input);
    let most = max_chars_each(&results);
    for result in results {
        let (kind, text) = match (&result.advice, result.text()) {
            (Ok(_), Some(text)) => (BlockKind::Advice, head(text, most)),
            (_, Some(text)) => (BlockKind::PartialAdvice, head(text, most)),
            (Err(failure), None) => (BlockKind::Failure, redact(scope.agent(), &failure.to_string())),
            (Ok(_), None) => continue,
        };
        message = message.with(kind, &result.advisor, text);
    }
    message.render(scope.run.policy.enrich_format, input.clone())
}

/// Like [`consult`] with invented advice, for a preview.
pub(crate) fn with_placeholder_advice(
    scope: &Scope,
    input: &Input,
    advice: impl Fn(&AgentName) -> String,
) -> Input {
    if scope.agent().advisors.agents.is_empty() {
        return input.clone();
    }
    let advisors = scope.agent().advisors.agents.iter().enumerate();
    let results = advisors.map(|(at, one)| AdvisorResult {
        at,
        advisor: one.agent.clone(),
        advice: Ok(advice(&one.agent)),
    });
    with_advice(scope, input, results.collect())
}

/// The input of the advisors: the redacted request, without history.
pub(crate) fn question(scope: &Scope, input: &Input) -> Input {
    let sent = Some(InputSource { by: scope.name().clone(), reason: CONSULT_REASON.into() });
    let format = scope.run.policy.enrich_format;
    let shared = PromptEnvelope::of(input).redacted_by(scope.agent());
    shared.render(format, Input { sent, ..Input::default() })
}

/// Maximum length of each advice, in characters. Unlimited unless all together exceed [`MAX_ADVICE_CHARS`].
fn max_chars_each(results: &[AdvisorResult]) -> usize {
    let advice = || results.iter().filter_map(AdvisorResult::text);
    let total: usize = advice().map(|advice| advice.chars().count()).sum();
    if total > MAX_ADVICE_CHARS { MAX_ADVICE_CHARS / advice().count() } else { usize::MAX }
}

/// One consultation of all advisors.
#[derive(Debug, Clone)]
struct Consultation {
    /// Has a cancellation token of its own, which stops all advisors.
    scope: Scope,
    question: Input,
    deadline: HumanDuration,
    until: Instant,
}

impl Consultation {
    fn new(scope: &Scope, advisors: &Advisors, input: &Input) -> Self {
        let agents = advisors.agents.iter().filter_map(|one| scope.run.agents.get(&one.agent));
        let (question, deadline) =
            (question(scope, input), scope.models().scaled_timeout(advisors.deadline, agents));
        Self { scope: scope.cancellable(), question, deadline, until: Instant::now() + deadline.get() }
    }

    /// Runs at most `max_live_children` advisors at once and waits for all of them, including those that are cancelled because a
    /// required one failed.
    async fn consult_all(&self) -> Result<Vec<AdvisorResult>, Failure> {
        let at_once = self.scope.run.policy.max_live_children.max(1);
        let advisors = self.scope.agent().advisors.agents.clone();
        let work = advisors.into_iter().enumerate().map(|(at, advisor)| {
            let consultation = self.clone();
            async move {
                let advice = consultation.ask(&advisor).await;
                (advisor.required, AdvisorResult { at, advisor: advisor.agent, advice })
            }
        });
        let mut at_work = stream::iter(work).buffer_unordered(at_once as usize);
        let (mut all, mut end) = (Vec::new(), None);
        while let Some((required, results)) = at_work.next().await {
            if let Err(failure) = &results.advice {
                end = self.stop_after_failure(end, failure, required, &results.advisor);
            }
            all.push(results);
        }
        all.sort_unstable_by_key(|results| results.at);
        end.map_or(Ok(all), Err)
    }

    /// Decides whether an advisor's failure ends the consultation, and cancels the others if so. A failure that ends the run
    /// takes precedence.
    fn stop_after_failure(
        &self,
        end: Option<Failure>,
        failure: &Failure,
        required: bool,
        agent: &AgentName,
    ) -> Option<Failure> {
        // The others continue. Any other reason to stop takes precedence.
        if matches!(failure, Failure::Waiting) {
            return end.or(Some(Failure::Waiting));
        }
        let (end, waits) = match end {
            Some(Failure::Waiting) => (None, Some(Failure::Waiting)),
            end => (end, None),
        };
        let end = match end {
            _ if failure.is_fatal(&self.scope.run.control.cancel) => Some(failure.clone()),
            None if self.scope.cancel.is_cancelled() => Some(Failure::Cancelled),
            None if required => {
                let hint = if matches!(failure, Failure::TimedOut { .. }) { TIMEOUT_HINT } else { "" };
                Some(Failure::NoAdvice { agent: agent.clone(), reason: format!("{failure}{hint}") })
            }
            end => end,
        };
        if end.is_some() {
            self.scope.cancel.cancel();
        }
        end.or(waits)
    }

    /// Runs one advisor and returns the redacted answer, which can be that of the last agent in its chain.
    async fn ask(&self, advisor: &Advisor) -> Result<String, Failure> {
        let scope = &self.scope;
        if scope.cancel.is_cancelled() {
            return Err(Failure::Cancelled);
        }
        let agents = &scope.run.agents;
        let agent = agents.get(&advisor.agent).ok_or_else(|| Failure::NoAgent(advisor.agent.clone()))?;
        let child = invocation::enter_when_permitted(scope, agent, InvocationKind::Advisor).await?;
        let limit = scope.models().scaled_timeout(advisor.timeout, [agent]).min(self.deadline);
        // An advisor that started before a crash resumes from its record, even past the deadline.
        if Instant::now() >= self.until && !scope.run.recorder.steps.contains_key(child.path()) {
            return Err(Failure::TimedOut { limit, partial: None });
        }
        let result = child_timeout::run_with_deadline(child, self.question.clone(), limit, self.until).await;
        let outcome = result.map_err(|failure| failure.with_partial(|text| redact(agent, &text)))?;
        let speaker = agents.get(&outcome.agent).unwrap_or(agent);
        Ok(redact(agent, &redact(speaker, &outcome.answer.text)))
    }
}
