//! What people are told beside what agents say: who takes over, and how far they have come.

use baton_core::event::{EventKind, HandoffEvent, HandoffPhase};

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
            EventKind::Progress { label, step: at, total, .. } => {
                let at = step((*at).into(), (*total).into(), label);
                if self.step.as_ref() == Some(&at) {
                    return None;
                }
                let dim = anstyle::Style::new().dimmed();
                let told = format!("{dim}{}{dim:#}", line(&at));
                self.step = Some(at);
                Some(told)
            }
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
        (!message.is_empty()).then(|| format!("{italic}↪ {message}{italic:#}"))
    }
}

/// How far a workflow has come.
pub fn step(step: u64, total: u64, label: &str) -> String {
    let mut rest = label.chars();
    let label: String = rest.next().into_iter().flat_map(char::to_uppercase).chain(rest).collect();
    format!("Step {step} of {total} · {label}")
}
