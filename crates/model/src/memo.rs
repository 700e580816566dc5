//! A cache of results for equal bytes.

use std::hash::BuildHasher;
use std::sync::LazyLock;

use foldhash::fast::RandomState;
use parking_lot::Mutex;

/// Remembers the result for some bytes; when it is full, the least recently used is dropped.
///
/// Keys are compared byte by byte: equal hashes alone mean nothing, for the bytes are whatever users send.
pub(crate) struct Memo<V> {
    sets: Box<[Mutex<Vec<Known<V>>>]>,
}

struct Known<V> {
    hash: u64,
    key: Box<[u8]>,
    value: V,
}

/// The masked parts of a body, and their positions.
#[derive(Default)]
pub(crate) struct Masked(Vec<(usize, [u8; MASK_LENGTH])>);

/// The number of bytes masked at a time.
pub(crate) const MASK_LENGTH: usize = 5;

/// In all a thousand: more than most clusters have templates in use, and 3 MB when all are pod specs.
const SETS: usize = 128;
const WAYS: usize = 8;
/// Users choose bodies: the seed is another in each process, or bodies could be made that push each other out.
static HASHER: LazyLock<RandomState> = LazyLock::new(RandomState::default);
/// Longer keys are not worth their memory.
const KEY_LENGTH_MAX: usize = 16 << 10;

impl<V: Clone> Memo<V> {
    pub(crate) fn new() -> Self {
        Self { sets: (0..SETS).map(|_| Mutex::default()).collect() }
    }

    /// Returns what `make` makes of a body, remembered by `key`: the first `length` bytes are the body, in which some
    /// bytes may be masked; what else the result depends on stands behind it.
    ///
    /// What is masked must not show in the result. That is tried before a result is remembered: the masked body must
    /// give the same.
    pub(crate) fn remember<E>(
        &self,
        key: &[u8],
        length: usize,
        masked: &Masked,
        make: impl Fn(&[u8]) -> Result<V, E>,
    ) -> Result<V, E>
    where
        V: PartialEq,
    {
        if let Some(known) = self.get(key) {
            return Ok(known);
        }
        let body = &key[..length];
        let made = if masked.0.is_empty() { make(body) } else { make(&masked.original_of(body)) }?;
        if masked.0.is_empty() || make(body).is_ok_and(|of_masked| of_masked == made) {
            self.put(key, made.clone());
        }
        Ok(made)
    }

    fn get(&self, key: &[u8]) -> Option<V> {
        let hash = HASHER.hash_one(key);
        let mut set = self.set(hash).lock();
        let at = set.iter().position(|known| known.hash == hash && *known.key == *key)?;
        // The last one is the latest used.
        let end = set.len();
        set[at..end].rotate_left(1);
        set.last().map(|known| known.value.clone())
    }

    fn put(&self, key: &[u8], value: V) {
        if key.len() > KEY_LENGTH_MAX {
            return;
        }
        let hash = HASHER.hash_one(key);
        let mut set = self.set(hash).lock();
        if set.len() == WAYS {
            set.remove(0);
        }
        set.push(Known { hash, key: key.into(), value });
    }

    fn set(&self, hash: u64) -> &Mutex<Vec<Known<V>>> {
        &self.sets[hash as usize % SETS]
    }
}

// === impl Masked ===

impl Masked {
    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }

    /// Masks the bytes at this position, if there are enough.
    pub(crate) fn mask(&mut self, body: &mut [u8], at: usize, is_to_be: impl Fn(&[u8; MASK_LENGTH]) -> bool) {
        if let Some(bytes) = body.get_mut(at..).and_then(|rest| rest.first_chunk_mut())
            && is_to_be(bytes)
        {
            self.0.push((at, std::mem::replace(bytes, [b'*'; MASK_LENGTH])));
        }
    }

    fn original_of(&self, body: &[u8]) -> Vec<u8> {
        let mut body = body.to_vec();
        for (at, bytes) in &self.0 {
            body[*at..*at + MASK_LENGTH].copy_from_slice(bytes);
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_remembered_is_found_by_its_bytes_and_the_longest_unused_goes() {
        let memo = Memo::new();
        let sets: Vec<Vec<u8>> = {
            let mut by_set: std::collections::BTreeMap<usize, Vec<Vec<u8>>> = std::collections::BTreeMap::new();
            for n in 0..10_000_u32 {
                let key = n.to_string().into_bytes();
                by_set.entry(HASHER.hash_one(&*key) as usize % SETS).or_default().push(key);
            }
            by_set.remove(&0).unwrap()
        };
        let (first, others) = sets[..=WAYS].split_first().unwrap();
        memo.put(first, 0);
        for (at, key) in others.iter().enumerate() {
            assert_eq!(memo.get(first), Some(0), "what is used stays");
            memo.put(key, at + 1);
        }
        assert_eq!(memo.get(first), Some(0));
        assert_eq!(memo.get(&others[0]), None, "what is not used goes");
        assert_eq!(memo.get(&others[1]), Some(2));
        assert_eq!(memo.get(b"never seen"), None);
    }

    #[test]
    fn what_shows_in_the_result_must_not_be_masked() {
        let check = |shown: usize, is_remembered: bool| {
            let memo = Memo::new();
            let mut key = b"0123456789".to_vec();
            let mut masked = Masked::default();
            masked.mask(&mut key, 2, |bytes| bytes == b"23456");
            masked.mask(&mut key, 8, |_| true);
            assert_eq!(key, b"01*****789", "too few bytes are not masked");
            let length = key.len();
            key.extend_from_slice(b"more");
            assert_eq!(memo.remember(&key, length, &masked, |body| Ok::<_, ()>(body[shown])), Ok(b'0' + shown as u8));
            assert_eq!(memo.get(&key).is_some(), is_remembered);
        };
        check(1, true);
        check(2, false);
        check(6, false);
        check(7, true);
    }

    #[test]
    fn long_keys_are_not_remembered() {
        let memo = Memo::new();
        memo.put(&vec![0; KEY_LENGTH_MAX + 1], ());
        assert_eq!(memo.get(&vec![0; KEY_LENGTH_MAX + 1]), None);
    }
}
