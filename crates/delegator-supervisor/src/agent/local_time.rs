//! The local time of an agent, which some agents name in their messages.
//!
//! Like the C library, an agent takes its time zone from `TZ`, or else from `/etc/localtime`.

use jiff::tz::TimeZone;
use jiff::{Timestamp, Zoned};

use crate::variables::{Variables, variable};

/// The time in an agent with these variables; in UTC if the time zone is unknown.
pub fn local_time(now_ms: i64, environment: &Variables) -> Zoned {
    let zone = match variable(environment, "TZ") {
        Some(zone) => zone.to_str().and_then(named_zone),
        None => std::fs::read("/etc/localtime").ok().and_then(|data| TimeZone::tzif("local", &data).ok()),
    };
    Timestamp::from_millisecond(now_ms).unwrap_or_default().to_zoned(zone.unwrap_or(TimeZone::UTC))
}

fn named_zone(name: &str) -> Option<TimeZone> {
    let name = name.trim_start_matches(':');
    TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_decides_about_the_time_zone() {
        let offset = |zone: &str| local_time(0, &vec![("TZ".into(), zone.into())]).offset().seconds();
        assert_eq!((offset("EST5"), offset(":EST5"), offset("nowhere/at all")), (-18_000, -18_000, 0));
    }
}
