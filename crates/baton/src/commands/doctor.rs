//! `baton doctor`: what is in force here, and whether it works. It changes nothing and calls no model.

use std::path::Path;

use baton_core::Store as _;
use baton_models::registry::key_variable;

use super::print;
use crate::cli::Common;
use crate::config::Config;
use crate::exit::Exit;
use crate::project::Project;
use crate::report::figures;
use crate::{tenants, wiring};

/// One line of the report.
struct Finding {
    about: &'static str,
    is_good: bool,
    text: String,
}

impl Finding {
    fn good(about: &'static str, text: impl Into<String>) -> Self {
        Self { about, is_good: true, text: text.into() }
    }

    fn bad(about: &'static str, text: impl Into<String>) -> Self {
        Self { about, is_good: false, text: text.into() }
    }
}

pub fn run(common: &Common) -> anyhow::Result<Exit> {
    let project = super::project(common)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut findings = vec![file(&project), profile(&project.config), agents(&project)];
    findings.push(runtime.block_on(store(&project)));
    findings.push(Finding::good("model", project.config.models.default.to_string()));
    findings.extend(providers(&project));
    let is_good = findings.iter().all(|finding| finding.is_good);
    let lines = findings.iter().map(|Finding { about, is_good, text }| {
        let sign = if *is_good { "✓" } else { "✗" };
        format!("{sign} {about:<9} {text}\n")
    });
    print(&lines.collect::<String>())?;
    Ok(if is_good { Exit::Ok } else { Exit::Invalid })
}

fn file(project: &Project) -> Finding {
    let shown = |file: &Path| file.display().to_string();
    let none = || "no baton.toml: the defaults are in force".to_owned();
    Finding::good("config", project.file.as_deref().map_or_else(none, shown))
}

/// The profile in force, and the one of sub-agents.
fn profile(config: &Config) -> Finding {
    let own = config.profile().unwrap_or("none");
    let known: Vec<&str> = config.profiles.keys().map(String::as_str).collect();
    let sub_agents = config.orchestration.sub_agent_profile.as_deref();
    let sub_agents = sub_agents.map(|name| format!("; of sub-agents: {name}")).unwrap_or_default();
    let known = if known.is_empty() { String::new() } else { format!(" (of {})", known.join(", ")) };
    Finding::good("profile", format!("{own}{known}{sub_agents}"))
}

fn agents(project: &Project) -> Finding {
    let draft = project.draft();
    let errors = draft.problems().iter().filter(|problem| problem.is_error()).map(|_| 1).sum::<u64>();
    if errors > 0 {
        let errors = figures::count(errors, "error");
        return Finding::bad("agents", format!("{errors}: `baton validate` explains what is wrong"));
    }
    let count = draft.agents().map(|_| 1).sum::<u64>();
    match draft.finish() {
        Ok(roster) => {
            let all: Vec<_> = roster.iter().map(|agent| &**agent).collect();
            match tenants::refuse(project, &all) {
                Ok(()) => Finding::good("agents", figures::count(count, "agent")),
                Err(error) => Finding::bad("agents", format!("{error:#}")),
            }
        }
        Err(error) => Finding::bad("agents", error.to_string()),
    }
}

async fn store(project: &Project) -> Finding {
    if !wiring::has_store(project) {
        return Finding::good("store", "not created yet: the first run does it");
    }
    let opened = match wiring::store(project).await {
        Ok(store) => store.ping().await.map_err(anyhow::Error::from),
        Err(error) => Err(error),
    };
    match opened {
        Ok(()) if project.config.store.url.starts_with("sqlite:") => {
            Finding::good("store", project.config.store.url.clone())
        }
        // The address of a database may hold a password.
        Ok(()) => Finding::good("store", "PostgreSQL"),
        Err(error) => Finding::bad("store", format!("{error:#}")),
    }
}

/// The providers that agents and settings name: a key or an address is needed for each.
fn providers(project: &Project) -> Vec<Finding> {
    let Ok(agents) = super::everybody(project) else { return Vec::new() };
    let config = &project.config;
    let mut names = wiring::providers(config, &agents);
    names.extend(wiring::providers(config.sub_agents(), &agents));
    let of_provider = |name: String| {
        let has_key = wiring::key(&name).is_ok_and(|key| key.is_some());
        let in_config = |config: &Config| {
            config.models.providers.get(&name).is_some_and(|provider| provider.base_url.is_some())
        };
        if has_key || in_config(config) || in_config(config.sub_agents()) || name == "ollama" {
            return Finding::good("provider", name);
        }
        let variable = key_variable(&name);
        Finding::bad(
            "provider",
            format!("{name}: set {variable}, or `base_url` in `[models.providers.{name}]`"),
        )
    };
    names.into_iter().filter(|name| name != "offline").map(of_provider).collect()
}
