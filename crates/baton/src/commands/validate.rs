//! `baton validate`: checks agent files.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use baton_agents::problem::{Diagnostic, Rule};
use baton_agents::{Location, RosterDraft, SourceFile, Span, Strictness, files};
use baton_core::TenantId;
use clap::ValueEnum;

use super::{print, print_json};
use crate::cli::Common;
use crate::config;
use crate::exit::Exit;
use crate::project::{self, Project};
use crate::report::{self, ValidationReport};
use crate::tenants::{self, TenantProblem};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folders or files to check [default: the folders in baton.toml]
    pub paths: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: ValidateFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ValidateFormat {
    Text,
    Json,
    Sarif,
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    let mut report = ValidationReport::default();
    if args.paths.is_empty() {
        add_project(&super::project(common)?, args, &mut report);
    }
    for path in &args.paths {
        check(common, args, path, &mut report)?;
    }
    match args.format {
        ValidateFormat::Text => print(&report::text::render(&report))?,
        ValidateFormat::Json => print_json(&report)?,
        ValidateFormat::Sarif => print_json(&report::sarif::render(&report))?,
    }
    Ok(if report.errors() == 0 { Exit::Ok } else { Exit::Invalid })
}

/// A file or folder is checked within its roster; a folder may also be a project, or a folder of projects.
fn check(common: &Common, args: &Args, path: &Path, report: &mut ValidationReport) -> anyhow::Result<()> {
    let nested = if path.is_dir() { project::nested(path) } else { Vec::new() };
    for root in &nested {
        add_project(&Project::open_profile(root, None, common.profile(), &[])?, args, report);
    }
    let is_project = nested.iter().any(|root| root == path);
    let has_files = || !files::discover(&[path.to_owned()], &mut Vec::new()).is_empty();
    if nested.is_empty() || (!is_project && has_files()) {
        let project = Project::around(path, common.config.as_deref(), common.profile())?;
        if project.dirs == [path] {
            add(&project, args, report);
        } else {
            add_part(&project, args, path, report);
        }
    }
    Ok(())
}

/// A whole project: its agents, and that those its configuration names are among them.
fn add_project(project: &Project, args: &Args, report: &mut ValidationReport) {
    let draft = add(project, args, report);
    if let Some(problem) = missing_main(project, &draft) {
        report.add(0, [problem]);
    }
    report.add(0, invalid_tenants(project, &draft));
    for tenant in project.tenants_with_agents() {
        add_tenant(project, args, tenant, report);
    }
}

/// The agents of one tenant: what is wrong in its own folders, and in its section of `baton.toml`.
fn add_tenant(project: &Project, args: &Args, tenant: &TenantId, report: &mut ValidationReport) {
    let strictness = if args.strict { Strictness::Strict } else { Strictness::Lenient };
    let draft = project.draft_of(tenant).with_strictness(strictness);
    // Those for all tenants were reported before.
    let is_same = |one: &Diagnostic, other: &Diagnostic| {
        one.rule == other.rule && one.message == other.message && one.location.path() == other.location.path()
    };
    let is_new = |problem: &&Diagnostic| !report.problems.iter().any(|known| is_same(known, problem));
    let problems: Vec<Diagnostic> = draft.problems().iter().filter(is_new).cloned().collect();
    let shared = project.draft().files();
    report.add(draft.files().saturating_sub(shared), problems);
    let agents: Vec<&baton_core::Agent> = draft.agents().map(|entry| &*entry.agent).collect();
    report.add(0, located(project, tenants::problems_of(&project.config, tenant, &agents)));
}

fn add(project: &Project, args: &Args, report: &mut ValidationReport) -> RosterDraft {
    let draft = draft(project, args);
    report.add(draft.files(), draft.problems().iter().cloned());
    add_mcp_json(project, report);
    draft
}

/// A file or folder within a larger set: what is wrong there, or elsewhere because of something there.
fn add_part(project: &Project, args: &Args, part: &Path, report: &mut ValidationReport) {
    let draft = draft(project, args);
    let mut inside: HashMap<PathBuf, bool> = HashMap::new();
    let mut is_inside = |location: &Location| {
        let path = location.path();
        *inside.entry(path.to_owned()).or_insert_with(|| path == part || project::is_inside(path, part))
    };
    let concerns = draft.problems().iter().filter(|problem| {
        is_inside(&problem.location) || problem.related.iter().any(|related| is_inside(&related.location))
    });
    let problems: Vec<Diagnostic> = concerns.cloned().collect();
    let files = files::discover(&[part.to_owned()], &mut Vec::new()).len();
    report.add(files, problems);
    if part.is_dir() {
        add_mcp_json(project, report);
    }
}

/// Several parts of a project share its `.mcp.json`.
fn add_mcp_json(project: &Project, report: &mut ValidationReport) {
    let Err(problem) = project.mcp_json() else { return };
    let is_known = |known: &Diagnostic| {
        known.rule == problem.rule && project::is_inside(known.location.path(), problem.location.path())
    };
    if !report.problems.iter().any(is_known) {
        report.add(0, [*problem]);
    }
}

fn draft(project: &Project, args: &Args) -> RosterDraft {
    let strictness = if args.strict { Strictness::Strict } else { Strictness::Lenient };
    project.draft().with_strictness(strictness)
}

/// What `[tenants.<name>]` says and cannot work.
fn invalid_tenants(project: &Project, draft: &RosterDraft) -> Vec<Diagnostic> {
    if draft.agents().next().is_none() {
        return Vec::new();
    }
    let agents: Vec<&baton_core::Agent> = draft.agents().map(|entry| &*entry.agent).collect();
    located(project, tenants::problems(&project.config, &agents))
}

/// Mistakes with their places in `baton.toml`.
fn located(project: &Project, problems: Vec<TenantProblem>) -> Vec<Diagnostic> {
    let Some(file) = &project.file else { return Vec::new() };
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let problems = problems.into_iter().map(|problem| {
        let span = problem.position(&text).map(|at| Span::new(at.start, at.end));
        let location = SourceFile::new(file, text.clone()).locate(span.unwrap_or_default());
        let message = format!("tenant `{}`: {}", problem.tenant, problem.message);
        Diagnostic::new(Rule::InvalidTenant, location, message, problem.help)
    });
    problems.collect()
}

/// An agent that `[agents]` names and the roster does not have.
fn missing_main(project: &Project, draft: &RosterDraft) -> Option<Diagnostic> {
    let config = &project.config.agents;
    let file = project.file.as_ref()?;
    draft.agents().next()?;
    let named = [("main", config.main.agent()), ("fallback", config.fallback.as_ref())];
    let named = named.into_iter().filter_map(|(key, name)| Some((key, name?)));
    let (key, name) = named.into_iter().find(|(_, name)| draft.agent(name).is_none())?;
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let span = config::position_in_agents(&text, key, name.as_str()).map(|at| Span::new(at.start, at.end));
    let near = draft.names().nearest(name.as_str());
    let help = near
        .first()
        .map_or_else(|| format!("set `{key}` in `[agents]`"), |near| format!("did you mean `{near}`?"));
    let location = SourceFile::new(file, text).locate(span.unwrap_or_default());
    Some(Diagnostic::new(
        Rule::UnknownMain,
        location,
        format!("the {key} agent `{name}` does not exist"),
        help,
    ))
}
