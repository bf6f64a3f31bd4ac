//! How a conversation reads: who speaks, what they say, and beside it what else the person should know.

use std::io::IsTerminal as _;
use std::sync::Arc;

use baton_core::event::{Event, EventKind, Growing, RunOutcome};
use baton_core::message::{Message, Visibility};
use baton_core::{AgentName, MessageId, RunId};
use baton_server::stream::follow::Item;

use super::badge::badge;
use super::screen::Looks;
use crate::progress::Progress;
use crate::report::notices::Notices;
use crate::report::table::line;
use crate::report::{conversation, printable};
use crate::{commands, report};

/// On a terminal a text appears as it grows. In a pipe it comes when it is whole, so that one that starts again leaves nothing half
/// behind.
pub(super) struct ChatView {
    looks: Arc<Looks>,
    is_live: bool,
    /// Who spoke last, and in which run.
    speaker: Option<(RunId, AgentName)>,
    /// The text that is growing, and how much of it is there.
    growing: Option<(MessageId, usize)>,
    /// Whether what was written last is not at the end of its line.
    is_within_line: bool,
    /// Whether something stands above what is written next.
    is_begun: bool,
    notices: Notices,
    /// The running agents, if there are any.
    progress: Option<Progress>,
}

impl ChatView {
    pub(super) fn new(looks: Arc<Looks>) -> Self {
        let is_live = std::io::stdout().is_terminal();
        Self {
            looks,
            is_live,
            speaker: None,
            growing: None,
            is_within_line: false,
            // Below what the person typed.
            is_begun: is_live,
            notices: Notices::default(),
            progress: None,
        }
    }

    /// An agent is about to run.
    pub(super) fn wait_for(&mut self, agent: &AgentName) {
        self.rest();
        self.progress = Some(Progress::new(agent, self.looks.names.clone(), true));
    }

    /// No agent runs.
    pub(super) fn rest(&mut self) {
        if let Some(mut progress) = self.progress.take() {
            progress.clear();
        }
    }

    pub(super) fn show(&mut self, item: &Item) -> std::io::Result<()> {
        match item {
            Item::Event(published) => self.event(&published.event),
            Item::Growing(text) => self.text_so_far(text),
        }
    }

    fn event(&mut self, event: &Event) -> std::io::Result<()> {
        if self.progress.is_none() && !event.kind.is_end() {
            self.wait_for(&event.agent);
        }
        if let Some(progress) = &mut self.progress {
            progress.show(event);
        }
        if event.visibility == Visibility::User {
            self.happened(event)?;
        }
        if event.kind.is_end() {
            self.rest();
        }
        Ok(())
    }

    fn happened(&mut self, event: &Event) -> std::io::Result<()> {
        match &event.kind {
            EventKind::TextStarted { message_id, .. } if self.is_live => self.begin(event, *message_id),
            EventKind::TextDelta { message_id, delta } => self.grow(*message_id, delta),
            EventKind::TextFinished { message_id, text, .. } => self.finish(event, *message_id, text),
            EventKind::TurnRestarted { message_id } => self.restart(*message_id),
            EventKind::RunFailed { message, .. } => {
                let style = anstyle::AnsiColor::Red.on_default().bold();
                self.tell(&format!("{style}error:{style:#} {}", printable(message)))
            }
            EventKind::RunFinished { outcome: RunOutcome::Cancelled, .. } => self.aside("(cancelled)"),
            EventKind::RunFinished { limit: Some(limit), .. } => {
                self.aside(&format!("(a limit was met: {})", line(limit)))
            }
            kind => match self.notices.of(kind) {
                Some(notice) => self.tell(&notice),
                None => Ok(()),
            },
        }
    }

    /// A text that started before the subscription.
    fn text_so_far(&mut self, text: &Growing) -> std::io::Result<()> {
        if !self.is_live || text.is_thought() || text.first.visibility == Visibility::Internal {
            return Ok(());
        }
        self.rest();
        if self.growing.is_none_or(|(id, _)| id != text.message_id) {
            self.begin(&text.first, text.message_id)?;
        }
        let shown = self.growing.map_or(0, |(_, shown)| shown);
        self.grow(text.message_id, text.text.get(shown..).unwrap_or_default())
    }

    fn begin(&mut self, event: &Event, message_id: MessageId) -> std::io::Result<()> {
        self.growing = Some((message_id, 0));
        self.head(event)
    }

    /// Who speaks now, unless they spoke just before.
    fn head(&mut self, event: &Event) -> std::io::Result<()> {
        let gap = if self.is_begun { "\n" } else { "" };
        let speaker = Some((event.run_id, event.agent.clone()));
        let head = if self.speaker == speaker {
            String::new()
        } else {
            badge(&self.looks.profiles, &event.agent) + "\n"
        };
        self.speaker = speaker;
        self.write(&format!("{gap}{head}"))
    }

    fn grow(&mut self, message_id: MessageId, delta: &str) -> std::io::Result<()> {
        match &mut self.growing {
            Some((id, shown)) if *id == message_id => *shown += delta.len(),
            _ => return Ok(()),
        }
        self.write(&printable(delta))
    }

    /// Whatever was not seen growing comes now.
    fn finish(&mut self, event: &Event, message_id: MessageId, text: &str) -> std::io::Result<()> {
        let seen = self.growing.take_if(|(id, _)| *id == message_id);
        if seen.is_none() && text.trim().is_empty() {
            return Ok(());
        }
        if seen.is_none() {
            self.head(event)?;
        }
        let shown = seen.map_or(0, |(_, shown)| shown);
        self.write(&printable(text.get(shown..).unwrap_or_default()))?;
        self.end_line()
    }

    fn restart(&mut self, message_id: MessageId) -> std::io::Result<()> {
        if self.growing.take_if(|(id, _)| *id == message_id).is_none() {
            return Ok(());
        }
        self.aside("(the answer was cut; it starts again)")
    }

    /// What was said before, as it would have looked.
    pub(super) fn past(&mut self, messages: &[Message]) -> std::io::Result<()> {
        for message in messages {
            let gap = if self.is_begun { "\n" } else { "" };
            let text = printable(&conversation::text_of(&message.parts));
            let head = match &message.agent {
                Some(agent) => badge(&self.looks.profiles, agent) + "\n",
                None => "> ".to_owned(),
            };
            self.write(&format!("{gap}{head}{}\n", text.trim_end()))?;
        }
        Ok(())
    }

    /// A result of a command.
    pub(super) fn result(&mut self, text: &str) -> std::io::Result<()> {
        self.end_line()?;
        self.write(&format!("{}{text}", if self.is_begun { "\n" } else { "" }))
    }

    /// Something beside the conversation.
    pub(super) fn tell(&mut self, text: &str) -> std::io::Result<()> {
        self.end_line()?;
        report::tell(text);
        Ok(())
    }

    pub(super) fn aside(&mut self, text: &str) -> std::io::Result<()> {
        let dim = anstyle::Style::new().dimmed();
        self.tell(&format!("{dim}{text}{dim:#}"))
    }

    fn end_line(&mut self) -> std::io::Result<()> {
        if self.is_within_line { self.write("\n") } else { Ok(()) }
    }

    fn write(&mut self, text: &str) -> std::io::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        self.is_begun = true;
        self.is_within_line = !text.ends_with('\n');
        commands::write(text)
    }
}
