//! A map with a bounded number of entries.

use std::collections::HashMap;
use std::hash::Hash;

pub(super) const CAPACITY: usize = 10_000;

/// At most [`CAPACITY`] entries. Those that were not used since half as many others came are forgotten first.
#[derive(Debug)]
pub(super) struct Generations<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
}

impl<K: Copy + Eq + Hash, V> Generations<K, V> {
    pub(super) fn new() -> Self {
        Self { young: HashMap::new(), old: HashMap::new() }
    }

    pub(super) fn get(&mut self, key: &K) -> Option<&mut V> {
        if let Some(value) = self.old.remove(key) {
            self.insert(*key, value);
        }
        self.young.get_mut(key)
    }

    pub(super) fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= CAPACITY / 2 && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    pub(super) fn get_or_insert_with(&mut self, key: K, new: impl FnOnce() -> V) -> &mut V {
        if self.get(&key).is_none() {
            self.insert(key, new());
        }
        self.young.get_mut(&key).expect("just used")
    }

    /// The number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    pub(super) fn remove(&mut self, key: &K) {
        self.young.remove(key);
        self.old.remove(key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays() {
        let mut some: Generations<usize, ()> = Generations::new();
        for number in 0..3 * CAPACITY {
            some.insert(number, ());
            assert!(some.get(&0).is_some());
        }
        assert!(some.len() <= CAPACITY);
        some.remove(&0);
        assert!(some.get(&0).is_none());
    }
}
