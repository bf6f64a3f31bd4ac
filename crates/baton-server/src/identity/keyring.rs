//! Keys that were looked up, for a few seconds: not every request asks the store, and a key that was revoked is refused soon.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::Store;
use jiff::Timestamp;

use super::attempts::AttemptLimits;
use super::generations::Generations;
use super::key::Digest;
use super::refusal::AuthRefusal;
use super::roles::Roles;
use super::{Principal, UsedKey, Valid};
use crate::client_address::AddressKey;

/// After this long one request looks the key up again, while others still use what is known;
const FRESH: Duration = Duration::from_secs(3);
/// and after this long all do. A key that was revoked is refused by then.
const LONGEST: Duration = Duration::from_secs(5);
/// A key that does not exist never will, because keys are made at random.
const UNKNOWN: Duration = Duration::from_mins(1);
const UNKNOWN_KEY: AuthRefusal = AuthRefusal::Invalid("an unknown or revoked key");

#[derive(Debug)]
pub(super) struct Keyring {
    store: Arc<dyn Store>,
    roles: Arc<Roles>,
    attempts: Arc<AttemptLimits>,
    memory: Mutex<Memory>,
}

impl Keyring {
    pub(super) fn new(store: Arc<dyn Store>, roles: Arc<Roles>, attempts: Arc<AttemptLimits>) -> Self {
        Self { store, roles, attempts, memory: Mutex::new(Memory::new()) }
    }

    /// Whose key it is. A key that was not good before counts as a failed authentication of `from` until it is found, and is not
    /// looked up if there were too many; keys of open streams have no `from`.
    pub(super) async fn owner(
        &self,
        digest: Digest,
        from: Option<AddressKey>,
    ) -> Result<Arc<Principal>, AuthRefusal> {
        let owner = self.find(digest, from).await?;
        let end = owner.key.and_then(|key| key.expires_at);
        if end.is_some_and(|end| end <= Timestamp::now()) {
            return Err(AuthRefusal::Invalid("an expired key"));
        }
        Ok(owner)
    }

    async fn find(&self, digest: Digest, from: Option<AddressKey>) -> Result<Arc<Principal>, AuthRefusal> {
        // Before the store is asked: what it says is at least as new as this.
        let now = Instant::now();
        let recalled = self.memory().recall(digest, now);
        let counted = match &recalled {
            Recalled::Known(principal) => return Ok(Arc::clone(principal)),
            Recalled::AskAgain => None,
            Recalled::Ask | Recalled::Unknown => from,
        };
        if counted.is_some_and(|from| !self.attempts.take(from, now)) {
            return Err(AuthRefusal::Busy);
        }
        if recalled == Recalled::Unknown {
            return Err(UNKNOWN_KEY);
        }
        let found = self.look_up(digest, now).await;
        if let (Some(from), Ok(_) | Err(AuthRefusal::Store(_))) = (counted, &found) {
            self.attempts.give_back(from);
        }
        found
    }

    async fn look_up(&self, digest: Digest, now: Instant) -> Result<Arc<Principal>, AuthRefusal> {
        let found = self.store.key(&digest.hex()).await?;
        let principal = found.map(|(tenant, key)| {
            let rights = self.roles.limited(&key.roles, key.scopes.as_deref());
            let (valid, is_operator) = (Valid::UnlessRevoked(digest), self.roles.is_operator(&tenant));
            let key_use = Some(UsedKey { key_id: key.key_id, expires_at: key.expires_at });
            let (user, roles) = (key.user_id, key.roles);
            Arc::new(Principal { tenant, user, roles, rights, valid, is_operator, key: key_use })
        });
        self.memory().keep(digest, principal.clone(), now);
        principal.ok_or(UNKNOWN_KEY)
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        // Whatever a panic left behind is at worst forgotten in a few seconds.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Memory {
    known: Generations<Digest, KnownKey>,
    unknown: Generations<Digest, Instant>,
}

#[derive(Debug)]
struct KnownKey {
    principal: Arc<Principal>,
    /// When the store was asked,
    asked: Instant,
    /// and whether a request already looks it up again. If that request is dropped, others do so after [`LONGEST`].
    is_asked_again: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Recalled {
    Known(Arc<Principal>),
    Unknown,
    /// Not known, or long ago.
    Ask,
    /// It was good before.
    AskAgain,
}

impl Memory {
    fn new() -> Self {
        Self { known: Generations::new(), unknown: Generations::new() }
    }

    fn recall(&mut self, digest: Digest, now: Instant) -> Recalled {
        if let Some(known) = self.known.get(&digest) {
            let age = now.saturating_duration_since(known.asked);
            if age >= LONGEST || (age >= FRESH && !known.is_asked_again) {
                known.is_asked_again = true;
                return Recalled::AskAgain;
            }
            return Recalled::Known(Arc::clone(&known.principal));
        }
        let since = self.unknown.get(&digest).map(|since| now.saturating_duration_since(*since));
        if since.is_some_and(|since| since < UNKNOWN) { Recalled::Unknown } else { Recalled::Ask }
    }

    fn keep(&mut self, digest: Digest, principal: Option<Arc<Principal>>, asked: Instant) {
        let Some(principal) = principal else {
            self.known.remove(&digest);
            self.unknown.insert(digest, asked);
            return;
        };
        let before = self.known.get(&digest).map(|known| known.asked);
        // Of two who asked, the one who asked first may be answered last.
        if before.is_none_or(|before| before <= asked) {
            self.known.insert(digest, KnownKey { principal, asked, is_asked_again: false });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::generations::CAPACITY;
    use super::*;

    fn digest(number: usize) -> Digest {
        Digest::of(&number.to_string())
    }

    fn principal() -> Arc<Principal> {
        Arc::new(Principal::local())
    }

    fn is_known(recalled: &Recalled) -> bool {
        matches!(recalled, Recalled::Known(_))
    }

    /// Whatever happens to the request that looks a key up again: after five seconds no key is accepted without a look-up.
    #[test]
    fn one_asks_again_first_and_then_everybody() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut memory = Memory::new();
        assert_eq!(memory.recall(digest(1), start), Recalled::Ask);
        memory.keep(digest(1), Some(principal()), start);
        assert!(is_known(&memory.recall(digest(1), at(2900))));
        assert_eq!(memory.recall(digest(1), at(3000)), Recalled::AskAgain, "one");
        assert!(is_known(&memory.recall(digest(1), at(4900))), "while the others go on");
        assert_eq!(memory.recall(digest(1), at(5000)), Recalled::AskAgain, "it never came back");
        assert_eq!(memory.recall(digest(1), at(5000)), Recalled::AskAgain);
        memory.keep(digest(1), None, at(5000));
        assert_eq!(memory.recall(digest(1), at(5001)), Recalled::Unknown, "it was revoked");
    }

    #[test]
    fn an_answer_that_is_late_does_not_replace_a_newer_one() {
        let start = Instant::now();
        let later = start + Duration::from_secs(4);
        let mut memory = Memory::new();
        memory.keep(digest(1), Some(principal()), later);
        memory.keep(digest(1), Some(principal()), start);
        assert!(is_known(&memory.recall(digest(1), start + Duration::from_secs(6))));
    }

    #[test]
    fn guessing_costs_no_memory() {
        let start = Instant::now();
        let mut memory = Memory::new();
        memory.keep(digest(0), Some(principal()), start);
        for guess in 1..50_000 {
            assert_eq!(memory.recall(digest(guess), start), Recalled::Ask);
            memory.keep(digest(guess), None, start);
        }
        assert!(memory.unknown.len() <= CAPACITY);
        assert!(is_known(&memory.recall(digest(0), start)), "who is known is not pushed out");
        assert_eq!(memory.recall(digest(0), start + LONGEST), Recalled::AskAgain, "and is looked up again");
    }

    #[test]
    fn as_many_keys_as_there_are_may_begin_at_once() {
        let start = Instant::now();
        let mut memory = Memory::new();
        for number in 0..30_000 {
            assert_eq!(memory.recall(digest(number), start), Recalled::Ask, "{number}");
            memory.keep(digest(number), Some(principal()), start);
        }
        assert!(memory.known.len() <= CAPACITY);
        assert!(is_known(&memory.recall(digest(29_999), start)));
    }
}
