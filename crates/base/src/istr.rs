//! Strings and values that repeat across many objects, kept once.
//!
//! A cluster's objects repeat the same few thousand strings: label keys, namespaces, node names, image names. [`Istr`]
//! is a string that can be *interned*: equal strings share one allocation, found through a process-wide pool; strings
//! of up to 15 bytes are stored inline. [`Pool`] does the same for other values. A pool frees unused values, so a
//! controller that runs for a year does not remember every pod that ever existed.

use std::borrow::Borrow;
use std::fmt;
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Deref;
use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, LazyLock};

use ecow::{EcoString, EcoVec};
use foldhash::fast::RandomState;
use hashbrown::HashTable;
use parking_lot::{Mutex, MutexGuard};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

/// An immutable string of 16 bytes that is cheap to clone; interned or not, it compares and hashes by content.
#[derive(Clone, Default, Eq)]
pub struct Istr(EcoString);

/// A pool of shared values: [`share`](Pool::share) returns the one allocation for all equal values.
///
/// 1. Unused values are swept when the pool has doubled since its last sweep, so a pool is never larger than twice its
///    live values.
/// 2. A lock is held for one lookup only, and there are several locks, so that threads rarely contend.
pub struct Pool<T: ?Sized>(Table<Arc<T>>);

/// Entries by hash, in several shards.
pub(crate) struct Table<E> {
    shards: Box<[Mutex<Shard<E>>]>,
}

struct Shard<E> {
    entries: HashTable<E>,
    sweep_at: usize,
}

/// An entry of a table: it knows its hash, and whether it is used elsewhere.
pub(crate) trait Entry: Clone {
    fn hash(&self) -> u64;
    fn is_used(&mut self) -> bool;
}

/// Enough that two or four decoding threads seldom wait for each other.
const SHARDS: usize = 16;
/// A shard is not swept before it holds this many: sweeping a handful saves nothing.
const SWEEP_AT_MIN: usize = 256;

static STRINGS: LazyLock<Table<EcoString>> = LazyLock::new(Table::default);

/// Hashes of recently seen texts, each in a slot; a later hash may replace it.
static SEEN: [AtomicU32; SEEN_MAX] = [const { AtomicU32::new(0) }; SEEN_MAX];
/// Lists are sorted, with siblings adjacent, so a text recurs soon. This is 64 KiB.
const SEEN_MAX: usize = 1 << 14;

/// Users choose texts: the seed differs per process, or texts could be chosen that all collide. Pools are only used for
/// lookups, so no order depends on it.
pub(crate) static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);

// === impl Istr ===

impl Istr {
    /// Returns a string that is not interned: for unique texts, such as an object's name.
    #[must_use]
    #[inline]
    pub fn new(text: &str) -> Self {
        Self(EcoString::from(text))
    }

    /// Returns the shared allocation for this text: for texts that repeat, such as label keys, namespaces and kinds.
    #[must_use]
    #[inline]
    pub fn interned(text: &str) -> Self {
        match EcoString::try_inline(text) {
            Some(short) => Self(short),
            None => Self::pooled(text, HASHER.hash_one(text.as_bytes())),
        }
    }

    /// Interns the text if it was seen recently: for texts that may repeat or be unique, such as the values of labels.
    /// A text that occurs once never enters the pool.
    #[must_use]
    #[inline]
    pub fn interned_if_seen(text: &str) -> Self {
        if let Some(short) = EcoString::try_inline(text) {
            return Self(short);
        }
        let hash = HASHER.hash_one(text.as_bytes());
        // The table uses bits from both ends, this uses others. Threads that race here lose a chance to share.
        let seen = &SEEN[(hash >> 20) as usize % SEEN_MAX];
        let mark = (hash >> 32) as u32 | 1;
        if seen.load(Relaxed) == mark {
            return Self::pooled(text, hash);
        }
        seen.store(mark, Relaxed);
        Self::new(text)
    }

    fn pooled(text: &str, hash: u64) -> Self {
        Self(STRINGS.share(hash, |held| held == text, || EcoString::from(text)))
    }

    /// Returns the text.
    #[must_use]
    #[inline]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether both are one allocation, or equal and too short to have one. Equal interned strings are; this is for
    /// tests and for fast paths.
    #[must_use]
    pub fn same_allocation(&self, other: &Self) -> bool {
        if self.0.is_inline() { self.0 == other.0 } else { std::ptr::eq(self.as_str(), other.as_str()) }
    }
}

impl PartialEq for Istr {
    #[inline]
    fn eq(&self, other: &Self) -> bool {
        std::ptr::eq(self.as_str(), other.as_str()) || self.0 == other.0
    }
}

impl Hash for Istr {
    #[inline]
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_str().hash(state);
    }
}

impl PartialOrd for Istr {
    #[inline]
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Istr {
    #[inline]
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialEq<str> for Istr {
    #[inline]
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Istr {
    #[inline]
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl Deref for Istr {
    type Target = str;
    #[inline]
    fn deref(&self) -> &str {
        &self.0
    }
}

impl Borrow<str> for Istr {
    #[inline]
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl AsRef<str> for Istr {
    #[inline]
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Istr {
    fn from(text: &str) -> Self {
        Self::interned(text)
    }
}

impl From<String> for Istr {
    fn from(text: String) -> Self {
        Self::interned(&text)
    }
}

impl fmt::Display for Istr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for Istr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl Serialize for Istr {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

/// Interns while deserializing: no intermediate `String` is created.
impl<'de> Deserialize<'de> for Istr {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Interning;
        impl de::Visitor<'_> for Interning {
            type Value = Istr;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Istr, E> {
                Ok(Istr::interned(text))
            }
        }
        deserializer.deserialize_str(Interning)
    }
}

// === impl Pool ===

impl<T: ?Sized + Hash + Eq> Pool<T> {
    /// Returns an empty pool.
    #[must_use]
    pub fn new() -> Self {
        Self(Table::default())
    }

    /// Returns the pooled value equal to this one; this one itself if there is none yet.
    pub fn share(&self, value: Arc<T>) -> Arc<T> {
        let hash = HASHER.hash_one(&*value);
        let mut shard = self.0.lock(hash);
        match shard.find(hash, |held| **held == *value) {
            Some(held) => held,
            None => shard.insert(hash, value),
        }
    }

    /// Returns the pooled value equal to `value`, made by `make` if there is none yet.
    pub fn share_ref(&self, value: &T, make: impl FnOnce() -> Arc<T>) -> Arc<T> {
        self.0.share(HASHER.hash_one(value), |held| **held == *value, make)
    }

    /// Returns the number of values, including unused ones that were not swept yet.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the pool is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Frees unused values now. The pool does this by itself as it grows.
    pub fn sweep(&self) {
        self.0.sweep();
    }
}

impl<T: Hash + Eq> Pool<T> {
    /// Returns the pooled value equal to this one; nothing is allocated if there is one.
    pub fn share_value(&self, value: T) -> Arc<T> {
        let hash = HASHER.hash_one(&value);
        let mut shard = self.0.lock(hash);
        match shard.find(hash, |held| **held == value) {
            Some(held) => held,
            None => shard.insert(hash, Arc::new(value)),
        }
    }
}

impl<T: Hash + Eq> Pool<[T]> {
    /// Returns the pooled list equal to this one; nothing is allocated if there is one.
    pub fn share_list(&self, list: Vec<T>) -> Arc<[T]> {
        let hash = HASHER.hash_one(&*list);
        let mut shard = self.0.lock(hash);
        match shard.find(hash, |held| **held == *list) {
            Some(held) => held,
            None => shard.insert(hash, Arc::from(list)),
        }
    }
}

impl<T: ?Sized + Hash + Eq> Default for Pool<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: ?Sized> fmt::Debug for Pool<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

// === impl Table ===

impl<E: Entry> Table<E> {
    /// Returns the entry of this hash for which `same` holds, made by `make` if there is none yet.
    pub(crate) fn share(&self, hash: u64, same: impl Fn(&E) -> bool, make: impl FnOnce() -> E) -> E {
        let mut shard = self.lock(hash);
        match shard.find(hash, same) {
            Some(held) => held,
            None => shard.insert(hash, make()),
        }
    }

    fn lock(&self, hash: u64) -> MutexGuard<'_, Shard<E>> {
        // The table uses the low bits for buckets and the top seven for tags; take some in between.
        self.shards[(hash >> 40) as usize % SHARDS].lock()
    }

    fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().entries.len()).sum()
    }

    fn sweep(&self) {
        for shard in &self.shards {
            shard.lock().sweep();
        }
    }
}

impl<E> Default for Table<E> {
    fn default() -> Self {
        let shard = || Mutex::new(Shard { entries: HashTable::new(), sweep_at: SWEEP_AT_MIN });
        Self { shards: (0..SHARDS).map(|_| shard()).collect() }
    }
}

impl<E: Entry> Shard<E> {
    fn find(&self, hash: u64, same: impl Fn(&E) -> bool) -> Option<E> {
        self.entries.find(hash, same).cloned()
    }

    fn insert(&mut self, hash: u64, made: E) -> E {
        if self.entries.len() >= self.sweep_at {
            self.sweep();
        }
        self.entries.insert_unique(hash, made.clone(), E::hash);
        made
    }

    fn sweep(&mut self) {
        self.entries.retain(E::is_used);
        self.sweep_at = (self.entries.len() * 2).max(SWEEP_AT_MIN);
        // The table is grown to `sweep_at` anyway; capacity far above it is released.
        self.entries.shrink_to(self.sweep_at, E::hash);
    }
}

impl<T: ?Sized + Hash> Entry for Arc<T> {
    fn hash(&self) -> u64 {
        HASHER.hash_one(&**self)
    }

    fn is_used(&mut self) -> bool {
        Arc::strong_count(self) > 1
    }
}

impl Entry for EcoString {
    fn hash(&self) -> u64 {
        HASHER.hash_one(self.as_bytes())
    }

    fn is_used(&mut self) -> bool {
        // Only the inner vector knows whether it is shared. The conversion copies nothing.
        let mut bytes = EcoVec::from(std::mem::take(self));
        let is_used = !bytes.is_unique();
        if is_used {
            *self = EcoString::try_from(bytes).unwrap_or_default();
        }
        is_used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_interned_strings_share_one_allocation() {
        let a = Istr::interned("app.kubernetes.io/name");
        let b = Istr::interned("app.kubernetes.io/name");
        assert!(a.same_allocation(&b));
        assert!(!a.same_allocation(&Istr::new("app.kubernetes.io/name")));
        assert_eq!(a, Istr::new("app.kubernetes.io/name"), "interned or not, equality is by content");
    }

    #[test]
    fn short_strings_have_no_allocation() {
        assert!(Istr::interned("fifteen letters").same_allocation(&Istr::new("fifteen letters")));
        assert!(!Istr::interned("sixteen letters!").same_allocation(&Istr::new("sixteen letters!")));
        assert_eq!(size_of::<Istr>(), 16);
    }

    #[test]
    fn the_pool_of_strings_frees_what_nobody_holds_and_nothing_else() {
        let strings = Table::<EcoString>::default();
        let share =
            |text: &str| strings.share(HASHER.hash_one(text.as_bytes()), |held| held == text, || EcoString::from(text));
        let kept: Vec<_> = (0..100).map(|n| share(&format!("a string that is kept {n}"))).collect();
        for n in 0..100_000 {
            share(&format!("a string that nobody keeps {n}"));
        }
        let count = strings.len();
        assert!(count <= SHARDS * SWEEP_AT_MIN, "{count} strings are held, but only 100 are used");
        strings.sweep();
        assert_eq!(strings.len(), 100);
        for (n, kept) in kept.iter().enumerate() {
            let again = share(&format!("a string that is kept {n}"));
            assert!(std::ptr::eq(kept.as_str(), again.as_str()), "{kept} is still the same allocation");
        }
    }

    #[test]
    fn a_text_is_shared_from_the_second_time_on() {
        let seen = || Istr::interned_if_seen("seen in no other test at all");
        let first = seen();
        let second = seen();
        let third = seen();
        assert!(!first.same_allocation(&second));
        assert!(second.same_allocation(&third));
        assert_eq!(first, third);
    }

    #[test]
    fn a_pool_frees_what_nobody_holds() {
        let pool: Pool<str> = Pool::new();
        let kept = pool.share(Arc::from("kept"));
        for n in 0..100_000 {
            let text = format!("name-{n}");
            pool.share_ref(&text, || Arc::from(text.as_str()));
        }
        assert!(pool.len() <= SHARDS * SWEEP_AT_MIN, "{} strings are held, but only one is used", pool.len());
        pool.sweep();
        assert_eq!(pool.len(), 1);
        assert!(Arc::ptr_eq(&kept, &pool.share(Arc::from("kept"))));
    }
}
