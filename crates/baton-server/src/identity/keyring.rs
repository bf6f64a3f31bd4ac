//! Keys that were looked up, for a few seconds: not every request asks the store, and a key that was revoked is refused soon.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::Store;
use jiff::Timestamp;

use super::key::Digest;
use super::refusal::AuthRefusal;
use super::roles::Roles;
use super::{Principal, UsedKey, Valid};

/// After this long one request looks the key up again, while others still use what is known;
const FRESH: Duration = Duration::from_secs(3);
/// and after this long all do. A key that was revoked is refused by then.
const LONGEST: Duration = Duration::from_secs(5);
/// A key that does not exist never will, because keys are made at random.
const UNKNOWN: Duration = Duration::from_mins(1);
/// How many keys are remembered, and as many that do not exist.
const CAPACITY: usize = 10_000;
/// How many keys that do not exist the store is asked for at once, and then in a second.
const BURST: f64 = 1000.0;
const PER_SECOND: f64 = 100.0;

#[derive(Debug)]
pub(super) struct Keyring {
    store: Arc<dyn Store>,
    roles: Arc<Roles>,
    memory: Mutex<Memory>,
}

impl Keyring {
    pub(super) fn new(store: Arc<dyn Store>, roles: Arc<Roles>) -> Self {
        Self { store, roles, memory: Mutex::new(Memory::new(Instant::now())) }
    }

    /// Whose key it is.
    pub(super) async fn owner(&self, digest: Digest) -> Result<Arc<Principal>, AuthRefusal> {
        let owner = self.find(digest).await?;
        let end = owner.key.and_then(|key| key.expires_at);
        if end.is_some_and(|end| end <= Timestamp::now()) {
            return Err(AuthRefusal::Invalid("an expired key"));
        }
        Ok(owner)
    }

    async fn find(&self, digest: Digest) -> Result<Arc<Principal>, AuthRefusal> {
        let unknown = || AuthRefusal::Invalid("an unknown or revoked key");
        // Before the store is asked: what it says is at least as new as this.
        let now = Instant::now();
        match self.memory().recall(digest, now)? {
            Recalled::Known(principal) => return Ok(principal),
            Recalled::Unknown => return Err(unknown()),
            Recalled::Ask => {}
        }
        let found = self.store.key(&digest.hex()).await?;
        let principal = found.map(|(tenant, key)| {
            let rights = self.roles.limited(&key.roles, key.scopes.as_deref());
            let (valid, is_operator) = (Valid::UnlessRevoked(digest), self.roles.is_operator(&tenant));
            let used = Some(UsedKey { key_id: key.key_id, expires_at: key.expires_at });
            let (user, roles) = (key.user_id, key.roles);
            Arc::new(Principal { tenant, user, roles, rights, valid, is_operator, key: used })
        });
        self.memory().keep(digest, principal.clone(), now);
        principal.ok_or_else(unknown)
    }

    fn memory(&self) -> std::sync::MutexGuard<'_, Memory> {
        // Whatever a panic left behind is at worst forgotten in a few seconds.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Memory {
    known: Generations<KnownKey>,
    unknown: Generations<Instant>,
    guesses: TokenBucket,
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
    Ask,
}

impl Memory {
    fn new(now: Instant) -> Self {
        Self { known: Generations::new(), unknown: Generations::new(), guesses: TokenBucket::new(now) }
    }

    /// Keys that were good before may always be looked up. For others there is a budget, so that guessing does not keep the
    /// store busy; a look-up that finds a key gets its permit back.
    fn recall(&mut self, digest: Digest, now: Instant) -> Result<Recalled, AuthRefusal> {
        if let Some(known) = self.known.get(&digest) {
            let age = now.saturating_duration_since(known.asked);
            if age >= LONGEST || (age >= FRESH && !known.is_asked_again) {
                known.is_asked_again = true;
                return Ok(Recalled::Ask);
            }
            return Ok(Recalled::Known(Arc::clone(&known.principal)));
        }
        let since = self.unknown.get(&digest).map(|since| now.saturating_duration_since(*since));
        if since.is_some_and(|since| since < UNKNOWN) {
            return Ok(Recalled::Unknown);
        }
        if self.guesses.take(now) { Ok(Recalled::Ask) } else { Err(AuthRefusal::Busy) }
    }

    fn keep(&mut self, digest: Digest, principal: Option<Arc<Principal>>, asked: Instant) {
        let Some(principal) = principal else {
            self.known.remove(&digest);
            self.unknown.insert(digest, asked);
            return;
        };
        let before = self.known.get(&digest).map(|known| known.asked);
        if before.is_none() {
            self.guesses.give_back();
        }
        // Of two who asked, the one who asked first may be answered last.
        if before.is_none_or(|before| before <= asked) {
            self.known.insert(digest, KnownKey { principal, asked, is_asked_again: false });
        }
    }
}

/// At most [`CAPACITY`] entries. Those that were not used since half as many others came are forgotten first.
#[derive(Debug)]
struct Generations<V> {
    young: HashMap<Digest, V>,
    old: HashMap<Digest, V>,
}

impl<V> Generations<V> {
    fn new() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }

    fn get(&mut self, digest: &Digest) -> Option<&mut V> {
        if let Some(value) = self.old.remove(digest) {
            self.insert(*digest, value);
        }
        self.young.get_mut(digest)
    }

    fn insert(&mut self, digest: Digest, value: V) {
        self.old.remove(&digest);
        if self.young.len() >= CAPACITY / 2 && !self.young.contains_key(&digest) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, value);
    }

    fn remove(&mut self, digest: &Digest) {
        self.young.remove(digest);
        self.old.remove(digest);
    }
}

/// A bucket that fills again.
#[derive(Debug)]
struct TokenBucket {
    left: f64,
    at: Instant,
}

impl TokenBucket {
    fn new(now: Instant) -> Self {
        Self { left: BURST, at: now }
    }

    fn take(&mut self, now: Instant) -> bool {
        let passed = now.saturating_duration_since(self.at).as_secs_f64();
        self.left = (self.left + passed * PER_SECOND).min(BURST);
        self.at = self.at.max(now);
        let is_enough = self.left >= 1.0;
        if is_enough {
            self.left -= 1.0;
        }
        is_enough
    }

    fn give_back(&mut self) {
        self.left = (self.left + 1.0).min(BURST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(number: usize) -> Digest {
        Digest::of(&number.to_string())
    }

    fn principal() -> Arc<Principal> {
        Arc::new(Principal::local())
    }

    fn is_known(recalled: &Result<Recalled, AuthRefusal>) -> bool {
        matches!(recalled, Ok(Recalled::Known(_)))
    }

    /// Whatever happens to the request that looks a key up again: after five seconds no key is accepted without a look-up.
    #[test]
    fn one_asks_again_first_and_then_everybody() {
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let mut memory = Memory::new(start);
        assert_eq!(memory.recall(digest(1), start), Ok(Recalled::Ask));
        memory.keep(digest(1), Some(principal()), start);
        assert!(is_known(&memory.recall(digest(1), at(2900))));
        assert_eq!(memory.recall(digest(1), at(3000)), Ok(Recalled::Ask), "one");
        assert!(is_known(&memory.recall(digest(1), at(4900))), "while the others go on");
        assert_eq!(memory.recall(digest(1), at(5000)), Ok(Recalled::Ask), "it never came back");
        assert_eq!(memory.recall(digest(1), at(5000)), Ok(Recalled::Ask));
        memory.keep(digest(1), None, at(5000));
        assert_eq!(memory.recall(digest(1), at(5001)), Ok(Recalled::Unknown), "it was revoked");
    }

    #[test]
    fn an_answer_that_is_late_does_not_replace_a_newer_one() {
        let start = Instant::now();
        let later = start + Duration::from_secs(4);
        let mut memory = Memory::new(start);
        memory.keep(digest(1), Some(principal()), later);
        memory.keep(digest(1), Some(principal()), start);
        assert!(is_known(&memory.recall(digest(1), start + Duration::from_secs(6))));
    }

    #[test]
    fn guessing_costs_neither_memory_nor_the_store() {
        let start = Instant::now();
        let mut memory = Memory::new(start);
        memory.keep(digest(0), Some(principal()), start);
        let mut asked = 0;
        for guess in 1..50_000 {
            if memory.recall(digest(guess), start) == Ok(Recalled::Ask) {
                memory.keep(digest(guess), None, start);
                asked += 1;
            }
        }
        assert_eq!(asked, 1000);
        assert!(is_known(&memory.recall(digest(0), start)), "who is known is not pushed out");
        assert_eq!(memory.recall(digest(0), start + LONGEST), Ok(Recalled::Ask), "and is looked up again");
        assert_eq!(memory.recall(digest(60_000), start), Err(AuthRefusal::Busy));
        assert_eq!(memory.recall(digest(60_000), start + Duration::from_secs(1)), Ok(Recalled::Ask));
    }

    #[test]
    fn as_many_keys_as_there_are_may_begin_at_once() {
        let start = Instant::now();
        let mut memory = Memory::new(start);
        for number in 0..30_000 {
            assert_eq!(memory.recall(digest(number), start), Ok(Recalled::Ask), "{number}");
            memory.keep(digest(number), Some(principal()), start);
        }
        assert!(memory.known.young.len() + memory.known.old.len() <= CAPACITY);
        assert!(is_known(&memory.recall(digest(29_999), start)));
    }

    #[test]
    fn what_is_used_stays() {
        let mut some = Generations::new();
        for number in 0..3 * CAPACITY {
            some.insert(digest(number), ());
            assert!(some.get(&digest(0)).is_some());
        }
        assert!(some.young.len() + some.old.len() <= CAPACITY);
        some.remove(&digest(0));
        assert!(some.get(&digest(0)).is_none());
    }
}
