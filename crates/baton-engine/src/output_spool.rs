//! Tool output that is too long for a model. The model gets the beginning and a handle, and reads the rest with `read_output`.
//!
//! The append that records the tool's result also stores the output, and the run waits for it. So a handle that a model has seen
//! can always be read, also by the process that takes over the run after a crash.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_core::SessionId;
use baton_core::store::{OutputHandle, SpooledOutput, Step};

use crate::run_state::RunState;
use crate::scope::Scope;

/// Bytes stored of one output.
const MAX_OUTPUT_BYTES: usize = 8 * 1024 * 1024;
/// Bytes stored for one run.
const MAX_RUN_BYTES: u64 = 128 * 1024 * 1024;

/// The key under which a tool call's step records the number of spooled bytes.
pub(crate) const SPOOLED_BYTES: &str = "spooled_bytes";

/// Spools the long outputs of one run, within its limit.
#[derive(Debug)]
pub(crate) struct OutputSpool {
    shown_bytes: usize,
    spooled_bytes: AtomicU64,
}

/// Whether the tenant may have more spooled output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum TenantQuota {
    Available,
    /// The limit in bytes.
    Exceeded(u64),
}

impl TenantQuota {
    /// Asks the store, only if this text has to be spooled. Runs that end a call at the same moment may exceed the limit by what
    /// they spool then.
    async fn of(run: &RunState, text: &str) -> Self {
        let limit = run.policy.max_spooled_bytes;
        if limit == u64::MAX || !run.recorder.spool.is_long(text) {
            return Self::Available;
        }
        // If the store cannot answer, the append that follows decides.
        let used = run.store.spooled_bytes().await.unwrap_or_default();
        let wanted = used.saturating_add(text.len().min(MAX_OUTPUT_BYTES) as u64);
        if wanted > limit { Self::Exceeded(limit) } else { Self::Available }
    }
}

/// An output as a model gets it, and the whole output if it was shortened.
#[derive(Debug)]
pub(crate) struct Fitted {
    pub(crate) text: String,
    pub(crate) spooled: Option<SpooledOutput>,
}

/// The output of a call as its model gets it, within the limits of the run and the tenant.
pub(crate) async fn fit(scope: &Scope, text: String) -> Fitted {
    let quota = TenantQuota::of(&scope.run, &text).await;
    scope.run.recorder.spool.fit(&scope.session.id, text, quota)
}

impl OutputSpool {
    /// Models are shown up to `shown_bytes` of each output. What `steps` of earlier attempts spooled counts towards the limit of
    /// the run.
    pub(crate) fn new(shown_bytes: usize, steps: &[Step]) -> Self {
        let spooled_bytes = steps.iter().filter_map(|step| step.data.field::<u64>(SPOOLED_BYTES)).sum();
        Self { shown_bytes, spooled_bytes: AtomicU64::new(spooled_bytes) }
    }

    /// Whether there is output to read.
    pub(crate) fn has_output(&self) -> bool {
        self.spooled_bytes.load(Ordering::Relaxed) > 0
    }

    /// Whether a text is too long to be shown whole.
    fn is_long(&self, text: &str) -> bool {
        text.len() > self.shown_bytes
    }

    /// The text as a model gets it: whole if it is short enough, otherwise its beginning and how to read the rest. The rest is
    /// dropped if the limit of the run or of the tenant is reached.
    fn fit(&self, session: &SessionId, text: String, quota: TenantQuota) -> Fitted {
        if !self.is_long(&text) {
            return Fitted { text, spooled: None };
        }
        let kept = &text[..text.floor_char_boundary(MAX_OUTPUT_BYTES)];
        let may_spool = quota == TenantQuota::Available && self.reserve(kept.len() as u64);
        let spooled = may_spool.then(|| SpooledOutput::new(OutputHandle::random(session), kept));
        let shown = &text[..last_line_end(&text, self.shown_bytes)];
        let (at, total) = (shown.len(), text.len());
        let hint = match (&spooled, quota) {
            (Some(SpooledOutput { handle, .. }), _) => {
                let dropped = match total - kept.len() {
                    0 => String::new(),
                    dropped => format!(" The last {dropped} bytes were dropped."),
                };
                format!("Read on with read_output {{\"handle\": \"{handle}\", \"offset\": {at}}}.{dropped}")
            }
            (None, TenantQuota::Exceeded(limit)) => format!(
                "The rest was not kept: the tenant's limit of {limit} bytes for long tool output is reached. Ask for less at a time."
            ),
            (None, TenantQuota::Available) => "The rest was not kept; ask for less at a time.".to_owned(),
        };
        let shown = shown.trim_end_matches('\n');
        Fitted { text: format!("{shown}\n\n[The first {at} of {total} bytes. {hint}]"), spooled }
    }

    /// Whether the run may spool this much more. Reserves it at once, so that parallel outputs cannot exceed the limit together.
    fn reserve(&self, bytes: u64) -> bool {
        let within = |used: u64| used.checked_add(bytes).filter(|used| *used <= MAX_RUN_BYTES);
        self.spooled_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, within).is_ok()
    }
}

/// Where a line ends in the last quarter before `limit`, or `limit` if none does.
fn last_line_end(text: &str, limit: usize) -> usize {
    let end = text.floor_char_boundary(limit);
    let quarter = text.floor_char_boundary(limit - limit / 4);
    text[quarter..end].rfind('\n').map_or(end, |at| quarter + at + 1)
}

#[cfg(test)]
mod tests {
    use baton_core::RunId;
    use baton_core::store::{StepKind, StepState};
    use jiff::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    const SHOWN: usize = 1_000;

    fn session() -> SessionId {
        SessionId::root(RunId::from_uuid(Uuid::nil()))
    }

    fn spool() -> OutputSpool {
        OutputSpool::new(SHOWN, &[])
    }

    fn step(spooled_bytes: u64) -> Step {
        Step {
            path: "a/turn:1/tool:1".to_owned(),
            session_id: session(),
            kind: StepKind::Tool,
            state: StepState::Finished,
            data: json!({ SPOOLED_BYTES: spooled_bytes }).into(),
            at: Timestamp::UNIX_EPOCH,
        }
    }

    #[test]
    fn short_output_is_shown_whole() {
        let Fitted { text, spooled } = spool().fit(&session(), "x".repeat(SHOWN), TenantQuota::Available);
        assert_eq!((text.len(), spooled), (SHOWN, None));
    }

    #[test]
    fn of_long_output_whole_lines_are_shown() {
        let whole: String = (0..1_000).map(|n| format!("line {n} ä€🎷\n")).collect();
        let Fitted { text, spooled } = spool().fit(&session(), whole.clone(), TenantQuota::Available);
        let spooled = spooled.unwrap();
        assert!(spooled.chunks().concat() == whole.as_bytes(), "the whole output is spooled");
        let (shown, hint) = text.split_once("\n\n[").unwrap();
        let at = shown.len() + 1;
        assert!(at <= SHOWN && whole.starts_with(&format!("{shown}\n")), "{text}");
        let (total, handle) = (whole.len(), spooled.handle);
        let expected =
            format!("The first {at} of {total} bytes. Read on with read_output {{\"handle\": \"{handle}\", ");
        assert_eq!(hint, format!("{expected}\"offset\": {at}}}.]"));
    }

    #[test]
    fn a_run_spools_so_much_and_no_more() {
        let (spool, huge) = (spool(), "x".repeat(100_000_000));
        let Fitted { text, spooled } = spool.fit(&session(), huge, TenantQuota::Available);
        assert!(text.contains("The last 91611392 bytes were dropped."), "{}", &text[SHOWN..]);
        assert_eq!(spooled.unwrap().size(), MAX_OUTPUT_BYTES as u64);
        let fits = |_: &usize| {
            spool.fit(&session(), "x".repeat(MAX_OUTPUT_BYTES), TenantQuota::Available).spooled.is_some()
        };
        assert_eq!((0..20).filter(fits).count(), 15);
        let refused = spool.fit(&session(), "x".repeat(5_000), TenantQuota::Available).text;
        let told = "[The first 1000 of 5000 bytes. The rest was not kept; ask for less at a time.]";
        assert!(refused.ends_with(told), "{refused}");
    }

    #[test]
    fn what_was_spooled_before_a_crash_counts() {
        let spool = OutputSpool::new(SHOWN, &[step(MAX_RUN_BYTES - 10_000), step(6_000)]);
        assert!(spool.fit(&session(), "x".repeat(5_000), TenantQuota::Available).spooled.is_none());
        assert!(spool.fit(&session(), "x".repeat(4_000), TenantQuota::Available).spooled.is_some());
    }
}
