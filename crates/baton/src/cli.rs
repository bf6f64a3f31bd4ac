//! The command line: arguments in, exit code out.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{Parser, Subcommand, ValueEnum};

use crate::commands::{self, OfTenant};
use crate::config::{Config, ConfigError, Telemetry};
use crate::exit::{Exit, ExitError};
use crate::logs::{self, Usual};
use crate::telemetry::Exporter;

/// How long the last spans may take to be sent.
const FLUSH: Duration = Duration::from_secs(2);
/// The same when a signal asks the program to end.
const HURRY: Duration = Duration::from_millis(300);

/// Run teams of LLM agents: conduct them, or pass the baton.
#[derive(Debug, Parser)]
#[command(name = "baton", version, arg_required_else_help = true, propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub command: Command,
}

/// What every command understands.
#[derive(Debug, clap::Args)]
pub struct Common {
    /// The configuration file [default: the nearest baton.toml upwards]
    #[arg(long, global = true, value_name = "FILE", env = "BATON_CONFIG")]
    pub config: Option<PathBuf>,

    /// A profile of the configuration file: its settings are put over the others of the file
    #[arg(long, global = true, value_name = "NAME", env = "BATON_PROFILE")]
    profile: Option<String>,

    /// A folder with agent files, instead of those in baton.toml; may be repeated
    #[arg(long = "agents", global = true, value_name = "DIR")]
    pub agents: Vec<PathBuf>,

    /// When to use colours
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: Color,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    Auto,
    Always,
    Never,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start the server: the API, live streams and the web page
    Serve(commands::serve::Args),
    /// Ask an agent and stream its answer to stdout
    Run(commands::run::Args),
    /// Talk with agents in the terminal
    Chat(commands::chat::Args),
    /// Check agent files and print every problem with its place and a way out
    Validate(commands::validate::Args),
    /// Print who may call, consult, route, hand off to whom, and who owns the answer
    Graph(commands::graph::Args),
    /// List agents, show one with every default filled in, or delete one that people created
    Agents(OfTenant<commands::agents::Command>),
    /// List, show or check skills: what agents can learn
    #[command(subcommand)]
    Skills(commands::skills::Command),
    /// List, show or delete conversations
    Threads(OfTenant<commands::threads::Command>),
    /// List, show, cancel or resume runs: the work for single messages
    Runs(OfTenant<commands::runs::Command>),
    /// List what waits for a person: approve or deny calls, answer questions
    Approvals(OfTenant<commands::approvals::Command>),
    /// Show, leave or resume a handoff: another agent has a conversation for a while
    Handoff(OfTenant<commands::handoff::Command>),
    /// List or show sessions: one agent's loop inside a run each
    Sessions(OfTenant<commands::sessions::Command>),
    /// Print which ways batons take between agents, and how well they end
    Patterns(commands::patterns::Args),
    /// Print what was spent, by agent, user, model or day
    Usage(commands::usage::Args),
    /// Print who did what, verify that the record of it is complete, or export it
    Audit(commands::audit::Args),
    /// Create, list or revoke API keys for the server
    #[command(subcommand)]
    Keys(commands::keys::Command),
    /// Export or erase all data of a user
    #[command(subcommand)]
    Users(commands::users::Command),
    /// Copy a SQLite store to a file, also while a server uses it
    Backup(commands::backup::Args),
    /// Start a project: baton.toml and a first set of agents
    Init(commands::init::Args),
    /// Print which settings are in force here, and whether they work
    Doctor,
    /// Print the description of the HTTP API, as OpenAPI 3.1
    Openapi,
    /// Print a completion script for a shell
    Completions(commands::completions::Args),
}

impl Cli {
    pub fn run(self) -> Exit {
        self.common.color.apply();
        self.execute().unwrap_or_else(|error| {
            let style = anstyle::AnsiColor::Red.on_default().bold();
            let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {error:#}");
            code(&error)
        })
    }

    fn execute(self) -> anyhow::Result<Exit> {
        let watched = self.command.watched();
        let settings = self.common.telemetry();
        let traces = if watched.makes_runs { Exporter::new(&settings)? } else { None };
        let _logs = logs::start(&settings, watched.usual, traces.as_ref())?;
        let exit = self.perform();
        if let Some(traces) = traces {
            let is_signalled = matches!(exit, Ok(Exit::HungUp | Exit::Interrupted | Exit::Terminated));
            traces.end(if is_signalled { HURRY } else { FLUSH });
        }
        exit
    }

    fn perform(self) -> anyhow::Result<Exit> {
        match self.command {
            Command::Serve(args) => commands::serve::run(&self.common, &args),
            Command::Run(args) => commands::run::run(&self.common, &args),
            Command::Chat(args) => commands::chat::run(&self.common, &args),
            Command::Validate(args) => commands::validate::run(&self.common, &args),
            Command::Graph(args) => commands::graph::run(&self.common, &args),
            Command::Agents(args) => commands::agents::run(&self.common, args.selected()),
            Command::Skills(command) => commands::skills::run(&self.common, &command),
            Command::Threads(args) => commands::threads::run(&self.common, args.selected()),
            Command::Runs(args) => commands::runs::run(&self.common, args.selected()),
            Command::Approvals(args) => commands::approvals::run(&self.common, &args),
            Command::Handoff(args) => commands::handoff::run(&self.common, args.selected()),
            Command::Sessions(args) => commands::sessions::run(&self.common, args.selected()),
            Command::Patterns(args) => commands::patterns::run(&self.common, &args),
            Command::Usage(args) => commands::usage::run(&self.common, &args),
            Command::Audit(args) => commands::audit::run(&self.common, &args),
            Command::Keys(command) => commands::keys::run(&self.common, &command),
            Command::Users(command) => commands::users::run(&self.common, &command),
            Command::Backup(args) => commands::backup::run(&self.common, &args),
            Command::Init(args) => commands::init::run(&args),
            Command::Doctor => commands::doctor::run(&self.common),
            Command::Openapi => commands::openapi::run(),
            Command::Completions(args) => commands::completions::run(&args),
        }
    }
}

/// What others hear of a command.
struct Watched {
    usual: Usual,
    /// Only who works on runs has anything to trace.
    makes_runs: bool,
}

impl Command {
    fn watched(&self) -> Watched {
        let makes_runs = match self {
            Self::Run(_) | Self::Chat(_) => true,
            Self::Runs(args) => matches!(args.command, commands::runs::Command::Resume),
            Self::Handoff(args) => args.command.makes_runs(),
            Self::Approvals(args) => args.command.makes_runs(),
            _ => false,
        };
        if matches!(self, Self::Serve(_)) {
            return Watched { usual: Usual::Everything, makes_runs: true };
        }
        Watched { usual: Usual::Warnings, makes_runs }
    }
}

impl Common {
    /// The profile that is asked for. An empty variable is as good as none: compose files set what they do not have to nothing.
    pub fn profile(&self) -> Option<&str> {
        self.profile.as_deref().filter(|name| !name.is_empty())
    }

    /// Before anything else is known. A configuration that cannot be read is the command's to complain about.
    fn telemetry(&self) -> Telemetry {
        let file = self.config.clone().or_else(|| Config::find(Path::new("")));
        Config::load(file.as_deref(), self.profile()).map(|config| config.telemetry).unwrap_or_default()
    }
}

fn code(error: &anyhow::Error) -> Exit {
    match error.downcast_ref::<ExitError>() {
        Some(refused) => refused.exit,
        None if error.is::<ConfigError>() => Exit::Invalid,
        None => Exit::Failed,
    }
}

impl Color {
    /// `auto` leaves it to the terminal and to `NO_COLOR`.
    fn apply(self) {
        match self {
            Self::Auto => {}
            Self::Always => anstream::ColorChoice::Always.write_global(),
            Self::Never => anstream::ColorChoice::Never.write_global(),
        }
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_command_line_is_consistent() {
        super::Cli::command().debug_assert();
    }
}
