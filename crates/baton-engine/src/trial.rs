//! `try_agent`: runs the draft of an agent on examples before it is saved.
//!
//! Each example is a session of its own below the call, with its steps and ledger rows, within the limits of the caller. The draft
//! works alone and only with tools that read and that no person has to approve, so a trial has no effect.

use std::sync::Arc;

use baton_core::agent::{Advisors, Agent, Skills, ToolPattern};
use baton_core::text::head;
use baton_core::tool::{Effect, Risk, ToolError, ToolSpec};
use baton_core::{AgentCheck, AgentLibrary, AgentName, HumanDuration, StoreError};
use futures_util::future::BoxFuture;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::approvals::policy::{self, ASK_USER, CallPolicy};
use crate::bounds::InvocationKind;
use crate::engine_tool::{CallSite, EngineTool, ToolOutcome};
use crate::failure::Failure;
use crate::patterns::calling::task::{self, SubAgentTask, TaskReport};
use crate::redaction::redact;
use crate::scope::Scope;
use crate::toolset;

pub(crate) const NAME: &str = "try_agent";
/// Examples that are tried. Each costs model calls.
const MAX_EXAMPLES: usize = 3;
const MAX_EXAMPLE_CHARS: usize = 2_000;
/// Of an answer in the report, in characters.
const MAX_ANSWER_CHARS: usize = 1_500;
const TIMEOUT: HumanDuration = HumanDuration::from_mins(2);

/// The tool, if the agent's file names it. A workflow that names it has it too.
pub(crate) fn tools(scope: &Scope) -> Option<Arc<dyn EngineTool>> {
    scope.agent().tools.names(NAME).then(|| tool(scope)).flatten()
}

pub(crate) fn tool(scope: &Scope) -> Option<Arc<dyn EngineTool>> {
    let tool = TryAgent { spec: spec() };
    toolset::permitted(scope, &tool.spec).then(|| Arc::new(tool) as Arc<dyn EngineTool>)
}

fn spec() -> ToolSpec {
    ToolSpec {
        name: NAME.to_owned(),
        description: "Runs the draft of an agent on examples and returns its answers. It works alone and only with tools that read. \
                      Fails if the draft breaks the rules or no example was answered."
            .to_owned(),
        parameters: json!({
            "type": "object",
            "properties": {
                "name": { "type": "string", "minLength": 1, "description": "The name of the draft, such as travel-helper" },
                "examples": {
                    "description": "Messages that people would send; a list, or one text with a line for each",
                    "anyOf": [{ "type": "string" }, { "type": "array", "items": { "type": "string" } }],
                },
            },
            "required": ["name", "examples"],
            "additionalProperties": false,
        }),
        effect: Effect::ReadOnly,
        risk: Risk::Low,
        timeout: HumanDuration::from_mins(10),
    }
}

/// The tool `try_agent`.
#[derive(Debug)]
struct TryAgent {
    spec: ToolSpec,
}

#[derive(Debug, Deserialize)]
struct TryAgentArguments {
    name: String,
    examples: Examples,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Examples {
    One(String),
    Many(Vec<String>),
}

impl Examples {
    /// One per line, or else between semicolons.
    fn list(&self) -> Vec<String> {
        let raw: Vec<&str> = match self {
            Self::Many(texts) => texts.iter().map(String::as_str).collect(),
            Self::One(text) if text.trim().contains('\n') => text.lines().collect(),
            Self::One(text) => text.split([';', '；']).collect(),
        };
        let items = raw.into_iter().map(|text| text.trim().trim_start_matches("- ").trim_matches('"').trim());
        items.filter(|text| !text.is_empty()).map(|text| head(text, MAX_EXAMPLE_CHARS)).collect()
    }
}

impl EngineTool for TryAgent {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn is_untrusted(&self) -> bool {
        true
    }

    fn call<'a>(
        &'a self,
        arguments: Value,
        site: CallSite<'a>,
    ) -> BoxFuture<'a, Result<ToolOutcome, Failure>> {
        Box::pin(async move {
            let parsed = serde_json::from_value::<TryAgentArguments>(arguments);
            let Ok(TryAgentArguments { name, examples }) = parsed else {
                let text = "`name` is a text, `examples` a list of texts";
                return Ok(ToolOutcome::Refused(ToolError::InvalidArguments(text.to_owned())));
            };
            match drafted(&site.scope, &name).await {
                Ok(agent) => try_on(&site.scope, &agent, &examples.list()).await,
                Err(error) => Ok(ToolOutcome::Refused(error)),
            }
        })
    }
}

/// The draft of the conversation, or the saved agent if there is no draft, as an agent that keeps all rules.
async fn drafted(scope: &Scope, called: &str) -> Result<Arc<Agent>, ToolError> {
    let run = &scope.run;
    let Some(library) = &run.extensions.agents else {
        return Err(ToolError::NotPermitted("agents cannot be created here".to_owned()));
    };
    let name = AgentName::slug(called)
        .ok_or_else(|| ToolError::InvalidArguments("`name` has no letter or digit".to_owned()))?;
    let unavailable = |error: StoreError| ToolError::Transport(error.to_string());
    let draft = run.store.agent_draft(run.caller.thread_id, &name).await.map_err(unavailable)?;
    let text = match draft {
        Some(draft) => Some(draft.text),
        None => run.store.created_agent(&name).await.map_err(unavailable)?.map(|saved| saved.text),
    };
    let missing =
        || ToolError::Execution(format!("there is no draft `{name}`; write it with write_agent first"));
    check(&**library, scope, &name, &text.ok_or_else(missing)?).await
}

async fn check(
    library: &dyn AgentLibrary,
    scope: &Scope,
    name: &AgentName,
    text: &str,
) -> Result<Arc<Agent>, ToolError> {
    let (tenant, rights) = (&scope.run.caller.tenant, &scope.run.request.rights);
    let checked = library.check(AgentCheck { tenant, name, text, rights }).await;
    let checked = checked.map_err(|error| ToolError::Transport(error.to_string()))?;
    match &checked.agent {
        Some(agent) if checked.is_valid() => Ok(Arc::clone(agent)),
        _ => {
            let first = checked.problems.first();
            let why = first.map(|problem| format!(": {problem}")).unwrap_or_default();
            Err(ToolError::Execution(format!("the draft `{name}` breaks the rules{why}")))
        }
    }
}

async fn try_on(scope: &Scope, agent: &Agent, examples: &[String]) -> Result<ToolOutcome, Failure> {
    if examples.is_empty() {
        return Ok(ToolOutcome::Refused(ToolError::InvalidArguments("`examples` is empty".to_owned())));
    }
    let (trial, left_out) = trial_agent(scope, agent);
    let trial = Arc::new(trial);
    let mut tried = Vec::new();
    for (at, example) in examples.iter().take(MAX_EXAMPLES).enumerate() {
        let task = SubAgentTask {
            invocation: InvocationKind::Call,
            reason: format!("trial of the draft `{}`", agent.name),
            mission: redact(scope.agent(), example),
            limit: Some(TIMEOUT),
            batch: None,
            agent: Arc::clone(&trial),
        };
        let place = scope.at(&format!("example:{}", at + 1));
        tried.push((example.as_str(), Box::pin(task::run(&place, task)).await?));
    }
    let text = report(&agent.name, &tried, examples.len(), &left_out);
    let is_answered = tried.iter().any(|(_, report)| report.result.is_ok());
    Ok(if is_answered { ToolOutcome::Output(text) } else { ToolOutcome::Refused(ToolError::Execution(text)) })
}

/// The agent without everything that has an effect or involves others, and the names of the tools that it lacks.
fn trial_agent(scope: &Scope, agent: &Agent) -> (Agent, Vec<String>) {
    let mut trial = Agent {
        agents: Vec::new(),
        advisors: Advisors::default(),
        router: None,
        team: None,
        handoff: Vec::new(),
        collaborations: Vec::new(),
        accepts_handoff: None,
        workflow: None,
        skills: Skills::default(),
        ..agent.clone()
    };
    trial.mcp_servers.clear();
    trial.tools.read_only = true;
    let servers = trial.tools.allow.iter().filter(|pattern| pattern.mcp_server().is_some());
    let mut left_out: Vec<String> = servers.map(ToString::to_string).collect();
    trial.tools.allow.retain(|pattern| pattern.mcp_server().is_none());
    for spec in scope.run.extensions.tools.iter().map(|tool| tool.spec()) {
        if agent.tools.permits(&spec.name) && !has_no_effect(scope, spec) {
            left_out.push(spec.name.clone());
            trial.tools.deny.extend(ToolPattern::parse(&spec.name));
        }
    }
    (trial, left_out)
}

/// Whether a tool only reads and runs without a person's approval.
fn has_no_effect(scope: &Scope, spec: &ToolSpec) -> bool {
    let ask_at = scope.run.extensions.approvals.of(&scope.run.caller.tenant).ask_at;
    spec.effect == Effect::ReadOnly
        && spec.name != ASK_USER
        && ask_at.is_none_or(|level| spec.risk < level)
        && policy::of_tool(scope, spec) == CallPolicy::Auto
}

/// For people too: it is shown in the conversation.
fn report(name: &AgentName, tried: &[(&str, TaskReport)], all: usize, left_out: &[String]) -> String {
    let count = match (tried.len(), all) {
        (1, 1) => "the example".to_owned(),
        (some, all) if some < all => format!("the first {some} of {all} examples"),
        (all, _) => format!("{all} examples"),
    };
    let mut text = format!("Tried `{name}` on {count}, alone and only with tools that read.");
    if !left_out.is_empty() {
        text += &format!(" Left out: `{}`.", left_out.join("`, `"));
    }
    for (at, (example, report)) in tried.iter().enumerate() {
        let example = head(example, 200);
        text += &match &report.result {
            Ok(result) => {
                let answer = head(result.text.trim(), MAX_ANSWER_CHARS);
                let quoted: String = answer.lines().map(|line| format!("> {line}\n")).collect();
                format!("\n\n{}. ✓ “{example}”\n\n{}", at + 1, quoted.trim_end())
            }
            Err(_) => {
                let error = report.error().unwrap_or_default();
                format!("\n\n{}. ✗ “{example}”: {}", at + 1, head(&error, 500))
            }
        };
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_lines_or_between_semicolons() {
        let one = |text: &str| Examples::One(text.to_owned()).list();
        assert_eq!(
            one("Plan a trip to Rome, for two; cancel it"),
            ["Plan a trip to Rome, for two", "cancel it"]
        );
        assert_eq!(one("- \"a; b\"\n\n- c"), ["a; b", "c"]);
        assert_eq!(Examples::Many(vec!["a".into(), " ".into()]).list(), ["a"]);
    }
}
