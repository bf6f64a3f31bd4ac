//! `baton skills`: what agents can learn.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use baton_core::agent::SkillName;
use baton_core::store::AuditEntry;
use baton_core::{SkillFile, SkillHead, SkillOrigin, SkillSource as _, Store as _, TenantId};
use baton_server::wire::page::Listed;
use baton_server::wire::skill::{SkillDetail, SkillView};
use baton_tools::skills::{CheckSeverity, FILE, Saved, export};
use baton_tools::{SkillLibrary, SkillProblem, SkillStrictness};
use serde::Serialize;
use serde_json::json;

use super::archive::{self, Archive};
use super::{print, print_json, user};
use crate::cli::Common;
use crate::exit::Exit;
use crate::project::Project;
use crate::report::table::{Column, Table};
use crate::report::{tell, visible};
use crate::wiring;

/// The actor of audit entries.
const ACTOR: &str = "system";

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// Shared skills and those that people of a tenant created
    List {
        #[command(flatten)]
        whose: Whose,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// One skill: whose it is, and its file
    Show {
        #[command(flatten)]
        named: Named,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write a skill as a folder with SKILL.md, for other programs or for all tenants
    Export {
        #[command(flatten)]
        named: Named,
        /// The folder that gets the skill's folder, such as .agents/skills
        #[arg(value_name = "DIR")]
        dir: PathBuf,
    },
    /// Give a tenant a skill that is a folder with SKILL.md
    Import {
        /// The folder of the skill, or its SKILL.md
        #[arg(value_name = "PATH")]
        path: PathBuf,
        #[command(flatten)]
        whose: Whose,
    },
    /// Delete a skill that people of a tenant created
    Delete {
        #[command(flatten)]
        named: Named,
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

#[derive(Debug, clap::Args)]
pub struct Named {
    /// Its name, such as slack-alert
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    whose: Whose,
}

pub fn run(common: &Common, command: &Command) -> anyhow::Result<Exit> {
    if let Command::Validate { paths, json } = command {
        return validate(paths, *json);
    }
    let project = super::project(common)?;
    if let Command::Import { path, whose } = command {
        return archive::with_new(&project, async |archive| import(&project, archive, path, whose).await);
    }
    archive::with_project(&project, async |archive| {
        let skills = library(&project, archive);
        match command {
            Command::List { whose, json } => list(&skills.list(&whose.tenant).await?, *json),
            Command::Show { named, json } => show(&project, &skills, named, *json).await,
            Command::Export { named, dir } => write(dir, &named.read(&skills).await?),
            Command::Delete { named } => delete(&skills, archive, named).await,
            Command::Import { .. } | Command::Validate { .. } => Ok(Exit::Ok),
        }
    })
}

fn library(project: &Project, archive: &Archive) -> SkillLibrary {
    SkillLibrary::new(wiring::skills(project), Arc::new(archive.store.clone()))
}

impl Named {
    fn unknown(&self) -> anyhow::Error {
        anyhow::anyhow!("there is no skill `{}`; `baton skills list` prints them all", self.name)
    }

    async fn read(&self, skills: &SkillLibrary) -> anyhow::Result<SkillFile> {
        let name = SkillName::parse(&self.name).map_err(|_| self.unknown())?;
        skills.read(&self.whose.tenant, &name).await?.ok_or_else(|| self.unknown())
    }
}

fn list(skills: &[Arc<SkillHead>], json: bool) -> anyhow::Result<Exit> {
    if json {
        let views = skills.iter().map(|head| SkillView::from(head.as_ref())).collect();
        print_json(&Listed::<SkillView>::whole(views))?;
        return Ok(Exit::Ok);
    }
    let mut table = Table::new([Column::Text("NAME"), Column::Text("ORIGIN"), Column::Text("DESCRIPTION")]);
    for head in skills {
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

async fn show(project: &Project, skills: &SkillLibrary, named: &Named, json: bool) -> anyhow::Result<Exit> {
    let file = named.read(skills).await?;
    if json {
        print_json(&SkillDetail::from(file))?;
        return Ok(Exit::Ok);
    }
    match file.head.origin {
        SkillOrigin::Shared => {
            let found = wiring::skills(project).found(&file.head.name).ok_or_else(|| named.unknown())?;
            tell(&found.folder.join(FILE).display().to_string());
        }
        SkillOrigin::Created => {
            tell(&format!("created by the people of the tenant `{}`", named.whose.tenant));
        }
    }
    print(&(visible(file.text.trim_end()) + "\n"))?;
    Ok(Exit::Ok)
}

fn write(dir: &Path, file: &SkillFile) -> anyhow::Result<Exit> {
    let name = &file.head.name;
    let written = export(dir, name, &file.text);
    let written = written.with_context(|| format!("cannot write {}", dir.join(name.as_str()).display()))?;
    print(&format!("{}\n", written.display()))?;
    Ok(Exit::Ok)
}

async fn import(
    project: &Project,
    archive: &Archive,
    path: &Path,
    Whose { tenant }: &Whose,
) -> anyhow::Result<Exit> {
    let file = folder(path).join(FILE);
    let text = std::fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))?;
    let real = folder(path).canonicalize().unwrap_or_else(|_| folder(path));
    let called = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = SkillName::parse(&called).map_err(|error| Exit::Invalid.because(error))?;
    let entry = entry("skill.import", &name);
    let imported = library(project, archive).import(tenant, &name, text, entry, user()).await;
    let imported = imported.map_err(|error| Exit::Invalid.because(error))?;
    let before = if imported == Saved::Before { ", which had it before" } else { "" };
    print(&format!("imported the skill `{}` for the tenant `{tenant}`{before}\n", name.as_str()))?;
    Ok(Exit::Ok)
}

async fn delete(skills: &SkillLibrary, archive: &Archive, named: &Named) -> anyhow::Result<Exit> {
    let (file, tenant) = (named.read(skills).await?, &named.whose.tenant);
    let name = &file.head.name;
    let deleted = archive.store.tenant(tenant).delete_skill(name, entry("skill.delete", name)).await?;
    if !deleted {
        anyhow::bail!("`{}` is a shared skill: delete its folder in .agents/skills", named.name);
    }
    print(&format!("deleted the skill `{}` of the tenant `{tenant}`\n", name.as_str()))?;
    Ok(Exit::Ok)
}

fn entry(action: &str, name: &SkillName) -> AuditEntry {
    AuditEntry {
        actor: ACTOR.to_owned(),
        action: action.to_owned(),
        decision: "allowed".to_owned(),
        detail: json!({ "skill": name.as_str() }),
        ..AuditEntry::default()
    }
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
