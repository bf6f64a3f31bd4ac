//! Fixed texts for the user when a thread changes hands, and the events that announce them, each at most once per run.

use baton_core::agent::Agent;
use baton_core::event::{EventKind, HandoffEvent, HandoffPhase};
use baton_core::message::Visibility;
use baton_core::store::{AuditEntry, HandoffEnd, HandoffSession, Step, StepData, StepKind, StepState};
use baton_core::workflow::WorkflowProgress;
use serde_json::{Value, json};

use super::announcement::Announcement;
use crate::agents::Agents;
use crate::audit;
use crate::failure::Failure;
use crate::journal::Record;
use crate::redaction::head;
use crate::scope::Scope;
use crate::workflow::question;

/// Maximum length of quoted user text, in characters.
const MAX_QUOTED_CHARS: usize = 60;

pub(crate) fn connecting_message(target: &Agent) -> String {
    connecting_to(&target.display_name)
}

/// Like [`connecting_message`], for a stored handoff. Uses the agent's id if the agent no longer exists.
pub fn connected_message(agents: &Agents, handoff: &HandoffSession) -> String {
    connecting_to(&agent_label(agents.get(&handoff.target_agent_id), handoff))
}

/// The source agent's sentence before a handoff, if it wrote none (K7).
pub(crate) fn introduction_message(target: &Agent) -> String {
    let our = if target.role_word().is_some() { "our " } else { "" };
    format!("I'll connect you with {our}{}.", target.display_name)
}

/// The [mode](Agent::mode) of the target of a stored handoff. Empty if the agent no longer exists.
pub fn held_mode_message(agents: &Agents, handoff: &HandoffSession) -> String {
    agents.get(&handoff.target_agent_id).map(|target| target.mode()).unwrap_or_default()
}

fn connecting_to(label: &str) -> String {
    format!("Connecting you with {label}...")
}

/// Rejection while another agent holds the thread (C-13).
pub(crate) fn occupied_message(holder: &Agent) -> String {
    let what = occupation(holder);
    let article = if what.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("You're currently in {article} {what} session. Would you like to finish that first?")
}

/// Like [`occupied_message`], after a reply that was unclear.
pub(crate) fn occupied_again_message(holder: &Agent) -> String {
    format!(
        "{} Say “yes” to finish it, “no” to pause it and switch now, or “later” to come to your other request afterwards.",
        occupied_message(holder)
    )
}

/// The user decided to finish first.
pub(crate) const FINISH_FIRST: &str = "All right, let's finish this first.";

/// The second request waits until the handoff has ended. `None`: it is for the agent that gets the thread back.
pub(crate) fn queued_message(target: Option<&Agent>) -> String {
    match target {
        Some(target) => {
            format!("All right, I'll connect you with {} as soon as we're done here.", target.display_name)
        }
        None => "All right, you'll be back with the main assistant as soon as we're done here.".to_owned(),
    }
}

/// Announces that a handoff is paused because the user asked for something else.
pub(crate) fn paused_message(agents: &Agents, handoff: &HandoffSession) -> String {
    let target = agents.get(&handoff.target_agent_id);
    if has_saved_state(target, handoff) {
        format!("No problem! Your progress with {} is saved.", agent_label(target, handoff))
    } else {
        "No problem!".to_owned()
    }
}

/// Rejection because the target cannot run (C-14).
pub(crate) fn unavailable_message(target: &Agent) -> String {
    let name = target.display_name.to_lowercase();
    format!(
        "The {name} is currently unavailable. Would you like me to help you with something else, or try again later?"
    )
}

/// Announces the return of the thread. Sent before the source agent answers.
pub fn returning_message(agents: &Agents, handoff: &HandoffSession) -> String {
    let to = receiver_label(agents, handoff);
    let target = agents.get(&handoff.target_agent_id);
    match handoff.notes.end {
        Some(HandoffEnd::Completed) => match target.and_then(|target| AgentActivity::of(target)) {
            Some(AgentActivity { object: Some(object), .. }) => {
                format!("Your {object} is ready! Returning you to {to}.")
            }
            _ => format!("That's done! Returning you to {to}."),
        },
        Some(HandoffEnd::Left) => format!("No problem! Returning you to {to}."),
        Some(HandoffEnd::Expired) => {
            let saved = if has_saved_state(target, handoff) { " Your progress is saved." } else { "" };
            format!("Your session with {} has ended.{saved}", agent_label(target, handoff))
        }
        Some(HandoffEnd::Failed) => {
            target.map_or_else(|| "This did not work out.".to_owned(), |one| unavailable_message(one))
        }
        Some(HandoffEnd::Declined | HandoffEnd::Ended) | None => format!("Returning you to {to}."),
    }
}

/// Answer of the source agent when no model writes it.
pub(crate) fn acknowledged_message(agents: &Agents, handoff: &HandoffSession) -> String {
    let target = agents.get(&handoff.target_agent_id);
    let activity = target.and_then(|target| AgentActivity::of(target));
    match handoff.notes.end {
        Some(HandoffEnd::Completed) => completed_message(activity.as_ref(), handoff),
        Some(HandoffEnd::Declined) => {
            let why = handoff.result_summary.as_deref().map(|why| format!(" {}", sentence(why)));
            format!("{} could not help with this.{}", agent_label(target, handoff), why.unwrap_or_default())
        }
        Some(HandoffEnd::Failed) => {
            target.map_or_else(|| "What can I do for you?".to_owned(), |one| unavailable_message(one))
        }
        Some(HandoffEnd::Expired) => welcome_back_message(agents, handoff),
        Some(HandoffEnd::Left | HandoffEnd::Ended) | None if has_saved_state(target, handoff) => {
            later_message(agents, handoff)
        }
        Some(HandoffEnd::Left | HandoffEnd::Ended) | None => "What can I do for you?".to_owned(),
    }
}

/// Answer to a user who does not continue unfinished work now.
pub(crate) fn later_message(agents: &Agents, handoff: &HandoffSession) -> String {
    let target = agents.get(&handoff.target_agent_id);
    let activity = target.and_then(|target| AgentActivity::of(target));
    let what =
        activity.map_or_else(|| format!("with {}", agent_label(target, handoff)), |one| one.pointing());
    format!("Let me know if you'd like to continue {what} later.")
}

fn completed_message(activity: Option<&AgentActivity>, handoff: &HandoffSession) -> String {
    let object = activity.and_then(|activity| activity.object.as_deref());
    match (subject(handoff), object) {
        (Some(subject), Some(object)) => format!("Great, your '{subject}' {object} is now active."),
        _ => match handoff.result_summary.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
            Some(summary) => format!("Great! {}", sentence(summary)),
            None => "Great, that's done.".to_owned(),
        },
    }
}

/// Question to a user who comes back to an unfinished handoff (C-15).
pub fn welcome_back_message(agents: &Agents, handoff: &HandoffSession) -> String {
    format!("Welcome back! {}", resume_question(agents, handoff))
}

/// Asks whether to resume an unfinished handoff.
pub(crate) fn resume_question(agents: &Agents, handoff: &HandoffSession) -> String {
    let target = agents.get(&handoff.target_agent_id);
    let what = target
        .and_then(|target| AgentActivity::of(target))
        .map(|activity| activity.owned(work_label(handoff)));
    let what = what.unwrap_or_else(|| format!("with {}", agent_label(target, handoff)));
    format!("Would you like to continue {what}?")
}

/// Announces that the holder resumes.
pub(crate) fn resumed_message(target: &Agent) -> String {
    format!("Welcome back! You are with {} again, where you left off.", target.display_name)
}

/// Whether a later resume finds workflow state.
fn has_saved_state(target: Option<&std::sync::Arc<Agent>>, handoff: &HandoffSession) -> bool {
    let resumes = target.and_then(|target| target.accepts_handoff.as_ref()).is_some_and(|terms| terms.resume);
    resumes && handoff.workflow.is_some() && handoff.notes.preserve_state
}

fn agent_label(target: Option<&std::sync::Arc<Agent>>, handoff: &HandoffSession) -> String {
    target.map_or_else(|| handoff.target_agent_id.to_string(), |target| target.display_name.clone())
}

/// Display name of the agent that gets the thread back.
fn receiver_label(agents: &Agents, handoff: &HandoffSession) -> String {
    let source = agents.get(&handoff.source_agent_id).map(|source| source.display_name.clone());
    let source = source.unwrap_or_else(|| handoff.source_agent_id.to_string());
    if source.to_lowercase() == "assistant" { "the main assistant".to_owned() } else { source }
}

/// Name of the object that the workflow works on: its value `name`, `title` or `subject`.
fn subject(handoff: &HandoffSession) -> Option<String> {
    let values = handoff.workflow.as_ref()?.data.get("values")?;
    let named = ["name", "title", "subject"].iter().find_map(|key| values.get(key).and_then(Value::as_str));
    let text = named?.split_whitespace().collect::<Vec<_>>().join(" ");
    (!text.is_empty()).then(|| head(&text, MAX_QUOTED_CHARS))
}

/// The work by its name in quotation marks or, without one, by its purpose: "sends Slack alerts" becomes "Slack alert" (K9).
fn work_label(handoff: &HandoffSession) -> Option<String> {
    if let Some(name) = subject(handoff) {
        return Some(format!("'{name}'"));
    }
    let values = handoff.workflow.as_ref()?.data.get("values")?;
    let purpose =
        ["purpose", "goal", "topic"].iter().find_map(|key| values.get(key).and_then(Value::as_str))?;
    purpose_label(purpose)
}

/// The object of a purpose such as "sends Slack alerts to the team", in the singular. `None` if it is not that simple.
fn purpose_label(purpose: &str) -> Option<String> {
    const LEADS: &[&str] =
        &["it", "should", "a", "an", "the", "skill", "that", "which", "to", "i", "want", "my", "our", "and"];
    const ENDS: &[&str] = &[
        "to", "for", "from", "in", "on", "with", "when", "and", "of", "into", "as", "at", "by", "about",
        "if", "after", "before", "or", "every", "each", "per",
    ];
    let clause = purpose.split(['.', ',', ';', '\n', '(', ':']).next()?;
    let mut words =
        clause.split_whitespace().skip_while(|word| LEADS.contains(&word.to_lowercase().as_str()));
    let _verb = words.next()?;
    let is_article =
        |word: &&str| ["a", "an", "the", "my", "our", "your"].contains(&word.to_lowercase().as_str());
    let object: Vec<&str> = words
        .skip_while(|word| is_article(word))
        .take_while(|word| !ENDS.contains(&word.to_lowercase().as_str()))
        .collect();
    let (last, rest) = object.split_last().filter(|_| object.len() <= 3)?;
    let label = rest.iter().copied().chain([singular(last).as_str()]).collect::<Vec<_>>().join(" ");
    (label.len() <= MAX_QUOTED_CHARS).then_some(label)
}

fn singular(word: &str) -> String {
    match word.strip_suffix("ies") {
        Some(stem) if stem.len() > 1 => format!("{stem}y"),
        _ => word
            .strip_suffix('s')
            .filter(|stem| stem.len() > 2 && !stem.ends_with('s'))
            .unwrap_or(word)
            .to_owned(),
    }
}

/// Activity by display name: "Skill Creation Assistant" becomes "skill creation".
fn occupation(agent: &Agent) -> String {
    let name = agent.display_name.to_lowercase();
    let words: Vec<&str> = name.split_whitespace().collect();
    match words.split_last() {
        Some((_, rest)) if agent.role_word().is_some() => rest.join(" "),
        _ => name,
    }
}

/// Trims the text and adds a full stop unless it ends with `.`, `!` or `?`.
fn sentence(text: &str) -> String {
    let text = text.trim();
    if text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// Activity of an agent, derived from its first trigger: "create a skill" becomes "creating" and "skill".
#[derive(Debug, PartialEq, Eq)]
struct AgentActivity {
    doing: String,
    object: Option<String>,
}

impl AgentActivity {
    fn of(agent: &Agent) -> Option<Self> {
        let trigger = agent.accepts_handoff.as_ref()?.triggers.first()?.to_lowercase();
        let mut words = trigger.split_whitespace();
        let doing = gerund(words.next()?)?;
        let articles = ["a", "an", "the", "my", "your", "new", "this", "that", "it"];
        let object: Vec<&str> = words.filter(|word| !articles.contains(word)).collect();
        Some(Self { doing, object: (!object.is_empty()).then(|| object.join(" ")) })
    }

    /// Example: "creating that skill".
    fn pointing(&self) -> String {
        match &self.object {
            Some(object) => format!("{} that {object}", self.doing),
            None => format!("{} this", self.doing),
        }
    }

    /// Example: "creating your 'Slack Alert' skill", with a label as [`work_label`] returns it.
    fn owned(&self, label: Option<String>) -> String {
        match (&self.object, label) {
            (Some(object), Some(label)) => format!("{} your {label} {object}", self.doing),
            (Some(object), None) => format!("{} your {object}", self.doing),
            (None, _) => self.pointing(),
        }
    }
}

/// Returns the English gerund. `None` if `verb` is shorter than 3 bytes or is not lower-case ASCII, because a trigger can start
/// with any word.
fn gerund(verb: &str) -> Option<String> {
    if verb.len() < 3 || !verb.bytes().all(|byte| byte.is_ascii_lowercase()) {
        return None;
    }
    let is_vowel = |byte: u8| b"aeiou".contains(&byte);
    let bytes = verb.as_bytes();
    let [.., before, middle, last] = bytes else { return None };
    if let Some(stem) = verb.strip_suffix('e').filter(|stem| !stem.ends_with('e')) {
        return Some(format!("{stem}ing"));
    }
    let doubles = !is_vowel(*last) && is_vowel(*middle) && !is_vowel(*before) && !b"wxy".contains(last);
    let is_short = bytes.iter().filter(|byte| is_vowel(**byte)).count() == 1 || verb == "debug";
    if doubles && is_short {
        Some(format!("{verb}{}ing", char::from(*last)))
    } else {
        Some(format!("{verb}ing"))
    }
}

/// Commits the events and audit entries under `segment`, without waiting. Does nothing if they were committed before a crash.
async fn announce_once(
    scope: &Scope,
    segment: &str,
    kinds: Vec<EventKind>,
    audit: Vec<AuditEntry>,
) -> Result<(), Failure> {
    if let Some(notice) = notice(scope, segment, kinds, audit)? {
        scope.run.recorder.journal.commit_soon(notice).await;
    }
    Ok(())
}

/// Builds the record for [`announce_once`]. `None` if it was committed before a crash.
fn notice(
    scope: &Scope,
    segment: &str,
    kinds: Vec<EventKind>,
    audit: Vec<AuditEntry>,
) -> Result<Option<Record>, Failure> {
    let place = scope.at(segment);
    if place.step().is_finished() {
        return Ok(None);
    }
    let progress = kinds.iter().rev().find_map(|kind| match kind {
        EventKind::Progress(progress) => Some(progress),
        _ => None,
    });
    let steps = vec![place.step().build(StepKind::Note, StepState::Finished, &progress)?];
    let events = kinds.into_iter().map(|kind| place.event(visibility(scope, &kind), kind)).collect();
    Ok(Some(Record { steps, events, audit, ..Record::default() }))
}

/// Users do not hear of a handoff to a hidden agent.
fn visibility(scope: &Scope, kind: &EventKind) -> Visibility {
    let EventKind::Handoff(handoff) = kind else { return Visibility::User };
    let is_hidden = scope.run.agents.get(&handoff.to).is_some_and(|target| target.is_hidden());
    if is_hidden { Visibility::Internal } else { Visibility::User }
}

/// The progress of the holder's workflow.
fn progress_of(scope: &Scope, handoff: &HandoffSession) -> Option<WorkflowProgress> {
    let target = scope.run.agents.get(&handoff.target_agent_id)?;
    WorkflowProgress::of(target, handoff.workflow.as_ref()?)
}

/// The event of [`progress_of`]. The run counts it as announced.
fn progress_event(scope: &Scope, handoff: &HandoffSession) -> Option<EventKind> {
    let progress = progress_of(scope, handoff)?;
    scope.run.progress.announce(Some(&progress));
    Some(EventKind::Progress(progress))
}

/// Announces the progress of the holder's workflow, unless it is what this run has announced last: every reply of a holder has it.
pub(crate) async fn announce_progress(scope: &Scope, handoff: &HandoffSession) -> Result<(), Failure> {
    let Some(progress) = progress_of(scope, handoff) else { return Ok(()) };
    if scope.run.progress.has_announced(&progress) {
        return Ok(());
    }
    // Before a crash: the activation and the walk record what they announce.
    let data = StepData::new(&progress).unwrap_or_default();
    let is_recorded =
        |step: &Step| (step.path.ends_with("/active") || step.path.contains("/state:")) && step.data == data;
    if scope.run.recorder.steps.values().any(is_recorded) {
        return Ok(());
    }
    scope.run.progress.announce(Some(&progress));
    announce_once(scope, "progress", vec![EventKind::Progress(progress)], Vec::new()).await
}

fn audit_entries(scope: &Scope, handoff: &HandoffSession, action: &str, decision: &str) -> Vec<AuditEntry> {
    let detail = json!({
        "handoff_id": handoff.handoff_id, "from": handoff.source_agent_id, "to": handoff.target_agent_id,
        "reason": handoff.handoff_reason, "state": handoff.state,
    });
    vec![audit::of_handoff(&scope.run, &handoff.source_agent_id, action, decision, detail)]
}

fn phase_event(handoff: &HandoffSession, phase: HandoffPhase, message: String) -> EventKind {
    EventKind::Handoff(HandoffEvent {
        handoff_id: handoff.handoff_id,
        phase,
        from: handoff.source_agent_id.clone(),
        to: handoff.target_agent_id.clone(),
        reason: handoff.handoff_reason.clone(),
        message,
        estimated_duration_seconds: handoff.notes.estimated_seconds.filter(|_| phase == HandoffPhase::Active),
    })
}

/// Announces that the target is being connected.
pub(crate) async fn announce_connecting(scope: &Scope, handoff: &HandoffSession) -> Result<(), Failure> {
    let Some(target) = scope.run.agents.get(&handoff.target_agent_id) else { return Ok(()) };
    let sentence = connecting_message(target);
    announce_once(
        scope,
        "connecting",
        vec![phase_event(handoff, HandoffPhase::Connecting, sentence)],
        Vec::new(),
    )
    .await
}

/// Announces that the target holds the thread, with the progress of its workflow.
pub(crate) async fn announce_active(
    scope: &Scope,
    handoff: &HandoffSession,
    sentence: String,
) -> Result<(), Failure> {
    let mut kinds = vec![phase_event(handoff, HandoffPhase::Active, sentence)];
    kinds.extend(progress_event(scope, handoff));
    announce_once(scope, "active", kinds, audit_entries(scope, handoff, "handoff.start", audit::ALLOWED))
        .await
}

/// Announces a handoff that is opened in this run, as one record: the source agent's sentence, [`announce_connecting`], then
/// [`announce_active`] with the target's mode (K7).
pub(crate) fn opened_record(
    scope: &Scope,
    handoff: &HandoffSession,
    target: &Agent,
    announcement: &Announcement,
) -> Result<Record, Failure> {
    let mode = match announcement {
        Announcement::Resumed => resumed_message(target),
        _ => target.mode(),
    };
    let mut active = vec![phase_event(handoff, HandoffPhase::Active, mode)];
    active.extend(progress_event(scope, handoff));
    let connecting = vec![phase_event(handoff, HandoffPhase::Connecting, connecting_message(target))];
    let connecting = notice(scope, "connecting", connecting, Vec::new())?;
    let audit = audit_entries(scope, handoff, "handoff.start", audit::ALLOWED);
    let active = notice(scope, "active", active, audit)?;
    let sentence = announcement.record(scope, handoff, target);
    Ok(connecting.into_iter().chain(active).fold(sentence, Record::and))
}

/// Announces that the holder returns the thread.
pub(crate) async fn announce_returning(scope: &Scope, handoff: &HandoffSession) -> Result<(), Failure> {
    let sentence = returning_message(&scope.run.agents, handoff);
    announce_once(
        scope,
        "returning",
        vec![phase_event(handoff, HandoffPhase::Returning, sentence)],
        Vec::new(),
    )
    .await
}

/// Announces the end of the handoff. `sentence` is empty if [`announce_returning`] has already notified the user.
pub(crate) async fn announce_ended(
    scope: &Scope,
    handoff: &HandoffSession,
    sentence: String,
) -> Result<(), Failure> {
    let (phase, decision) = match handoff.notes.end {
        Some(HandoffEnd::Completed) => (HandoffPhase::Completed, "completed"),
        Some(HandoffEnd::Failed) => (HandoffPhase::Error, "failed"),
        _ => (HandoffPhase::Cancelled, "cancelled"),
    };
    let mut kinds = vec![phase_event(handoff, phase, sentence)];
    kinds.extend(question::closed(scope, handoff).await?);
    announce_once(scope, "ended", kinds, audit_entries(scope, handoff, "handoff.end", decision)).await
}

#[cfg(test)]
mod tests {
    use super::gerund;

    #[test]
    fn k_9_work_is_named_by_its_purpose() {
        let label = |purpose: &str| super::purpose_label(purpose);
        assert_eq!(label("sends Slack alerts").as_deref(), Some("Slack alert"));
        assert_eq!(label("It should summarize my project pages in bullets").as_deref(), Some("project page"));
        assert_eq!(label("a skill that summarizes Notion pages").as_deref(), Some("Notion page"));
        assert_eq!(label("alerts"), None);
        assert_eq!(label("handles many very different kinds"), None);
    }

    #[test]
    fn activity_is_derived_from_a_verb() {
        let doing = |verb: &str| gerund(verb).unwrap();
        let verbs = ["create", "build", "debug", "plan", "fix", "set", "see", "open", "test"].map(doing);
        let done = [
            "creating",
            "building",
            "debugging",
            "planning",
            "fixing",
            "setting",
            "seeing",
            "opening",
            "testing",
        ];
        assert_eq!(verbs, done);
        assert_eq!(gerund("to"), None);
        assert_eq!(gerund("Ärger"), None);
    }
}
