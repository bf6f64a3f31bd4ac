//! The command line.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Parser;

/// Try Baton's bundled agents and examples with a language model.
#[derive(Debug, Clone, Parser)]
#[command(name = "baton-smoke")]
pub struct Options {
    /// Base URL of an OpenAI-compatible endpoint, such as `http://127.0.0.1:11434/v1`. The variable `SMOKE_API_KEY` has its key
    #[arg(long, value_name = "URL")]
    pub model_url: String,
    /// Name of the model [default: the first one that the endpoint lists]
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Folder with agent files that replace bundled ones of the same name; several are compared [default: agents]
    #[arg(long = "variant", value_name = "DIR")]
    pub variants: Vec<PathBuf>,
    /// Stored results to show as the first column
    #[arg(long, value_name = "FILE")]
    pub compare: Option<PathBuf>,
    /// Run only this group, or only this case, written as group/name
    #[arg(long, value_name = "GROUP")]
    pub only: Vec<String>,
    /// How often each case runs
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub repeat: u32,
    /// Temperature of every agent, in place of what its file says
    #[arg(long, default_value_t = 0.0)]
    pub temperature: f64,
    /// Time limit for each message of a case, in seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub timeout: u64,
    /// Folder for the results, one file MODEL-VARIANT.json for each variant
    #[arg(long, value_name = "DIR", default_value = "target/smoke")]
    pub results: PathBuf,
    /// The repository, with `agents/` and `examples/`
    #[arg(long, value_name = "DIR", default_value = ".")]
    pub root: PathBuf,
    /// Folder with the case files [default: smoke/cases of the repository]
    #[arg(long, value_name = "DIR")]
    pub cases: Option<PathBuf>,
    /// The `baton` command [default: the one beside this program]
    #[arg(long, value_name = "FILE")]
    pub baton: Option<PathBuf>,
}

impl Options {
    pub fn time_limit(&self) -> Duration {
        Duration::from_secs(self.timeout)
    }

    pub fn cases_dir(&self) -> PathBuf {
        self.cases.clone().unwrap_or_else(|| self.root.join("smoke/cases"))
    }

    /// The variants to run: the bundled agents if none is named.
    pub fn variants(&self) -> Vec<Variant> {
        let bundled = [self.root.join("agents")];
        let dirs = if self.variants.is_empty() { &bundled[..] } else { &self.variants[..] };
        let is_shared =
            |dir: &Path| dirs.iter().filter(|other| other.file_name() == dir.file_name()).count() > 1;
        let label = |dir: &Path| match dir.file_name() {
            Some(name) if !is_shared(dir) => file_safe(&name.to_string_lossy()),
            _ => file_safe(&dir.to_string_lossy()),
        };
        dirs.iter().map(|dir| Variant { label: label(dir), dir: dir.clone() }).collect()
    }

    /// The absolute path of the `baton` command, because the server runs in another folder.
    pub fn baton(&self) -> anyhow::Result<PathBuf> {
        let path = match &self.baton {
            Some(path) => path.clone(),
            None => std::env::current_exe()?.with_file_name("baton"),
        };
        let absolute = path.canonicalize();
        absolute.with_context(|| format!("{} is missing; build it or use --baton", path.display()))
    }
}

/// A folder of agent files under test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variant {
    /// Name of the folder, or its whole path if several variants have the same one. Names the column and the file of the results.
    pub label: String,
    pub dir: PathBuf,
}

/// Replaces everything that does not belong into a file name by `-`.
pub fn file_safe(text: &str) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '_' { c } else { '-' };
    text.chars().map(safe).collect::<String>().trim_matches(['-', '.']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variants_have_labels_of_their_own() {
        let labels = |args: &[&str]| {
            let args = ["baton-smoke", "--model-url", "http://127.0.0.1:1/v1"].iter().chain(args);
            let variants = Options::try_parse_from(args).unwrap().variants();
            variants.into_iter().map(|variant| variant.label).collect::<Vec<_>>()
        };
        assert_eq!(labels(&[]), ["agents"]);
        assert_eq!(labels(&["--variant", "agents", "--variant", "../short/"]), ["agents", "short"]);
        assert_eq!(labels(&["--variant", "agents", "--variant", "../old/agents"]), ["agents", "old-agents"]);
    }
}
