//! A map that evicts the least recently used entry.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;

/// A map of bounded size.
pub(super) struct Lru<K, V> {
    max: usize,
    next_use: u64,
    entries: HashMap<K, (u64, V)>,
    /// Keys by their last use.
    uses: BTreeMap<u64, K>,
}

// === impl Lru ===

impl<K: Clone + Eq + Hash, V> Lru<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self { max, next_use: 0, entries: HashMap::new(), uses: BTreeMap::new() }
    }

    /// Returns the value of a key, which counts as used; inserts it if there is none, and may evict the least recently
    /// used entry for it.
    pub(super) fn get_or_insert_with(&mut self, key: &K, make: impl FnOnce() -> V) -> &mut V {
        let now = self.next_use;
        self.next_use += 1;
        let known = self.entries.get(key).and_then(|(used, _)| self.uses.remove(used));
        if known.is_none()
            && self.entries.len() >= self.max
            && let Some((_, oldest)) = self.uses.pop_first()
        {
            self.entries.remove(&oldest);
        }
        self.uses.insert(now, known.unwrap_or_else(|| key.clone()));
        let entry = self.entries.entry(key.clone()).or_insert_with(|| (now, make()));
        entry.0 = now;
        &mut entry.1
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let (used, value) = self.entries.remove(key)?;
        self.uses.remove(&used);
        Some(value)
    }

    /// Returns keys and values, the least recently used first. Iterating does not count as use.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        self.uses.values().filter_map(|key| Some((key, &self.entries.get(key)?.1)))
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_used_for_longest_goes_first() {
        let mut lru = Lru::new(2);
        *lru.get_or_insert_with(&"a", || 0) += 1;
        *lru.get_or_insert_with(&"b", || 0) += 1;
        *lru.get_or_insert_with(&"a", || 0) += 1;
        *lru.get_or_insert_with(&"c", || 0) += 1;
        let held = |lru: &Lru<&'static str, i32>| lru.iter().map(|(key, value)| (*key, *value)).collect::<Vec<_>>();
        assert_eq!(held(&lru), [("a", 2), ("c", 1)], "b was unused for longest");
        assert_eq!(lru.remove(&"a"), Some(2));
        assert_eq!((lru.remove(&"a"), lru.len(), lru.uses.len()), (None, 1, 1));
        *lru.get_or_insert_with(&"b", || 0) += 1;
        assert_eq!(held(&lru), [("c", 1), ("b", 1)]);
    }
}
