//! Settings: flags over `BATON_*` environment over a profile over `baton.toml` over what is built in.

mod a2a;
mod auth;
mod environment;
mod profiles;
mod retention;
mod sections;
mod tenants;
mod tools;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use baton_core::TenantId;
use baton_core::budget::Budgets;
use serde::Deserialize;

pub use a2a::A2aConfig;
pub use auth::{Auth, AuthMode, Jwt, JwtKeys};
pub use profiles::Profiles;
pub use retention::{Kept, RetentionConfig};
pub use sections::{
    AgentsConfig, ApprovalLevel, ApprovalsConfig, Bus, BusUrl, Feature, Features, Handoff, LimitsConfig,
    LogFormat, LogLevel, Main, McpServers, ModelsConfig, Orchestration, OtlpEndpoint, ProviderConfig,
    SandboxConfig, SandboxMode, SearchDocsConfig, ServerConfig, ShellConfig, StoreConfig, SubFolder,
    Telemetry, TlsConfig, ToolsConfig, WebFetchConfig,
};
pub use tenants::{TenantApprovals, TenantConfig, TenantLimits, TenantRetention};
pub use tools::{
    HttpMethod, PythonConfig, SearchEngine, SearchKind, SemanticSearchConfig, WebSearchConfig, WikiConfig,
    WikiUrl,
};

pub const FILE_NAME: &str = baton_agents::files::PROJECT_FILE;

/// The whole of `baton.toml`. A key that is not listed here is an error, so that a misspelt one is not ignored.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    pub server: ServerConfig,
    pub store: StoreConfig,
    pub bus: Bus,
    pub agents: AgentsConfig,
    pub models: ModelsConfig,
    pub tools: ToolsConfig,
    pub sandbox: SandboxConfig,
    pub mcp: McpServers,
    pub approvals: ApprovalsConfig,
    pub budgets: Budgets,
    /// By the name of the tenant.
    pub tenants: BTreeMap<TenantId, TenantConfig>,
    pub auth: Auth,
    pub a2a: A2aConfig,
    pub features: Features,
    pub orchestration: Orchestration,
    pub handoff: Handoff,
    pub limits: LimitsConfig,
    pub retention: RetentionConfig,
    pub telemetry: Telemetry,
    /// By name, as they are written.
    pub profiles: Profiles,
    /// The profile that is in force.
    #[serde(skip)]
    active_profile: Option<String>,
    /// The same settings with those of `orchestration.sub_agent_profile` over them.
    #[serde(skip)]
    for_sub_agents: Option<Box<Config>>,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("cannot read {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: std::io::Error },
    /// The parser's message shows the line.
    #[error("{} is invalid\n{message}", path.display())]
    Invalid { path: PathBuf, message: String },
    #[error("the environment variable {name} is invalid: {message}")]
    Environment { name: String, message: String },
    #[error("there is no profile `{name}` in {}: {help}", path.display())]
    UnknownProfile { name: String, path: PathBuf, help: String },
}

impl Config {
    /// Reads `path`, or only the environment and the defaults without one. The settings of `profile` are put over those of the file.
    pub fn load(path: Option<&Path>, profile: Option<&str>) -> Result<Self, ConfigError> {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        let text = match path {
            Some(path) => std::fs::read_to_string(path)
                .map_err(|error| ConfigError::Unreadable { path: path.to_owned(), error })?,
            None => String::new(),
        };
        Self::parse_with(&text, path.unwrap_or(Path::new(FILE_NAME)), profile, variables)
    }

    /// The same from text and variables that are already there, without a profile.
    pub fn parse(
        text: &str,
        path: &Path,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        Self::parse_with(text, path, None, variables)
    }

    /// The same with a profile.
    pub fn parse_with(
        text: &str,
        path: &Path,
        profile: Option<&str>,
        variables: impl Iterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let invalid = |error: toml::de::Error| ConfigError::Invalid {
            path: path.to_owned(),
            message: profiles::with_suggestion(error.to_string()),
        };
        // The file alone first: its errors point at lines, which a merged table has lost.
        let file: Self = toml::from_str(text).map_err(invalid)?;
        let overrides: Vec<_> = environment::overrides(variables).collect();
        let names_profile = profile.is_some() || file.orchestration.sub_agent_profile.is_some();
        if overrides.is_empty() && file.profiles.is_empty() && !names_profile {
            return file.consistent(path);
        }
        let mut table: toml::Table = toml::from_str(text).map_err(invalid)?;
        profiles::check(text, &table, &file.profiles, path)?;
        if let Some(name) = profile {
            profiles::merge(&mut table, profiles::find(&file.profiles, name, path)?);
        }
        let mut config = overridden(table.clone(), &overrides)?.consistent(path)?;
        config.active_profile = profile.map(str::to_owned);
        if let Some(name) = &config.orchestration.sub_agent_profile {
            profiles::merge(&mut table, profiles::find(&file.profiles, name, path)?);
            config.for_sub_agents = Some(Box::new(overridden(table, &overrides)?));
        }
        Ok(config)
    }

    /// The name of the profile that is in force.
    pub fn profile(&self) -> Option<&str> {
        self.active_profile.as_deref()
    }

    /// The settings of sub-agents: these, with those of `orchestration.sub_agent_profile` over them.
    pub fn sub_agents(&self) -> &Self {
        self.for_sub_agents.as_deref().unwrap_or(self)
    }

    /// Refuses keys that contradict each other.
    fn consistent(self, path: &Path) -> Result<Self, ConfigError> {
        match self.bus.contradiction(&self.store) {
            Some(message) => Err(ConfigError::Invalid { path: path.to_owned(), message }),
            None => Ok(self),
        }
    }

    /// The nearest `baton.toml` in `start` or above it, written as a person in the current folder would.
    pub fn find(start: &Path) -> Option<PathBuf> {
        upwards(start).map(|dir| dir.join(FILE_NAME)).find(|path| path.is_file())
    }
}

/// The settings of a table with variables over them, one by one, so that an error names its variable.
fn overridden(mut table: toml::Table, overrides: &[environment::Override]) -> Result<Config, ConfigError> {
    for entry in overrides {
        entry.apply(&mut table);
        if let Err(error) = table.clone().try_into::<Config>() {
            let message = error.message().to_owned();
            return Err(ConfigError::Environment { name: entry.name.clone(), message });
        }
    }
    table.try_into().map_err(|error: toml::de::Error| ConfigError::Invalid {
        path: PathBuf::from(FILE_NAME),
        message: error.to_string(),
    })
}

/// A folder and all above it, written as a person in the current folder would.
pub(crate) fn upwards(start: &Path) -> impl Iterator<Item = PathBuf> {
    let here = std::env::current_dir().unwrap_or_default();
    let above_here =
        (1..here.ancestors().count()).map(|levels| [".."].repeat(levels).iter().collect::<PathBuf>());
    let beyond = above_here.take_while(|_| start.is_relative());
    start.ancestors().map(Path::to_owned).chain(beyond)
}

/// Where `main` or `fallback` of `[agents]` stands in a `baton.toml`, if it says `expected` there.
pub(crate) fn position_in_agents(text: &str, key: &str, expected: &str) -> Option<std::ops::Range<usize>> {
    #[derive(Deserialize)]
    struct ConfigFile {
        agents: ConfigSection,
    }
    #[derive(Deserialize)]
    struct ConfigSection {
        main: Option<toml::Spanned<String>>,
        fallback: Option<toml::Spanned<String>>,
    }
    let ConfigSection { main, fallback } = toml::from_str::<ConfigFile>(text).ok()?.agents;
    let value = if key == "fallback" { fallback } else { main }?;
    (value.get_ref() == expected).then(|| value.span())
}

/// Where a value is in the section of a tenant: an entry of `agents`, or the value of `main` or `model`. Without such an entry, the
/// place of the whole list.
pub(crate) fn position_in_tenant(
    text: &str,
    tenant: &str,
    key: &str,
    expected: &str,
) -> Option<std::ops::Range<usize>> {
    #[derive(Deserialize)]
    struct ConfigFile {
        tenants: BTreeMap<String, TenantSection>,
    }
    #[derive(Deserialize)]
    struct TenantSection {
        agents: Option<toml::Spanned<Vec<toml::Spanned<String>>>>,
        main: Option<toml::Spanned<String>>,
        model: Option<toml::Spanned<String>>,
    }
    let mut file = toml::from_str::<ConfigFile>(text).ok()?;
    let TenantSection { agents, main, model } = file.tenants.remove(tenant)?;
    match key {
        "main" => main.map(|value| value.span()),
        "model" => model.map(|value| value.span()),
        _ => {
            let list = agents?;
            let whole = list.span();
            let entry = list.into_inner().into_iter().find(|entry| entry.get_ref() == expected);
            Some(entry.map_or(whole, |entry| entry.span()))
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_core::agent::AgentPattern;

    use super::*;

    /// Every key of the contract's example, with its value there.
    const CONTRACT: &str = r#"
[server]
listen = "127.0.0.1:8420"
[store]
url = "sqlite://baton.db"
[bus]
url = "auto"
[agents]
dirs = ["agents"]
main = "assistant"
watch = true
[models]
default = "offline"
aliases = { fast = "offline", smart = "offline" }
[tools.search_docs]
dirs = ["docs"]
[approvals]
ask_at = "high"
[auth]
mode = "open"
[features]
transfers = true
agent_tool = true
learning = false
[orchestration]
max_concurrent_delegations = 5
sub_agent_max_steps = 30
sub_agent_tool_allowlist = []
summarize_results = false
summary_max_length = 2000
enable_result_cache = false
cache_ttl_seconds = 3600
stream_sub_agent_events = true
[handoff]
max_transfers = 5
context_max_chars = 2000
recent_messages = 5
state_retention = "30d"
[limits]
requests_per_minute = 600
max_body_bytes = 1048576
max_concurrent_runs = 1000
"#;

    fn parse(text: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::parse(text, Path::new(FILE_NAME), variables)
    }

    #[test]
    fn the_contracts_values_are_the_defaults() {
        assert_eq!(parse(CONTRACT, &[]).unwrap(), Config::default());
    }

    /// The fields of the tables, as their files declare them.
    fn fields() -> Vec<String> {
        let files = [
            include_str!("config.rs"),
            include_str!("config/sections.rs"),
            include_str!("config/tenants.rs"),
            include_str!("config/tools.rs"),
            include_str!("config/auth.rs"),
            include_str!("config/a2a.rs"),
        ];
        let lines = files.iter().flat_map(|file| file.split("#[cfg(test)]").next().unwrap().lines());
        let field =
            |line: &str| line.strip_prefix("    pub ")?.split_once(": ").map(|(name, _)| name.to_owned());
        // Functions have a space, and `retention` of a tenant has no keys of its own yet.
        let is_key = |name: &String| !name.contains(' ') && name != "retention";
        lines.filter_map(field).filter(is_key).collect()
    }

    /// All code of the crate that is no test.
    fn code(folder: &Path) -> String {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let read = |path: PathBuf| {
            if path.is_dir() {
                return code(&path);
            }
            std::fs::read_to_string(&path).unwrap().split("#[cfg(test)]").next().unwrap().to_owned()
        };
        entries.map(read).collect()
    }

    /// A key without an effect would be a field that nothing reads.
    #[test]
    fn every_key_is_read_and_documented() {
        let code = code(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"));
        let docs = include_str!("../../../docs/configuration.md");
        let fields = fields();
        assert!(fields.len() > 70, "{fields:?}");
        for field in fields {
            let is_word = |text: &str, at: usize| {
                let after = text[at..].chars().next();
                !after.is_some_and(|c| c.is_alphanumeric() || c == '_')
            };
            let read = format!(".{field}");
            let is_read = code.match_indices(&read).any(|(at, _)| is_word(&code, at + read.len()));
            assert!(is_read, "`{field}` is accepted and has no effect");
            let is_documented = docs.match_indices(&field).any(|(at, _)| is_word(docs, at + field.len()));
            // What `keys` holds are two keys.
            assert!(is_documented || field == "keys", "`{field}` is not in docs/configuration.md");
        }
        assert!(!docs.contains("everything else"), "every key has an effect of its own");
    }

    #[test]
    fn the_documented_sections_of_variables_are_those_that_count() {
        let docs = include_str!("../../../docs/configuration.md");
        let (_, list) = docs.split_once("- Sections are ").unwrap();
        let (list, _) = list.split_once(". `[tools]`").unwrap();
        let mut listed: Vec<String> = list.split('`').skip(1).step_by(2).map(str::to_lowercase).collect();
        let mut known: Vec<&str> = environment::SECTIONS.to_vec();
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
        for name in [
            "BATON_CONFIG",
            "BATON_PROFILE",
            "BATON_LOG",
            "BATON_JWT_SECRET",
            "| `BATON_AUDIT_KEY` |",
            "BATON_NOTIFY_SECRET",
            "BATON_CARD_KEY",
            "BATON_API_KEY",
        ] {
            assert!(docs.contains(name), "{name}");
        }
    }

    #[test]
    fn a_bus_that_does_not_exist_is_refused() {
        for url in ["nats://127.0.0.1:4222", "redis://x", ""] {
            let error = parse(&format!("[bus]\nurl = \"{url}\"\n"), &[]).unwrap_err().to_string();
            assert!(error.contains("line 2") && error.contains("Remove `bus.url`"), "{url}: {error}");
        }
        let error = parse("", &[("BATON_BUS_URL", "nats://x")]).unwrap_err().to_string();
        assert!(error.contains("BATON_BUS_URL") && error.contains("there is no such bus"), "{error}");
        for (bus, store, fits) in [
            ("auto", "sqlite://baton.db", true),
            ("auto", "postgres://db/baton", true),
            ("memory:", "sqlite://baton.db", true),
            ("memory:", "postgres://db/baton", false),
            ("postgres:", "postgres://db/baton", true),
            ("postgres:", "sqlite://baton.db", false),
        ] {
            let text = format!("[bus]\nurl = \"{bus}\"\n[store]\nurl = \"{store}\"\n");
            assert_eq!(parse(&text, &[]).is_ok(), fits, "{text}");
        }
    }

    #[test]
    fn a_tenant_has_its_own_settings() {
        let text = r#"
            [budgets.run]
            max_tokens = 10
            max_cost_usd = 1
            [tenants.acme]
            agents = ["support", "billing-*"]
            main = "support"
            model = "fast"
            [tenants.acme.limits]
            requests_per_minute = 60
            max_concurrent_runs = 5
            max_spooled_bytes = 1000
            [tenants.acme.budgets.run]
            max_tokens = 20
        "#;
        let config = parse(text, &[]).unwrap();
        let acme = &config.tenants["acme"];
        let agents: Vec<&str> = acme.agents.iter().flatten().map(AgentPattern::as_str).collect();
        assert_eq!(
            (agents.as_slice(), acme.limits.max_spooled_bytes),
            (&["support", "billing-*"][..], Some(1000))
        );
        let run = acme.budgets.over(config.budgets).run;
        assert_eq!((run.max_tokens, run.max_cost_usd.unwrap().to_string()), (Some(20), "$1.00".to_owned()));
    }

    fn with_profile(text: &str, profile: &str, variables: &[(&str, &str)]) -> Result<Config, ConfigError> {
        let variables = variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Config::parse_with(text, Path::new(FILE_NAME), Some(profile), variables)
    }

    /// K4: the order is environment, profile, file; tables are merged, and lists are replaced.
    #[test]
    fn k_4_a_profile_is_over_the_file_and_below_the_environment() {
        let text = r#"
            [agents]
            main = "reception"
            dirs = ["one", "two"]
            [models]
            default = "fast"
            [profiles.prod]
            agents.dirs = ["three"]
            models.default = "smart"
            auth.mode = "required"
            [profiles.prod.limits]
            max_concurrent_runs = 7
        "#;
        let plain = parse(text, &[]).unwrap();
        assert_eq!((plain.profile(), plain.models.default.to_string()), (None, "fast".to_owned()));
        let config = with_profile(text, "prod", &[("BATON_LIMITS_MAX_CONCURRENT_RUNS", "9")]).unwrap();
        assert_eq!((config.profile(), config.limits.max_concurrent_runs), (Some("prod"), 9));
        assert_eq!(config.models.default.to_string(), "smart");
        assert_eq!(
            (config.agents.dirs, config.auth.mode),
            (vec![PathBuf::from("three")], AuthMode::Required)
        );
        assert_eq!(config.agents.main.agent().unwrap().as_str(), "reception");
    }

    /// K4: mistakes are found in profiles that are not in force, with their line and the nearest name.
    #[test]
    fn k_4_mistakes_in_profiles_are_errors_with_a_suggestion() {
        let error = |text: &str| parse(text, &[]).unwrap_err().to_string();
        let unknown = error("[server]\nlisten = \"127.0.0.1:1\"\n[profiles.dev.server]\nlisen = \"x\"\n");
        assert!(unknown.contains("line 4") && unknown.contains("did you mean `listen`?"), "{unknown}");
        let section = error("[profiles.dev.modles]\ndefault = \"x\"\n");
        assert!(section.contains("line 1") && section.contains("did you mean `models`?"), "{section}");
        assert!(error("[profiles.a.profiles.b]\n").contains("cannot contain profiles"));
        let kind = error("[profiles.dev.limits]\nmax_body_bytes = \"many\"\n");
        assert!(kind.contains("line 2"), "{kind}");
        let sub_agents = error("[profiles.dev]\n[profiles.big]\norchestration.sub_agent_profile = \"dve\"\n");
        assert!(sub_agents.contains("no profile `dve` in baton.toml: did you mean `dev`?"), "{sub_agents}");
        assert!(
            error("[orchestration]\nsub_agent_profile = \"dev\"\n").contains("it has no `[profiles.<name>]`")
        );
        let missing = with_profile("[profiles.dev]\n[profiles.prod]\n", "x", &[]).unwrap_err().to_string();
        assert_eq!(missing, "there is no profile `x` in baton.toml: it has dev, prod");
    }

    /// F12: a profile may complete a table that is incomplete without the file.
    #[test]
    fn f_12_sub_agents_have_the_settings_in_force_with_their_profile_over_them() {
        let text = r#"
            [mcp.servers.wiki]
            url = "https://wiki.example.com"
            [profiles.dev.mcp.servers.wiki]
            headers = { A = "b" }
            [profiles.dev.models]
            default = "fast"
            [profiles.big]
            models.default = "smart"
            orchestration = { sub_agent_profile = "dev", sub_agent_max_steps = 7, sub_agent_work_dir = "work" }
        "#;
        let config = with_profile(text, "big", &[]).unwrap();
        let sub_agents = config.sub_agents();
        assert_eq!(sub_agents.models.default.to_string(), "fast");
        assert_eq!(
            (config.models.default.to_string().as_str(), sub_agents.orchestration.sub_agent_max_steps),
            ("smart", 7)
        );
        assert_eq!(parse(text, &[]).unwrap().sub_agents(), &parse(text, &[]).unwrap());
        for folder in ["", "/tmp", "../x", "a/../b", ".git", "a/.b", "."] {
            let text = format!("[orchestration]\nsub_agent_work_dir = \"{folder}\"\n");
            assert!(parse(&text, &[]).is_err(), "{folder}");
        }
    }

    #[test]
    fn providers_and_rollouts() {
        let text = "[models.providers.openai]\nbase_url = \"https://x\"\n[features]\ntransfers = { percent = 10, tenants = [\"acme\"] }\n";
        let config = parse(text, &[]).unwrap();
        assert_eq!(config.models.providers["openai"].base_url.as_deref(), Some("https://x"));
        assert_eq!(config.features.transfers, Feature::Rollout { percent: 10, tenants: vec!["acme".into()] });
    }

    #[test]
    fn facts_about_models() {
        let text = r#"
            [models.providers.local]
            base_url = "http://127.0.0.1:8080/v1"
            timeouts = { first_token = "10m", factor = 3 }
            [models.providers.local.models."qwen/mini"]
            context_window = 4096
            max_output_tokens = 500
            tools = false
            price = { input = 0.5, output = 1 }
            assists = { grounding = false }
        "#;
        let provider = parse(text, &[]).unwrap().models.providers["local"].clone();
        let facts =
            baton_models::facts("local", provider.base_url.as_deref(), &provider.settings(), "qwen/mini");
        assert_eq!((facts.context_window, facts.max_output_tokens), (Some(4096), Some(500)));
        assert_eq!((facts.supports.tools, facts.supports.parallel_calls), (false, true));
        assert_eq!((facts.assists.grounding, facts.assists.text_tool_calls), (false, true));
        let price = facts.price.unwrap();
        assert_eq!(
            (price.cached_input.to_string(), price.output.to_string()),
            ("$0.50".into(), "$1.00".into())
        );
        let timeouts = facts.timeouts;
        assert_eq!(
            (timeouts.first_token, timeouts.factor.get()),
            (Some(std::time::Duration::from_mins(10)), 3)
        );
        for (wrong, expected) in [
            ("context = 1", "unknown field `context`"),
            ("context_window = 0", "nonzero"),
            ("price = { input = 1 }", "missing field `output`"),
            ("price = { input = -1, output = 1 }", "not negative"),
            ("price = { input = 1, output = 1, reasoning = 1 }", "unknown field `reasoning`"),
            ("assists = { magic = true }", "unknown field `magic`"),
        ] {
            let error = parse(&format!("[models.providers.local.models.m]\n{wrong}\n"), &[]).unwrap_err();
            assert!(error.to_string().contains(expected), "{wrong}: {error}");
        }
        for wrong in ["factor = 0", "factor = 1.5", "silence = 5", "patience = \"1s\""] {
            let text = format!("[models.providers.local]\ntimeouts = {{ {wrong} }}\n");
            assert!(parse(&text, &[]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn mistakes_are_shown_with_their_line() {
        let unknown = parse("[agents]\nmian = \"assistant\"\n", &[]).unwrap_err().to_string();
        assert!(
            unknown.contains("line 2") && unknown.contains("mian") && unknown.contains("main"),
            "{unknown}"
        );
        let section = parse("[agent]\n", &[]).unwrap_err().to_string();
        assert!(section.contains("`agents`"), "{section}");
        assert!(parse("[agents]\nmain = \"Not A Name\"\n", &[]).is_err());
        assert!(parse("[features]\ntransfers = { percent = 101 }\n", &[]).is_err());
        // A misspelt off switch must not look as if it were off.
        let feature = parse("[features]\ntransfer = false\n", &[]).unwrap_err().to_string();
        assert!(feature.contains("`transfer`") && feature.contains("`transfers`"), "{feature}");
        let format = parse("[orchestration]\nenrich_format = \"xml\"\n", &[]).unwrap_err().to_string();
        assert!(format.contains("fenced") && format.contains("tags"), "{format}");
        let mcp = parse("[mcp.servers.x]\nargs = []\n", &[]).unwrap_err().to_string();
        assert!(mcp.contains("`command` or `url`"), "{mcp}");
        for useless in ["args = [\"x\"]", "env = { X = \"x\" }", "network = true", "read = [\"/opt\"]"] {
            let text = format!("[mcp.servers.x]\nurl = \"https://x.example\"\n{useless}\n");
            let error = parse(&text, &[]).unwrap_err().to_string();
            let key = useless.split(' ').next().unwrap();
            assert!(error.contains(&format!("has `url`, so `{key}` has no effect")), "{error}");
        }
        let headers = "[mcp.servers.x]\ncommand = \"x\"\nheaders = { X = \"x\" }\n";
        let headers = parse(headers, &[]).unwrap_err().to_string();
        assert!(headers.contains("has `command`, so `headers` has no effect"), "{headers}");
        assert!(parse("[handoff]\nstate_retention = \"long\"\n", &[]).is_err());
    }

    #[test]
    fn main_is_found_where_it_stands() {
        let text = "# main = \"a\"\n[models]\ndefault = \"a\"\n[agents]\ndirs = [\"a\"]\nmain = 'a'\n";
        let at = position_in_agents(text, "main", "a").unwrap();
        assert_eq!((at.start, &text[at]), (text.rfind('\'').unwrap() - 2, "'a'"));
        assert_eq!(position_in_agents(text, "main", "b"), None);
        assert_eq!(position_in_agents("agents = {main = \"x\"}", "main", "x"), Some(17..20));
    }

    #[test]
    fn budgets_per_run_thread_user_and_tenant() {
        let text = r"
            [budgets.run]
            max_cost_usd = 0.25
            [budgets.user]
            day = { max_cost_usd = 2, max_tokens = 1000 }
            [budgets.tenant.month]
            max_cost_usd = 500
        ";
        let budgets = parse(text, &[]).unwrap().budgets;
        assert_eq!(budgets.run.max_cost_usd.unwrap().to_string(), "$0.25");
        assert_eq!((budgets.user.day.max_tokens, budgets.thread.max_tokens), (Some(1000), None));
        assert!(budgets.has_shared() && budgets.limits_shared_cost() && !Budgets::default().has_shared());
        for (wrong, expected) in [
            ("[budgets.run]\nmax_cost = 1", "unknown field `max_cost`"),
            ("[budgets.user]\nweek = { max_tokens = 1 }", "unknown field `week`"),
            ("[budgets.run]\nmax_cost_usd = -1", "not negative"),
            ("[budgets.run]\nmax_tokens = -1", "line 2"),
        ] {
            let error = parse(wrong, &[]).unwrap_err().to_string();
            assert!(error.contains(expected) && error.contains("line 2"), "{wrong}: {error}");
        }
    }

    /// G10
    #[test]
    fn g10_the_first_agent_may_be_chosen_by_the_message() {
        let text = "[agents]\nmain = \"auto\"\nfallback = \"reception\"\nthreshold = 1\n";
        let config = parse(text, &[("BATON_AGENTS_THRESHOLD", "0.5")]).unwrap().agents;
        assert_eq!((&config.main, config.threshold), (&Main::Auto, 0.5));
        assert_eq!(config.fallback.unwrap().as_str(), "reception");
        for bad in ["threshold = 1.1", "threshold = -1", "threshold = nan", "fallback = \"Not A Name\""] {
            let error = parse(&format!("[agents]\n{bad}\n"), &[]).unwrap_err().to_string();
            assert!(error.contains("line 2"), "{error}");
        }
        assert_eq!(
            parse("", &[("BATON_AGENTS_MAIN", "inf")]).unwrap().agents.main.agent().unwrap().as_str(),
            "inf"
        );
    }

    #[test]
    fn the_environment_wins_over_the_file() {
        let config = parse(
            "[agents]\nmain = \"a\"\ndirs = [\"x\"]\n",
            &[
                ("BATON_AGENTS_MAIN", "b"),
                ("BATON_AGENTS_WATCH", "false"),
                ("BATON_LIMITS_MAX_CONCURRENT_RUNS", "7"),
                ("BATON_AGENTS_DIRS", "[\"y\", \"z\"]"),
                ("BATON_STORE_URL", "postgres://h/db"),
                ("BATON_CONFIG", "ignored.toml"),
                ("PATH", "/bin"),
            ],
        )
        .unwrap();
        assert_eq!(config.agents.main.agent().unwrap().as_str(), "b");
        assert!(!config.agents.watch);
        assert_eq!(config.agents.dirs, [PathBuf::from("y"), PathBuf::from("z")]);
        assert_eq!(config.limits.max_concurrent_runs, 7);
        assert_eq!(config.store.url, "postgres://h/db");
        let error = parse("", &[("BATON_AGENTS_MIAN", "b")]).unwrap_err().to_string();
        assert!(error.contains("BATON_AGENTS_MIAN") && error.contains("mian"), "{error}");
    }
}
