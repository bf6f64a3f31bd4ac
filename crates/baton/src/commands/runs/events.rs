//! What happened in a run, as it was kept.

use std::io::ErrorKind;

use anyhow::Context as _;
use baton_core::event::{Dissent, Event, EventKind, HandoffEvent};
use baton_core::message::Visibility;
use baton_core::store::{PageRequest, RunRecord};
use baton_core::workflow::WorkflowProgress;
use baton_core::{FileRef, SubAgentResult};

use super::super::archive::Archive;
use super::super::write;
use crate::exit::Exit;
use crate::report::figures;
use crate::report::table::{Column, Table};
use crate::report::tell;

/// As lines of JSON they appear while they are read; a table needs to know them all.
pub(super) async fn print_all(archive: &Archive, run: &RunRecord, json: bool) -> anyhow::Result<Exit> {
    let mut table = Table::new([
        Column::Number("event"),
        Column::Text("time"),
        Column::Text("agent"),
        Column::Text("path"),
        Column::Text("what happened"),
    ]);
    let mut after = 0;
    loop {
        let events = archive.tenant.run_events(run.run_id, after, PageRequest::MAX_LIMIT).await?;
        let Some(last) = events.last() else { break };
        after = last.seq;
        if json {
            let lines = events.iter().map(serde_json::to_string).collect::<Result<Vec<_>, _>>()?;
            match write(&(lines.join("\n") + "\n")) {
                // The reader closed the pipe.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => return Ok(Exit::Ok),
                written => written.context("cannot write to stdout")?,
            }
        } else {
            for event in &events {
                table.add(row(event));
            }
        }
    }
    match (json, table.is_empty()) {
        (true, _) => {}
        (false, true) => tell("no events"),
        (false, false) => super::print(&table.print())?,
    }
    Ok(Exit::Ok)
}

fn row(event: &Event) -> [String; 5] {
    let hidden = if event.visibility == Visibility::Internal { "(internal) " } else { "" };
    [
        event.seq.to_string(),
        figures::instant(event.at),
        event.agent.to_string(),
        event.path.to_string(),
        format!("{hidden}{}", told(&event.kind)),
    ]
}

fn told(kind: &EventKind) -> String {
    match kind {
        EventKind::RunStarted { .. } => "the run began".to_owned(),
        EventKind::RunFinished { outcome, limit, .. } => {
            let limit = limit.as_ref().map(|limit| format!(", early: {limit}")).unwrap_or_default();
            format!("the run ended: {outcome}{limit}")
        }
        EventKind::RunFailed { code, message, .. } => format!("the run failed: {code}: {message}"),
        EventKind::RunWaiting { interrupts, .. } => {
            format!("the run waits for {} decisions", interrupts.len())
        }
        EventKind::RunResumed { .. } => "the run continues".to_owned(),
        EventKind::Approval(approval) => {
            let (request, status) = (&approval.request, approval.outcome.status);
            format!("approval {} for {}: {status}", request.approval_id, request.tool)
        }
        EventKind::SessionStarted { session_id, why, .. } => {
            let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
            format!("session {session_id} began{why}")
        }
        EventKind::SessionFinished { session_id } => format!("session {session_id} ended"),
        EventKind::SessionFailed { session_id, code, message } => {
            format!("session {session_id} failed: {code}: {message}")
        }
        EventKind::TextFinished { speaker, text, .. } => format!("{speaker} said: {text}"),
        EventKind::TurnRestarted { .. } => "the text was cut and begins again".to_owned(),
        EventKind::ToolCalled { tool, arguments, .. } => format!("called {tool} with {arguments}"),
        EventKind::ToolReturned { output, failed: false, .. } => format!("the tool returned: {output}"),
        EventKind::ToolReturned { output, failed: true, .. } => format!("the tool failed: {output}"),
        EventKind::Files { files, .. } => files_line(files),
        EventKind::Handoff(HandoffEvent { phase, from, to, message, .. }) => {
            format!("handoff from {from} to {to}, {phase}: {message}")
        }
        EventKind::SubAgentFinished(SubAgentResult { agent_id, response: Some(text), .. }) => {
            format!("{agent_id} brought: {text}")
        }
        EventKind::SubAgentFinished(SubAgentResult { agent_id, error, .. }) => {
            format!("{agent_id} brought nothing: {}", error.as_deref().unwrap_or_default())
        }
        EventKind::Passed { by, from, to, reason, .. } => format!("{by} from {from} to {to}: {reason}"),
        EventKind::Broadcast { member, round, text } => format!("{member} said in round {round}: {text}"),
        EventKind::Voted { member, round, ready, reason } => {
            let vote = if *ready { "ready to conclude" } else { "not ready to conclude" };
            format!("{member} is {vote} in round {round}: {reason}")
        }
        EventKind::TeamEnded { rounds, by, dissent } => {
            format!("the team ended after {rounds} rounds by {by}{}", against(dissent))
        }
        EventKind::Progress(progress) => progress_line(progress),
        EventKind::Guardrail(refused) => {
            format!(
                "a guardrail for the {} refused a text ({}): {}",
                refused.side, refused.check, refused.reason
            )
        }
        EventKind::Budget(warning) => warning.message.clone(),
        EventKind::Status { text } => text.clone(),
        // Not kept, so not seen here.
        EventKind::TextStarted { speaker, .. } => format!("{speaker} speaks"),
        EventKind::TextDelta { delta, .. } | EventKind::Reasoning { delta, .. } => delta.clone(),
    }
}

fn files_line(files: &[FileRef]) -> String {
    let files: Vec<String> = files.iter().map(FileRef::describe).collect();
    format!("the answer has {}", files.join(", "))
}

fn progress_line(progress: &WorkflowProgress) -> String {
    let answers = progress.answers().map(|answers| format!(", {answers}")).unwrap_or_default();
    format!("step {} of {}: {}{answers}", progress.step, progress.total, progress.label)
}

/// The members who did not agree, with their reasons.
fn against(dissent: &[Dissent]) -> String {
    let members: Vec<String> = dissent.iter().map(|one| format!("{} ({})", one.member, one.reason)).collect();
    if members.is_empty() { String::new() } else { format!("; not agreed: {}", members.join(", ")) }
}
