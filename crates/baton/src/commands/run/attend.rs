//! A run and the person at the terminal: what happens is shown, and what waits is asked.

use std::collections::BTreeSet;
use std::io::IsTerminal as _;
use std::sync::Arc;

use baton_core::store::{ApprovalRequest, ApprovalStatus, RunStatus};
use baton_core::{AgentName, ThreadId};
use baton_engine::{Agents, DecideError, Engine, RunHandle};
use baton_mcp::Servers;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::RunEnding;
use super::screen::RunScreen;
use crate::commands::approvals::format;
use crate::commands::approvals::prompt::{self, Reply};
use crate::commands::lines::InputLines;
use crate::commands::signals::{ShutdownRequest, Signals};
use crate::commands::{tenant, user};
use crate::exit::Exit;
use crate::progress::AgentNames;
use crate::report::tell;

/// Shows the runs of a thread to a person or a program.
#[derive(Clone, Copy)]
pub(in crate::commands) struct Attendant<'a> {
    pub(in crate::commands) engine: &'a Arc<Engine>,
    pub(in crate::commands) agents: &'a Agents,
    pub(in crate::commands) thread: ThreadId,
    pub(in crate::commands) is_json: bool,
}

/// How a part of a run ended: until its end, or until it waits.
enum PartEnding {
    Ended(Box<RunEnding>),
    /// A second signal.
    Quit(Exit),
}

/// What became of asking the person.
enum Asked {
    Decided,
    Left(Exit),
}

impl Attendant<'_> {
    pub(in crate::commands) fn screen(&self, agent: &AgentName) -> RunScreen {
        RunScreen::open(agent, self.agents, self.is_json)
    }

    /// Shows a run to its end. If it waits for decisions, the person at the terminal is asked for them; without a terminal, the way to
    /// decide is printed and the exit code says that the run waits.
    pub(in crate::commands) async fn see_through(
        self,
        run: RunHandle,
        screen: RunScreen,
        servers: Servers,
        signals: &mut Signals,
    ) -> anyhow::Result<Exit> {
        let mut servers = ServersInUse::new(servers);
        let (mut run, mut screen) = (run, screen);
        let mut lines: Option<InputLines> = None;
        let mut postponed = BTreeSet::new();
        let exit = loop {
            let run_id = run.id;
            let ending = match self.attend(run, screen, &mut servers, signals).await? {
                PartEnding::Ended(ending) => ending,
                PartEnding::Quit(exit) => return Ok(exit),
            };
            if ending.finished.status != RunStatus::Waiting || ending.written.is_err() {
                break ending.exit(signals.first);
            }
            let (last_seq, requests) = (ending.last_seq, ending.finished.waits_for);
            let asked = self.ask(&requests, &mut lines, &mut postponed, signals).await?;
            match asked {
                Asked::Decided => {}
                Asked::Left(exit) => {
                    for hint in format::decision_hints(&requests) {
                        tell(&hint);
                    }
                    break Ok(exit);
                }
            }
            let Some(first) = requests.first() else { break Ok(Exit::Waiting) };
            screen = self.screen(&first.agent);
            run = self.engine.attend(&tenant(), self.thread, run_id, last_seq);
        };
        servers.end().await;
        exit
    }

    /// Shows what happens until the run ends or waits. The first signal cancels it; a second one ends everything at once.
    async fn attend(
        self,
        mut run: RunHandle,
        screen: RunScreen,
        servers: &mut ServersInUse,
        signals: &mut Signals,
    ) -> anyhow::Result<PartEnding> {
        loop {
            tokio::select! {
                is_more = screen.pass_on(&mut run.events) => if !is_more { break },
                asked = signals.next() => match asked {
                    ShutdownRequest::ToEnd => {
                        run.cancel();
                        // Now, since a run that waits for a server to start hears of nothing else.
                        servers.release();
                    }
                    ShutdownRequest::ToQuit(exit) => return Ok(PartEnding::Quit(exit)),
                },
            }
        }
        tokio::select! {
            exit = signals.second() => Ok(PartEnding::Quit(exit)),
            ended = screen.close(run) => Ok(PartEnding::Ended(Box::new(ended?))),
        }
    }

    /// Asks for one decision, about the first request that was not postponed. The run then continues as far as it can.
    async fn ask(
        self,
        requests: &[ApprovalRequest],
        lines: &mut Option<InputLines>,
        postponed: &mut BTreeSet<Uuid>,
        signals: &mut Signals,
    ) -> anyhow::Result<Asked> {
        if self.is_json || !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
            return Ok(Asked::Left(Exit::Waiting));
        }
        let names: AgentNames =
            self.agents.values().map(|agent| (agent.name.clone(), agent.public_name().to_owned())).collect();
        let lines = lines.get_or_insert_with(InputLines::open);
        for request in requests {
            if postponed.contains(&request.approval_id) || !self.is_open(request).await? {
                continue;
            }
            tell(&format!("\n{}", format::asked(request, &names)));
            let reply = tokio::select! {
                reply = self.decide(lines, request) => reply?,
                exit = signals.any() => Some(Asked::Left(exit)),
            };
            match reply {
                Some(asked) => return Ok(asked),
                None => postponed.insert(request.approval_id),
            };
        }
        // Others have decided all of them, or the person wants to do it later.
        let is_settled = requests.iter().all(|request| !postponed.contains(&request.approval_id));
        Ok(if is_settled { Asked::Decided } else { Asked::Left(Exit::Waiting) })
    }

    async fn is_open(self, request: &ApprovalRequest) -> anyhow::Result<bool> {
        let approval = self.engine.parts.store.tenant(&tenant()).approval(request.approval_id).await?;
        Ok(approval.outcome.status == ApprovalStatus::Pending)
    }

    /// Asks until there is a valid decision. `None` if the person wants to decide later.
    async fn decide(
        self,
        lines: &mut InputLines,
        request: &ApprovalRequest,
    ) -> anyhow::Result<Option<Asked>> {
        loop {
            let input = match prompt::ask(lines, request).await? {
                Reply::Decided(input) => *input,
                Reply::Later => return Ok(None),
                Reply::Leave(exit) => return Ok(Some(Asked::Left(exit))),
            };
            match self.engine.decide(&tenant(), request.approval_id, &user(), input).await {
                Ok(_) => return Ok(Some(Asked::Decided)),
                Err(DecideError::Invalid { pointer, detail }) => {
                    tell(&format!("not valid: {pointer}: {detail}"));
                }
                Err(error @ (DecideError::Settled(_) | DecideError::Changed(_))) => {
                    tell(&error.to_string());
                    return Ok(Some(Asked::Decided));
                }
                Err(DecideError::Store(error)) => return Err(error.into()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// MCP servers that a run uses. They are stopped when no run needs them any more, in a task of their own.
struct ServersInUse {
    needed: Option<oneshot::Sender<()>>,
    ended: JoinHandle<()>,
}

impl ServersInUse {
    fn new(servers: Servers) -> Self {
        let (needed, unneeded) = oneshot::channel::<()>();
        let ended = tokio::spawn(async move {
            let _ = unneeded.await;
            servers.shutdown().await;
        });
        Self { needed: Some(needed), ended }
    }

    fn release(&mut self) {
        drop(self.needed.take());
    }

    async fn end(mut self) {
        self.release();
        let _ = self.ended.await;
    }
}
