//! The decoders against any chunking and any bytes.

use super::*;
use proptest::prelude::*;
use steersman_base::{Meta, Resource};
use steersman_model::{DecodeError, Encoded, Projection, View};

fn pods() -> Expected {
    Expected::new(&Resource::namespaced("", "v1", "pods", "Pod"), Projection::Whole)
}

/// Cuts `body` at the given places and returns what the list decoder makes of it.
fn read_list(format: Format, body: &[u8], cuts: &[usize]) -> Result<(Vec<Vec<u8>>, ListMeta), String> {
    let mut decoder = ListDecoder::new(format, pods());
    let mut items = Vec::new();
    for chunk in chunks(body, cuts) {
        decoder.feed(chunk);
        while let Some(item) = decoder.next_item().map_err(|error| error.to_string())? {
            items.push(bytes_of(item).to_vec());
        }
    }
    decoder.finish().map(|meta| (items, meta)).map_err(|error| error.to_string())
}

/// The same for a watch; an error ends it, what came before counts.
fn read_watch(format: Format, body: &[u8], cuts: &[usize]) -> (Vec<String>, Option<String>) {
    let mut decoder = WatchDecoder::new(format, pods());
    let mut events = Vec::new();
    for chunk in chunks(body, cuts) {
        decoder.feed(chunk);
        loop {
            match decoder.next_event() {
                Ok(Some(event)) => events.push(format!("{event:?}")),
                Ok(None) => break,
                Err(error) => return (events, Some(error.to_string())),
            }
        }
    }
    (events, decoder.finish().err().map(|error| error.to_string()))
}

fn bytes_of(item: Encoded<'_>) -> &[u8] {
    match item {
        Encoded::Json(bytes) | Encoded::Protobuf(bytes) => bytes,
    }
}

fn chunks<'a>(body: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = cuts.iter().map(|cut| cut % (body.len() + 1)).chain([0, body.len()]).collect();
    places.sort_unstable();
    places.windows(2).map(|pair| &body[pair[0]..pair[1]]).collect()
}

const LIST: &str = r#" {"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"12","continue":"a\"b","remainingItemCount":7},
 "items":[ {"metadata":{"name":"a","x":"]}\\\"{"}} , {"metadata":{"name":"b"},"y":[[],{},[{"z":"\\"}]]},{}]} "#;
const WATCH: &str = concat!(
    r#"{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","x":"}\"{"}}}"#,
    "\n\n",
    r#"{"object":{"metadata":{"name":"b"},"kind":"Pod"},"type":"DELETED","more":[1]}"#,
    "\r\n",
    r#"{"type":"BOOKMARK","object":{"kind":"Pod","apiVersion":"v1","metadata":{"resourceVersion":"5"}}}"#,
    "\n",
    r#"{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}}"#,
    "\n",
);

/// A protobuf field: number and bytes.
fn field(number: u8, bytes: &[u8]) -> Vec<u8> {
    assert!(bytes.len() < 1 << 14);
    [&[number << 3 | 2, bytes.len() as u8 | 0x80, (bytes.len() >> 7) as u8][..], bytes].concat()
}

fn envelope(kind: &str, raw: &[u8]) -> Vec<u8> {
    let type_meta = [field(1, b"v1"), field(2, kind.as_bytes())].concat();
    [b"k8s\0".to_vec(), field(1, &type_meta), field(2, raw), field(4, b"")].concat()
}

fn protobuf_list() -> Vec<u8> {
    let metadata = [field(2, b"12"), field(3, b"a\"b"), vec![4 << 3, 7]].concat();
    let items = [field(2, b"\x0a\x00"), field(2, &[7; 300]), field(2, b"")].concat();
    // An unknown number beside the items, which a newer server may add.
    envelope("PodList", &[field(1, &metadata), items, vec![9 << 3, 0x96, 0x01]].concat())
}

fn protobuf_watch() -> Vec<u8> {
    let frame = |kind: &str, object: &[u8]| {
        let event = [field(1, kind.as_bytes()), field(2, &field(1, object))].concat();
        [(event.len() as u32).to_be_bytes().to_vec(), event].concat()
    };
    let mark = field(
        1,
        &[field(6, b"5"), field(12, &[field(1, b"k8s.io/initial-events-end"), field(2, b"true")].concat())].concat(),
    );
    [
        frame("ADDED", &envelope("Pod", &[1; 200])),
        frame("BOOKMARK", &envelope("Pod", &mark)),
        frame("ERROR", &envelope("Status", &[field(4, b"Expired"), vec![6 << 3, 0x9a, 0x03]].concat())),
    ]
    .concat()
}

#[test]
fn a_list_is_cut_into_its_items_and_says_what_it_is() {
    let (items, meta) = read_list(Format::Json, LIST.as_bytes(), &[]).unwrap();
    let items: Vec<_> = items.iter().map(|item| String::from_utf8_lossy(item)).collect();
    assert_eq!(
        items,
        [r#"{"metadata":{"name":"a","x":"]}\\\"{"}}"#, r#"{"metadata":{"name":"b"},"y":[[],{},[{"z":"\\"}]]}"#, "{}"]
    );
    let want = ListMeta { resource_version: "12".into(), continue_token: "a\"b".into(), remaining_item_count: Some(7) };
    assert_eq!(meta, want);
    let (items, meta) = read_list(Format::Protobuf, &protobuf_list(), &[]).unwrap();
    assert_eq!(items, [b"\x0a\x00".to_vec(), vec![7; 300], vec![]]);
    assert_eq!(meta, want);
}

/// Reads all items as decoded objects, and shows them.
fn read_objects(format: Format, body: &[u8], cuts: &[usize]) -> Result<Vec<String>, String> {
    let mut decoder = ListDecoder::new(format, pods());
    let mut objects = Vec::new();
    for chunk in chunks(body, cuts) {
        decoder.feed(chunk);
        while let Some(object) = decoder.next_object::<Whole>().map_err(|error| error.to_string())? {
            objects.push(object.0.to_string());
        }
    }
    decoder.finish().map(|_| objects).map_err(|error| error.to_string())
}

/// A view that keeps the whole object.
struct Whole(serde_json::Value, Meta);

impl View for Whole {
    fn meta(&self) -> &Meta {
        &self.1
    }
    fn decode(body: Encoded<'_>) -> Result<Self, DecodeError> {
        Ok(Self(serde_json::from_slice(bytes_of(body))?, Meta::default()))
    }
}

#[test]
fn a_wrong_guess_where_an_item_ends_does_no_harm() {
    // What stands between items also stands inside the second one, as in the claim templates of a StatefulSet.
    let items = [
        r#"{"metadata":{"name":"a"}}"#,
        r#"{"metadata":{"name":"b"},"spec":[{"metadata":{"name":"x"}},{"metadata":{"name":"y"}}]}"#,
        r#"{"metadata":{"name":"c","text":"},{\"metadata\":{"}}"#,
        r#"{"metadata":{"name":"d"}}"#,
        r#"{"kind":"CustomItem","metadata":{"name":"e"}}"#,
        r#"{"metadata":{}}"#,
    ];
    let body = format!(r#"{{"metadata":{{"resourceVersion":"1"}},"items":[{}]}}"#, items.join(","));
    let want: Vec<_> =
        items.iter().map(|item| Whole::decode(Encoded::Json(item.as_bytes())).unwrap().0.to_string()).collect();
    assert_eq!(read_objects(Format::Json, body.as_bytes(), &[]).unwrap(), want);
    for at in 0..body.len() {
        assert_eq!(read_objects(Format::Json, body.as_bytes(), &[at]).unwrap(), want, "at {at}");
    }
}

#[test]
fn an_item_that_cannot_be_read_is_named_even_if_others_follow() {
    let body = r#"{"metadata":{},"items":[{"metadata":{"name":"a","uid":"u","resourceVersion":"1"},"x":tru},{"metadata":{}}]}"#;
    let error = read_objects(Format::Json, body.as_bytes(), &[]).unwrap_err();
    assert!(error.starts_with("cannot read Pod a: "), "{error}");
}

#[test]
fn metadata_may_follow_the_items() {
    let body = br#"{"items":[{"a":1}],"metadata":{"resourceVersion":"12"},"apiVersion":"v1","kind":"PodList"}"#;
    let (items, meta) = read_list(Format::Json, body, &[]).unwrap();
    assert_eq!((items.len(), meta.resource_version.as_str()), (1, "12"));
}

#[test]
fn a_response_that_is_not_a_list_is_an_error() {
    let check = |body: &str, want: &str| {
        let error = read_list(Format::Json, body.as_bytes(), &[]).unwrap_err();
        assert!(error.contains(want), "{body}: {error}");
    };
    check("", "the answer ends in the middle of a list");
    check("<html>", "cannot read a list: `<` does not belong at the start of a JSON object at byte 0");
    check(r#"{"kind":"Status","code":500}"#, "expected PodList of v1, the server sent Status");
    check(r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","metadata":{}}"#, "the server sent Table");
    check(r#"{"kind":"PodList","apiVersion":"v2","metadata":{},"items":[]}"#, "the server sent PodList of v2");
    check(r#"{"items":[]}"#, "it has no metadata");
    check(r#"{"items":[1]}"#, "`1` does not belong where an object should be at byte 10");
    check(r#"{"items":[{} {}]}"#, "`{` does not belong behind an object");
    check(r#"{"items":[{},]}"#, "`]` does not belong where an object should be");
    check(r#"{"items":{}}"#, "cannot read a list: invalid type: map");
    check(r#"{"metadata":{"resourceVersion":1}}"#, "invalid type: integer");
    check(r#"{"x":tru,"#, "cannot read a list: ");
    check(r#"{"metadata":{},"items":[]}x"#, "`x` does not belong behind the list");
    let check = |body: &[u8], want: &str| {
        let error = read_list(Format::Protobuf, body, &[]).unwrap_err();
        assert!(error.contains(want), "{error}");
    };
    check(b"", "ends in the middle");
    check(b"{}", "it does not start with `k8s");
    check(&envelope("Status", b""), "the server sent Status of v1");
    check(&envelope("PodList", b""), "it has no metadata");
    check(b"k8s\0\x17", "an unknown wire type");
    check(b"k8s\0\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "a number that does not end");
    check(b"k8s\0\x12\x03\x12\x05\x01\x01\x01\x01\x01", "a field longer than its message");
    check(b"k8s\0\x12\x02\x12\xff", "a field longer than its message");
}

#[test]
fn an_object_over_the_bound_is_refused() {
    let long = format!(r#"{{"items":[{{"x":"{}"#, "y".repeat(1 << 20));
    let mut decoder = ListDecoder::new(Format::Json, pods());
    let refused = std::iter::repeat_n(long.as_bytes(), 66).any(|chunk| {
        decoder.feed(chunk);
        matches!(decoder.next_item(), Err(WireError::TooLarge { limit: OBJECT_BYTES_MAX, .. }))
    });
    assert!(refused);
    // A length alone is enough: nobody waits for 4 GiB.
    let length = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let list = [b"k8s\0\x12".to_vec(), length.to_vec(), b"\x12".to_vec(), vec![0xf0, 0xff, 0xff, 0xff, 0x0f]].concat();
    assert!(read_list(Format::Protobuf, &list, &[]).unwrap_err().contains("larger than"));
    let (events, error) = read_watch(Format::Protobuf, &[0xff; 5], &[]);
    assert!(events.is_empty() && error.unwrap().contains("larger than"));
}

#[test]
fn a_watch_is_read_event_by_event() {
    let (events, error) = read_watch(Format::Json, WATCH.as_bytes(), &[]);
    assert_eq!(error, None);
    let kinds: Vec<_> = events.iter().map(|event| event.split('(').next().unwrap()).collect();
    assert_eq!(kinds, ["Added", "Deleted", "Bookmark", "Error"]);
    let (events, error) = read_watch(Format::Protobuf, &protobuf_watch(), &[]);
    assert_eq!(error, None);
    assert_eq!(events.len(), 3);
    assert_eq!(events[1], "Bookmark(Bookmark { version: 5, initial_events_end: true })");
    assert!(events[2].contains("code: 410"), "{}", events[2]);
}

#[test]
fn a_peek_returns_what_a_decoder_would() {
    let typed = r#"{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","generateName":"g","namespace":"n","uid":"u","resourceVersion":"5","labels":{}},"spec":{}}"#;
    let custom = r#"{"apiVersion":"x/v1","kind":"X","metadata":{"annotations":{"name":"no"},"name":"a","namespace":"n","resourceVersion":"5","uid":"u"}}"#;
    let cluster =
        r#"{"spec":{"metadata":{"name":"no"}},"metadata":{"uid":"u\u0041","name":"a","resourceVersion":"5"}}"#;
    let check = |body: &str, key: &str, uid: &str| {
        let peeked = peek(Encoded::Json(body.as_bytes())).unwrap();
        assert_eq!(
            (peeked.key.to_string(), peeked.uid, peeked.resource_version.as_str()),
            (key.into(), uid.into(), "5")
        );
    };
    check(typed, "n/a", "u");
    check(custom, "n/a", "u");
    check(cluster, "a", "uA");
    for nothing in ["", "{}", "[]", "{\"metadata\":7}", "{\"metadata\":{\"name\":\"a\"}}", "{\"metadata\":{\"name\":"] {
        assert_eq!(peek(Encoded::Json(nothing.as_bytes())), None, "{nothing}");
    }
    let metadata = [field(1, b"a"), field(3, b"n"), field(5, b"u"), field(6, b"5"), field(7, b"rest")].concat();
    let peeked = peek(Encoded::Protobuf(&field(1, &metadata))).unwrap();
    assert_eq!((peeked.key.to_string().as_str(), peeked.resource_version.as_str()), ("n/a", "5"));
    assert_eq!(peek(Encoded::Protobuf(b"\xff")), None);
}

#[test]
fn every_single_cut_gives_the_same() {
    let whole = read_list(Format::Json, LIST.as_bytes(), &[]).unwrap();
    for at in 0..LIST.len() {
        assert_eq!(read_list(Format::Json, LIST.as_bytes(), &[at]).unwrap(), whole, "at {at}");
    }
    let body = protobuf_list();
    let whole = read_list(Format::Protobuf, &body, &[]).unwrap();
    for at in 0..body.len() {
        assert_eq!(read_list(Format::Protobuf, &body, &[at]).unwrap(), whole, "at {at}");
    }
    let every: Vec<usize> = (0..LIST.len()).collect();
    assert_eq!(read_list(Format::Json, LIST.as_bytes(), &every), read_list(Format::Json, LIST.as_bytes(), &[]));
}

#[test]
fn a_body_that_ends_early_is_never_taken_for_a_whole_one() {
    let trimmed = LIST.trim_end();
    for end in 0..trimmed.len() {
        assert!(read_list(Format::Json, &trimmed.as_bytes()[..end], &[]).is_err(), "at {end}");
    }
    // Behind the list comes only an empty field of the envelope.
    let body = protobuf_list();
    for end in 0..body.len() - 3 {
        assert!(read_list(Format::Protobuf, &body[..end], &[]).is_err(), "at {end}");
    }
}

proptest! {
    #[test]
    fn any_chunking_gives_the_same(cuts in proptest::collection::vec(0usize..1000, 0..12)) {
        for (format, list, watch) in [
            (Format::Json, LIST.as_bytes().to_vec(), WATCH.as_bytes().to_vec()),
            (Format::Protobuf, protobuf_list(), protobuf_watch()),
        ] {
            prop_assert_eq!(read_list(format, &list, &cuts), read_list(format, &list, &[]));
            prop_assert_eq!(read_watch(format, &watch, &cuts), read_watch(format, &watch, &[]));
        }
    }

    #[test]
    fn no_bytes_panic_and_any_chunking_of_them_fails_alike(
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        cuts in proptest::collection::vec(0usize..200, 0..6),
    ) {
        for format in [Format::Json, Format::Protobuf] {
            let whole = read_list(format, &bytes, &[]).is_ok();
            prop_assert_eq!(read_list(format, &bytes, &cuts).is_ok(), whole);
            prop_assert!(whole || read_objects(format, &bytes, &cuts).is_err());
            prop_assert_eq!(read_watch(format, &bytes, &cuts).0, read_watch(format, &bytes, &[]).0);
        }
        let _ = peek(Encoded::Json(&bytes));
        let _ = peek(Encoded::Protobuf(&bytes));
        let _ = ApiStatus::from_json(&bytes);
        let _ = ApiStatus::from_protobuf(&bytes);
    }

    #[test]
    fn damaged_bodies_never_panic(
        changes in proptest::collection::vec((0usize..1000, any::<u8>()), 1..4),
        cuts in proptest::collection::vec(0usize..1000, 0..4),
    ) {
        let damaged = |mut body: Vec<u8>| {
            for (at, byte) in &changes {
                let at = at % body.len();
                body[at] = *byte;
            }
            body
        };
        let json = damaged(LIST.into());
        let proto = damaged(protobuf_list());
        prop_assert_eq!(read_list(Format::Json, &json, &cuts).is_ok(), read_list(Format::Json, &json, &[]).is_ok());
        prop_assert_eq!(read_list(Format::Protobuf, &proto, &cuts).is_ok(), read_list(Format::Protobuf, &proto, &[]).is_ok());
        let json = damaged(WATCH.into());
        let proto = damaged(protobuf_watch());
        prop_assert_eq!(read_watch(Format::Json, &json, &cuts), read_watch(Format::Json, &json, &[]));
        prop_assert_eq!(read_watch(Format::Protobuf, &proto, &cuts), read_watch(Format::Protobuf, &proto, &[]));
    }
}
