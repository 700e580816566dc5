//! The five fields of a schedule, as sets of bits.

use super::CronError;

/// The values of each field.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fields {
    pub(super) minute: Set,
    pub(super) hour: Set,
    pub(super) day: Set,
    pub(super) month: Set,
    pub(super) weekday: Set,
}

/// The values of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Set {
    bits: u64,
    /// Whether one of the parts is a star: the field does not restrict.
    pub(super) is_star: bool,
}

/// The bounds of a field, and the names it takes.
struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];
const MINUTE: Bounds = Bounds { min: 0, max: 59, names: &[] };
const HOUR: Bounds = Bounds { min: 0, max: 23, names: &[] };
const DAY: Bounds = Bounds { min: 1, max: 31, names: &[] };
const MONTH: Bounds = Bounds { min: 1, max: 12, names: MONTHS };
const WEEKDAY: Bounds = Bounds { min: 0, max: 6, names: DAYS };

// === impl Fields ===

impl Fields {
    pub(super) fn parse(text: &str) -> Result<Self, CronError> {
        let fields: Vec<&str> = text.split_whitespace().collect();
        let [minute, hour, day, month, weekday] = fields[..] else {
            let found = format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" "));
            return Err(CronError(found));
        };
        Ok(Self {
            minute: set(minute, &MINUTE)?,
            hour: set(hour, &HOUR)?,
            day: set(day, &DAY)?,
            month: set(month, &MONTH)?,
            weekday: set(weekday, &WEEKDAY)?,
        })
    }

    /// Whether a day matches. If both fields restrict, one of them is enough.
    pub(super) fn has_day(&self, day: u32, weekday: u32) -> bool {
        let is_day = self.day.has(day);
        let is_weekday = self.weekday.has(weekday);
        if self.day.is_star || self.weekday.is_star { is_day && is_weekday } else { is_day || is_weekday }
    }
}

// === impl Set ===

impl Set {
    pub(super) fn has(self, value: u32) -> bool {
        self.bits & (1 << value) != 0
    }
}

fn set(field: &str, bounds: &Bounds) -> Result<Set, CronError> {
    let mut all = Set::default();
    for part in field.split(',').filter(|part| !part.is_empty()) {
        let set = range(part, bounds).map_err(CronError)?;
        all = Set { bits: all.bits | set.bits, is_star: all.is_star || set.is_star };
    }
    Ok(all)
}

/// Reads `*`, `5`, `1-5`, `*/10`, `1-30/5` or `5/10`, which means from five on.
fn range(text: &str, bounds: &Bounds) -> Result<Set, String> {
    let parts: Vec<&str> = text.split('/').collect();
    let ends: Vec<&str> = parts[0].split('-').collect();
    let is_any = matches!(ends[0], "*" | "?");
    let start = if is_any { bounds.min } else { value(ends[0], bounds)? };
    let mut end = match (is_any, ends.as_slice()) {
        (true, _) => bounds.max,
        (false, [_]) => start,
        (false, [_, end]) => value(end, bounds)?,
        _ => return Err(format!("too many hyphens: {text}")),
    };
    let step = match parts.as_slice() {
        [_] => 1,
        [_, step] => {
            if ends.len() == 1 {
                end = bounds.max;
            }
            number(step)?
        }
        _ => return Err(format!("too many slashes: {text}")),
    };
    if start < bounds.min {
        return Err(format!("beginning of range ({start}) below minimum ({}): {text}", bounds.min));
    }
    if end > bounds.max {
        return Err(format!("end of range ({end}) above maximum ({}): {text}", bounds.max));
    }
    if start > end {
        return Err(format!("beginning of range ({start}) beyond end of range ({end}): {text}"));
    }
    let Ok(by) = usize::try_from(step) else { return Err(format!("step of range is too large: {text}")) };
    if by == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    let bits = (start..=end).step_by(by).fold(0, |bits, value| bits | 1 << value);
    Ok(Set { bits, is_star: is_any && step == 1 })
}

fn value(text: &str, bounds: &Bounds) -> Result<u32, String> {
    match bounds.names.iter().position(|name| text.eq_ignore_ascii_case(name)) {
        Some(index) => Ok(bounds.min + u32::try_from(index).unwrap_or_default()),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(number) if number < 0 => Err(format!("negative number ({number}) not allowed: {text}")),
        // Nothing so large is in range.
        Ok(number) => Ok(u32::try_from(number).unwrap_or(u32::MAX)),
        Err(_) => Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")),
    }
}
