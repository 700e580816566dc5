//! `string.format`, when it runs and when its format is checked beforehand.

use crate::gofmt::{self, quote};
use crate::value::Value;

/// Digits after the point unless a clause says how many.
const PRECISION: usize = 6;

/// A clause of a format.
#[derive(Clone, Copy)]
enum Clause {
    String,
    Decimal,
    Fixed(usize),
    Scientific(usize),
    Binary,
    Hex { upper: bool },
    Octal,
}

/// An error in a format, and the argument concerned, if any.
pub(crate) struct Misfit {
    pub(crate) message: String,
    pub(crate) arg: Option<usize>,
}

/// Formats a list of arguments.
pub(super) fn format<'a>(args: &[Value<'a>]) -> Value<'a> {
    let (Some(text), Some(list)) = (args[0].as_str(), args[1].as_list()) else { return Value::no_such_overload() };
    let mut argument = |clause: Clause, at: usize| {
        let value = list.get(at).unwrap_or(Value::Null);
        render(clause, &value).map_err(|message| format!("error during formatting: {message}"))
    };
    super::value_or(run(text, list.len(), &mut argument).map_err(|misfit| misfit.message), Value::string)
}

/// Checks a format against the types of its arguments, which `accepts` looks at. Gives how many arguments it uses.
pub(crate) fn check(
    text: &str,
    arg_count: usize,
    accepts: &mut dyn FnMut(&str, usize) -> Result<(), String>,
) -> Result<usize, Misfit> {
    let mut used = 0;
    let mut misfit = None;
    let mut argument = |clause: Clause, at: usize| {
        used += 1;
        accepts(clause.kind(), at).map(|()| String::new()).map_err(|found| {
            misfit = Some(at);
            format!("error during formatting: {}", clause.refusal(&found))
        })
    };
    match run(text, arg_count, &mut argument) {
        Ok(_) => Ok(used),
        Err(error) => Err(Misfit { arg: misfit, ..error }),
    }
}

fn run(
    text: &str,
    arg_count: usize,
    argument: &mut dyn FnMut(Clause, usize) -> Result<String, String>,
) -> Result<String, Misfit> {
    let misfit = |message: String| Misfit { message, arg: None };
    let mut built = String::new();
    let mut rest = text;
    let mut at = 0;
    while let Some(percent) = rest.find('%') {
        built.push_str(&rest[..percent]);
        rest = &rest[percent + 1..];
        if let Some(after) = rest.strip_prefix('%') {
            built.push('%');
            rest = after;
            continue;
        }
        if at >= arg_count {
            return Err(misfit(format!("index {at} out of range")));
        }
        if rest.is_empty() {
            return Err(misfit("unexpected end of string".to_owned()));
        }
        let (clause, after) =
            parse_clause(rest).map_err(|message| misfit(format!("could not parse formatting clause: {message}")))?;
        built.push_str(&argument(clause, at).map_err(misfit)?);
        rest = after;
        at += 1;
    }
    built.push_str(rest);
    Ok(built)
}

fn parse_clause(text: &str) -> Result<(Clause, &str), String> {
    let mut rest = text;
    let mut precision = PRECISION;
    if let Some(after) = text.strip_prefix('.') {
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        let wrong = |message: &str| format!("error while parsing precision: {message}");
        if digits == after.len() {
            return Err(wrong("could not find end of precision specifier"));
        }
        let number = &after[..digits];
        precision = number.parse().map_err(|_| {
            let problem = if number.is_empty() { "invalid syntax" } else { "value out of range" };
            wrong(&format!(
                "error while converting precision to integer: strconv.Atoi: parsing {}: {problem}",
                quote(number)
            ))
        })?;
        rest = &after[digits..];
    }
    let byte = rest.as_bytes().first().copied().unwrap_or_default();
    let clause = match byte {
        b's' => Clause::String,
        b'd' => Clause::Decimal,
        b'f' => Clause::Fixed(precision),
        b'e' => Clause::Scientific(precision),
        b'b' => Clause::Binary,
        b'x' | b'X' => Clause::Hex { upper: byte == b'X' },
        b'o' => Clause::Octal,
        _ => return Err(format!("unrecognized formatting clause \"{}\"", char::from(byte))),
    };
    Ok((clause, &rest[1..]))
}

// === impl Clause ===

impl Clause {
    fn kind(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Decimal => "decimal",
            Self::Fixed(_) => "fixed",
            Self::Scientific(_) => "scientific",
            Self::Binary => "binary",
            Self::Hex { .. } => "hex",
            Self::Octal => "octal",
        }
    }

    fn refusal(self, found: &str) -> String {
        let rule = match self {
            Self::String => {
                "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                 durations, and timestamps"
            }
            Self::Decimal => "decimal clause can only be used on integers",
            Self::Fixed(_) => "fixed-point clause can only be used on doubles",
            Self::Scientific(_) => "scientific clause can only be used on doubles",
            Self::Binary => "only integers and bools can be formatted as binary",
            Self::Hex { .. } => "only integers, byte buffers, and strings can be formatted as hex",
            Self::Octal => "octal clause can only be used on integers",
        };
        format!("{rule}, was given {found}")
    }
}

fn render(clause: Clause, value: &Value<'_>) -> Result<String, String> {
    let refused = || Err(clause.refusal(&value.type_name()));
    Ok(match (clause, value) {
        (Clause::String, value) => return string(value),
        (Clause::Decimal, Value::Int(_) | Value::Uint(_)) => value.text(),
        (Clause::Fixed(precision), value) => match number(value) {
            Some(number) => match infinite(number) {
                Some(text) => text.to_owned(),
                None => localized(&gofmt::float_fixed(number, precision)),
            },
            None => return refused(),
        },
        (Clause::Scientific(precision), value) => match number(value) {
            Some(number) => match infinite(number) {
                Some(text) => text.to_owned(),
                // Upstream takes the precision for a width.
                None => format!("{:>precision$}", scientific(number)),
            },
            None => return refused(),
        },
        (Clause::Binary, Value::Bool(value)) => u8::from(*value).to_string(),
        (Clause::Binary, Value::Uint(value)) => format!("{value:b}"),
        (Clause::Binary, Value::Int(value)) => format!("{}{:b}", minus(*value), value.unsigned_abs()),
        (Clause::Octal, Value::Uint(value)) => format!("{value:o}"),
        (Clause::Octal, Value::Int(value)) => format!("{}{:o}", minus(*value), value.unsigned_abs()),
        (Clause::Hex { upper }, value) => {
            let text = match value {
                Value::Int(value) => format!("{}{:x}", minus(*value), value.unsigned_abs()),
                Value::Uint(value) => format!("{value:x}"),
                Value::String(text) => text.as_str().bytes().map(|byte| format!("{byte:02x}")).collect(),
                Value::Bytes(bytes) => bytes.iter().map(|byte| format!("{byte:02x}")).collect(),
                _ => return refused(),
            };
            if upper { text.to_uppercase() } else { text }
        }
        _ => return refused(),
    })
}

fn minus(value: i64) -> &'static str {
    if value < 0 { "-" } else { "" }
}

/// A number, or a string that names one that is none.
fn number(value: &Value<'_>) -> Option<f64> {
    match value {
        Value::Double(value) => Some(*value),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

fn infinite(value: f64) -> Option<&'static str> {
    if value.is_nan() {
        Some("NaN")
    } else if value.is_infinite() {
        Some(if value > 0.0 { "∞" } else { "-∞" })
    } else {
        None
    }
}

/// A number with commas between thousands, as American English has it.
fn localized(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |digits| ("-", digits));
    let (whole, fraction) = digits.split_once('.').map_or((digits, None), |(whole, rest)| (whole, Some(rest)));
    let mut grouped = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if let Some(fraction) = fraction {
        grouped.push('.');
        grouped.push_str(fraction);
    }
    grouped
}

/// A number as `1.5×10⁰³`, as American English has it.
fn scientific(value: f64) -> String {
    let text = format!("{value:.PRECISION$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(("", exponent), |exponent| ("⁻", exponent));
    let superscript =
        |digit: char| ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit.to_digit(10).unwrap_or(0) as usize];
    let exponent: String = format!("{exponent:0>2}").chars().map(superscript).collect();
    format!("{digits}×10{sign}{exponent}")
}

fn string(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::List(_) | Value::Map(_) => aggregate(value),
        Value::Null => Ok("null".to_owned()),
        Value::Int(_)
        | Value::Uint(_)
        | Value::Double(_)
        | Value::Bool(_)
        | Value::String(_)
        | Value::Timestamp(_)
        | Value::Bytes(_)
        | Value::Duration(_)
        | Value::Type(_) => match value.convert(&crate::types::Type::String) {
            Value::String(text) => Ok(text.as_str().to_owned()),
            other => Err(format!("could not convert argument {} to string", quote(&other.text()))),
        },
        value => Err(Clause::String.refusal(&value.type_name())),
    }
}

fn aggregate(value: &Value<'_>) -> Result<String, String> {
    match value {
        Value::List(list) => {
            let items: Result<Vec<String>, String> = list.values().iter().map(member).collect();
            Ok(format!("[{}]", items?.join(", ")))
        }
        Value::Map(map) => {
            let mut entries = Vec::new();
            for (key, value) in map.entries() {
                let key = match &key {
                    Value::String(text) => quote(text.as_str()),
                    Value::Bool(_) | Value::Int(_) | Value::Uint(_) => key.text(),
                    _ => return Err(format!("no formatting function for map key of type {}", key.type_name())),
                };
                entries.push((key, member(&value)?));
            }
            entries.sort();
            let entries: Vec<String> = entries.into_iter().map(|(key, value)| format!("{key}:{value}")).collect();
            Ok(format!("{{{}}}", entries.join(", ")))
        }
        _ => string(value),
    }
}

/// An item of a list or map: strings in quotes, times with their type.
fn member(value: &Value<'_>) -> Result<String, String> {
    Ok(match value {
        Value::List(_) | Value::Map(_) => aggregate(value)?,
        Value::String(text) => quote(text.as_str()),
        Value::Bytes(_) => format!("b{}", quote(&string(value)?)),
        Value::Double(number) => match gofmt::not_finite(*number) {
            Some(text) => quote(text),
            None => gofmt::float_fixed(*number, PRECISION),
        },
        Value::Timestamp(_) => format!("timestamp({})", quote(&string(value)?)),
        Value::Duration(_) => format!("duration({})", quote(&string(value)?)),
        Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Null | Value::Type(_) => string(value)?,
        value => return Err(format!("no formatting function for {}", value.type_name())),
    })
}
