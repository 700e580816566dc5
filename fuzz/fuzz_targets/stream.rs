//! Lists and watches as they arrive, cut at any byte: the pieces give what the whole gives.

#![no_main]

use libfuzzer_sys::fuzz_target;
use steersman_informer::__internal::wire::{Expected, Format, ListDecoder, RawEvent, WatchDecoder};
use steersman_model::{Kind, PodView, Projection};

fn expected() -> Expected {
    Expected::new(&PodView::RESOURCE, Projection::Whole)
}

/// The keys of a list's objects, or `None` if the list is refused.
fn listed(format: Format, pieces: &[&[u8]]) -> Option<Vec<String>> {
    let mut decoder = ListDecoder::new(format, expected());
    let mut keys = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        while let Some(pod) = decoder.next_object::<PodView>().ok()? {
            keys.push(steersman_model::View::meta(&pod).key().to_string());
        }
    }
    decoder.finish().ok().map(|_| keys)
}

/// The kinds of a watch's events, or `None` if the watch is refused.
fn watched(format: Format, pieces: &[&[u8]]) -> Option<Vec<&'static str>> {
    let mut decoder = WatchDecoder::new(format, expected());
    let mut events = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        while let Some(event) = decoder.next_event().ok()? {
            events.push(match event {
                RawEvent::Added(_) => "added",
                RawEvent::Modified(_) => "modified",
                RawEvent::Deleted(_) => "deleted",
                _ => "other",
            });
        }
    }
    decoder.finish().ok().map(|()| events)
}

fuzz_target!(|data: &[u8]| {
    let [choice, at, body @ ..] = data else { return };
    let format = if choice & 1 == 0 { Format::Json } else { Format::Protobuf };
    let (left, right) = body.split_at(usize::from(*at).min(body.len()));
    if choice & 2 == 0 {
        assert_eq!(listed(format, &[body]), listed(format, &[left, right]));
    } else {
        assert_eq!(watched(format, &[body]), watched(format, &[left, right]));
    }
});
