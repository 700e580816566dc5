//! Schedules and their times.

use super::*;

fn time(text: &str) -> Time {
    text.parse().unwrap()
}

/// Returns the next times of a schedule in a zone.
fn times(schedule: &str, zone: &str, after: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(schedule, &Zone::find(zone).unwrap()).unwrap();
    let next = |after: &Time| schedule.next(*after);
    std::iter::successors(next(&time(after)), next).take(count).map(|time| time.to_string()).collect()
}

#[test]
fn schedules_are_judged_in_upstreams_words() {
    let parse = |text: &str| Schedule::parse(text, &Zone::utc()).map(drop).map_err(|error| error.to_string());
    for good in [
        "* * * * *",
        "*/5 0-6 1,15 JAN-mar mon",
        "@hourly",
        "@every 1h30m",
        "@every 1.5h",
        "@every -5s",
        "0 0 31 2 ?",
        "5/15 * * * *",
        "TZ=Asia/Tokyo 0 0 * * *",
        "CRON_TZ=UTC @daily",
        "0 0 * * 0-6/2",
        "0,,5 * * * *",
    ] {
        assert_eq!(parse(good), Ok(()), "{good}");
    }
    for (bad, want) in [
        ("", "empty spec string"),
        ("x", "expected exactly 5 fields, found 1: [x]"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("* * * * * *", "expected exactly 5 fields, found 6: [* * * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-2 * * * *", "beginning of range (5) beyond end of range (2): 5-2"),
        ("a * * * *", "failed to parse int from a: strconv.Atoi: parsing \"a\": invalid syntax"),
        ("-5 * * * *", "failed to parse int from : strconv.Atoi: parsing \"\": invalid syntax"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("*/-1 * * * *", "negative number (-1) not allowed: -1"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("@never", "unrecognized descriptor: @never"),
        ("@every x", "failed to parse duration @every x: time: invalid duration \"x\""),
        ("@every 5", "failed to parse duration @every 5: time: missing unit in duration \"5\""),
        ("@every 1d", "failed to parse duration @every 1d: time: unknown unit \"d\" in duration \"1d\""),
        ("TZ=Mars/Base 0 0 * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
        ("TZ=UTC", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
    ] {
        assert_eq!(parse(bad), Err(want.to_owned()), "{bad}");
    }
}

/// Every fourth of the times that upstream's library computes, around every change of daylight-saving time of ten years in
/// eight zones: skipped and repeated hours, missing midnights, half hours.
#[test]
fn times_are_those_of_upstreams_library() {
    let mut rows = 0;
    for line in include_str!("robfig.tsv").lines().filter(|line| !line.starts_with('#')) {
        let mut columns = line.split('\t');
        let mut column = || columns.next().unwrap();
        let zone = Zone::find(column()).unwrap();
        let text = column();
        let schedule = Schedule::parse(text, &zone).unwrap();
        let mut after = Some(Time::from_unix(column().parse().unwrap()));
        for want in columns {
            let got = after.and_then(|after| schedule.next(after));
            let want = want.parse().ok().map(Time::from_unix);
            assert_eq!(got, want, "{text} in {zone:?} after {after:?}: {line}");
            after = got;
        }
        rows += 1;
    }
    assert!(rows > 800, "{rows} rows");
}

/// Computed by hand.
#[test]
fn skipped_hours_are_skipped_and_repeated_ones_are_repeated() {
    // 02:30 does not exist on March 29 in Berlin, and exists twice on October 25.
    let spring = times("30 2 * * *", "Europe/Berlin", "2026-03-28T00:00:00Z", 2);
    assert_eq!(spring, ["2026-03-28T01:30:00Z", "2026-03-30T00:30:00Z"]);
    let autumn = times("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00:00Z", 3);
    assert_eq!(autumn, ["2026-10-25T00:30:00Z", "2026-10-25T01:30:00Z", "2026-10-26T01:30:00Z"]);
    // Every hour goes on without a gap.
    let hourly = times("0 * * * *", "America/New_York", "2026-03-08T05:30:00Z", 3);
    assert_eq!(hourly, ["2026-03-08T06:00:00Z", "2026-03-08T07:00:00Z", "2026-03-08T08:00:00Z"]);
    // There was no midnight on November 4, 2018 in São Paulo: nothing was due that day.
    let midnight = times("0 0 * * *", "America/Sao_Paulo", "2018-11-03T12:00:00Z", 1);
    assert_eq!(midnight, ["2018-11-05T02:00:00Z"]);
}

#[test]
fn days_are_both_or_one_of_two() {
    // Friday the 13th needs both fields; upstream takes either.
    let either = times("0 0 13 * 5", "UTC", "2026-11-01T00:00:00Z", 3);
    assert_eq!(either, ["2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-20T00:00:00Z"]);
    let star = times("0 0 * * 5", "UTC", "2026-11-01T00:00:00Z", 2);
    assert_eq!(star, ["2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z"]);
    // A star with a step restricts.
    let step = times("0 0 */15 * 5", "UTC", "2026-11-01T00:00:00Z", 3);
    assert_eq!(step, ["2026-11-06T00:00:00Z", "2026-11-13T00:00:00Z", "2026-11-16T00:00:00Z"]);
}

#[test]
fn what_is_never_due_is_found_out_in_bounded_time() {
    for schedule in ["30 2 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 31 4 ?"] {
        assert_eq!(times(schedule, "America/Sao_Paulo", "2026-11-01T00:00:00Z", 1), [""; 0], "{schedule}");
    }
    assert_eq!(times("0 0 29 2 *", "UTC", "2026-11-01T00:00:00Z", 1), ["2028-02-29T00:00:00Z"]);
    // 2100 is no leap year: eight years are too many.
    assert_eq!(times("0 0 29 2 *", "UTC", "2096-03-01T00:00:00Z", 1), [""; 0]);
    let never = Schedule::parse(", * * * *", &Zone::utc()).unwrap();
    assert_eq!(never.next(time("2026-11-01T00:00:00Z")), None);
    assert_eq!(never.next(Time::MAX), None);
    let minutely = Schedule::parse("* * * * *", &Zone::utc()).unwrap();
    assert_eq!(minutely.next(Time::MAX), None, "there is no time after the last one");
}

#[test]
fn macros_and_intervals() {
    let start = "2026-11-17T12:34:56Z";
    for (schedule, want) in [
        ("@yearly", "2027-01-01T00:00:00Z"),
        ("@annually", "2027-01-01T00:00:00Z"),
        ("@monthly", "2026-12-01T00:00:00Z"),
        ("@weekly", "2026-11-22T00:00:00Z"),
        ("@daily", "2026-11-18T00:00:00Z"),
        ("@midnight", "2026-11-18T00:00:00Z"),
        ("@hourly", "2026-11-17T13:00:00Z"),
        ("@every 90s", "2026-11-17T12:36:26Z"),
        ("@every 1h0.5m", "2026-11-17T13:35:26Z"),
        ("@every 10ms", "2026-11-17T12:34:57Z"),
        ("@every 2999ms", "2026-11-17T12:34:58Z"),
        ("TZ=Asia/Kolkata @daily", "2026-11-17T18:30:00Z"),
        ("CRON_TZ=Asia/Kolkata 0 9 * * *", "2026-11-18T03:30:00Z"),
    ] {
        assert_eq!(times(schedule, "UTC", start, 1), [want], "{schedule}");
    }
}

#[test]
fn zones_have_their_iana_names() {
    for good in
        ["", "UTC", "Europe/Berlin", "Etc/GMT+5", "US/Pacific", "America/Argentina/Buenos_Aires", "EST5EDT", "Zulu"]
    {
        assert!(Zone::find(good).is_ok(), "{good}");
    }
    for bad in ["Local", "europe/berlin", "Mars/Base", "Berlin", "../etc/passwd", "Europe/"] {
        assert_eq!(Zone::find(bad).unwrap_err().to_string(), format!("unknown time zone {bad}"));
    }
    let at = time("2026-07-01T12:00:00Z");
    for (zone, want) in [
        ("UTC", "2026-07-01T12:00:00Z"),
        ("Europe/Berlin", "2026-07-01T14:00:00+02:00"),
        ("America/New_York", "2026-07-01T08:00:00-04:00"),
        ("Asia/Kolkata", "2026-07-01T17:30:00+05:30"),
        ("Africa/Abidjan", "2026-07-01T12:00:00Z"),
    ] {
        assert_eq!(Zone::find(zone).unwrap().rfc3339(at), want);
    }
}
