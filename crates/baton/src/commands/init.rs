//! `baton init`: a project that works at once.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use crate::exit::Exit;
use crate::report::tell;

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to start the project [default: here]
    #[arg(default_value = ".")]
    pub dir: PathBuf,
}

const CONFIG: &str = r#"# Baton's settings. Everything that is not here has a default; docs/configuration.md lists all keys.
# Secrets come from the environment: OPENAI_API_KEY, ANTHROPIC_API_KEY, GEMINI_API_KEY, …

[agents]
dirs = ["agents"]
main = "assistant"

[models]
# Works without a key or network. For real answers: "openai/gpt-5-mini", "anthropic/claude-sonnet-4-5", "ollama/qwen3", …
default = "offline"

[tools.search_docs]
# What the knowledge agent searches.
dirs = ["docs"]
"#;

const DOCS: &str =
    "# Notes\n\nPut Markdown files here; the knowledge agent searches them and names its sources.\n";

/// Conversations and secrets are not for a repository.
const IGNORE: &str = "baton.db*\n.env*\n";

/// What a new project starts with. The agents are those that come with Baton.
const FILES: &[(&str, &str)] = &[
    ("baton.toml", CONFIG),
    ("agents/assistant.md", include_str!("../../../../agents/assistant.md")),
    ("agents/knowledge.md", include_str!("../../../../agents/knowledge.md")),
    ("agents/research.md", include_str!("../../../../agents/research.md")),
    ("agents/skill-creator.md", include_str!("../../../../agents/skill-creator.md")),
    ("agents/debugger.md", include_str!("../../../../agents/debugger.md")),
    ("docs/notes.md", DOCS),
    (".gitignore", IGNORE),
];

pub fn run(args: &Args) -> anyhow::Result<Exit> {
    let dir = &args.dir;
    for (path, is_written) in write(dir)? {
        let word = if is_written { "wrote" } else { "kept " };
        tell(&format!("{word} {}", path.display()));
    }
    let cd = if dir == Path::new(".") { String::new() } else { format!("cd {} && ", dir.display()) };
    tell(&format!("\nNext: {cd}baton graph && baton run \"Where do I put Markdown files?\""));
    Ok(Exit::Ok)
}

/// The files of a new project, each with whether it was written: what is there is kept.
pub(super) fn write(dir: &Path) -> anyhow::Result<Vec<(PathBuf, bool)>> {
    let write = |(name, content): &(&str, &str)| {
        let path = dir.join(name);
        let written =
            write_new(&path, content).with_context(|| format!("cannot write {}", path.display()))?;
        Ok((path, written))
    };
    FILES.iter().map(write).collect()
}

/// Never overwrites: what is there is somebody's work.
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
