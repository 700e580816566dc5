//! The facts of `data/protobuf.tsv`: which field of a message has which number, and what it is in JSON.
//!
//! A line is the OpenAPI name of a message and, behind a tab, its fields: `number=name:how-often type`, separated by
//! spaces. How often: nothing, `*` for a list, `%` for a map from strings. The name is the one in JSON; `+` says that
//! the fields of the inner message stand among those of the outer one, `@` that the message is nothing but this value
//! (the last one there is). Types are letters (see [`Holds::parse`]) or names of messages, of the same package if they
//! have no dots. A message is parsed on first use.

use std::collections::HashMap;
use std::sync::OnceLock;

const FACTS: &str = include_str!("../../../data/protobuf.tsv");

/// A message: its fields, ordered by number.
#[derive(Debug)]
pub(super) struct Message {
    pub(super) name: &'static str,
    pub(super) fields: Vec<Field>,
}

/// A field of a message.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) number: u64,
    /// Its name in JSON.
    pub(super) name: &'static str,
    pub(super) place: Place,
    pub(super) often: Often,
    pub(super) holds: Holds,
}

/// The place of a field's value in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// Under its name.
    Named,
    /// Its own fields are among those of the message.
    Inline,
    /// It is the value of the whole message.
    Whole,
}

/// The number of values of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Often {
    Once,
    List,
    Map,
}

/// The type of a value.
#[derive(Clone, Copy, Debug)]
pub(super) enum Holds {
    Text,
    /// Base64 in JSON.
    Bytes,
    Bool,
    Integer,
    Double,
    /// JSON, written out.
    Json,
    Time,
    MicroTime,
    IntOrString,
    Message(Id),
}

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Id(usize);

struct Line {
    name: &'static str,
    fields: &'static str,
    parsed: OnceLock<Message>,
}

struct Table {
    lines: Vec<Line>,
    by_name: HashMap<&'static str, Id>,
}

/// The message with this OpenAPI name.
pub(super) fn find(name: &str) -> Option<&'static Message> {
    table().by_name.get(name).and_then(|id| id.message())
}

fn table() -> &'static Table {
    static TABLE: OnceLock<Table> = OnceLock::new();
    TABLE.get_or_init(Table::read)
}

// === impl Table ===

impl Table {
    fn read() -> Self {
        let mut table = Self { lines: Vec::new(), by_name: HashMap::new() };
        for (name, fields) in FACTS.lines().filter_map(|line| line.split_once('\t')) {
            table.by_name.insert(name, Id(table.lines.len()));
            table.lines.push(Line { name, fields, parsed: OnceLock::new() });
        }
        table
    }
}

// === impl Id ===

impl Id {
    pub(super) fn message(self) -> Option<&'static Message> {
        table().lines.get(self.0).map(|line| line.parsed.get_or_init(|| Message::parse(line)))
    }
}

// === impl Message ===

impl Message {
    fn parse(line: &Line) -> Self {
        let package = line.name.rsplit_once('.').map_or("", |(package, _)| package);
        let fields = line.fields.split(' ').filter_map(|fact| Field::parse(fact, package));
        Self { name: line.name.rsplit('.').next().unwrap_or_default(), fields: fields.collect() }
    }

    /// The field with this number.
    pub(super) fn field(&self, number: u64) -> Option<&Field> {
        self.fields.binary_search_by_key(&number, |field| field.number).ok().and_then(|at| self.fields.get(at))
    }
}

// === impl Field ===

impl Field {
    fn parse(fact: &'static str, package: &str) -> Option<Self> {
        let (number, rest) = fact.split_once('=')?;
        let (name, holds) = rest.rsplit_once(':')?;
        let (often, holds) = match (holds.strip_prefix('*'), holds.strip_prefix('%')) {
            (Some(holds), _) => (Often::List, holds),
            (None, Some(holds)) => (Often::Map, holds),
            (None, None) => (Often::Once, holds),
        };
        let place = match name {
            "+" => Place::Inline,
            "@" => Place::Whole,
            _ => Place::Named,
        };
        Some(Self { number: number.parse().ok()?, name, place, often, holds: Holds::parse(holds, package)? })
    }
}

// === impl Holds ===

impl Holds {
    fn parse(text: &str, package: &str) -> Option<Self> {
        Some(match text {
            "s" => Self::Text,
            "y" => Self::Bytes,
            "b" => Self::Bool,
            "i" => Self::Integer,
            "d" => Self::Double,
            "j" => Self::Json,
            "t" => Self::Time,
            "m" => Self::MicroTime,
            "o" => Self::IntOrString,
            name if name.contains('.') => Self::Message(*table().by_name.get(name)?),
            name => Self::Message(*table().by_name.get(format!("{package}.{name}").as_str())?),
        })
    }
}
