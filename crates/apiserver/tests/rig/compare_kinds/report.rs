//! The result of the comparison: by kind, in total, and what differs.

use std::fmt::Write;

use super::generator::{Ask, Body};
use super::{Answer, REQUESTS, Subject};

/// How many of a thousand answers may differ in code, reason or object.
const DIFFERENT_OF_1000_MAX: usize = 5;
/// How many of a hundred answers may differ in words.
const WORDED_OF_100_MAX: usize = 5;
/// How many of a hundred answers about one kind may differ in any way.
const KIND_OF_100_MAX: usize = 10;
/// How many of a thousand answers may differ without being listed: which of two writes come in one second is chance.
const UNLISTED_OF_1000_MAX: usize = 2;
/// The differences that are known: kind, what is in the request or in one of the answers, reason.
const KNOWN: &str = include_str!("../../data/compare-known.tsv");
const DOCS: &str = include_str!("../../../../../docs/apiserver.md");

/// A request and its answers.
pub(crate) struct Difference {
    what: &'static str,
    request: String,
    theirs: Answer,
    ours: Answer,
}

/// What was compared of one kind.
pub(crate) struct Kind {
    pub(crate) name: String,
    pub(crate) accepted: usize,
    pub(crate) refused: usize,
    /// In code, reason or object.
    different: Vec<Difference>,
    /// In words only.
    worded: Vec<Difference>,
}

pub(crate) struct Report {
    pub(crate) kinds: Vec<Kind>,
}

impl Difference {
    pub(crate) fn new(ask: &Ask, theirs: Answer, ours: Answer) -> Self {
        let body = match &ask.body {
            Body::None => String::new(),
            Body::These(body) => body.to_string(),
            Body::Current(changes) => format!("{changes:?}"),
        };
        let request = format!("{} {} {body}", ask.method, ask.path);
        Self { what: ask.what, request, theirs, ours }
    }

    fn is_in_words(&self) -> bool {
        let reason = |answer: &Answer| answer.body["reason"].clone();
        self.theirs.code == self.ours.code
            && match self.theirs.code {
                400.. => reason(&self.theirs) == reason(&self.ours),
                _ => self.theirs.body == self.ours.body,
            }
    }

    /// Why it is known to differ.
    fn known(&self, kind: &str) -> Option<&'static str> {
        let texts = [self.what, &self.request, &self.theirs.shown(), &self.ours.shown()].map(str::to_owned);
        rows().find_map(|[of, part, reason]| {
            let applies = (of == "*" || of == kind) && texts.iter().any(|text| text.contains(part));
            applies.then_some(reason)
        })
    }

    fn show(&self, kind: &str, label: &str) -> String {
        let mut text = format!("== {kind}, {label}, {}: {}\n", self.what, self.request);
        let _ = write!(text, "   theirs: {}\n   ours:   {}", self.theirs.shown(), self.ours.shown());
        text
    }
}

/// The rows of the known differences.
fn rows() -> impl Iterator<Item = [&'static str; 3]> {
    let lines = KNOWN.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.map(|line| <[_; 3]>::try_from(line.split('\t').collect::<Vec<_>>()).expect("three columns"))
}

impl Answer {
    fn shown(&self) -> String {
        format!("{} {} {:?}", self.code, self.body, self.warnings)
    }
}

impl Kind {
    pub(crate) fn new(subject: &Subject) -> Self {
        let name = format!("{} {}", subject.kind, subject.api_version);
        Self { name, accepted: 0, refused: 0, different: Vec::new(), worded: Vec::new() }
    }

    pub(crate) fn requests(&self) -> usize {
        self.accepted + self.refused
    }

    /// Whether less than half of what is wanted was refused, or accepted.
    pub(crate) fn is_lopsided(&self) -> bool {
        self.refused.min(self.accepted) * 2 < REQUESTS
    }

    /// Counts the answers to one request. Returns whether codes and objects are equal.
    pub(crate) fn count(&mut self, difference: Difference) -> bool {
        match difference.theirs.code {
            0 | 400.. => self.refused += 1,
            _ => self.accepted += 1,
        }
        if difference.theirs == difference.ours {
            return true;
        }
        let in_words = difference.is_in_words();
        if in_words { &mut self.worded } else { &mut self.different }.push(difference);
        in_words
    }
}

impl Report {
    fn sum(&self, of: fn(&Kind) -> usize) -> usize {
        self.kinds.iter().map(of).sum()
    }

    pub(crate) fn print(&self) {
        for kind in &self.kinds {
            let name = kind.name.split(' ').next().unwrap_or_default();
            for (label, differences) in [("object", &kind.different), ("words", &kind.worded)] {
                for difference in differences {
                    let label = if difference.known(name).is_some() { "known" } else { label };
                    println!("{}", difference.show(&kind.name, label));
                }
            }
        }
        println!("{:60} {:>8} {:>8} {:>8} {:>8}", "kind", "requests", "refused", "differ", "in words");
        for kind in &self.kinds {
            let differ = kind.different.len();
            println!("{:60} {:8} {:8} {differ:8} {:8}", kind.name, kind.requests(), kind.refused, kind.worded.len());
        }
        let total = self.sum(Kind::requests);
        let refused = self.sum(|kind| kind.refused);
        let different = self.sum(|kind| kind.different.len());
        let worded = self.sum(|kind| kind.worded.len());
        println!("{:60} {total:8} {refused:8} {different:8} {worded:8}", "all");
    }

    pub(crate) fn check(&self) {
        for kind in &self.kinds {
            let wrong = kind.different.len() + kind.worded.len();
            assert!(kind.requests() >= 100, "{}: only {} requests", kind.name, kind.requests());
            assert!(kind.refused * 5 >= kind.requests() * 2, "{}: only {} are refused", kind.name, kind.refused);
            assert!(wrong * 100 <= kind.requests() * KIND_OF_100_MAX, "{}: {wrong} answers differ", kind.name);
        }
        let total = self.sum(Kind::requests);
        let different = self.sum(|kind| kind.different.len());
        let worded = self.sum(|kind| kind.worded.len());
        assert!(different * 1000 <= total * DIFFERENT_OF_1000_MAX, "{different} of {total} answers differ");
        assert!((different + worded) * 100 <= total * WORDED_OF_100_MAX, "{worded} of {total} answers differ in words");
        self.check_known();
    }

    /// Almost every difference is listed, and every reason is in the documentation.
    fn check_known(&self) {
        for [_, _, reason] in rows() {
            assert!(DOCS.contains(reason), "docs/apiserver.md does not say: {reason}");
        }
        let differences = self.kinds.iter().flat_map(|kind| {
            let name = kind.name.split(' ').next().unwrap_or_default();
            kind.different.iter().chain(&kind.worded).map(move |difference| (name, difference))
        });
        let unknown: Vec<String> = differences
            .filter(|(kind, difference)| difference.known(kind).is_none())
            .map(|(kind, difference)| difference.show(kind, "unknown"))
            .collect();
        let total = self.sum(Kind::requests);
        let shown = unknown.join("\n");
        assert!(
            unknown.len() * 1000 <= total * UNLISTED_OF_1000_MAX,
            "{} differences are not listed:\n{shown}",
            unknown.len()
        );
    }
}
