//! Who takes part in a run, and the project in which Baton does the same.

use std::path::Path;

use serde_json::json;

use crate::provider::ProviderProcess;
use crate::server::{ServedProcess, known_models};

/// Of every answer, except where an answer is to last.
pub const TOKENS: usize = crate::provider::FEW_TOKENS;
/// The agent whose model takes 20 ms for its first token and 5 ms for each of the others.
pub const PACED: &str = "paced";
/// The agent whose model takes two seconds for its answer.
pub const STEADY: &str = "steady";

const HOPS: usize = 5;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scenario {
    /// One agent answers.
    Answer,
    /// One passes the baton to another.
    Transfer,
    /// One asks two others at the same time, then answers.
    Delegation,
    /// The baton is passed on five times.
    Chain,
}

impl Scenario {
    pub const ALL: [Self; 4] = [Self::Answer, Self::Transfer, Self::Delegation, Self::Chain];

    pub fn name(self) -> &'static str {
        match self {
            Self::Answer => "S1 one agent",
            Self::Transfer => "S2 one transfer",
            Self::Delegation => "S3 two sub-agents",
            Self::Chain => "S4 five transfers",
        }
    }

    /// The agent that gets the message.
    pub fn agent(self) -> &'static str {
        match self {
            Self::Answer => "s1",
            Self::Transfer => "s2",
            Self::Delegation => "s3",
            Self::Chain => "s4",
        }
    }

    pub fn clients(self) -> usize {
        if self == Self::Chain { 16 } else { 64 }
    }

    /// KB that a run may take of the database.
    pub fn stored_limit(self) -> Option<f64> {
        match self {
            Self::Answer => Some(4.0),
            Self::Delegation => Some(10.0),
            Self::Transfer | Self::Chain => None,
        }
    }
}

#[derive(Debug, Clone)]
pub struct ScenarioAgent {
    pub name: String,
    pub model: String,
    pub others: Others,
}

/// Whom an agent may involve.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Others {
    None,
    /// By passing the baton.
    Next(String),
    /// By asking all of them.
    Asked(Vec<String>),
}

pub fn agents() -> Vec<ScenarioAgent> {
    let mut agents: Vec<ScenarioAgent> =
        [("s1", "few"), ("t1", "few"), ("w1", "few"), ("w2", "few"), ("c5", "few")]
            .into_iter()
            .chain([(PACED, "paced"), (STEADY, "steady")])
            .map(|(name, model)| ScenarioAgent {
                name: name.into(),
                model: model.into(),
                others: Others::None,
            })
            .collect();
    agents.push(passing("s2", "t1"));
    let chain: Vec<String> =
        std::iter::once("s4".to_owned()).chain((1..=HOPS).map(|at| format!("c{at}"))).collect();
    agents.extend(chain.windows(2).map(|pair| passing(&pair[0], &pair[1])));
    let asked = vec!["w1".to_owned(), "w2".to_owned()];
    let arguments = json!({"agents": asked, "message": "Look it up."});
    let model = format!("ask:delegate:{arguments}");
    agents.push(ScenarioAgent { name: "s3".into(), model, others: Others::Asked(asked) });
    agents
}

fn passing(name: &str, next: &str) -> ScenarioAgent {
    let model = format!("call:transfer_to_{next}:{}", json!({"reason": "it is theirs"}));
    ScenarioAgent { name: name.into(), model, others: Others::Next(next.into()) }
}

/// Baton with these agents in an empty project.
pub fn baton(dir: &Path, provider: &ProviderProcess) -> ServedProcess {
    let folder = dir.join("agents");
    std::fs::create_dir_all(&folder).expect("a folder");
    for agent in agents() {
        let others = match &agent.others {
            Others::None => String::new(),
            Others::Next(next) => format!("collaborations: [{next}]\n"),
            Others::Asked(names) => format!("agents: {}\n", json!(names)),
        };
        let model = json!(format!("bench/{}", agent.model));
        let text = format!("---\ndescription: Helps.\nmodel: {model}\n{others}---\nYou help.\n");
        std::fs::write(folder.join(format!("{}.md", agent.name)), text).expect("a file");
    }
    let config = format!(
        "[server]\nlisten = \"127.0.0.1:0\"\n[agents]\nmain = \"s1\"\n\
         [models]\ndefault = \"bench/few\"\n[models.providers.bench]\nbase_url = \"{}\"\n{}\
         [limits]\nrequests_per_minute = 100000000\nmax_concurrent_runs = 100000\n\
             max_connections_per_address = 100000\nmax_streams_per_tenant = 100000\n",
        provider.base_url,
        known_models(&agents().iter().map(|agent| agent.model.as_str()).collect::<Vec<_>>())
    );
    std::fs::write(dir.join("baton.toml"), config).expect("a file");
    ServedProcess::start(&["--baton", "serve"], dir)
}
