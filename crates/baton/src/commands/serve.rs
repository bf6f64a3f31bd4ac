//! `baton serve`: the server.

mod browser;
mod configuration;
mod greeting;

use std::collections::HashMap;
use std::net::{SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use baton_agents::watch::WatchError;
use baton_agents::{Reload, Roster, RosterDraft, Rule, Strictness, Watch};
use baton_core::{Store, TenantId};
use baton_engine::{Agents, Engine, Observer};
use baton_mcp::Servers;
use baton_server::metrics::Metrics;
use baton_server::ui::UiSite;
use baton_server::{App, RosterState, Server, ServerSettings};
use baton_tools::workspaces::ThreadWorkspaces;
use tokio::signal::unix::Signal;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use super::signals::Signals;
use crate::agent_catalog::{AgentCatalog, FileRosters};
use crate::cli::Common;
use crate::commands::init;
use crate::config::AuthMode;
use crate::entry::EntryChoice;
use crate::exit::Exit;
use crate::project::Project;
use crate::webhook::Webhook;
use crate::wiring::{self, Wired};
use crate::{confinement, logs, report, serving, tenants};
use baton_server::a2a::push::notifier;

/// Said at the start if authentication is required and the audit trail has no key.
const UNSIGNED: &str = "warning: the audit trail is not signed. Anyone who can write to the database can change it unnoticed: \
                        set BATON_AUDIT_KEY or BATON_AUDIT_KEY_FILE to the output of `openssl rand -hex 32`";
/// How long tasks may take to be dropped at the end.
const LEAVE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Where to listen [default: 127.0.0.1:8420, or `server.listen` in baton.toml]
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<String>,
    /// Try it out: the bundled agents, and a store that is gone afterwards
    #[arg(long)]
    pub demo: bool,
    /// Only the API, without the web page
    #[arg(long)]
    pub no_ui: bool,
    /// Open the web page in the default browser (or what BROWSER names)
    #[arg(long, conflicts_with = "no_ui")]
    pub open: bool,
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    let demo = args.demo.then(Demo::set_up).transpose()?;
    let project = match &demo {
        Some(demo) => demo.project()?,
        None => super::project(common)?,
    };
    let address = address(args.listen.as_deref().unwrap_or(&project.config.server.listen))?;
    let draft = project.draft();
    if report::errors_of(&draft) {
        return Ok(Exit::Invalid);
    }
    let team = LiveRoster::load(&project, draft)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let exit = runtime.block_on(serve(&project, address, &team, args));
    runtime.shutdown_timeout(LEAVE);
    exit
}

fn address(text: &str) -> anyhow::Result<SocketAddr> {
    let found = text.to_socket_addrs().map(|mut found| found.next());
    let found = found.with_context(|| format!("cannot listen on `{text}`: write it as 127.0.0.1:8420"));
    let found =
        found.and_then(|found| found.with_context(|| format!("`{text}` is no address of this machine")));
    found.map_err(|error| Exit::Invalid.because(error))
}

/// The current agents, and the watcher that reloads them.
struct LiveRoster {
    roster: watch::Receiver<RosterState>,
    agents: watch::Receiver<Arc<Agents>>,
    /// Of tenants with agents of their own.
    tenants: HashMap<TenantId, TenantRoster>,
    /// Ends with the command. Absent with `agents.watch = false`.
    watch: Option<Watch>,
}

impl LiveRoster {
    fn load(project: &Project, draft: RosterDraft) -> anyhow::Result<Self> {
        let roster = Arc::new(draft.finish()?);
        log_skipped(&roster);
        let first = agents(&roster);
        EntryChoice::of(&project.config.agents, &first).map_err(|unknown| Exit::Invalid.because(unknown))?;
        tenants::refuse(project, &first.values().map(|agent| &**agent).collect::<Vec<_>>())?;
        let own = project.tenants_with_agents();
        let own = own.map(|tenant| Ok((tenant.clone(), TenantRoster::load(project, tenant, &roster)?)));
        let tenants = own.collect::<anyhow::Result<_>>()?;
        let (rosters, roster) = watch::channel(RosterState::loaded(roster));
        let (teams, agents) = watch::channel(first);
        let watch = if project.config.agents.watch { Some(follow(project, rosters, teams)?) } else { None };
        Ok(Self { roster, agents, tenants, watch })
    }

    /// The newest valid agents of a tenant's files.
    fn file_rosters(&self) -> FileRosters {
        let shared = self.roster.clone();
        let own: HashMap<_, _> =
            self.tenants.iter().map(|(tenant, own)| (tenant.clone(), own.roster.clone())).collect();
        Box::new(move |tenant: &TenantId| {
            Some(Arc::clone(&own.get(tenant).unwrap_or(&shared).borrow().roster))
        })
    }
}

/// The agents of one tenant: those for all, and those of its own folders. Nothing that is wrong with them concerns other tenants.
struct TenantRoster {
    roster: watch::Receiver<RosterState>,
    agents: watch::Receiver<Arc<Agents>>,
    watch: Option<Watch>,
}

impl TenantRoster {
    /// While the files of the tenant are broken, it has the agents for all.
    fn load(project: &Project, tenant: &TenantId, shared: &Arc<Roster>) -> anyhow::Result<Self> {
        let (rosters, roster) = watch::channel(RosterState::loaded(Arc::clone(shared)));
        let (teams, agents) = watch::channel(agents(shared));
        let dirs = project.dirs_of(tenant);
        let (config, name) = (project.config.clone(), tenant.clone());
        let on_reload = move |reload: Reload| match reload {
            Reload::Loaded(loaded) => {
                let all: Vec<_> = loaded.iter().map(|agent| &**agent).collect();
                for problem in tenants::problems_of(&config, &name, &all) {
                    tracing::warn!(%problem, "the section of a tenant in baton.toml does not fit its agents");
                }
                tracing::info!(tenant = %name, agents = loaded.len(), "the agents of a tenant were loaded");
                teams.send_replace(self::agents(&loaded));
                rosters.send_replace(RosterState::loaded(loaded));
            }
            Reload::Kept(rejected) => {
                let problems = rejected.problems.len();
                tracing::warn!(
                    tenant = %name,
                    problems,
                    "agent files of a tenant are broken; `baton validate` says where. Its last good ones stay"
                );
                rosters.send_modify(|state| state.keep(rejected));
            }
        };
        let known = project.known();
        match Roster::load(&dirs, &known, Strictness::Lenient) {
            Ok(loaded) => on_reload(Reload::Loaded(Arc::new(loaded))),
            Err(rejected) => on_reload(Reload::Kept(rejected)),
        }
        let watch = if project.config.agents.watch {
            let fallback = Arc::clone(&roster.borrow().roster);
            Some(Watch::start_with(dirs, known, Strictness::Lenient, fallback, on_reload)?)
        } else {
            None
        };
        Ok(Self { roster, agents, watch })
    }
}

/// Follows the files: a reload that is broken changes nothing, and says so.
fn follow(
    project: &Project,
    rosters: watch::Sender<RosterState>,
    teams: watch::Sender<Arc<Agents>>,
) -> Result<Watch, WatchError> {
    let config = project.config.clone();
    Watch::start(project.dirs.clone(), project.known(), Strictness::Lenient, move |reload| match reload {
        Reload::Loaded(roster) => {
            for problem in
                tenants::problems(&config, &roster.iter().map(|agent| &**agent).collect::<Vec<_>>())
            {
                tracing::warn!(%problem, "a tenant's section of baton.toml does not fit the agents any more");
            }
            tracing::info!(agents = roster.len(), "the agents were loaded again");
            log_skipped(&roster);
            teams.send_replace(agents(&roster));
            rosters.send_replace(RosterState::loaded(roster));
        }
        Reload::Kept(rejected) => {
            let problems = rejected.problems.len();
            tracing::warn!(
                problems,
                "agent files are broken; `baton validate` says where. The last good ones stay"
            );
            rosters.send_modify(|state| state.keep(rejected));
        }
    })
}

/// Names the files of other programs that are not in use.
fn log_skipped(roster: &Roster) {
    for problem in roster.problems().iter().filter(|problem| problem.rule == Rule::SkippedFile) {
        let file = problem.location.path().display();
        tracing::warn!(%file, "an agent file is left out; `baton validate` says why");
    }
}

fn agents(roster: &Roster) -> Arc<Agents> {
    Arc::new(roster.iter().map(|agent| (agent.name.clone(), Arc::clone(agent))).collect())
}

async fn serve(
    project: &Project,
    address: SocketAddr,
    team: &LiveRoster,
    args: &Args,
) -> anyhow::Result<Exit> {
    let (mut signals, hang_up) = Signals::listen_with_reload()?;
    baton_server::guards::panics::log_places();
    let metrics = Arc::new(Metrics::default());
    let ui = (!args.no_ui).then(UiSite::embedded);
    let settings = ServerSettings { ui, ..serving::settings(project)? };
    let scheme = settings.scheme();
    let webhook = Webhook::of(&project.config.approvals)?;
    let observer = observer(&metrics, webhook.as_ref(), &settings);
    let of_tenants = team.tenants.iter().map(|(tenant, own)| (tenant.clone(), own.agents.clone())).collect();
    let wired = wiring::wire_server(project, team.agents.clone(), &of_tenants, team.file_rosters(), observer);
    let (Wired { engine, servers }, catalog) = wired.await?;
    let (store, running) = (Arc::clone(&engine.parts.store), Arc::clone(&engine));
    let workspaces = confined(project, &servers, &*store).await?;
    let app = app(project, team, engine, &catalog, servers.clone(), metrics, settings);
    let keys = wiring::audit_keys()?;
    if project.config.auth.mode == AuthMode::Required && keys.is_empty() {
        report::tell(UNSIGNED);
    }
    let server = Server::bind(app.clone(), address).map_err(|error| Exit::Invalid.because(error))?;
    greeting::print(scheme, server.address, ui, project.config.auth.mode);
    // Aborted at the end of this function; the browser itself keeps running.
    let mut background = JoinSet::new();
    if let Some(webhook) = webhook {
        background.spawn(webhook.run(Arc::clone(&store)));
    }
    background.spawn(notifier::run(app));
    background.spawn(catalog.follow());
    if let Some(workspaces) = workspaces {
        background.spawn(confinement::keep_sweeping(workspaces, Arc::clone(&store)));
    }
    let started = configuration::started(project, address, keys.signing_id());
    background.spawn(configuration::record(Arc::clone(&store), started, team.roster.clone()));
    if args.open {
        background.spawn(browser::open(greeting::url(scheme, server.address)));
    }
    let (end, ended) = tokio::sync::oneshot::channel::<()>();
    let reload_tls = Arc::clone(&server.reload_tls);
    let serving = server.run(async {
        let _ = ended.await;
    });
    tokio::pin!(serving);
    // The first signal asks the server to end as it should, the second ends it at once.
    tokio::select! {
        _ = &mut serving => unreachable!("it ends when it is asked to"),
        () = reload_on(hang_up, team, &reload_tls) => unreachable!("it never ends"),
        _ = signals.any() => drop(end),
    }
    let runs = running.active_threads();
    drop(running);
    logs::tell(&format!("shutting down: waiting for {runs} runs (Ctrl-C again to stop now)"));
    let drained = tokio::select! {
        drained = &mut serving => drained,
        exit = signals.any() => return Ok(exit),
    };
    if drained.left > 0 {
        logs::tell(&format!("{} runs go on when the server is started again", drained.left));
    }
    servers.shutdown().await;
    store.close().await?;
    Ok(Exit::Ok)
}

/// Checks the sandbox, and returns the workspaces of threads. Files that a crash left are deleted before a thread can begin with the id of
/// a deleted one.
async fn confined(
    project: &Project,
    servers: &Servers,
    store: &dyn Store,
) -> anyhow::Result<Option<ThreadWorkspaces>> {
    tokio::task::block_in_place(|| confinement::check(project, servers))?;
    let workspaces = confinement::workspaces(project);
    if let Some(workspaces) = &workspaces {
        confinement::sweep(workspaces, store).await;
    }
    Ok(workspaces)
}

/// Reads the certificate and the agents again on every SIGHUP. Never returns. While the server shuts down, the signal has no effect.
async fn reload_on(mut hang_up: Signal, team: &LiveRoster, reload_tls: &Notify) {
    while hang_up.recv().await.is_some() {
        tracing::info!("SIGHUP: the certificate and the agents are read again");
        reload_tls.notify_one();
        let of_tenants = team.tenants.values().filter_map(|own| own.watch.as_ref());
        for watch in team.watch.iter().chain(of_tenants) {
            watch.reload();
        }
    }
    std::future::pending::<()>().await;
}

fn app(
    project: &Project,
    team: &LiveRoster,
    engine: Arc<Engine>,
    catalog: &Arc<AgentCatalog>,
    servers: Servers,
    metrics: Arc<Metrics>,
    settings: ServerSettings,
) -> App {
    let created = Arc::clone(catalog);
    let config = project.config.clone();
    App::new(baton_server::ServerParts {
        engine,
        roster: team.roster.clone(),
        tenant_rosters: team
            .tenants
            .iter()
            .map(|(tenant, own)| (tenant.clone(), own.roster.clone()))
            .collect(),
        created: Some(Box::new(move |tenant: &TenantId| {
            let own = created.tenant(tenant)?;
            Some((Arc::clone(&own.roster), own.left_out.clone()))
        })),
        choose: Box::new(move |tenant, agents, message| {
            let entry = EntryChoice::for_tenant(&config, tenant, agents);
            let entry = entry.map_err(|unknown| unknown.to_string())?;
            Ok(entry.first(agents, message))
        }),
        inspect: serving::inspect(project, &team.agents.borrow(), servers),
        metrics,
        settings,
        version: env!("CARGO_PKG_VERSION"),
    })
}

/// The observers of the engine's events: metrics, the webhook and push notifications.
fn observer(
    metrics: &Arc<Metrics>,
    webhook: Option<&Webhook>,
    settings: &ServerSettings,
) -> Arc<dyn Observer> {
    let observer = Arc::clone(metrics) as Arc<dyn Observer>;
    let observer = webhook.map_or(Arc::clone(&observer), |webhook| webhook.observe(observer));
    let push = settings.a2a.as_ref().and_then(|a2a| a2a.push.as_ref());
    push.map_or(Arc::clone(&observer), |push| push.wake.observe(observer))
}

/// A project of its own that is gone afterwards.
struct Demo {
    dir: tempfile::TempDir,
}

impl Demo {
    fn set_up() -> anyhow::Result<Self> {
        let dir = tempfile::Builder::new().prefix("baton-demo").tempdir()?;
        init::write(dir.path())?;
        Ok(Self { dir })
    }

    fn project(&self) -> anyhow::Result<Project> {
        let config = self.dir.path().join(crate::config::FILE_NAME);
        Ok(Project::open(self.dir.path(), Some(&config), &[])?)
    }
}
