//! The same requests by the API of a server.

use std::time::Duration;

use anyhow::Context as _;
use baton_core::store::{Approval, ApprovalKind, ApprovalOutcome, ApprovalRequest, Page};
use baton_core::{RunId, ThreadId, UserId};
use baton_engine::{DecisionInput, Verdict};
use reqwest::{Client, RequestBuilder, StatusCode, Url};
use secrecy::{ExposeSecret as _, SecretString};
use serde::Deserialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{Command, List, forgotten, format, table};
use crate::commands::reference::Reference;
use crate::commands::{print, print_json};
use crate::exit::Exit;
use crate::progress::AgentNames;
use crate::report::{printable, tell};
use crate::wiring::secret_from;

/// Names the key.
const KEY: &str = "BATON_API_KEY";
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
const MAX_PAGE: u32 = 200;

pub(super) struct Server {
    base: Url,
    key: Option<SecretString>,
}

#[derive(Deserialize)]
struct ApprovalPage {
    data: Vec<ServedApproval>,
    next_cursor: Option<String>,
}

/// As the API writes it.
#[derive(Clone, Deserialize)]
struct ServedApproval {
    #[serde(flatten)]
    request: ApprovalRequest,
    thread_id: ThreadId,
    run_id: RunId,
    deciders: Deciders,
    #[serde(flatten)]
    outcome: ApprovalOutcome,
}

#[derive(Clone, Deserialize)]
struct Deciders {
    user_id: UserId,
}

impl From<ServedApproval> for Approval {
    fn from(served: ServedApproval) -> Self {
        let ServedApproval { request, thread_id, run_id, deciders, outcome } = served;
        Self { request, thread_id, run_id, user_id: deciders.user_id, outcome }
    }
}

impl ApprovalPage {
    fn approvals(self) -> Vec<Approval> {
        self.data.into_iter().map(Approval::from).collect()
    }
}

impl Server {
    pub(super) fn new(url: &str) -> anyhow::Result<Self> {
        let base = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        let base =
            base.with_context(|| format!("`{url}` is not an address: write it as http://127.0.0.1:8420"));
        Ok(Self { base: base.map_err(|error| Exit::Usage.because(error))?, key: secret_from(KEY)? })
    }

    fn url(&self, path: &str) -> Url {
        let mut url = self.base.clone();
        url.set_path(&format!("{}{path}", self.base.path().trim_end_matches('/')));
        url
    }

    async fn ask(&self, request: RequestBuilder) -> anyhow::Result<Value> {
        let request = match &self.key {
            Some(key) => request.bearer_auth(key.expose_secret()),
            None => request,
        };
        let response = request.timeout(REQUEST_TIMEOUT).send().await.map_err(|error| {
            let host = self.base.origin().ascii_serialization();
            Exit::Unreachable
                .because(anyhow::Error::new(error.without_url()).context(format!("cannot reach {host}")))
        })?;
        let status = response.status();
        let body = response.text().await.context("the server's answer was cut")?;
        if status == StatusCode::NO_CONTENT {
            return Ok(Value::Null);
        }
        if status.is_success() {
            return serde_json::from_str(&body).context("the server's answer is not JSON");
        }
        let problem: Value = serde_json::from_str(&body).unwrap_or_default();
        let detail =
            problem.get("detail").and_then(Value::as_str).map_or_else(|| status.to_string(), printable);
        let error = anyhow::anyhow!("{detail}{}", fields(&problem));
        Err(match status.as_u16() {
            401 => Exit::Forbidden.because(error.context(format!("set {KEY} to a key of this server"))),
            403 => Exit::Forbidden.because(error),
            400 => Exit::Usage.because(error),
            _ => error,
        })
    }
}

/// What is wrong with single values.
fn fields(problem: &Value) -> String {
    let errors = problem.get("errors").and_then(Value::as_array).into_iter().flatten();
    let text = |error: &Value, key| error.get(key).and_then(Value::as_str).map(printable).unwrap_or_default();
    errors.map(|error| format!("\n  {}: {}", text(error, "pointer"), text(error, "detail"))).collect()
}

pub(super) fn run(server: &Server, command: &Command) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let client = Client::builder().user_agent(concat!("baton/", env!("CARGO_PKG_VERSION"))).build()?;
        match command {
            Command::List(args) => list(server, &client, args).await,
            _ => one(server, &client, command).await,
        }
    })
}

async fn list(server: &Server, client: &Client, args: &List) -> anyhow::Result<Exit> {
    let paging = args.paging.request();
    let mut query = vec![("status", args.status.word().to_owned()), ("limit", paging.limit.to_string())];
    query.extend(paging.cursor.map(|cursor| ("cursor", cursor)));
    let found = server.ask(client.get(with_query(server.url("/api/v1/approvals"), &query))).await?;
    if args.json {
        print_json(&found)?;
        return Ok(Exit::Ok);
    }
    let page: ApprovalPage = serde_json::from_value(found)?;
    if page.data.is_empty() {
        tell("no requests");
        return Ok(Exit::Ok);
    }
    let cursor = page.next_cursor.clone();
    print(&table(&page.approvals(), &AgentNames::new()))?;
    if let Some(cursor) = cursor {
        tell(&format!("there are more requests: --cursor {cursor}"));
    }
    Ok(Exit::Ok)
}

fn with_query(mut url: Url, query: &[(&str, String)]) -> Url {
    url.query_pairs_mut().extend_pairs(query);
    url
}

/// Shows a request, or decides it. The server continues the run.
async fn one(server: &Server, client: &Client, command: &Command) -> anyhow::Result<Exit> {
    let named = command.which().expect("the command is about a request");
    let is_decision = !matches!(command, Command::Show(_) | Command::Forget(_));
    let Some((approval, as_sent)) = find(server, client, named, is_decision).await? else {
        anyhow::bail!("request not found");
    };
    if let Command::Forget(_) = command {
        let mut url = server.url("");
        let tool = approval.request.tool.as_str();
        let thread = approval.thread_id.to_string();
        let segments = ["api", "v1", "threads", &thread, "remembered", tool];
        url.path_segments_mut().expect("an address with a host").pop_if_empty().extend(segments);
        server.ask(client.delete(url)).await?;
        print(&forgotten(&approval))?;
        return Ok(Exit::Ok);
    }
    let Some(input) = command.decision(&approval)? else {
        if command.is_json() {
            print_json(&as_sent)?;
        } else {
            print(&format::whole(&approval, &AgentNames::new()))?;
        }
        return Ok(Exit::Ok);
    };
    let path = format!("/api/v1/approvals/{}", approval.request.approval_id);
    let decided = server.ask(client.post(server.url(&path)).json(&body(input))).await?;
    if command.is_json() {
        print_json(&decided)?;
    } else {
        let decided: ServedApproval = serde_json::from_value(decided)?;
        let what = match decided.request.kind {
            ApprovalKind::Question => "the question",
            ApprovalKind::Tool => &decided.request.tool,
        };
        print(&format!("{what} is {}; the run continues on the server\n", decided.outcome.status))?;
    }
    Ok(Exit::Ok)
}

async fn find(
    server: &Server,
    client: &Client,
    named: &Reference<Uuid>,
    is_decision: bool,
) -> anyhow::Result<Option<(Approval, Value)>> {
    let mut query = vec![("limit", MAX_PAGE.to_string()), ("order", "desc".to_owned())];
    if is_decision {
        query.push(("status", "pending".to_owned()));
    }
    let found = server.ask(client.get(with_query(server.url("/api/v1/approvals"), &query))).await?;
    let as_sent = found.get("data").and_then(Value::as_array).cloned().unwrap_or_default();
    let approvals = serde_json::from_value::<ApprovalPage>(found)?.approvals();
    let listed = async { anyhow::Ok(Page { data: approvals.clone(), next_cursor: None }) };
    let id = named.find(listed, |approval: Approval| Some(approval.request.approval_id)).await?;
    Ok(approvals.into_iter().zip(as_sent).find(|(approval, _)| Some(approval.request.approval_id) == id))
}

fn body(input: DecisionInput) -> Value {
    let decision = match input.verdict {
        Verdict::Approve => "approve",
        Verdict::Deny => "deny",
    };
    let mut body = json!({ "decision": decision });
    let optional = [
        ("reason", input.reason.map(Value::String)),
        ("arguments", input.arguments),
        ("answer", input.answer),
        ("digest", input.digest.map(Value::String)),
        ("remember", input.remember.then_some(Value::Bool(true))),
    ];
    for (name, value) in optional {
        if let Some(value) = value {
            body[name] = value;
        }
    }
    body
}
