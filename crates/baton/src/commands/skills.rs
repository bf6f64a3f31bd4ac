//! `baton skills`: what agents can learn.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use baton_core::TenantId;
use baton_core::agent::SkillName;
use baton_server::wire::page::Listed;
use baton_server::wire::skill::{SkillDetail, SkillView};
use baton_tools::skills::{CheckSeverity, FILE, FoundSkill, SkillError};
use baton_tools::{SkillFolder, SkillProblem, SkillStrictness};
use serde::Serialize;
use serde_json::json;

use super::{print, print_json};
use crate::cli::Common;
use crate::exit::Exit;
use crate::report::table::{Column, Table};
use crate::report::{tell, visible};
use crate::wiring;

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Shared skills and those that people of a tenant made
    List {
        #[command(flatten)]
        whose: Whose,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// One skill: where it is, and its file
    Show {
        /// Its name, such as slack-alert
        #[arg(value_name = "NAME")]
        name: String,
        #[command(flatten)]
        whose: Whose,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Check the folder of a skill against the rules of Agent Skills; exit 3 if it breaks them
    Validate {
        /// The folder with SKILL.md in it, or the file itself
        #[arg(value_name = "PATH", required = true)]
        paths: Vec<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, clap::Args)]
pub struct Whose {
    /// As the agents of this tenant have them
    #[arg(long, value_name = "TENANT", default_value = "default")]
    tenant: TenantId,
}

pub fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    match command {
        Command::List { whose, json } => {
            list(&wiring::skills(&super::project(common)?).all(&whose.tenant), *json)
        }
        Command::Show { name, whose, json } => {
            show(&wiring::skills(&super::project(common)?), &whose.tenant, name, *json)
        }
        Command::Validate { paths, json } => validate(paths, *json),
    }
}

fn list(skills: &[FoundSkill], json: bool) -> anyhow::Result<Exit> {
    if json {
        let views = skills.iter().map(|found| SkillView::from(found.head.as_ref())).collect();
        print_json(&Listed::<SkillView>::whole(views))?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new([Column::Text("NAME"), Column::Text("ORIGIN"), Column::Text("DESCRIPTION")]);
    for FoundSkill { head, .. } in skills {
        table.add([head.name.as_str().to_owned(), head.origin.to_string(), head.description.clone()]);
    }
    if table.is_empty() {
        tell(
            "There are no skills yet. Ask the assistant to create one, or put a folder into .agents/skills.",
        );
    }
    print(&table.print())?;
    Ok(Exit::Ok)
}

fn show(skills: &SkillFolder, tenant: &TenantId, name: &str, json: bool) -> anyhow::Result<Exit> {
    let unknown = || anyhow::anyhow!("there is no skill `{name}`; `baton skills list` prints them all");
    let name = SkillName::parse(name).map_err(|_| unknown())?;
    let folder = skills.found(tenant, &name).ok_or_else(unknown)?.folder;
    let file = match skills.file(tenant, &name) {
        Err(SkillError::Unknown(_)) => return Err(unknown()),
        file => file.with_context(|| format!("cannot read {}", folder.display()))?,
    };
    if json {
        print_json(&SkillDetail::from(file))?;
    } else {
        tell(&folder.join(FILE).display().to_string());
        print(&(visible(file.text.trim_end()) + "\n"))?;
    }
    Ok(Exit::Ok)
}

/// What was found out about one folder.
#[derive(Debug, Serialize)]
struct SkillCheck {
    path: String,
    valid: bool,
    problems: Vec<serde_json::Value>,
}

fn validate(paths: &[PathBuf], json: bool) -> anyhow::Result<Exit> {
    let checked: Vec<(&PathBuf, Vec<SkillProblem>)> = paths
        .iter()
        .map(|path| (path, baton_tools::validate(&folder(path), SkillStrictness::Strict)))
        .collect();
    let is_valid =
        |problems: &[SkillProblem]| problems.iter().all(|one| one.severity != CheckSeverity::Error);
    if json {
        let all = checked.iter().map(|(path, problems)| SkillCheck {
            path: path.display().to_string(),
            valid: is_valid(problems),
            problems: problems.iter().map(document).collect(),
        });
        print_json(&all.collect::<Vec<_>>())?;
    } else {
        let all = checked.iter().map(|(path, problems)| {
            let lines: String =
                problems.iter().map(|problem| format!("  {}\n", visible(&problem.to_string()))).collect();
            let verdict = if is_valid(problems) { "valid" } else { "not valid" };
            format!("{}: {verdict}\n{lines}", visible(&path.display().to_string()))
        });
        print(&all.collect::<String>())?;
    }
    Ok(if checked.iter().all(|(_, problems)| is_valid(problems)) { Exit::Ok } else { Exit::Invalid })
}

/// The path of `SKILL.md` means its folder.
fn folder(path: &Path) -> PathBuf {
    let is_file = path.file_name().is_some_and(|name| name == FILE) && !path.is_dir();
    let parent = || path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    if is_file { parent().to_owned() } else { path.to_owned() }
}

fn document(problem: &SkillProblem) -> serde_json::Value {
    json!({ "severity": problem.severity.to_string(), "rule": problem.rule, "message": problem.message })
}
