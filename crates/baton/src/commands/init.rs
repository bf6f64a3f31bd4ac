//! `baton init`: a project that works at once.

mod model;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::config::FILE_NAME;
use crate::exit::Exit;
use crate::report::tell;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to start the project [default: here]
    #[arg(default_value = ".")]
    pub dir: PathBuf,
    /// The model to use: `local` finds a server on this machine, or ollama/<model>, http://host:port, or provider/model
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,
    /// Also write these agents: `specialists` are coding, rag and wiki, and an orchestrator that calls them
    #[arg(long, value_name = "SET")]
    pub with: Vec<AgentSet>,
}

/// Agents that a project gets on request. No agent of a new project refers to them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum AgentSet {
    Specialists,
}

impl AgentSet {
    fn files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Specialists => SPECIALISTS,
        }
    }
}

const HEAD: &str = r#"# Baton's settings. Everything that is not here has a default; docs/configuration.md lists all keys.
# Secrets come from the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, …

[agents]
dirs = ["agents"]
main = "assistant"

"#;

const OFFLINE: &str = r#"[models]
# Works without a key or network. For real answers: "openai/gpt-5-mini", "anthropic/claude-sonnet-4-5", "ollama/qwen3", …
default = "offline"
"#;

const TOOLS: &str = r#"
[tools.search_docs]
# What the knowledge agent searches.
dirs = ["docs"]
"#;

const DOCS: &str =
    "# Notes\n\nPut Markdown files here; the knowledge agent searches them and names its sources.\n";

/// Conversations and secrets are not for a repository.
const IGNORE: &str = "baton.db*\n.env*\n";

/// What a new project starts with, beside `baton.toml`. The agents are those that come with Baton.
const FILES: &[(&str, &str)] = &[
    ("agents/assistant.md", include_str!("../../../../agents/assistant.md")),
    ("agents/knowledge.md", include_str!("../../../../agents/knowledge.md")),
    ("agents/research.md", include_str!("../../../../agents/research.md")),
    ("agents/skill-creator.md", include_str!("../../../../agents/skill-creator.md")),
    ("agents/agent-creator.md", include_str!("../../../../agents/agent-creator.md")),
    ("agents/debugger.md", include_str!("../../../../agents/debugger.md")),
    ("docs/notes.md", DOCS),
    (".gitignore", IGNORE),
];

const SPECIALISTS: &[(&str, &str)] = &[
    ("agents/coding.md", include_str!("../../../../specialists/coding.md")),
    ("agents/rag.md", include_str!("../../../../specialists/rag.md")),
    ("agents/wiki.md", include_str!("../../../../specialists/wiki.md")),
    ("agents/orchestrator.md", include_str!("../../../../specialists/orchestrator.md")),
];

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let dir = &args.dir;
    let models = match &args.model {
        Some(model) => chosen(dir, model)?,
        None => OFFLINE.to_owned(),
    };
    for (path, is_written) in write_all(dir, &models, &args.with)? {
        let word = if is_written { "wrote" } else { "kept " };
        tell(&format!("{word} {}", path.display()));
    }
    let cd = if dir == Path::new(".") { String::new() } else { format!("cd {} && ", dir.display()) };
    tell(&format!("\nNext: {cd}baton graph && baton run \"Where do I put Markdown files?\""));
    Ok(Exit::Ok)
}

/// The tables of the model that `--model` means, after it has answered. Nothing is written if it does not.
fn chosen(dir: &Path, text: &str) -> anyhow::Result<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let (tables, path) = runtime.block_on(async {
        let model = model::choose(text).await?;
        model.verify().await?;
        anyhow::Ok((model.config(), dir.join(FILE_NAME)))
    })?;
    if path.exists() {
        let problem = format!("{} exists and is kept; put this into it instead:\n\n{tables}", path.display());
        return Err(Exit::Invalid.because(anyhow::anyhow!(problem)));
    }
    Ok(tables)
}

/// The files of a new project without a model, each with whether it was written: what is there is kept.
pub(super) fn write(dir: &Path) -> anyhow::Result<Vec<(PathBuf, bool)>> {
    write_all(dir, OFFLINE, &[])
}

fn write_all(dir: &Path, models: &str, sets: &[AgentSet]) -> anyhow::Result<Vec<(PathBuf, bool)>> {
    let config = format!("{HEAD}{models}{TOOLS}");
    let write = |(name, content): &(&str, &str)| {
        let path = dir.join(name);
        let written =
            write_new(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        Ok((path, written))
    };
    let further = sets.iter().flat_map(|set| set.files());
    [(FILE_NAME, config.as_str())].iter().chain(FILES).chain(further).map(write).collect()
}

/// Never overwrites an existing file.
fn write_new(path: &Path, content: &str) -> std::io::Result<bool> {
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent)?;
    }
    match fs::File::create_new(path) {
        Ok(mut file) => std::io::Write::write_all(&mut file, content.as_bytes()).map(|()| true),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}
