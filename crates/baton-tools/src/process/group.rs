//! A command with everything it started.

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::process::Child;

/// Ends all processes of the group when dropped. One that made itself a new session has left the group.
#[derive(Debug)]
pub struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    /// The child was started in a group of its own, which has its id.
    pub fn led_by(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            // An error says that nobody is left.
            let _ = kill_process_group(leader, Signal::KILL);
        }
    }
}
