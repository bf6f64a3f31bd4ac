//! `baton agents`: the registry.

mod created;
mod prompt;
mod remote;

use std::fmt::Write as _;

use baton_agents::names::Unresolved;
use baton_agents::roster::RosterEntry;
use baton_agents::{Diagnostic, RosterDraft};
use baton_core::agent::{Agent, AgentPattern, ModelName};
use baton_core::{AgentName, TenantId};
use clap::ValueEnum;
use serde_json::Value;

pub(super) use self::created::with_created;
use super::{print, print_json};
use crate::agent_catalog;
use crate::cli::Common;
use crate::exit::Exit;
use crate::project::Project;
use crate::report::{tell, visible};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// All agents, one line each
    List {
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: AgentsFormat,
    },
    /// One agent as Baton understands it, every default filled in
    Show {
        agent: String,
        #[arg(long, value_name = "FORMAT", default_value = "text")]
        format: AgentsFormat,
    },
    /// The prompt and the tools that an agent's model gets
    Prompt(prompt::Args),
    /// Delete an agent that people of a tenant created
    Delete {
        /// Its name, such as travel-helper
        agent: String,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AgentsFormat {
    Text,
    Json,
}

pub fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    let project = super::project(common)?;
    let tenant = super::tenant();
    let read = || with_created(&project, &tenant, project.draft_of(&tenant));
    match command {
        Command::List { format } => list(&project, &tenant, &read()?, *format),
        Command::Show { agent, format } => show(&project, &tenant, &read()?, agent, *format),
        Command::Prompt(args) => {
            let draft = read()?;
            // An agent that could not be read has no prompt.
            if has_errors(&draft) { Ok(outcome(&draft)) } else { prompt::run(&project, draft, args) }
        }
        Command::Delete { agent } => created::delete(&project, agent),
    }
}

fn list(
    project: &Project,
    tenant: &TenantId,
    draft: &RosterDraft,
    format: AgentsFormat,
) -> anyhow::Result<Exit> {
    let listed = draft.agents().filter(|entry| is_of(project, tenant, entry));
    let listed = listed.map(|entry| entry.agent.as_ref());
    match format {
        AgentsFormat::Json => print_json(&listed.collect::<Vec<_>>())?,
        AgentsFormat::Text => print(&table(listed))?,
    }
    Ok(outcome(draft))
}

fn show(
    project: &Project,
    tenant: &TenantId,
    draft: &RosterDraft,
    agent: &str,
    format: AgentsFormat,
) -> anyhow::Result<Exit> {
    let name = find(draft, agent)?;
    let Some(entry) = draft.agent(&name) else { return Ok(Exit::Failed) };
    if !is_of(project, tenant, entry) {
        anyhow::bail!(
            "the tenant `{tenant}` has no agent `{name}`; `baton agents list --tenant {tenant}` prints its agents"
        );
    }
    let remote = remote::look(project, &entry.agent)?;
    match format {
        AgentsFormat::Json => print_json(&remote::with_reachability(&entry.agent, remote.as_ref())?)?,
        AgentsFormat::Text => {
            let path = entry.path().display().to_string();
            let reachability = remote.as_ref().map(remote::text).unwrap_or_default();
            print(&format!("{}{reachability}", definition(&entry.agent, &path)?))?;
        }
    }
    Ok(outcome(draft))
}

fn has_errors(draft: &RosterDraft) -> bool {
    draft.problems().iter().any(Diagnostic::is_error)
}

/// Says that the files have errors, if they have.
fn outcome(draft: &RosterDraft) -> Exit {
    let errors = draft.problems().iter().filter(|problem| problem.is_error()).count();
    if errors == 0 {
        return Exit::Ok;
    }
    tell(&format!("\nThe agent files have {errors} error(s); `baton validate` explains them."));
    Exit::Invalid
}

/// Whether the tenant has the agent: by `agents` of its section, or because it was created there.
fn is_of(project: &Project, tenant: &TenantId, entry: &RosterEntry) -> bool {
    let permitted = project.config.tenants.get(tenant).and_then(|section| section.agents.as_ref());
    let is_permitted = |pattern: &AgentPattern| pattern.matches(&entry.agent.name);
    agent_catalog::is_created_file(entry.path())
        || permitted.is_none_or(|patterns| patterns.iter().any(is_permitted))
}

/// The agent that a person means, or an error that helps.
pub(super) fn find(draft: &RosterDraft, text: &str) -> anyhow::Result<AgentName> {
    let quoted =
        |names: &[AgentName]| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
    draft.names().resolve(text).map_err(|unresolved| match unresolved {
        Unresolved::Unknown { nearest } if nearest.is_empty() => {
            anyhow::anyhow!("no agent is called `{text}`; `baton agents list` prints them all")
        }
        Unresolved::Unknown { nearest } => {
            anyhow::anyhow!("no agent is called `{text}`; did you mean {}?", quoted(&nearest))
        }
        Unresolved::Ambiguous(names) => anyhow::anyhow!("`{text}` could mean {}", quoted(&names)),
    })
}

fn table<'a>(agents: impl Iterator<Item = &'a Agent>) -> String {
    let rows: Vec<(String, String, &str)> =
        agents.map(|agent| (agent.name.to_string(), models(agent), agent.description.as_str())).collect();
    let width = |column: fn(&(String, String, &str)) -> usize| rows.iter().map(column).max().unwrap_or(0);
    let (names, models) = (width(|row| row.0.len()), width(|row| row.1.len()));
    let bold = anstyle::Style::new().bold();
    rows.iter().fold(String::new(), |mut out, (name, model, description)| {
        let (model, first_line) = (visible(model), visible(description.lines().next().unwrap_or_default()));
        let _ = writeln!(out, "{bold}{name:names$}{bold:#}  {model:models$}  {first_line}");
        out
    })
}

fn models(agent: &Agent) -> String {
    if agent.kind.is_remote() {
        return "(remote)".to_owned();
    }
    match agent.model.as_slice() {
        [] => "(default)".to_owned(),
        models => models.iter().map(ModelName::to_string).collect::<Vec<_>>().join(", "),
    }
}

/// The definition in the form of an agent file: keys, then the prompt.
fn definition(agent: &Agent, path: &str) -> anyhow::Result<String> {
    let mut value = serde_json::to_value(agent)?;
    let prompt = value.as_object_mut().and_then(|object| object.remove("prompt"));
    let mut out = format!("# {}\n---\n", visible(path));
    yaml(&value, 0, &mut out);
    let prompt = prompt.as_ref().and_then(Value::as_str).unwrap_or_default();
    let _ = write!(out, "---\n{}\n", visible(prompt));
    Ok(out)
}

/// Maps and lists in block style. Only for reading: text is quoted whenever it could be mistaken.
fn yaml(value: &Value, indent: usize, out: &mut String) {
    let pad = "  ".repeat(indent);
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let _ = write!(out, "{pad}{}:", plain(&Value::String(key.clone())));
                nested(value, indent + 1, out);
            }
        }
        Value::Array(items) => {
            for item in items {
                let mut block = String::new();
                yaml(item, indent + 1, &mut block);
                let _ = writeln!(out, "{pad}- {}", block.trim());
            }
        }
        scalar => {
            let _ = writeln!(out, "{pad}{}", plain(scalar));
        }
    }
}

fn nested(value: &Value, indent: usize, out: &mut String) {
    let is_block = match value {
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => items.iter().any(|item| item.is_object() || item.is_array()),
        _ => false,
    };
    if is_block {
        out.push('\n');
        yaml(value, indent, out);
    } else {
        let _ = writeln!(out, " {}", plain(value));
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(_) => quoted(value),
        Value::Array(items) => format!("[{}]", items.iter().map(item).collect::<Vec<_>>().join(", ")),
        Value::Object(_) => "{}".to_owned(),
        other => other.to_string(),
    }
}

/// Inside `[…]` commas and brackets mean something.
fn item(value: &Value) -> String {
    match value {
        Value::String(text) if text.contains([',', '[', ']', '{', '}']) => quoted(value),
        _ => plain(value),
    }
}

fn is_plain(text: &str) -> bool {
    let is_word = matches!(text, "true" | "false" | "null") || text.parse::<f64>().is_ok();
    let is_special = |c: char| c.is_control() || matches!(c, ':' | '#' | '"');
    text.starts_with(char::is_alphanumeric) && !is_word && !text.contains(is_special) && text.trim() == text
}

/// JSON escapes most control characters, and YAML reads all of these.
fn quoted(text: &Value) -> String {
    let escaped = |c: char| if c.is_control() { format!("\\u{:04x}", u32::from(c)) } else { c.to_string() };
    text.to_string().chars().map(escaped).collect()
}
