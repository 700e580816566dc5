//! Pure: a profile in the format of `go tool pprof` (`profile.proto` of github.com/google/pprof), uncompressed, which
//! the tool accepts too.
//!
//! A controller "calls" its keys: two frames, so that `-top` shows keys, `-cum` controllers, and a flame graph both.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Profile, Spent};

/// The values of a sample, as name and unit; [`SHOWN_FIRST`] is the default.
const KINDS: [(&str, &str); 3] = [("passes", "count"), ("busy", "nanoseconds"), ("wall", "nanoseconds")];
const SHOWN_FIRST: usize = 1;

/// Fields of the messages.
mod field {
    pub(super) const SAMPLE_TYPE: u32 = 1;
    pub(super) const SAMPLE: u32 = 2;
    pub(super) const LOCATION: u32 = 4;
    pub(super) const FUNCTION: u32 = 5;
    pub(super) const STRING_TABLE: u32 = 6;
    pub(super) const DURATION_NANOS: u32 = 10;
    pub(super) const DEFAULT_SAMPLE_TYPE: u32 = 14;
    /// Of a location.
    pub(super) const LINE: u32 = 4;
}

/// A protobuf message under construction.
#[derive(Default)]
struct Message(Vec<u8>);

/// The frames of a profile: each has a function and a location of the same number, from one on.
#[derive(Default)]
struct Frames {
    numbers: BTreeMap<String, u64>,
    strings: Strings,
    written: Message,
}

/// The string table. The first string is empty.
#[derive(Default)]
struct Strings {
    numbers: BTreeMap<String, u64>,
    texts: Vec<String>,
}

/// Encodes a profile of this duration.
pub(super) fn encode(profile: &Profile, taken_for: Duration) -> Vec<u8> {
    let mut frames = Frames::default();
    frames.strings.number("");
    let mut types = Message::default();
    for (name, unit) in KINDS {
        let mut kind = Message::default();
        kind.number(1, frames.strings.number(name));
        kind.number(2, frames.strings.number(unit));
        types.message(field::SAMPLE_TYPE, &kind);
    }
    let mut samples = Message::default();
    for ((controller, key), spent) in &profile.keys {
        let stack = [frames.number(&format!("{controller} {key}")), frames.number(controller)];
        samples.message(field::SAMPLE, &sample(&stack, *spent));
    }
    if profile.others.passes > 0 {
        samples.message(field::SAMPLE, &sample(&[frames.number("others")], profile.others));
    }
    let shown_first = frames.strings.number(KINDS[SHOWN_FIRST].0);
    let Frames { strings, written, .. } = frames;
    let mut whole = Message([types.0, samples.0, written.0].concat());
    for text in &strings.texts {
        whole.bytes(field::STRING_TABLE, text.as_bytes());
    }
    whole.number(field::DURATION_NANOS, nanos(taken_for));
    whole.number(field::DEFAULT_SAMPLE_TYPE, shown_first);
    whole.0
}

/// A sample; the innermost frame comes first.
fn sample(stack: &[u64], spent: Spent) -> Message {
    let mut sample = Message::default();
    sample.numbers(1, stack);
    sample.numbers(2, &[spent.passes, nanos(spent.busy), nanos(spent.time)]);
    sample
}

fn nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

// === impl Frames ===

impl Frames {
    fn number(&mut self, name: &str) -> u64 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = self.numbers.len() as u64 + 1;
        self.numbers.insert(name.to_owned(), number);
        let mut function = Message::default();
        function.number(1, number);
        function.number(2, self.strings.number(name));
        self.written.message(field::FUNCTION, &function);
        let mut line = Message::default();
        let mut location = Message::default();
        line.number(1, number);
        location.number(1, number);
        location.message(field::LINE, &line);
        self.written.message(field::LOCATION, &location);
        number
    }
}

// === impl Strings ===

impl Strings {
    fn number(&mut self, text: &str) -> u64 {
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        let number = self.texts.len() as u64;
        self.numbers.insert(text.to_owned(), number);
        self.texts.push(text.to_owned());
        number
    }
}

// === impl Message ===

impl Message {
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn number(&mut self, field: u32, value: u64) {
        self.varint(u64::from(field) << 3);
        self.varint(value);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field) << 3 | 2);
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn message(&mut self, field: u32, message: &Self) {
        self.bytes(field, &message.0);
    }

    /// A packed field.
    fn numbers(&mut self, field: u32, values: &[u64]) {
        let mut packed = Self::default();
        for value in values {
            packed.varint(*value);
        }
        self.message(field, &packed);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use steersman_base::ObjectKey;

    use super::*;

    #[test]
    fn a_profile_is_written_as_pprof_reads_it() {
        let mut profile = Profile::default();
        let wall = Duration::from_nanos(300);
        let busy = Duration::from_nanos(5);
        profile.add(&Arc::from("c"), &ObjectKey::new("n", "k"), wall, busy);
        // As `protoc --decode perftools.profiles.Profile profile.proto` shows it: three sample_types, a sample of two
        // locations with values 1, 5 and 300, two functions with their locations, eight strings, and the default type.
        let want: [&[u8]; 11] = [
            &[0x0a, 4, 0x08, 1, 0x10, 2, 0x0a, 4, 0x08, 3, 0x10, 4, 0x0a, 4, 0x08, 5, 0x10, 4],
            &[0x12, 10, 0x0a, 2, 1, 2, 0x12, 4, 1, 5, 0xac, 0x02],
            &[0x2a, 4, 0x08, 1, 0x10, 6, 0x22, 6, 0x08, 1, 0x22, 2, 0x08, 1],
            &[0x2a, 4, 0x08, 2, 0x10, 7, 0x22, 6, 0x08, 2, 0x22, 2, 0x08, 2],
            b"\x32\x00\x32\x06passes\x32\x05count",
            b"\x32\x04busy\x32\x0bnanoseconds",
            b"\x32\x04wall",
            b"\x32\x05c n/k",
            b"\x32\x01c",
            &[0x50, 0x80, 0x94, 0xeb, 0xdc, 0x03],
            &[0x70, 3],
        ];
        assert_eq!(encode(&profile, Duration::from_secs(1)), want.concat());
    }
}
