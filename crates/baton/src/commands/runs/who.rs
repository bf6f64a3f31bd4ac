//! Whose part of a run begins at a place, in words.

use baton_core::store::RunStatus;
use baton_engine::session_info::SessionInfo;

/// `agent legal failed (late): Is it allowed?`
pub(super) fn told(who: &SessionInfo) -> String {
    let how = match (&who.failure, who.status) {
        (Some(failed), _) => format!(" failed ({})", failed.code),
        (None, RunStatus::Completed) => String::new(),
        (None, status) => format!(" ({status})"),
    };
    let why = who.why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("agent {}{how}{why}", who.agent)
}
