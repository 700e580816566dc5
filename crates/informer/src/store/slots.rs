//! The objects: numbered slots, in chunks that a snapshot shares with the store.

use std::fmt;
use std::sync::Arc;

/// Small enough to copy while a snapshot shares it, large enough that a snapshot of half a million objects is four
/// thousand pointers.
const CHUNK: usize = 128;

type Chunk<V> = [Option<Arc<V>>; CHUNK];

/// Objects by slot number. A clone shares the chunks; a write copies its chunk, if it is shared.
pub(crate) struct Slots<V> {
    chunks: Vec<Arc<Chunk<V>>>,
    free: Vec<u32>,
    /// The number of slots that were ever handed out.
    used: u32,
}

/// All objects of a store at one moment. Reading it holds no lock.
pub struct Snapshot<V> {
    chunks: Vec<Arc<Chunk<V>>>,
    len: usize,
}

// === impl Slots ===

impl<V> Slots<V> {
    pub(crate) fn new() -> Self {
        Self { chunks: Vec::new(), free: Vec::new(), used: 0 }
    }

    pub(crate) fn len(&self) -> usize {
        self.used as usize - self.free.len()
    }

    pub(crate) fn get(&self, slot: u32) -> Option<&Arc<V>> {
        self.chunks.get(slot as usize / CHUNK)?[slot as usize % CHUNK].as_ref()
    }

    pub(crate) fn insert(&mut self, object: Arc<V>) -> u32 {
        let slot = self.free.pop().unwrap_or_else(|| {
            if self.used as usize == self.chunks.len() * CHUNK {
                self.chunks.push(Arc::new([const { None }; CHUNK]));
            }
            self.used += 1;
            self.used - 1
        });
        self.replace(slot, object);
        slot
    }

    pub(crate) fn replace(&mut self, slot: u32, object: Arc<V>) -> Option<Arc<V>> {
        self.slot_mut(slot)?.replace(object)
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<Arc<V>> {
        let object = self.slot_mut(slot)?.take()?;
        self.free.push(slot);
        if self.len() == 0 {
            *self = Self::new();
        }
        Some(object)
    }

    pub(crate) fn snapshot(&self) -> Snapshot<V> {
        Snapshot { chunks: self.chunks.clone(), len: self.len() }
    }

    pub(crate) fn each(&self, mut look: impl FnMut(u32, &Arc<V>)) {
        for (at, object) in self.chunks.iter().flat_map(|chunk| chunk.iter()).enumerate() {
            if let (Some(object), Ok(slot)) = (object, u32::try_from(at)) {
                look(slot, object);
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn bytes(&self) -> usize {
        self.chunks.len() * (size_of::<Chunk<V>>() + 16) + self.chunks.capacity() * 8 + self.free.capacity() * 4
    }

    fn slot_mut(&mut self, slot: u32) -> Option<&mut Option<Arc<V>>> {
        let chunk = self.chunks.get_mut(slot as usize / CHUNK)?;
        Some(&mut Arc::make_mut(chunk)[slot as usize % CHUNK])
    }
}

impl<V> Clone for Slots<V> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), free: self.free.clone(), used: self.used }
    }
}

// === impl Snapshot ===

impl<V> Snapshot<V> {
    /// Returns the objects, in no particular order, but always the same for the same history.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<V>> {
        self.chunks.iter().flat_map(|chunk| chunk.iter().flatten())
    }

    /// Returns the first object at this place or behind it, and the place behind that; `None` at the end. The first place is 0.
    pub(crate) fn next_from(&self, place: usize) -> Option<(usize, &Arc<V>)> {
        (place..self.chunks.len() * CHUNK).find_map(|at| Some((at + 1, self.chunks[at / CHUNK][at % CHUNK].as_ref()?)))
    }

    /// Returns the number of objects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns all objects.
    #[must_use]
    pub fn to_vec(&self) -> Vec<Arc<V>> {
        let mut all = Vec::with_capacity(self.len);
        all.extend(self.iter().cloned());
        all
    }
}

#[cfg(test)]
impl<V> FromIterator<Arc<V>> for Snapshot<V> {
    fn from_iter<I: IntoIterator<Item = Arc<V>>>(objects: I) -> Self {
        let mut slots = Slots::new();
        for object in objects {
            slots.insert(object);
        }
        slots.snapshot()
    }
}

impl<V> Clone for Snapshot<V> {
    fn clone(&self) -> Self {
        Self { chunks: self.chunks.clone(), len: self.len }
    }
}

impl<V> fmt::Debug for Snapshot<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("len", &self.len).finish_non_exhaustive()
    }
}
