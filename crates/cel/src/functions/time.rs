//! Parts of times and durations.

use jiff::tz::TimeZone;

use super::Op;
use crate::gotime::{self, Civil, Timestamp};
use crate::value::Value;

pub(super) fn overload(id: &str) -> Option<Op> {
    macro_rules! part {
        ($civil:ident => $part:expr) => {
            |args| part(args, |$civil, _| $part)
        };
    }
    Some(match id {
        "timestamp_to_year" | "timestamp_to_year_with_tz" => part!(civil => civil.year),
        "timestamp_to_month" | "timestamp_to_month_with_tz" => part!(civil => civil.month - 1),
        "timestamp_to_day_of_year" | "timestamp_to_day_of_year_with_tz" => part!(civil => civil.yearday),
        "timestamp_to_day_of_month" | "timestamp_to_day_of_month_with_tz" => part!(civil => civil.day - 1),
        "timestamp_to_day_of_month_1_based" | "timestamp_to_day_of_month_1_based_with_tz" => part!(civil => civil.day),
        "timestamp_to_day_of_week" | "timestamp_to_day_of_week_with_tz" => part!(civil => civil.weekday),
        "timestamp_to_hours" | "timestamp_to_hours_with_tz" => part!(civil => civil.hour),
        "timestamp_to_minutes" | "timestamp_to_minutes_with_tz" => part!(civil => civil.minute),
        "timestamp_to_seconds" | "timestamp_to_seconds_tz" => part!(civil => civil.second),
        "timestamp_to_milliseconds" | "timestamp_to_milliseconds_with_tz" => {
            |args| part(args, |_, time| i64::from(time.nanos / 1_000_000))
        }
        "duration_to_hours" => |args| duration(args, 3_600_000_000_000),
        "duration_to_minutes" => |args| duration(args, 60_000_000_000),
        "duration_to_seconds" => |args| duration(args, 1_000_000_000),
        "duration_to_milliseconds" => |args| duration(args, 1_000_000),
        _ => return None,
    })
}

fn duration<'a>(args: &[Value<'a>], unit: i64) -> Value<'a> {
    match &args[0] {
        Value::Duration(nanos) => Value::Int(nanos / unit),
        other => other.or_no_such_overload(),
    }
}

fn part<'a>(args: &[Value<'a>], pick: fn(Civil, Timestamp) -> i64) -> Value<'a> {
    let Value::Timestamp(time) = &args[0] else { return args[0].or_no_such_overload() };
    let zone = args.get(1).and_then(Value::as_str).unwrap_or("UTC");
    super::value_or(offset(*time, zone), |offset| Value::Int(pick(time.civil(offset), *time)))
}

/// Seconds east of UTC in a zone at a time.
///
/// Names of zones are known if the program has jiff's database of them; without it only `UTC` and offsets are.
fn offset(time: Timestamp, zone: &str) -> Result<i64, String> {
    let Some((hours, minutes)) = zone.split_once(':') else {
        if zone.is_empty() || zone == "UTC" {
            return Ok(0);
        }
        let unknown = || format!("unknown time zone {zone}");
        let found = TimeZone::get(zone).map_err(|_| unknown())?;
        let moment = jiff::Timestamp::from_second(time.seconds).map_err(|_| unknown())?;
        return Ok(found.to_offset(moment).seconds().into());
    };
    let number = |text: &str| {
        text.parse::<i64>().map_err(|_| format!("strconv.Atoi: parsing {}: invalid syntax", crate::gofmt::quote(text)))
    };
    let hours = number(hours)?;
    let minutes = number(minutes)?;
    let minutes = if zone.starts_with('-') { hours * 60 - minutes } else { hours * 60 + minutes };
    Ok(gotime::seconds(minutes.saturating_mul(60_000_000_000)) as i64)
}
