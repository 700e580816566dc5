//! The end of a JSON value, found without parsing it.
//!
//! Pure: bytes in, a length out.
//!
//! Views decode one object from exactly its bytes, so a list must be split into items before anything is parsed. That
//! is a second scan of every byte; to keep it cheap beside the decoder, nested values are scanned in blocks of 64
//! bytes, with one bit per byte (the idea is simdjson's, done with plain 64-bit words): which bytes are quotes, which
//! of them are escaped, hence which bytes are inside strings, hence which brackets count.

/// Finds the end of one value in bytes that arrive in pieces. Remembers how far it has scanned.
#[derive(Debug, Default, Clone)]
pub(super) struct ValueEnd {
    looked: usize,
    depth: u64,
    /// Inside a string.
    quoted: bool,
    /// Right behind a backslash that escapes.
    escaped: bool,
}

const BLOCK: usize = 64;
const ONES: u64 = 0x0101_0101_0101_0101;
const EVEN: u64 = 0x5555_5555_5555_5555;

/// One bit per byte of a block.
struct Marks {
    quotes: u64,
    backslashes: u64,
    opens: u64,
    closes: u64,
}

// === impl ValueEnd ===

impl ValueEnd {
    /// Returns the length of the value that starts with the first of `bytes`, or `None` while it is incomplete.
    ///
    /// Called again with the same bytes and more behind them, it continues where it stopped. Only brackets and quotes
    /// are scanned: the parser of the value finds errors in it. A number or a word ends before the byte that cannot
    /// belong to it.
    pub(super) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        match bytes.first()? {
            b'{' | b'[' => self.nested(bytes),
            b'"' => self.string(bytes),
            _ => self.word(bytes),
        }
    }

    /// Whether nothing was scanned yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.looked == 0
    }

    fn word(&mut self, bytes: &[u8]) -> Option<usize> {
        let ends = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
        let found = bytes[self.looked..].iter().position(ends).map(|at| self.looked + at);
        self.looked = bytes.len();
        // A value has at least one byte: a delimiter in its place is included, and every parser refuses it.
        found.map(|end| end.max(1))
    }

    fn string(&mut self, bytes: &[u8]) -> Option<usize> {
        self.looked = self.looked.max(1);
        while self.looked < bytes.len() {
            if std::mem::take(&mut self.escaped) {
                self.looked += 1;
                continue;
            }
            let Some(at) = memchr::memchr2(b'"', b'\\', &bytes[self.looked..]) else {
                self.looked = bytes.len();
                return None;
            };
            self.looked += at + 1;
            if bytes[self.looked - 1] == b'"' {
                return Some(self.looked);
            }
            self.escaped = true;
        }
        None
    }

    fn nested(&mut self, bytes: &[u8]) -> Option<usize> {
        while let Some(block) = bytes.get(self.looked..).and_then(<[u8]>::first_chunk::<BLOCK>) {
            if let Some(at) = self.block(block) {
                return Some(self.looked + at + 1);
            }
            self.looked += BLOCK;
        }
        for (at, &byte) in bytes.iter().enumerate().skip(self.looked) {
            if self.byte(byte) {
                return Some(at + 1);
            }
        }
        self.looked = bytes.len();
        None
    }

    /// Scans 64 bytes; returns the position of the bracket that closes the value.
    fn block(&mut self, block: &[u8; BLOCK]) -> Option<usize> {
        let marks = Marks::of(block);
        let quotes = marks.quotes & !self.escapes(marks.backslashes);
        let carried = if self.quoted { u64::MAX } else { 0 };
        let inside = prefix_xor(quotes) ^ carried;
        self.quoted = inside >> 63 == 1;
        let mut opens = marks.opens & !inside;
        let mut closes = marks.closes & !inside;
        if self.depth > u64::from(closes.count_ones()) {
            self.depth = self.depth + u64::from(opens.count_ones()) - u64::from(closes.count_ones());
            return None;
        }
        // The value may end in this block: take the brackets in their order.
        while opens | closes != 0 {
            let at = (opens | closes).trailing_zeros();
            let bit = 1 << at;
            if opens & bit != 0 {
                self.depth += 1;
            } else {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    return Some(at as usize);
                }
            }
            opens &= !bit;
            closes &= !bit;
        }
        None
    }

    /// Returns which bytes of a block are escaped by a backslash before them. A run of backslashes escapes every second
    /// one of its own.
    fn escapes(&mut self, backslashes: u64) -> u64 {
        let carried = u64::from(std::mem::take(&mut self.escaped));
        if backslashes == 0 {
            return carried;
        }
        let backslashes = backslashes & !carried;
        let follows = backslashes << 1 | carried;
        let odd_starts = backslashes & !EVEN & !follows;
        let (even_runs, overflow) = odd_starts.overflowing_add(backslashes);
        self.escaped = overflow;
        (EVEN ^ (even_runs << 1)) & follows
    }

    /// Scans one byte; returns whether it closes the value.
    fn byte(&mut self, byte: u8) -> bool {
        let escaped = std::mem::take(&mut self.escaped);
        match byte {
            b'\\' if !escaped => self.escaped = true,
            b'"' if !escaped => self.quoted = !self.quoted,
            b'{' | b'[' if !self.quoted => self.depth += 1,
            b'}' | b']' if !self.quoted => {
                self.depth = self.depth.saturating_sub(1);
                return self.depth == 0;
            }
            _ => {}
        }
        false
    }
}

// === impl Marks ===

impl Marks {
    fn of(block: &[u8; BLOCK]) -> Self {
        // One bit per class in the byte's own place: the compiler makes vector instructions of this loop.
        let mut classes = [0u8; BLOCK];
        for (class, &byte) in classes.iter_mut().zip(block) {
            // `[` and `{`, and `]` and `}`, differ in one bit.
            let folded = byte | 0x20;
            *class = u8::from(byte == b'"')
                | u8::from(byte == b'\\') << 1
                | u8::from(folded == b'{') << 2
                | u8::from(folded == b'}') << 3;
        }
        let mut marks = Self { quotes: 0, backslashes: 0, opens: 0, closes: 0 };
        for (at, word) in classes.as_chunks::<8>().0.iter().enumerate() {
            let word = u64::from_le_bytes(*word);
            marks.quotes |= low_bits(word) << (at * 8);
            marks.backslashes |= low_bits(word >> 1) << (at * 8);
            marks.opens |= low_bits(word >> 2) << (at * 8);
            marks.closes |= low_bits(word >> 3) << (at * 8);
        }
        marks
    }
}

/// Returns the lowest bits of the eight bytes of a word, as the lowest eight bits: each lands in a bit of the top byte
/// of the product, and no two sums meet.
fn low_bits(word: u64) -> u64 {
    (word & ONES).wrapping_mul(0x0102_0408_1020_4080) >> 56
}

/// Returns for each bit whether an odd number of bits is set up to and including it.
fn prefix_xor(mut bits: u64) -> u64 {
    for shift in [1, 2, 4, 8, 16, 32] {
        bits ^= bits << shift;
    }
    bits
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The expected result, byte by byte.
    fn plain(bytes: &[u8]) -> Option<usize> {
        let mut scan = ValueEnd::default();
        bytes.iter().position(|&byte| scan.byte(byte)).map(|at| at + 1)
    }

    #[test]
    fn a_value_ends_where_its_bracket_closes() {
        let check = |text: &str, want: Option<usize>| {
            assert_eq!(ValueEnd::default().find(text.as_bytes()), want, "{text}");
            let padded = format!("{text}{}", ",".repeat(80));
            let want_padded = want.or_else(|| (!text.starts_with(['{', '[', '"'])).then_some(text.len()));
            assert_eq!(ValueEnd::default().find(padded.as_bytes()), want_padded, "{padded}");
        };
        check(r#"{}"#, Some(2));
        check(r#"{"a":"}"}"#, Some(9));
        check(r#"{"a":"\"}"}"#, Some(11));
        check(r#"{"a":"\\"}"#, Some(10));
        check(r#"[[],{}]"#, Some(7));
        check(r#""a\"b""#, Some(6));
        check(r#""ab"#, None);
        check(r#"{"a":["#, None);
        check("12", None);
    }

    proptest! {
        #[test]
        fn blocks_and_bytes_agree_in_any_chunking(
            body in r#"[\[{]([\\"{}\[\]a]{0,9}){0,40}"#,
            cuts in proptest::collection::vec(0usize..400, 0..6),
        ) {
            let bytes = body.as_bytes();
            let want = plain(bytes);
            prop_assert_eq!(ValueEnd::default().find(bytes), want);
            let mut scan = ValueEnd::default();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).chain([bytes.len()]).collect();
            cuts.sort_unstable();
            let found = cuts.into_iter().find_map(|cut| scan.find(&bytes[..cut]));
            prop_assert_eq!(found, want);
        }
    }
}
