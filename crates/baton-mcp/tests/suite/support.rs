//! Servers to talk to, and how to look at their processes.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use baton_core::agent::{McpServer, StdioAccess};
use baton_core::{
    AgentName, CallContext, HumanDuration, RunId, SessionId, TenantId, ThreadId, Tool, ToolError, UserId,
};
use baton_mcp::{Environment, McpSettings, Servers};
use serde_json::Value;

/// Nothing here takes long; a machine may be slow all the same.
const PATIENCE: Duration = Duration::from_mins(2);

pub const TOKEN: &str = "a-very-secret-token";

pub fn everything_script() -> PathBuf {
    let installed = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../target/npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js");
    assert!(installed.is_file(), "the MCP servers for the tests are not installed; run `make test`");
    installed
}

pub fn fixture(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name).display().to_string()
}

pub fn node(args: &[&str]) -> McpServer {
    McpServer::Stdio {
        command: "node".into(),
        args: args.iter().map(|arg| (*arg).to_owned()).collect(),
        env: [("TOKEN".to_owned(), "${SECRET}".to_owned())].into(),
        access: StdioAccess::default(),
    }
}

/// Our own server, failing as `mode` says.
pub fn own(mode: &str) -> McpServer {
    node(&[&fixture("server.mjs"), mode])
}

pub fn settings() -> McpSettings {
    let environment = Environment::new(|name| match name {
        "SECRET" => Some(TOKEN.to_owned()),
        // Nothing of the machine's settings reaches the servers.
        "PATH" => std::env::var(name).ok(),
        "LEAKED" => Some("must not be inherited".to_owned()),
        _ => None,
    });
    McpSettings { start_timeout: HumanDuration::from_mins(2), environment, ..McpSettings::default() }
}

pub fn servers(server: McpServer) -> Servers {
    servers_with(server, settings())
}

pub fn servers_with(server: McpServer, settings: McpSettings) -> Servers {
    Servers::new([("it".to_owned(), server)].into(), settings)
}

pub fn tenant(name: &str) -> TenantId {
    TenantId::parse(name).unwrap()
}

pub fn context(tenant_name: &str) -> Arc<CallContext> {
    let run_id = RunId::parse("01890a5d-ac96-774b-bcce-b302099a8057").unwrap();
    Arc::new(CallContext {
        tenant: tenant(tenant_name),
        user: UserId::parse("ada").unwrap(),
        rights: baton_core::Rights::all(),
        thread_id: ThreadId::parse("550e8400-e29b-41d4-a716-446655440000").unwrap(),
        run_id,
        session_id: SessionId::root(run_id),
        agent: AgentName::parse("helper").unwrap(),
        work_dir: PathBuf::new(),
        has_workspace: false,
        storage_left: None,
        subfolder: None,
        trace: None,
    })
}

/// The tools of one tenant, to be called by name.
pub struct Tools {
    pub tenant: &'static str,
    pub tools: Vec<Arc<dyn Tool>>,
}

impl Tools {
    pub async fn of(servers: &Servers, tenant_name: &'static str) -> Self {
        Self { tenant: tenant_name, tools: servers.tools(&tenant(tenant_name), "it").await.unwrap() }
    }

    pub fn names(&self) -> Vec<&str> {
        self.tools.iter().map(|tool| tool.spec().name.strip_prefix("mcp:it/").unwrap()).collect()
    }

    pub fn get(&self, name: &str) -> &Arc<dyn Tool> {
        self.tools.iter().find(|tool| tool.spec().name == format!("mcp:it/{name}")).unwrap()
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Result<String, ToolError> {
        self.get(name).call(arguments, context(self.tenant)).await.map(|output| output.text)
    }

    /// Of servers that have a tool for it.
    pub async fn pid(&self) -> u32 {
        self.call("pid", Value::Null).await.unwrap().parse().unwrap()
    }
}

/// Repeats a question until the answer is yes.
pub async fn until(what: &str, mut yes: impl AsyncFnMut() -> bool) {
    let asked = async {
        while !yes().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(tokio::time::timeout(PATIENCE, asked).await.is_ok(), "waited in vain until {what}");
}

/// A process that has ended but was not collected yet is no longer running.
pub fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The state follows the name, which stands in parentheses and may hold anything.
    let has_ended = stat.rsplit_once(')').is_none_or(|(_, rest)| rest.trim_start().starts_with(['Z', 'X']));
    // The first thread may end before the others, and the pipes stay open until the last.
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    !has_ended || threads > 1
}

pub async fn until_gone(pid: u32) {
    until(&format!("process {pid} is gone"), async || !is_running(pid)).await;
}

pub async fn kill_9(pid: u32) {
    let status = tokio::process::Command::new("kill").args(["-9", &pid.to_string()]).status().await.unwrap();
    assert!(status.success());
    until_gone(pid).await;
}
