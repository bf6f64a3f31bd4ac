//! The temporary project of a case: agent files, documents and `baton.toml`.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use tempfile::TempDir;
use toml::{Table, Value};

use crate::cases::Case;
use crate::options::Variant;

/// The model that the project uses.
#[derive(Debug, Clone)]
pub struct ModelChoice {
    pub base_url: String,
    pub name: String,
    pub temperature: f64,
}

/// Writes the project of a case. It is deleted with the returned value.
pub fn create(root: &Path, variant: &Variant, case: &Case, model: &ModelChoice) -> anyhow::Result<TempDir> {
    let dir = tempfile::tempdir()?;
    let docs = dir.path().join("docs");
    let sources = Sources::of(root, variant, case);
    for from in &sources.agents {
        copy_agents(from, &dir.path().join("agents"), model.temperature)?;
    }
    copy_files(&sources.docs, &docs)?;
    for (name, text) in &case.docs {
        fs::create_dir_all(&docs)?;
        fs::write(docs.join(name), text)?;
    }
    let config = match &sources.config {
        Some(path) => fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?,
        None => String::new(),
    };
    fs::write(dir.path().join("baton.toml"), with_model(&config, model)?)?;
    Ok(dir)
}

/// Where the files of a project come from.
struct Sources {
    /// A later folder replaces files of an earlier one.
    agents: [PathBuf; 2],
    docs: PathBuf,
    config: Option<PathBuf>,
}

impl Sources {
    fn of(root: &Path, variant: &Variant, case: &Case) -> Self {
        let Some(name) = &case.example else {
            let agents = [root.join("agents"), variant.dir.clone()];
            return Self { agents, docs: root.join("smoke/docs"), config: None };
        };
        let below = |dir: &Path| dir.join("examples").join(name);
        let example = below(root);
        Self {
            agents: [example.join("agents"), below(&variant.dir).join("agents")],
            docs: example.join("docs"),
            config: Some(example.join("baton.toml")),
        }
    }
}

/// The files of a folder; none if it does not exist.
fn files(dir: &Path) -> anyhow::Result<Vec<PathBuf>> {
    if !dir.is_dir() {
        return Ok(Vec::new());
    }
    let entries = fs::read_dir(dir).with_context(|| format!("cannot read {}", dir.display()))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
    Ok(paths.into_iter().filter(|path| path.is_file()).collect())
}

fn copy_files(from: &Path, to: &Path) -> anyhow::Result<()> {
    for path in files(from)? {
        fs::create_dir_all(to)?;
        fs::copy(&path, to.join(path.file_name().unwrap_or_default()))?;
    }
    Ok(())
}

fn copy_agents(from: &Path, to: &Path, temperature: f64) -> anyhow::Result<()> {
    fs::create_dir_all(to)?;
    for path in files(from)?.into_iter().filter(|path| path.extension().is_some_and(|one| one == "md")) {
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let name = path.file_name().unwrap_or_default();
        fs::write(to.join(name), with_temperature(&text, temperature))?;
    }
    Ok(())
}

/// Sets the temperature in the frontmatter of an agent file. Removes a limit of the cost: the price of the model is not known, and
/// such a limit would then be an error.
fn with_temperature(text: &str, temperature: f64) -> String {
    let Some(rest) = text.strip_prefix("---\n") else { return text.to_owned() };
    let Some((head, body)) = rest.split_once("\n---\n") else { return text.to_owned() };
    let is_kept =
        |line: &&str| !line.starts_with("temperature:") && !line.trim_start().starts_with("max_cost_usd:");
    let others = head.lines().filter(is_kept);
    let head = others.collect::<Vec<_>>().join("\n");
    format!("---\n{head}\ntemperature: {temperature}\n---\n{body}")
}

/// `baton.toml` with the model under test as the default and behind every alias.
fn with_model(config: &str, model: &ModelChoice) -> anyhow::Result<String> {
    let mut config: Table = config.parse().context("the example's baton.toml is invalid")?;
    let name = format!("smoke/{}", model.name);
    let aliases = ["fast", "smart"].map(|alias| (alias.to_owned(), Value::from(name.as_str())));
    let provider = Table::from_iter([("base_url".to_owned(), Value::from(model.base_url.as_str()))]);
    let models = Table::from_iter([
        ("default".to_owned(), Value::from(name.as_str())),
        ("aliases".to_owned(), Value::Table(aliases.into_iter().collect())),
        (
            "providers".to_owned(),
            Value::Table(Table::from_iter([("smoke".to_owned(), Value::Table(provider))])),
        ),
    ]);
    config.insert("models".to_owned(), Value::Table(models));
    let agents = config.entry("agents").or_insert_with(|| Value::Table(Table::new()));
    if let Value::Table(agents) = agents {
        agents.insert("watch".to_owned(), Value::from(false));
    }
    Ok(toml::to_string(&config)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperature_replaces_the_one_of_the_file() {
        let text = "---\nname: a\ntemperature: 0.7\n---\nBody\n";
        assert_eq!(with_temperature(text, 0.0), "---\nname: a\ntemperature: 0\n---\nBody\n");
        assert_eq!(with_temperature("---\nname: a\n---\n", 0.5), "---\nname: a\ntemperature: 0.5\n---\n");
        assert_eq!(with_temperature("no head", 0.5), "no head");
        let text = "---\nlimits:\n  timeout: 5m\n  max_cost_usd: 1.5\n---\n";
        assert_eq!(with_temperature(text, 0.5), "---\nlimits:\n  timeout: 5m\ntemperature: 0.5\n---\n");
    }

    #[test]
    fn config_keeps_what_the_example_sets() {
        let model =
            ModelChoice { base_url: "http://127.0.0.1:1/v1".into(), name: "m".into(), temperature: 0.0 };
        let config = "[agents]\nmain = \"desk\"\n[tools.search_docs]\ndirs = [\"docs\"]\n";
        let config: Table = with_model(config, &model).unwrap().parse().unwrap();
        assert_eq!(config["agents"]["main"].as_str(), Some("desk"));
        assert_eq!(config["models"]["default"].as_str(), Some("smoke/m"));
        assert_eq!(config["tools"]["search_docs"]["dirs"][0].as_str(), Some("docs"));
    }
}
