//! `baton approvals`: calls and questions that wait for a person, and their decisions.
//!
//! - [`local`]: on the project's own store; the run continues in this process. [`server`]: by a server, with `--server`.
//! - [`format`](mod@format): how a request reads. [`prompt`]: asking for a decision on a terminal, for `baton run` and `baton chat`.

pub(super) mod format;
mod local;
pub(super) mod prompt;
mod server;

use baton_core::choice::Choice as _;
use baton_core::store::{Approval, ApprovalFilter, ApprovalKind};
use baton_engine::{DecisionInput, Verdict};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use self::server::Server;
use super::OfTenant;
use super::archive::PagingArgs;
use super::reference::Reference;
use crate::cli::Common;
use crate::exit::Exit;
use crate::progress::AgentNames;
use crate::report::figures;
use crate::report::table::{Column, Table, line};

#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// What waits for a decision; what expires first is at the top
    List(List),
    /// One request, with everything that the tool would get
    Show(Show),
    /// Allow a call, as it was asked for or with other arguments
    Approve(Approve),
    /// Refuse a call, or decline to answer a question
    Deny(Deny),
    /// Answer a question
    Answer(Answer),
    /// Revoke a remembered decision: calls of the tool in that conversation wait again
    Forget(Forget),
}

#[derive(Debug, clap::Args)]
pub struct List {
    /// Only with this status: pending, decided, approved, denied, answered, expired, cancelled or invalidated
    #[arg(long, value_name = "STATUS", default_value = "pending", value_parser = filter)]
    status: ApprovalFilter,
    #[command(flatten)]
    paging: PagingArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub struct Show {
    #[command(flatten)]
    which: ApprovalIdArg,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub struct Approve {
    #[command(flatten)]
    which: ApprovalIdArg,
    /// Arguments for the tool instead of those it was asked for, as JSON
    #[arg(long, value_name = "JSON", value_parser = json)]
    arguments: Option<Value>,
    #[command(flatten)]
    how: DecisionArgs,
}

#[derive(Debug, clap::Args)]
pub struct Deny {
    #[command(flatten)]
    which: ApprovalIdArg,
    #[command(flatten)]
    how: DecisionArgs,
}

#[derive(Debug, clap::Args)]
pub struct Answer {
    #[command(flatten)]
    which: ApprovalIdArg,
    /// The answer; JSON for a question that asks for several values
    #[arg(value_name = "TEXT")]
    text: String,
    /// Print every event of the run as a line of JSON (AG-UI)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ServerArgs,
}

#[derive(Debug, clap::Args)]
pub struct Forget {
    #[command(flatten)]
    which: ApprovalIdArg,
    #[command(flatten)]
    at: ServerArgs,
}

#[derive(Debug, clap::Args)]
struct ApprovalIdArg {
    /// The request's id; where 200 wait at most, the beginning of it is enough
    #[arg(value_name = "ID")]
    approval: Reference<Uuid>,
}

#[derive(Debug, clap::Args)]
struct DecisionArgs {
    /// Why; stored with the approval, and the agent reads the reason of a denial
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Decide alike, without asking, when this conversation uses the tool again
    #[arg(long)]
    remember: bool,
    /// Print every event of the run as a line of JSON (AG-UI)
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    at: ServerArgs,
}

#[derive(Debug, clap::Args)]
struct ServerArgs {
    /// The address of a server, instead of the project's own store. The variable `BATON_API_KEY` has the key
    #[arg(long, value_name = "URL")]
    server: Option<String>,
}

fn filter(text: &str) -> Result<ApprovalFilter, String> {
    ApprovalFilter::parse(text).ok_or_else(|| {
        let words: Vec<&str> = ApprovalFilter::ALL.iter().map(|(word, _)| *word).collect();
        format!("`{text}` is not a status: use {}", words.join(", "))
    })
}

fn json(text: &str) -> Result<Value, String> {
    serde_json::from_str(text).map_err(|error| format!("it is not JSON: {error}"))
}

pub fn run(common: &Common, args: &OfTenant<Command>) -> anyhow::Result<Exit> {
    let command = args.selected();
    match &command.at().server {
        Some(_) if args.tenant.is_given() => {
            let said = "the key decides the tenant on a server: leave out --tenant, or --server";
            Err(Exit::Usage.because(anyhow::anyhow!(said)))
        }
        Some(url) => server::run(&Server::new(url)?, command),
        None => local::run(common, command),
    }
}

impl Command {
    /// A decision lets a run continue.
    pub fn makes_runs(&self) -> bool {
        !matches!(self, Self::List(_) | Self::Show(_) | Self::Forget(_)) && self.at().server.is_none()
    }

    fn at(&self) -> &ServerArgs {
        match self {
            Self::List(args) => &args.at,
            Self::Show(args) => &args.at,
            Self::Approve(args) => &args.how.at,
            Self::Deny(args) => &args.how.at,
            Self::Answer(args) => &args.at,
            Self::Forget(args) => &args.at,
        }
    }

    /// Whether events are printed instead of the answer.
    fn is_json(&self) -> bool {
        match self {
            Self::List(args) => args.json,
            Self::Show(args) => args.json,
            Self::Approve(args) => args.how.json,
            Self::Deny(args) => args.how.json,
            Self::Answer(args) => args.json,
            Self::Forget(_) => false,
        }
    }

    fn which(&self) -> Option<&Reference<Uuid>> {
        match self {
            Self::List(_) => None,
            Self::Show(args) => Some(&args.which.approval),
            Self::Approve(args) => Some(&args.which.approval),
            Self::Deny(args) => Some(&args.which.approval),
            Self::Answer(args) => Some(&args.which.approval),
            Self::Forget(args) => Some(&args.which.approval),
        }
    }

    /// The decision about this request. `None` if the command makes none.
    fn decision(&self, approval: &Approval) -> anyhow::Result<Option<DecisionInput>> {
        let request = &approval.request;
        let is_question = request.kind == ApprovalKind::Question;
        let digest = Some(request.digest.clone());
        let input = DecisionInput { digest, ..DecisionInput::new(Verdict::Approve) };
        let id = request.approval_id;
        Ok(Some(match self {
            Self::List(_) | Self::Show(_) | Self::Forget(_) => return Ok(None),
            Self::Approve(_) if is_question => {
                let said = format!("{id} is a question: `baton approvals answer {id} TEXT` answers it");
                return Err(Exit::Usage.because(anyhow::anyhow!(said)));
            }
            Self::Answer(_) if !is_question => {
                let said = format!("{id} is a call of {}: approve or deny it", request.tool);
                return Err(Exit::Usage.because(anyhow::anyhow!(said)));
            }
            Self::Approve(Approve { arguments, how, .. }) => DecisionInput {
                arguments: arguments.clone(),
                reason: how.reason.clone(),
                remember: how.remember,
                ..input
            },
            Self::Deny(Deny { how, .. }) => DecisionInput {
                verdict: Verdict::Deny,
                reason: how.reason.clone(),
                remember: how.remember,
                ..input
            },
            Self::Answer(Answer { text, .. }) => {
                DecisionInput { answer: Some(prompt::answer_of(&request.schema, text)), ..input }
            }
        }))
    }
}

/// What was revoked, in one line.
fn forgotten(approval: &Approval) -> String {
    format!("{} waits for a decision again in this conversation\n", line(&approval.request.tool))
}

/// Those that expire first come first.
fn table(approvals: &[Approval], names: &AgentNames) -> String {
    let mut approvals: Vec<&Approval> = approvals.iter().collect();
    approvals.sort_by_key(|approval| approval.request.expires_at);
    let mut table = Table::new([
        Column::Id("id"),
        Column::Text("status"),
        Column::Text("expires"),
        Column::Spare("risk"),
        Column::Spare("agent"),
        Column::Text("request"),
    ]);
    for approval in approvals {
        let request = &approval.request;
        table.add([
            request.approval_id.to_string(),
            approval.outcome.status.to_string(),
            expiry(request.expires_at),
            if request.kind == ApprovalKind::Tool { request.risk.to_string() } else { "-".to_owned() },
            format::agents(&request.path, names),
            format::summary(request),
        ]);
    }
    table.print()
}

fn expiry(at: Timestamp) -> String {
    match figures::took(Some(Timestamp::now()), Some(at)) {
        Some(left) if !left.is_zero() => format!("in {}", figures::stretch(left)),
        _ => figures::moment(at),
    }
}
