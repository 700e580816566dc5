//! Durations with two or three significant figures: `6s`, `3m20s`, `5d4h`, `2y5d`.

const MINUTE: i64 = 60;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 365 * DAY;

/// Returns a duration in upstream's words: `apimachinery/pkg/util/duration.HumanDuration`.
#[must_use]
pub(crate) fn human(seconds: i64) -> String {
    match seconds {
        // Clocks of two machines may differ by a second.
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        120..600 => two(seconds, (MINUTE, 'm'), (1, 's')),
        600..10_800 => format!("{}m", seconds / MINUTE),
        10_800..28_800 => two(seconds, (HOUR, 'h'), (MINUTE, 'm')),
        28_800..172_800 => format!("{}h", seconds / HOUR),
        172_800..691_200 => two(seconds, (DAY, 'd'), (HOUR, 'h')),
        691_200..63_072_000 => format!("{}d", seconds / DAY),
        63_072_000..252_288_000 => two(seconds, (YEAR, 'y'), (DAY, 'd')),
        _ => format!("{}y", seconds / YEAR),
    }
}

fn two(seconds: i64, (large, large_name): (i64, char), (small, small_name): (i64, char)) -> String {
    let large_count = seconds / large;
    let small_count = seconds % large / small;
    if small_count == 0 {
        format!("{large_count}{large_name}")
    } else {
        format!("{large_count}{large_name}{small_count}{small_name}")
    }
}
