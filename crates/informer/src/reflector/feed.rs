//! The typed end of a reflector: decodes objects and hands them to the sink.
//!
//! The loop of a reflector ([`Run`](super::run::Run)) does not know the type of its objects, and so is compiled once for all
//! views. Only what is here is compiled once per view.

use std::sync::Arc;

use steersman_base::ResourceVersion;
use steersman_model::{Encoded, View};

use super::staging::Staging;
use crate::sink::{Sink, Verdict, WatchEvent};
use crate::wire::{Expected, ListDecoder, Peeked, WireError, peek};

/// The typed end of a reflector, as its loop sees it.
///
/// An object that cannot be decoded is an error ([`WireError::Object`]); the loop decides whether it is skipped.
pub(super) trait Feed: Send {
    /// Begins a list, right before it is requested.
    fn list_begins(&mut self);

    /// Adds an item to the list.
    fn item(&mut self, object: Encoded<'_>) -> Result<(), WireError>;

    /// Adds an item of a relist: the known allocation if nothing changed, without decoding.
    fn relisted_item(&mut self, object: Encoded<'_>) -> Result<(), WireError>;

    /// Adds all items that were received. After an error, the next call continues behind the item.
    fn items(&mut self, decoder: &mut ListDecoder) -> Result<(), WireError>;

    /// Adds the known state of an item that is skipped, so that it does not count as deleted.
    fn skipped_item(&mut self, object: &Peeked);

    /// Removes an object from the list: it was deleted in the meantime.
    fn deleted_item(&mut self, object: Encoded<'_>) -> Result<(), WireError>;

    /// As [`deleted_item`](Self::deleted_item), for one that is skipped.
    fn skipped_deleted_item(&mut self, object: &Peeked);

    /// Returns the number of objects in the list.
    fn listed(&self) -> usize;

    /// Hands the whole list to the sink.
    fn list_ends(&mut self, version: ResourceVersion);

    /// Hands an event to the sink, which decides whether it is stale.
    fn event(&mut self, kind: EventKind, object: Encoded<'_>) -> Result<(Peeked, Verdict), WireError>;

    /// Notifies the sink of an event whose object is skipped.
    fn skipped_event(&mut self, object: Peeked, deleted: bool) -> Verdict;

    /// Hands a bookmark to the sink.
    fn reached(&mut self, version: ResourceVersion);
}

/// The kind of a watch event with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventKind {
    Added,
    Modified,
    Deleted,
}

/// A sink, and the list that it will get.
pub(super) struct SinkFeed<V, S> {
    sink: S,
    expected: Expected,
    staging: Staging<V>,
}

// === impl SinkFeed ===

impl<V: View, S: Sink<V>> SinkFeed<V, S> {
    pub(super) fn new(sink: S, expected: Expected) -> Self {
        Self { sink, expected, staging: Staging::new() }
    }
}

impl<V: View, S: Sink<V>> Feed for SinkFeed<V, S> {
    fn list_begins(&mut self) {
        self.staging = Staging::new();
        self.sink.listing();
    }

    fn item(&mut self, object: Encoded<'_>) -> Result<(), WireError> {
        self.staging.put(Arc::new(self.expected.decode(object)?));
        Ok(())
    }

    fn relisted_item(&mut self, object: Encoded<'_>) -> Result<(), WireError> {
        let Some(known) = peek(object).and_then(|peeked| {
            let known = self.sink.known(&peeked.key)?;
            let meta = known.meta();
            let is_unchanged = !peeked.resource_version.is_empty()
                && meta.uid == peeked.uid
                && meta.resource_version == peeked.resource_version;
            is_unchanged.then_some(known)
        }) else {
            return self.item(object);
        };
        self.staging.put(known);
        Ok(())
    }

    fn items(&mut self, decoder: &mut ListDecoder) -> Result<(), WireError> {
        while let Some(object) = decoder.next_object()? {
            self.staging.put(Arc::new(object));
        }
        Ok(())
    }

    fn skipped_item(&mut self, object: &Peeked) {
        if let Some(known) = self.sink.known(&object.key).filter(|known| object.is_of(known.meta())) {
            self.staging.put(known);
        }
    }

    fn deleted_item(&mut self, object: Encoded<'_>) -> Result<(), WireError> {
        let last: V = self.expected.decode(object)?;
        self.staging.remove(&last.meta().key());
        Ok(())
    }

    fn skipped_deleted_item(&mut self, object: &Peeked) {
        self.staging.remove(&object.key);
    }

    fn listed(&self) -> usize {
        self.staging.len()
    }

    fn list_ends(&mut self, version: ResourceVersion) {
        let list = std::mem::replace(&mut self.staging, Staging::new());
        self.sink.replace(list.into_objects(), version);
    }

    fn event(&mut self, kind: EventKind, object: Encoded<'_>) -> Result<(Peeked, Verdict), WireError> {
        let object = Arc::new(self.expected.decode(object)?);
        let event = match kind {
            EventKind::Added => WatchEvent::Added(object),
            EventKind::Modified => WatchEvent::Modified(object),
            EventKind::Deleted => WatchEvent::Deleted(object),
        };
        let identity = event.identity();
        Ok((identity, self.sink.apply(event)))
    }

    fn skipped_event(&mut self, object: Peeked, deleted: bool) -> Verdict {
        self.sink.apply(WatchEvent::Unreadable { object, deleted })
    }

    fn reached(&mut self, version: ResourceVersion) {
        self.sink.reached(version);
    }
}
