//! `baton validate`: checks agent files.

use std::path::{Path, PathBuf};

use baton_agents::problem::{Problem, Rule};
use baton_agents::{Draft, Source, Span, Strictness, files};
use clap::ValueEnum;

use super::{print, print_json};
use crate::cli::Common;
use crate::exit::Exit;
use crate::project::{self, Project};
use crate::report::{self, Report};

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folders or files to check [default: the folders in baton.toml]
    pub paths: Vec<PathBuf>,
    /// Treat warnings as errors
    #[arg(long)]
    pub strict: bool,
    #[arg(long, value_name = "FORMAT", default_value = "text")]
    pub format: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Sarif,
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    let mut report = Report::default();
    if args.paths.is_empty() {
        add_project(&super::project(common)?, args, &mut report);
    }
    for path in &args.paths {
        check(common, args, path, &mut report)?;
    }
    match args.format {
        Format::Text => print(&report::text::render(&report))?,
        Format::Json => print_json(&report)?,
        Format::Sarif => print_json(&report::sarif::render(&report))?,
    }
    Ok(if report.errors() == 0 { Exit::Ok } else { Exit::Invalid })
}

/// A file is checked within its roster; a folder is a set of agents, a project, or a folder of projects.
fn check(common: &Common, args: &Args, path: &Path, report: &mut Report) -> anyhow::Result<()> {
    let config = common.config.as_deref();
    if path.is_file() {
        return check_file(args, path, config, report);
    }
    let nested = project::nested(path);
    for root in &nested {
        add_project(&Project::open(root, None, &[])?, args, report);
    }
    let direct = files::discover(&[path.to_owned()], &mut Vec::new());
    if nested.is_empty() || (!direct.is_empty() && !nested.iter().any(|root| root == path)) {
        add(&Project::open(path, config, &[path.to_owned()])?, args, report);
    }
    Ok(())
}

fn check_file(args: &Args, path: &Path, config: Option<&Path>, report: &mut Report) -> anyhow::Result<()> {
    let folder = path.parent().unwrap_or(Path::new(""));
    let mut project = Project::open(folder, config, &[])?;
    let is_agent =
        path.file_name().is_some_and(|name| files::is_agent_file(&name.to_string_lossy().to_lowercase()));
    if !is_agent || !project.dirs.iter().any(|dir| is_inside(path, dir)) {
        project.dirs = vec![folder.to_owned(), path.to_owned()];
    }
    let draft = draft(&project, args);
    let concerns = |problem: &&Problem| same_file(problem.location.path(), path);
    report.add(1, draft.problems().iter().filter(concerns).cloned());
    Ok(())
}

/// A whole project: its agents, and that its main agent is among them.
fn add_project(project: &Project, args: &Args, report: &mut Report) {
    let draft = add(project, args, report);
    if let Some(problem) = missing_main(project, &draft) {
        report.add(0, [problem]);
    }
}

fn add(project: &Project, args: &Args, report: &mut Report) -> Draft {
    let draft = draft(project, args);
    report.add(draft.files(), draft.problems().iter().cloned());
    draft
}

fn draft(project: &Project, args: &Args) -> Draft {
    let strictness = if args.strict { Strictness::Strict } else { Strictness::Lenient };
    project.draft().with_strictness(strictness)
}

fn missing_main(project: &Project, draft: &Draft) -> Option<Problem> {
    let main = &project.config.agents.main;
    let file = project.file.as_ref()?;
    if draft.agents().next().is_none() || draft.agent(main).is_some() {
        return None;
    }
    let text = std::fs::read_to_string(file).unwrap_or_default();
    let at = text.find(&format!("\"{main}\"")).unwrap_or(0);
    let span = if at == 0 { Span::default() } else { Span::new(at, at + main.as_str().len() + 2) };
    let near = draft.names().nearest(main.as_str());
    let help = near
        .first()
        .map_or_else(|| "set `main` in `[agents]`".to_owned(), |near| format!("did you mean `{near}`?"));
    let location = Source::new(file, text).locate(span);
    Some(Problem::new(Rule::UnknownMain, location, format!("the main agent `{main}` does not exist"), help))
}

fn is_inside(file: &Path, dir: &Path) -> bool {
    match (file.canonicalize(), dir.canonicalize()) {
        (Ok(file), Ok(dir)) => file.starts_with(dir),
        _ => false,
    }
}

fn same_file(a: &Path, b: &Path) -> bool {
    a == b || matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
