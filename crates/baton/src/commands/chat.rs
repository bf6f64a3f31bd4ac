//! `baton chat`: a conversation in the terminal.
//!
//! - [`command`]: what of the person's lines is for the chat itself. [`deciding`]: approvals and questions.
//! - [`talk`]: a message and its run, and everything else that happens in the thread. [`exit`]: handoffs that are left or resumed.
//! - [`opening`]: where an earlier conversation stands. [`standing`]: who has it.
//! - [`screen`]: the one who writes, [`view`]: how it reads, [`badge`]: who is who. [`facts`]: what commands answer.

mod badge;
mod command;
mod deciding;
mod facts;
mod leaving;
mod opening;
mod screen;
mod standing;
mod talk;
mod view;

use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use baton_core::ThreadId;
use tracing::Instrument as _;

use self::command::{ChatCommand, ChatInput};
use self::screen::Show;
use self::standing::ChatStatus;
use self::talk::{Chat, Next};
use super::cast::Cast;
use super::lines::{InputLine, InputLines};
use super::reference::Reference;
use super::signals::Signals;
use crate::cli::Common;
use crate::exit::Exit;
use crate::wiring::Wired;
use crate::{report, telemetry, wiring};

/// How long tasks and servers may take to end when the person leaves.
const LEAVE: Duration = Duration::from_secs(1);

#[derive(Debug, clap::Args)]
pub struct Args {
    /// Who answers [default: the main agent, or the best match with `main = "auto"`]
    #[arg(short, long)]
    agent: Option<String>,
    /// Continue the conversation that was used last
    #[arg(short, long = "continue")]
    continued: bool,
    /// Continue this conversation: its id, or the beginning of it
    #[arg(short, long, value_name = "THREAD", conflicts_with = "continued")]
    resume: Option<Reference<ThreadId>>,
}

pub fn run(common: &Common, args: &Args) -> anyhow::Result<Exit> {
    let Some(cast) = Cast::read(common, args.agent.as_deref())? else { return Ok(Exit::Invalid) };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let (trace, span) = telemetry::command("baton chat");
    let chat = async {
        // Listened to before anything is started, so that nothing started is left behind.
        let mut signals = Signals::listen()?;
        let Wired { engine, servers } = tokio::select! {
            biased;
            wired = wiring::wire_chat(&cast.project, cast.agents.clone()) => wired?,
            exit = signals.any() => return Ok(exit),
        };
        let store = Arc::clone(&engine.parts.store);
        let agents = engine.agents(&super::tenant());
        let chat = Chat::new(engine, &agents, cast.entry, signals, trace);
        let exit = converse(chat, args).await;
        let _ = tokio::time::timeout(LEAVE, servers.shutdown()).await;
        wiring::seal(&*store).await;
        exit
    };
    let exit = runtime.block_on(chat.instrument(span));
    runtime.shutdown_timeout(LEAVE);
    exit
}

/// From the first word to the last.
async fn converse(mut chat: Chat, args: &Args) -> anyhow::Result<Exit> {
    let mut lines = InputLines::open();
    let exit = match chat.open(args, lines.is_typed).await? {
        Next::Leave(exit) => exit,
        Next::Stay => take_turns(&mut chat, &mut lines).await?,
    };
    let is_typed = lines.is_typed;
    drop(lines);
    match chat.close(exit, is_typed).await {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(Exit::ReaderGone),
        closed => closed.context("cannot write to stdout"),
    }
}

/// One line after the other, until the person leaves.
async fn take_turns(chat: &mut Chat, lines: &mut InputLines) -> anyhow::Result<Exit> {
    loop {
        if let Next::Leave(exit) = chat.settle_requests(lines).await? {
            return Ok(exit);
        }
        let standing = chat.standing().await;
        if let Next::Leave(exit) = chat.rest().await {
            return Ok(exit);
        }
        let line = tokio::select! {
            line = lines.next(prompt(&standing, lines.is_typed)) => line,
            exit = chat.signals.any() => {
                if lines.is_typed {
                    // The prompt has not ended its line.
                    report::tell("");
                }
                return Ok(exit);
            }
        };
        let said = match line {
            InputLine::Said(said) => said,
            InputLine::End => return Ok(Exit::Ok),
            InputLine::Interrupted => return Ok(Exit::Interrupted),
            InputLine::Failed(error) => return Err(error),
        };
        if let Next::Leave(exit) = obey(chat, &standing, ChatInput::read(&said)).await {
            return Ok(exit);
        }
    }
}

/// Where the person is, said above the line that they type where there is no room on it.
fn prompt(standing: &ChatStatus, is_typed: bool) -> String {
    let (above, prompt) = standing.prompt();
    if is_typed {
        report::tell(&above.map(|above| format!("\n{above}")).unwrap_or_default());
    }
    prompt
}

async fn obey(chat: &mut Chat, standing: &ChatStatus, entered: ChatInput) -> Next {
    let answer = match entered {
        ChatInput::Nothing => return Next::Stay,
        ChatInput::Message(message) => return chat.reply(message, standing).await,
        ChatInput::Command(ChatCommand::Quit) => return Next::Leave(Exit::Ok),
        ChatInput::Command(ChatCommand::ExitHandoff) => return chat.exit_handoff(standing).await,
        ChatInput::Command(ChatCommand::Resume) => return chat.resume(standing).await,
        ChatInput::Command(ChatCommand::Approvals) => return chat.reconsider().await,
        ChatInput::Command(ChatCommand::Help) => Show::Result(command::help()),
        ChatInput::Command(ChatCommand::Agents) => Show::Result(chat.agents(standing)),
        ChatInput::Command(ChatCommand::Usage) => chat.usage().await,
        ChatInput::Unknown(told) => Show::Told(told),
    };
    chat.screen.show(answer).await;
    Next::Stay
}
