//! A server for one test, on a free port of loopback, with a model that says what the test wrote down.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use baton_agents::{KnownNames, Roster, RosterDraft, SourceFile};
use baton_core::agent::ModelName;
use baton_core::store::{Owner, Retention};
use baton_core::{AgentName, Model, SkillSource, Store, TenantId, UserId};
use baton_engine::{
    Agents, ApprovalSettings, Engine, EngineParts, Extensions, HeartbeatConfig, ModelRegistry, ModelTimeouts,
    Policy, ProcessIdentity, ThreadChannels, WorkerLifetime,
};
use baton_models::scripted::Scripted;
use baton_server::identity::AuthenticationMode;
use baton_server::identity::key::NewKey;
use baton_server::metrics::Metrics;
use baton_server::system::{Inspect, SystemFacts};
use baton_server::{App, Drained, RosterState, Server, ServerSettings};
use jiff::SignedDuration;
use secrecy::ExposeSecret as _;
use serde_json::Value;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use utoipa_axum::router::OpenApiRouter;

/// Longer than anything takes that works.
pub const LONG: Duration = Duration::from_mins(1);

/// How a site is set up before it starts.
pub struct Plan {
    files: Vec<Arc<SourceFile>>,
    models: ModelRegistry,
    store: Option<Arc<dyn Store>>,
    doors: OpenApiRouter<App>,
    pub settings: ServerSettings,
    pub policy: Policy,
    pub lease: HeartbeatConfig,
    skills: Option<Arc<dyn SkillSource>>,
    inspect: Inspect,
}

/// A server that is up.
pub struct Site {
    pub address: SocketAddr,
    pub app: App,
    pub http: reqwest::Client,
    end: Option<oneshot::Sender<()>>,
    served: Option<JoinHandle<Drained>>,
    /// The state of its agent files.
    pub rosters: watch::Sender<RosterState>,
}

/// One agent called `assistant`, which may use every tool.
pub const ASSISTANT: &str = "---\ndescription: Helps.\ntools: ['*']\n---\nYou help.\n";

impl Plan {
    pub fn new(model: &Scripted) -> Self {
        Self::with_model(Arc::new(model.clone()), "scripted/m")
    }

    /// With another model than a scripted one, such as one behind a socket.
    pub fn with_model(provider: Arc<dyn Model>, name: &str) -> Self {
        let models = ModelRegistry::new(ModelName::parse(name).expect("a model")).with_provider(provider);
        Self {
            files: Vec::new(),
            models,
            store: None,
            doors: OpenApiRouter::new(),
            settings: ServerSettings::default(),
            policy: Policy::default(),
            lease: HeartbeatConfig::default(),
            skills: None,
            inspect: Box::new(|_| SystemFacts::default()),
        }
    }

    /// One more agent, as its file. Without any there is [`ASSISTANT`].
    #[must_use]
    pub fn agent(mut self, name: &str, file: &str) -> Self {
        self.files.push(SourceFile::new(PathBuf::from(format!("{name}.md")), file));
        self
    }

    #[must_use]
    pub fn settings(mut self, change: impl FnOnce(&mut ServerSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// Everybody needs a credential, such as one from [`Site::key`].
    #[must_use]
    pub fn required(self) -> Self {
        self.settings(|settings| {
            settings.auth.mode = AuthenticationMode::Required;
            settings.auth.operators = TenantId::parse("acme").into_iter().collect();
        })
    }

    /// On a store that outlives the site.
    #[must_use]
    pub fn store(mut self, store: Arc<dyn Store>) -> Self {
        self.store = Some(store);
        self
    }

    #[must_use]
    pub fn skills(mut self, skills: Arc<dyn SkillSource>) -> Self {
        self.skills = Some(skills);
        self
    }

    /// What the binary would say about the system.
    #[must_use]
    pub fn inspect(mut self, inspect: Inspect) -> Self {
        self.inspect = inspect;
        self
    }

    /// With routes that only this test has.
    #[must_use]
    pub fn doors(mut self, doors: OpenApiRouter<App>) -> Self {
        self.doors = doors;
        self
    }

    pub async fn start(mut self) -> Site {
        if self.files.is_empty() {
            self = self.agent("assistant", ASSISTANT);
        }
        let roster = RosterDraft::parse(&self.files, &KnownNames::default(), Vec::new())
            .finish()
            .expect("valid agents");
        let agents: Agents = roster.iter().map(|agent| (agent.name.clone(), Arc::clone(agent))).collect();
        let main = main(&roster);
        let store = match self.store {
            Some(store) => store,
            None => memory().await,
        };
        let metrics = Arc::new(Metrics::default());
        let timeouts = ModelTimeouts { back_off: Duration::from_millis(10), ..ModelTimeouts::default() };
        let engine = Engine::new(EngineParts {
            models: Arc::new(self.models.with_timeouts(timeouts)),
            extensions: Arc::new(extensions(self.skills)),
            policy: Arc::new(self.policy),
            tenants: baton_engine::Tenants::default(),
            store,
            agents: watch::Sender::new(Arc::new(agents)).subscribe(),
            identity: process_identity(),
            lease: self.lease,
            flush: Duration::ZERO,
            worker_lifetime: WorkerLifetime::UntilDone,
            retention: Retention { workflow_state: SignedDuration::from_hours(720) }.into(),
            storage: baton_engine::storage::StorageLimits::default(),
            live: ThreadChannels::new(),
            observer: Some(Arc::clone(&metrics) as Arc<dyn baton_engine::Observer>),
        });
        let rosters = watch::Sender::new(RosterState::loaded(Arc::new(roster)));
        let parts = baton_server::ServerParts {
            engine,
            roster: rosters.subscribe(),
            tenant_rosters: baton_server::TenantRosters::new(),
            created: None,
            choose: Box::new(move |_, _, _| Ok((main.clone(), None))),
            inspect: self.inspect,
            metrics,
            settings: self.settings,
            version: "0.0.0-test",
        };
        let app = App::with_doors(parts, self.doors);
        let server = Server::bind(app.clone(), SocketAddr::from(([127, 0, 0, 1], 0))).expect("a port");
        let address = server.address;
        let (end, ended) = oneshot::channel();
        let running = tokio::spawn(async move {
            let end = async {
                let _ = ended.await;
            };
            server.run(end).await
        });
        let http = reqwest::Client::new();
        Site { address, app, http, end: Some(end), served: Some(running), rosters }
    }
}

/// No tools, no servers and no remote agents.
fn extensions(skills: Option<Arc<dyn SkillSource>>) -> Extensions {
    Extensions {
        tools: Vec::new(),
        servers: None,
        skills,
        agents: None,
        remotes: None,
        team_hooks: None,
        shown_output_bytes: baton_core::tool::SHOWN_OUTPUT_BYTES,
        approvals: ApprovalSettings::asking_at(None),
        work_dir: PathBuf::from("."),
        workspaces: None,
    }
}

fn process_identity() -> ProcessIdentity {
    ProcessIdentity { owner: Owner(uuid::Uuid::new_v4().to_string().into()), is_gone: |_| false }
}

/// `assistant`, or the first there is.
fn main(roster: &Roster) -> AgentName {
    let assistant = AgentName::parse("assistant").expect("a name");
    let first = || roster.iter().next().expect("an agent").name.clone();
    if roster.get(&assistant).is_some() { assistant } else { first() }
}

pub async fn memory() -> Arc<dyn Store> {
    Arc::new(baton_store::open("sqlite::memory:", Path::new("")).await.expect("a store"))
}

impl Site {
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub async fn get(&self, path: &str) -> reqwest::Response {
        self.http.get(self.url(path)).send().await.expect("an answer")
    }

    pub async fn post(&self, path: &str, body: &Value) -> reqwest::Response {
        self.http.post(self.url(path)).json(body).send().await.expect("an answer")
    }

    /// A key that was made while the server runs.
    pub async fn key(&self, tenant: &str, user: &str, roles: &[&str]) -> String {
        let user = UserId::parse(user).expect("a user");
        let roles = roles.iter().map(ToString::to_string).collect();
        let key = NewKey::create(user, roles).expect("a key");
        let tenant = TenantId::parse(tenant).expect("a tenant");
        let store = self.app.store().tenant(&tenant);
        store.put_key(key.record, &key.digest.hex()).await.expect("kept");
        key.secret.expose_secret().to_owned()
    }

    /// Asks the server to end, as SIGTERM does.
    pub fn ask_to_end(&mut self) {
        drop(self.end.take());
    }

    /// Asks the server to end and waits until it has.
    pub async fn end(mut self) -> Drained {
        self.ask_to_end();
        let served = self.served.take().expect("it ends once");
        tokio::time::timeout(LONG, served).await.expect("it ends").expect("without a panic")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        if let Some(served) = &self.served {
            served.abort();
        }
    }
}
