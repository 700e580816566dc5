//! Whether a schedule can be read, in the words of `robfig/cron` 3.0.1, which upstream uses.

/// The bounds of a field and the names it takes.
struct Bounds {
    min: u32,
    max: u32,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

const DAYS: &[&str] = &["sun", "mon", "tue", "wed", "thu", "fri", "sat"];

const FIELDS: [Bounds; 5] = [
    Bounds { min: 0, max: 59, names: &[] },
    Bounds { min: 0, max: 23, names: &[] },
    Bounds { min: 1, max: 31, names: &[] },
    Bounds { min: 1, max: 12, names: MONTHS },
    Bounds { min: 0, max: 6, names: DAYS },
];

const DESCRIPTORS: &[&str] = &["@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"];

/// Reads a schedule of five fields or a descriptor.
pub(crate) fn parse(schedule: &str) -> Result<(), String> {
    let schedule = match schedule.strip_prefix("TZ=").or_else(|| schedule.strip_prefix("CRON_TZ=")) {
        Some(rest) => rest.split_once(' ').map_or("", |(_, rest)| rest.trim()),
        None => schedule,
    };
    if schedule.starts_with('@') {
        return descriptor(schedule);
    }
    let fields: Vec<_> = schedule.split_whitespace().collect();
    if fields.len() != FIELDS.len() {
        return Err(format!("expected exactly 5 fields, found {}: [{}]", fields.len(), fields.join(" ")));
    }
    for (field, bounds) in fields.iter().zip(&FIELDS) {
        for part in field.split(',').filter(|part| !part.is_empty()) {
            range(part, bounds)?;
        }
    }
    Ok(())
}

fn descriptor(schedule: &str) -> Result<(), String> {
    if let Some(duration) = schedule.strip_prefix("@every ") {
        let good = !duration.is_empty()
            && duration.starts_with(|c: char| c.is_ascii_digit())
            && duration.ends_with(['h', 'm', 's'])
            && duration.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'h' | 'm' | 's' | 'n' | 'u'));
        return if good {
            Ok(())
        } else {
            Err(format!("failed to parse duration {schedule}: time: invalid duration {duration:?}"))
        };
    }
    if DESCRIPTORS.contains(&schedule) { Ok(()) } else { Err(format!("unrecognized descriptor: {schedule}")) }
}

fn range(text: &str, bounds: &Bounds) -> Result<(), String> {
    let parts: Vec<_> = text.split('/').collect();
    let ends: Vec<_> = parts[0].split('-').collect();
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
            if !is_any && ends.len() == 1 {
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
    if step == 0 {
        return Err(format!("step of range should be a positive number: {text}"));
    }
    Ok(())
}

fn value(text: &str, bounds: &Bounds) -> Result<u32, String> {
    match bounds.names.iter().position(|name| text.eq_ignore_ascii_case(name)) {
        Some(index) => Ok(bounds.min + u32::try_from(index).unwrap_or_default()),
        None => number(text),
    }
}

fn number(text: &str) -> Result<u32, String> {
    match text.parse::<i64>() {
        Ok(number) => u32::try_from(number).map_err(|_| format!("negative number ({number}) not allowed: {text}")),
        Err(_) => Err(format!("failed to parse int from {text}: strconv.Atoi: parsing {text:?}: invalid syntax")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn schedules_are_judged_in_upstreams_words() {
        for good in ["* * * * *", "*/5 0-6 1,15 JAN-mar mon", "@hourly", "@every 1h30m", "0 0 31 2 ?", "5/15 * * * *"] {
            assert_eq!(parse(good), Ok(()), "{good}");
        }
        for (bad, want) in [
            ("x", "expected exactly 5 fields, found 1: [x]"),
            ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
            ("60 * * * *", "end of range (60) above maximum (59): 60"),
            ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
            ("5-2 * * * *", "beginning of range (5) beyond end of range (2): 5-2"),
            ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
            ("*/0 * * * *", "step of range should be a positive number: */0"),
            ("1/2/3 * * * *", "too many slashes: 1/2/3"),
            ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
            ("@never", "unrecognized descriptor: @never"),
        ] {
            assert_eq!(parse(bad), Err(want.to_owned()), "{bad}");
        }
    }
}
