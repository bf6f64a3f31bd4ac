//! Agents on other servers, played by scripts: in every pattern, with questions, crashes and handoffs.

mod crashes;
mod handoffs;
mod patterns;
mod questions;
mod script;

use baton_core::agent::{Agent, AgentKind, RemoteCard};

use script::ScriptedRemotes;

use crate::Setup;

/// Makes the agent a remote one.
fn remote(agent: &mut Agent) {
    let card = RemoteCard::Url("https://far.example/card".into());
    agent.kind = AgentKind::Remote { card, auth: None };
}

/// `b` is remote, and `a` may call it.
fn setup(model: &baton_models::scripted::Scripted, remotes: &ScriptedRemotes) -> Setup {
    let mut setup = Setup::new(model).agent(|a| a.agents = vec![crate::name("b")]).with("b", remote);
    setup.remotes = Some(remotes.shared());
    setup
}
