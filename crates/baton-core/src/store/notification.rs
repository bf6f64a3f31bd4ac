//! Notifications of approvals: deliveries to a webhook that are still to be made.
//!
//! A new approval is due at once. A process takes it for a limited time, so that no other one delivers it meanwhile; if the process
//! dies, it is due again after that time. A delivery therefore happens at least once while the approval is open.

use std::time::Duration;

use uuid::Uuid;

use crate::store::{Approval, Pending};

/// A notification that this process delivers.
#[derive(Debug, Clone, PartialEq)]
pub struct TakenNotification {
    pub approval: Approval,
    /// Including this one.
    pub attempt: u32,
}

/// What follows an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextNotification {
    After(Duration),
    /// It was delivered, or is given up.
    Never,
}

pub trait Notifications: Send + Sync {
    /// Takes a notification that is due. `None` if its approval is not open any more, or another process has it.
    fn take_notification(&self, approval: Uuid, lease: Duration) -> Pending<'_, Option<TakenNotification>>;

    fn settle_notification(&self, approval: Uuid, next: NextNotification) -> Pending<'_, ()>;
}
