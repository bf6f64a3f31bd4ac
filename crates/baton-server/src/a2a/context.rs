//! Context ids. A UUID version 4 is the thread id itself; any other text that a client chose has a thread of its own.

use baton_core::{ThreadId, UserId};
use sha2::{Digest as _, Sha256};
use uuid::Builder;

use crate::identity::Principal;

/// The thread of a context. The thread of a text that is no UUID version 4 is derived from it and the user, so that two users with
/// the same text have different threads.
pub fn thread_of(caller: &Principal, context_id: &str) -> ThreadId {
    ThreadId::parse(context_id).unwrap_or_else(|_| derived(&caller.user, context_id))
}

/// Whether the text has to be stored, because the thread id does not show it.
pub fn is_derived(context_id: &str, thread: ThreadId) -> bool {
    context_id != thread.to_string()
}

fn derived(user: &UserId, context_id: &str) -> ThreadId {
    let hash = Sha256::new()
        .chain_update("a2a context\0")
        .chain_update(user.as_str())
        .chain_update("\0")
        .chain_update(context_id)
        .finalize();
    let mut bytes = [0_u8; 16];
    bytes.copy_from_slice(&hash[..16]);
    let id = Builder::from_random_bytes(bytes).into_uuid();
    ThreadId::parse(&id.to_string()).expect("a UUID version 4")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn x27_a_context_keeps_its_thread() {
        let caller = Principal::local();
        let id = ThreadId::random();
        assert_eq!(thread_of(&caller, &id.to_string()), id);
        let other = Principal { user: UserId::parse("ada").unwrap(), ..Principal::local() };
        let thread = thread_of(&caller, "my context");
        assert_eq!(thread, thread_of(&caller, "my context"));
        assert_ne!(thread, thread_of(&other, "my context"));
        assert_ne!(thread, thread_of(&caller, "my context 2"));
        assert!(is_derived("my context", thread) && !is_derived(&id.to_string(), id));
    }
}
