//! The prompt, the tools and the message of an agent.

use std::sync::Arc;

use baton_agents::RosterDraft;
use baton_core::agent::Agent;
use baton_core::choice::Choice as _;
use baton_core::tool::ToolSpec;
use baton_core::{AgentName, ThreadId};
use baton_engine::{Agents, Preview, PreviewedSession, RunCaller, Via};
use baton_server::wire::agent::PromptView;

use super::super::{print, print_json, tenant, user};
use super::{AgentsFormat, find};
use crate::exit::Exit;
use crate::project::Project;
use crate::report::{tell, visible};
use crate::wiring::{self, Wired};

#[derive(Debug, clap::Args)]
pub struct Args {
    agent: String,
    /// As this agent would call it [default: it gets the message directly]
    #[arg(long, value_name = "AGENT")]
    from: Option<String>,
    /// How that agent involves it: call, delegate, advisor, member, handoff, route or transfer
    #[arg(long, value_name = "HOW", default_value = "call", requires = "from", value_parser = via)]
    via: Via,
    /// As on this conversation: its holder has the tools of a holder and its workflow at the current step
    #[arg(long, value_name = "ID", conflicts_with = "from")]
    thread: Option<ThreadId>,
    /// What the person asks
    #[arg(long, value_name = "TEXT", default_value = "What should I do next?")]
    message: String,
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    format: AgentsFormat,
}

fn via(text: &str) -> Result<Via, String> {
    Via::parse(text).ok_or_else(|| {
        let words: Vec<&str> = Via::ALL.iter().map(|(word, _)| *word).collect();
        format!("`{text}` is no way to involve an agent: use {}", words.join(", "))
    })
}

pub(super) fn run(project: &Project, draft: RosterDraft, args: &Args) -> anyhow::Result<Exit> {
    let name = find(&draft, &args.agent)?;
    let from = args.from.as_deref().map(|from| find(&draft, from)).transpose()?;
    let roster = draft.finish()?;
    let agents: Arc<Agents> =
        Arc::new(roster.iter().map(|agent| (agent.name.clone(), Arc::clone(agent))).collect());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let from = from.as_ref().map(|from| (from, args.via));
    let preview = runtime.block_on(look(project, &agents, &name, from, args))?;
    match args.format {
        AgentsFormat::Json => print_json(&PromptView::of(&name, &preview))?,
        AgentsFormat::Text => print(&text(&preview))?,
    }
    if let Some(agent) = agents.get(&name) {
        explain(agent, &preview.asked.tools);
        if agent.workflow.is_some() && from.is_none() && args.thread.is_none() {
            tell(
                "its workflow is part of the prompt only while it holds a conversation: see --from AGENT --via transfer, or --thread ID",
            );
        }
    }
    Ok(Exit::Ok)
}

async fn look(
    project: &Project,
    agents: &Arc<Agents>,
    name: &AgentName,
    from: Option<(&AgentName, Via)>,
    args: &Args,
) -> anyhow::Result<Preview> {
    let agents = Arc::clone(agents);
    let Wired { engine, servers } = match args.thread {
        Some(_) => wiring::wire(project, agents).await?,
        None => wiring::wire_to_look(project, agents).await?,
    };
    let thread_id = args.thread.unwrap_or_else(ThreadId::random);
    let caller = RunCaller { tenant: tenant(), user: user(), thread_id };
    if args.thread.is_some() {
        engine.parts.store.tenant(&caller.tenant).thread(thread_id, None).await?;
    }
    let preview = baton_engine::preview(&engine, &caller, name, from, &args.message).await;
    servers.shutdown().await;
    Ok(preview?)
}

fn text(preview: &Preview) -> String {
    let system = visible(preview.system.trim_end());
    let mut text = heading("System prompt") + &format!("\n{system}\n\n");
    match &preview.deciding {
        Some(deciding) => {
            text += &session(deciding, " after a round");
            text += "\n";
            text += &session(&preview.asked, " after the last round");
        }
        None => text += &session(&preview.asked, ""),
    }
    text
}

fn session(asked: &PreviewedSession, when: &str) -> String {
    let bold = anstyle::Style::new().bold();
    let tools = asked.tools.iter().map(|tool| {
        let (name, description) = (visible(&tool.name), visible(&tool.description));
        let description = description.lines().map(|line| format!("  {line}\n")).collect::<String>();
        format!("\n{bold}{name}{bold:#}\n{description}  {}\n", visible(&tool.parameters.to_string()))
    });
    let tools = tools.collect::<String>();
    let tools = if tools.is_empty() { "\n(none)\n".to_owned() } else { tools };
    let message = visible(asked.message.trim_end());
    let (about_tools, about_message) = (heading(&format!("Tools{when}")), heading(&format!("Message{when}")));
    format!("{about_tools}{tools}\n{about_message}\n{message}\n")
}

fn heading(text: &str) -> String {
    let bold = anstyle::Style::new().bold();
    format!("{bold}# {text}{bold:#}\n")
}

/// A server that does not answer costs its tools, which would otherwise not be seen.
fn explain(agent: &Agent, tools: &[ToolSpec]) {
    for server in agent.mcp_servers.keys() {
        if !tools.iter().any(|tool| tool.name.starts_with(&format!("mcp:{server}/"))) {
            let server = visible(server);
            tell(&format!(
                "there is no tool of the MCP server `{server}`: it cannot be reached, or the agent may use none"
            ));
        }
    }
}
