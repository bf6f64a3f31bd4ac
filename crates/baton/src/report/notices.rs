//! What people are told beside what agents say: who takes over, and how far they have come.

use baton_core::FileRef;
use baton_core::budget::BudgetWarning;
use baton_core::event::{ApprovalEvent, EventKind, HandoffEvent, HandoffPhase};
use baton_core::store::{ApprovalKind, ApprovalStatus};

use super::table::line;

/// Remembers what was told, so that it is told once.
#[derive(Debug, Default)]
pub struct Notices {
    step: Option<String>,
}

impl Notices {
    /// The line for something that happened, if it is worth one.
    pub fn of(&mut self, kind: &EventKind) -> Option<String> {
        match kind {
            EventKind::Handoff(handoff) => self.handoff(handoff),
            EventKind::Budget(warning) => Some(budget(warning)),
            EventKind::Progress(progress) => {
                let at = step(progress.step.into(), progress.total.into(), &progress.label);
                if self.step.as_ref() == Some(&at) {
                    return None;
                }
                let dim = anstyle::Style::new().dimmed();
                let told = format!("{dim}{}{dim:#}", line(&at));
                self.step = Some(at);
                Some(told)
            }
            EventKind::Approval(approval) => decided(approval),
            EventKind::Files { files, .. } => Some(files.iter().map(file).collect::<Vec<_>>().join("\n")),
            _ => None,
        }
    }

    fn handoff(&mut self, handoff: &HandoffEvent) -> Option<String> {
        // Whoever comes next begins with a step of their own.
        if matches!(handoff.phase, HandoffPhase::Completed | HandoffPhase::Cancelled | HandoffPhase::Error) {
            self.step = None;
        }
        let italic = anstyle::Style::new().italic();
        let message = line(&handoff.message);
        // The mode of a specialist is a line of its own: "[Skill Creation Mode]".
        let arrow = if message.starts_with('[') { "" } else { "↪ " };
        (!message.is_empty()).then(|| format!("{italic}{arrow}{message}{italic:#}"))
    }
}

/// The line for a file of an answer, with its address on a server.
fn file(file: &FileRef) -> String {
    let dim = anstyle::Style::new().dimmed();
    let FileRef { name, media_type, size, .. } = file;
    format!(
        "{dim}file:{dim:#} {} ({}, {size} bytes) {dim}{}{dim:#}",
        line(name),
        line(media_type),
        file.uri()
    )
}

/// The line for a budget that is nearly used up.
pub fn budget(warning: &BudgetWarning) -> String {
    let style = anstyle::AnsiColor::Yellow.on_default().bold();
    format!("{style}warning:{style:#} {}", line(&warning.message))
}

/// What became of an approval or a question.
fn decided(ApprovalEvent { request, outcome }: &ApprovalEvent) -> Option<String> {
    // The conversation itself shows what became of it.
    if request.is_workflow_question() {
        return None;
    }
    let what = line(if request.kind == ApprovalKind::Question { "the question" } else { &request.tool });
    let reason = outcome.reason.as_ref().map(|reason| format!(": {}", line(reason))).unwrap_or_default();
    let told = match outcome.status {
        ApprovalStatus::Pending | ApprovalStatus::Answered => return None,
        ApprovalStatus::Approved if outcome.edited.is_some() => format!("✓ {what} was approved with changes"),
        ApprovalStatus::Approved if outcome.remember => {
            format!("✓ {what} was approved for this conversation")
        }
        ApprovalStatus::Approved => format!("✓ {what} was approved"),
        ApprovalStatus::Denied => format!("✗ {what} was denied{reason}"),
        ApprovalStatus::Expired => format!("✗ {what} was not decided in time"),
        ApprovalStatus::Cancelled | ApprovalStatus::Invalidated => format!("✗ {what} was withdrawn"),
    };
    let dim = anstyle::Style::new().dimmed();
    Some(format!("{dim}{told}{dim:#}"))
}

/// How far a workflow has come.
pub fn step(step: u64, total: u64, label: &str) -> String {
    let mut rest = label.chars();
    let label: String = rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect();
    format!("Step {step} of {total} · {label}")
}
