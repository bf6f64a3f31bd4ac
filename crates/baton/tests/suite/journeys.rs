//! The journeys of people, step by step, through the built server over HTTP: asking, making a skill, leaving and coming back. Each
//! step has its number in the message of its assertion.
//!
//! - [`person`]: somebody who talks with the server. [`turn`]: what they hear. [`walk`]: somebody who answers what they are asked.
//! - [`question`], [`creation`], [`leaving`]: the journeys without a model. [`scripted`]: the same with one, played by [`model`].
//! - [`agent_creation`]: an agent is created in a conversation.
//! - [`kills`]: the server dies on the way. [`pauses`]: the server is paused for longer than its lease. [`edges`], [`slowness`]: what
//!   goes wrong otherwise. [`tenants`]: who may and who sees.
//! - [`notion`]: the example of the seed. [`second_request`]: the person asks for something else meanwhile.
//! - [`two_servers`]: the agent that makes skills is on another server.
//! - [`conversations`]: whatever people say, the skill is valid.

mod agent_creation;
mod conversations;
mod creation;
mod edges;
mod kills;
mod leaving;
mod model;
mod notion;
mod pauses;
mod person;
mod question;
mod scripted;
mod second_request;
mod slowness;
mod tenants;
mod turn;
mod two_servers;
mod walk;

use std::path::Path;

use tempfile::TempDir;

const QUESTION: &str = "How do I configure rate limiting for my agent?";
const WISH: &str = "I want to create a skill that sends Slack alerts";

/// What the person hears at the turns of the way, word for word.
const CONNECTING: &str = "Connecting you with Skill Creation Assistant...";
/// K7: the line before the first words of the specialist.
const MODE: &str = "[Skill Creation Mode]";
/// K7: how the main agent announces the specialist without a model.
const ANNOUNCED: &str =
    "I'll connect you with our Skill Creation Assistant, who builds a skill together with you.";
const READY: &str = "Your skill is ready! Returning you to the main assistant.";
const ACTIVE: &str = "Great, your 'Slack Alert' skill is now active.";
const LEFT: &str = "No problem! Returning you to the main assistant.";
const LATER: &str = "Let me know if you'd like to continue creating that skill later.";
const OCCUPIED: &str = "You're currently in a skill creation session. Would you like to finish that first?";
const UNAVAILABLE: &str = "The skill creation assistant is currently unavailable. Would you like me to help you with something else, \
                           or try again later?";

/// The agents and documents that come with Baton, in a folder of their own.
fn project(config: &str) -> TempDir {
    let dir = tempfile::tempdir().unwrap();
    for folder in ["agents", "docs"] {
        std::fs::create_dir(dir.path().join(folder)).unwrap();
        for entry in std::fs::read_dir(crate::root().join(folder)).unwrap() {
            let from = entry.unwrap().path();
            if from.extension().is_some_and(|extension| extension == "md") {
                std::fs::copy(&from, dir.path().join(folder).join(from.file_name().unwrap())).unwrap();
            }
        }
    }
    std::fs::write(dir.path().join("baton.toml"), config).unwrap();
    dir
}

/// An agent's file with something else in one place.
fn edit(dir: &TempDir, agent: &str, from: &str, to: &str) {
    let file = dir.path().join("agents").join(agent).with_extension("md");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains(from), "{agent}: {from}");
    std::fs::write(file, text.replacen(from, to, 1)).unwrap();
}

/// The file of a skill that was made in a conversation, as another process sees it.
fn skill(dir: &Path, tenant: &str, name: &str) -> Option<String> {
    let shown = crate::baton(dir, &["skills", "show", name, "--tenant", tenant, "--json"]);
    let shown: Option<serde_json::Value> = serde_json::from_str(&shown.stdout).ok();
    shown.and_then(|skill| skill["text"].as_str().map(str::to_owned))
}
