//! Renders the system prompt of an agent from its template, and the note that precedes its task.
//!
//! Providers cache the beginning of a request, so the system prompt contains nothing that changes from message to message. The time
//! and the state of a workflow are in the note, which follows the history.

use std::sync::{Arc, LazyLock};

use baton_core::agent::Agent;
use baton_core::message::Part;
use jiff::Timestamp;
use minijinja::{Environment, Expression, UndefinedBehavior};
use serde::Serialize;

use crate::compile_cache::CompileCache;
use crate::failure::Failure;
use crate::models::ModelCandidate;
use crate::scope::Scope;
use crate::skillset::Skillset;
use crate::workflow::view;

/// Limit on the instructions of a template, so that it cannot loop forever.
const FUEL: u64 = 100_000;

/// The name of the only template of an environment.
const PROMPT: &str = "<string>";

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(environment);
static PROMPTS: CompileCache<CompiledPrompt> = CompileCache::new();
static CONDITIONS: CompileCache<Expression<'static, 'static>> = CompileCache::new();

/// A compiled template.
#[derive(Debug)]
struct CompiledPrompt {
    environment: Environment<'static>,
    /// Whether it uses the variable `now`.
    uses_now: bool,
}

/// Nothing is escaped: prompts are text, not HTML.
fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_fuel(Some(FUEL));
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment
}

/// The variables that describe an agent.
#[derive(Debug, Serialize)]
struct AgentVariables<'a> {
    name: &'a str,
    display_name: &'a str,
    description: &'a str,
}

impl<'a> From<&'a Agent> for AgentVariables<'a> {
    fn from(agent: &'a Agent) -> Self {
        Self { name: agent.name.as_str(), display_name: &agent.display_name, description: &agent.description }
    }
}

/// The variables of a template. Validation knows the same names.
#[derive(Debug, Serialize)]
struct Variables<'a> {
    agent: AgentVariables<'a>,
    /// The agents that it may call.
    agents: Vec<AgentVariables<'a>>,
    user: &'a str,
    tenant: &'a str,
    thread_id: String,
    /// The date. The time would change the prompt with every message.
    now: String,
    /// The state of the holder's workflow.
    workflow: Option<serde_json::Value>,
}

/// Evaluates a condition with the variables `names`.
pub(crate) fn holds(condition: &str, names: impl Serialize) -> Result<bool, minijinja::Error> {
    let compile = || TEMPLATES.compile_expression_owned(condition.to_owned());
    let answer = CONDITIONS.get(condition, compile)?.eval(minijinja::value::Serde(names))?;
    Ok(answer.is_true())
}

/// The system prompt of the scope's agent at this moment: its rendered template and the list of its skills.
pub(crate) fn render(scope: &Scope, skills: &Skillset) -> Result<String, Failure> {
    let prompt = template(scope)?;
    Ok(match skills.section() {
        Some(section) => format!("{}\n\n{section}\n", prompt.trim_end()),
        None => prompt,
    })
}

fn template(scope: &Scope) -> Result<String, Failure> {
    let agent = scope.agent();
    let section = view::rules(scope).unwrap_or_default();
    if !is_template(agent) {
        return Ok(agent.prompt.clone() + &section);
    }
    let caller = &scope.run.caller;
    let callable = agent.agents.iter().filter_map(|name| scope.run.agents.get(name));
    let agents: Vec<AgentVariables<'_>> =
        callable.map(|agent| AgentVariables::from(agent.as_ref())).collect();
    let variables = Variables {
        agent: AgentVariables::from(agent.as_ref()),
        agents,
        user: caller.user.as_str(),
        tenant: caller.tenant.as_str(),
        thread_id: caller.thread_id.to_string(),
        now: Timestamp::now().strftime("%Y-%m-%d").to_string(),
        workflow: view::variable(scope),
    };
    rendered(&agent.prompt, variables)
        .map(|prompt| prompt + &section)
        .map_err(|error| Failure::Prompt { agent: agent.name.to_string(), message: error.to_string() })
}

fn is_template(agent: &Agent) -> bool {
    !agent.literal_prompt && ["{{", "{%", "{#"].iter().any(|mark| agent.prompt.contains(mark))
}

fn compiled(source: &str) -> Result<Arc<CompiledPrompt>, minijinja::Error> {
    PROMPTS.get(source, || {
        let mut environment = environment();
        environment.add_template_owned(PROMPT, source.to_owned())?;
        let uses_now = environment.get_template(PROMPT)?.undeclared_variables(false).contains("now");
        Ok::<_, minijinja::Error>(CompiledPrompt { environment, uses_now })
    })
}

fn rendered(source: &str, variables: impl Serialize) -> Result<String, minijinja::Error> {
    compiled(source)?.environment.get_template(PROMPT)?.render(minijinja::value::Serde(variables))
}

/// The task of a session, after a note with what changes from message to message. A model of rules gets no note: it takes the task
/// for the user's words.
pub(crate) fn with_note(scope: &Scope, candidates: &[ModelCandidate], parts: Vec<Part>) -> Vec<Part> {
    let is_rule_based = candidates.first().is_some_and(|first| first.provider.workflow_guide().is_some());
    match note(scope).filter(|_| !is_rule_based) {
        Some(note) => [Part::text(note)].into_iter().chain(parts).collect(),
        None => parts,
    }
}

/// The time to the minute, if the agent's template uses `now`, and the state of its workflow.
fn note(scope: &Scope) -> Option<String> {
    let agent = scope.agent();
    let uses_now = is_template(agent) && compiled(&agent.prompt).is_ok_and(|compiled| compiled.uses_now);
    let time = uses_now.then(|| Timestamp::now().strftime("It is %Y-%m-%d %H:%M UTC.").to_string());
    let parts: Vec<String> = [time, view::situation(scope)].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| format!("{}\n\nThe message follows.\n", parts.join("\n\n")))
}
