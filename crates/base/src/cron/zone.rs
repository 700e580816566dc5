//! Time zones, from a database that is part of the program, as upstream's is.

use std::fmt;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::CronError;
use crate::Time;

/// A time zone. Cheap to clone.
#[derive(Clone, PartialEq, Eq)]
pub struct Zone(TimeZone);

// === impl Zone ===

impl Zone {
    /// Returns coordinated universal time.
    #[must_use]
    pub fn utc() -> Self {
        Self(TimeZone::UTC)
    }

    /// Finds a zone by its IANA name, such as `Europe/Berlin`. Case matters, as it does upstream.
    ///
    /// # Errors
    /// There is no such zone.
    pub fn find(name: &str) -> Result<Self, CronError> {
        if matches!(name, "" | "UTC") {
            return Ok(Self::utc());
        }
        let zone = TimeZoneDatabase::bundled().get(name).ok();
        let zone = zone.filter(|zone| zone.iana_name() == Some(name));
        zone.map(Self).ok_or_else(|| CronError(format!("unknown time zone {name}")))
    }

    /// Returns a time in this zone, in the form of RFC 3339: `2026-11-20T13:00:00+01:00`.
    #[must_use]
    pub fn rfc3339(&self, time: Time) -> String {
        let offset = self.offset(time.unix());
        let local = time.plus_seconds(offset).to_string();
        let local = local.strip_suffix('Z').unwrap_or(&local).to_owned();
        if offset == 0 {
            return format!("{local}Z");
        }
        let sign = if offset < 0 { '-' } else { '+' };
        let minutes = offset.abs() / 60;
        format!("{local}{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    }

    /// Returns how many seconds local time is ahead of universal time, at this second since 1970.
    pub(super) fn offset(&self, unix: i64) -> i64 {
        Timestamp::from_second(unix).map_or(0, |time| i64::from(self.0.to_offset(time).seconds()))
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.iana_name().unwrap_or("UTC"))
    }
}
