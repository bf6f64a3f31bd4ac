//! Renders the system prompt of an agent from its template.

use std::sync::LazyLock;

use baton_core::agent::Agent;
use jiff::Timestamp;
use minijinja::{Environment, Expression, UndefinedBehavior};
use serde::Serialize;

use crate::compile_cache::CompileCache;
use crate::failure::Failure;
use crate::scope::Scope;
use crate::skillset::Skillset;
use crate::workflow::view;

/// Limit on the instructions of a template, so that it cannot loop forever.
const FUEL: u64 = 100_000;

/// The name of the only template of an environment.
const PROMPT: &str = "<string>";

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(environment);
static PROMPTS: CompileCache<Environment<'static>> = CompileCache::new();
static CONDITIONS: CompileCache<Expression<'static, 'static>> = CompileCache::new();

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
    let agent = &scope.agent;
    let section = view::section(scope).unwrap_or_default();
    if !agent.prompt.contains("{{") && !agent.prompt.contains("{%") && !agent.prompt.contains("{#") {
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
        now: Timestamp::now().strftime("%Y-%m-%d %H:%M UTC").to_string(),
        workflow: view::variable(scope),
    };
    rendered(&agent.prompt, variables)
        .map(|prompt| prompt + &section)
        .map_err(|error| Failure::Prompt { agent: agent.name.to_string(), message: error.to_string() })
}

fn rendered(source: &str, variables: impl Serialize) -> Result<String, minijinja::Error> {
    let compiled = PROMPTS.get(source, || {
        let mut environment = environment();
        environment.add_template_owned(PROMPT, source.to_owned())?;
        Ok::<_, minijinja::Error>(environment)
    })?;
    compiled.get_template(PROMPT)?.render(minijinja::value::Serde(variables))
}
