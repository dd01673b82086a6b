//! When an agent says that the model is available again.
//!
//! Messages name a span (`try again in 1.898s`), a time of day or a date (`try again at Nov 20th, 2026 3:42
//! PM`, in the agent's time zone), or carry the fields of a provider's error response. Spans count from the
//! end of the task. A time that cannot be parsed is left to the reader of the message.

use delegator_transcript::ResetTime;
use jiff::civil::{Date, DateTime, Time};
use jiff::fmt::rfc2822;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Span, Timestamp, Unit, Zoned};

use crate::agent::{ErrorMessage, Link, Variables, variable};

/// Words in front of a time, in lower case. `true`: a number without a unit is a number of seconds.
const INTRODUCTIONS: [(&str, bool); 9] = [
    ("try again in ", false),
    ("try again at ", false),
    ("try again after ", false),
    ("retry in ", false),
    ("retry after ", true),
    ("retry-after: ", true),
    ("resets in ", false),
    ("resets at ", false),
    ("available again at ", false),
];
/// The longest time has this many words: `3 days, 4 hours, 5 minutes and 6 seconds`.
const MAX_WORDS: usize = 9;

/// `ended_at` is the end of the task, in the time zone of the agent.
pub(super) fn retry_time(message: &str, ended_at: &Zoned) -> Option<Timestamp> {
    let reset = ErrorMessage::of_event(message).links.into_iter().find_map(|link| match link {
        Link::Body(body) => body.reset,
        Link::Status(_) | Link::Disconnected => None,
    });
    reset.and_then(|reset| reset_time(&reset, ended_at)).or_else(|| stated_time(message, ended_at))
}

fn reset_time(reset: &ResetTime, ended_at: &Zoned) -> Option<Timestamp> {
    match reset {
        ResetTime::InSeconds(seconds) => {
            ended_at.timestamp().checked_add(SignedDuration::try_from_secs_f64(*seconds).ok()?).ok()
        }
        ResetTime::AtSecond(second) => Timestamp::from_second(*second).ok(),
        ResetTime::AtDate(date) => date.parse().ok(),
    }
}

fn stated_time(message: &str, ended_at: &Zoned) -> Option<Timestamp> {
    let lower = message.to_ascii_lowercase();
    INTRODUCTIONS.iter().find_map(|(introduction, plain_seconds)| {
        let ends = lower.match_indices(introduction).map(|(at, _)| at + introduction.len());
        ends.filter_map(|at| time_at_start(&message[at..], *plain_seconds, ended_at)).next()
    })
}

/// The longest time at the start of a text; a sentence may go on behind it.
fn time_at_start(text: &str, plain_seconds: bool, ended_at: &Zoned) -> Option<Timestamp> {
    let text = text.lines().next()?;
    let spaces = text.match_indices(' ').map(|(at, _)| at);
    let mut ends: Vec<usize> = spaces.chain([text.len()]).take(MAX_WORDS).collect();
    ends.reverse();
    ends.into_iter().find_map(|end| {
        let time = text[..end].trim_end_matches(|last: char| !last.is_alphanumeric());
        parse_time(time, plain_seconds, ended_at)
    })
}

fn parse_time(text: &str, plain_seconds: bool, ended_at: &Zoned) -> Option<Timestamp> {
    if plain_seconds && let Ok(seconds) = text.parse::<u32>() {
        return ended_at.timestamp().checked_add(SignedDuration::from_secs(seconds.into())).ok();
    }
    parse_span(text)
        .and_then(|span| Some(ended_at.checked_add(span).ok()?.timestamp()))
        .or_else(|| text.parse().ok())
        .or_else(|| Some(rfc2822::parse(text).ok()?.timestamp()))
        .or_else(|| parse_local_time(text, ended_at))
}

/// `1.898s`, `35 seconds`, `1h 2m`, `3 days, 4 hours and 5 minutes`.
fn parse_span(text: &str) -> Option<Span> {
    if text.eq_ignore_ascii_case("less than a minute") {
        return Some(Span::new().minutes(1));
    }
    // An ISO 8601 span or a sign is not what an agent writes.
    let is_span = text.starts_with(|first: char| first.is_ascii_digit());
    let span: Span = is_span.then(|| text.replace(" and ", " ").parse().ok())??;
    (!span.is_negative()).then_some(span)
}

/// `3:42 PM`, `15:42`, `Nov 20th, 2026 3:42 PM`, each with an optional `UTC`.
fn parse_local_time(text: &str, ended_at: &Zoned) -> Option<Timestamp> {
    let (text, zone) = match text.strip_suffix(" UTC").or_else(|| text.strip_suffix(" GMT")) {
        Some(text) => (text, TimeZone::UTC),
        None => (text, ended_at.time_zone().clone()),
    };
    if let Some(time) = parse_time_of_day(text) {
        return next_time_of_day(time, &ended_at.with_time_zone(zone));
    }
    let words: Vec<&str> = text.split(' ').collect();
    let date_words = words.len().min(3);
    let date = parse_date(&words[..date_words].join(" "))?;
    let time = parse_time_of_day(words[date_words..].join(" ").trim_start_matches("at "))?;
    Some(DateTime::from_parts(date, time).to_zoned(zone).ok()?.timestamp())
}

fn parse_time_of_day(text: &str) -> Option<Time> {
    let formats = ["%I:%M %p", "%I:%M:%S %p", "%H:%M", "%H:%M:%S"];
    formats.iter().find_map(|format| Time::strptime(format, text).ok())
}

/// `Nov 20th, 2026`
fn parse_date(text: &str) -> Option<Date> {
    let (month, rest) = text.split_once(' ')?;
    let (day, year) = rest.split_once(' ')?;
    let day = day.trim_end_matches(',').trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    Date::strptime("%b %d %Y", format!("{month} {day} {}", year.trim_end_matches(','))).ok()
}

/// Codex leaves out the date of today. A time in the current minute has just passed, any earlier one is
/// tomorrow's.
fn next_time_of_day(time: Time, now: &Zoned) -> Option<Timestamp> {
    let today = now.date().to_datetime(time).to_zoned(now.time_zone().clone()).ok()?;
    let this_minute =
        now.round(jiff::ZonedRound::new().smallest(Unit::Minute).mode(jiff::RoundMode::Trunc)).ok()?;
    let next = if today < this_minute { today.tomorrow().ok()? } else { today };
    Some(next.timestamp())
}

/// The time in an agent with these variables; in UTC if the time zone is unknown. Like the C library, an
/// agent takes its time zone from `TZ`, or else from `/etc/localtime`.
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

    /// 2026-11-16, 14:00:30 in New York.
    fn ended_at() -> Zoned {
        let zone = TimeZone::posix("EST5EDT,M3.2.0,M11.1.0").unwrap();
        "2026-11-16T19:00:30Z".parse::<Timestamp>().unwrap().to_zoned(zone)
    }

    #[test]
    fn spans_count_from_the_end_of_the_task() {
        let cases = [
            ("Rate limit reached for gpt-5.1. Please try again in 1.898s. Visit https://x.y", 1_898),
            ("Please try again in 11.054s.", 11_054),
            ("try again in 250ms", 250),
            ("Rate limit exceeded. Try again in 35 seconds.", 35_000),
            ("Try again in 5 minutes", 300_000),
            ("Try again in 6m0s.", 360_000),
            ("Try again in 1h 2m (see the page)", 3_720_000),
            ("or try again in 3 days 4 hours.", 273_600_000),
            ("try again in 3 days, 4 hours and 5 minutes, or upgrade", 273_900_000),
            ("Try again in less than a minute.", 60_000),
            ("Retry-After: 30", 30_000),
            ("please retry after 20 seconds or ask", 20_000),
            ("{\"error\":{\"type\":\"usage_limit_reached\",\"resets_in_seconds\":3600}}", 3_600_000),
            (
                "exceeded retry limit, last status: 429 Too Many Requests: \
                 {\"error\":{\"resets_in_seconds\":60}}, request id: 1",
                60_000,
            ),
        ];
        for (message, expected_ms) in cases {
            let time = retry_time(message, &ended_at()).unwrap_or_else(|| panic!("{message}"));
            let wait = time.duration_since(ended_at().timestamp());
            assert_eq!(wait.as_millis(), expected_ms, "{message}");
        }
    }

    #[test]
    fn times_are_in_the_time_zone_of_the_agent() {
        let cases = [
            ("You've hit your usage limit. Try again at 3:42 PM.", "2026-11-16T20:42:00Z"),
            ("try again at 15:42", "2026-11-16T20:42:00Z"),
            // This minute has not passed; an earlier one is tomorrow's.
            ("try again at 2:00 PM.", "2026-11-16T19:00:00Z"),
            ("try again at 1:59 PM.", "2026-11-17T18:59:00Z"),
            ("try again at 8:13 AM UTC.", "2026-11-17T08:13:00Z"),
            ("Upgrade (https://x) or try again at Nov 20th, 2026 3:42 PM.", "2026-11-20T20:42:00Z"),
            ("or try again at Jul 1st, 2027 12:05 AM.", "2027-07-01T04:05:00Z"),
            ("try again at Nov 20, 2026, 3:42 PM", "2026-11-20T20:42:00Z"),
            ("try again at 2026-11-20T15:42:00Z.", "2026-11-20T15:42:00Z"),
            ("Retry-After: Fri, 20 Nov 2026 15:42:00 GMT", "2026-11-20T15:42:00Z"),
            ("{\"detail\":{\"resets_at\":1795189320}}", "2026-11-20T15:42:00Z"),
            ("{\"error\":{\"resets_at\":\"2026-11-20T15:42:00Z\"}}", "2026-11-20T15:42:00Z"),
        ];
        for (message, expected) in cases {
            let time = retry_time(message, &ended_at());
            assert_eq!(time, Some(expected.parse().unwrap()), "{message}");
        }
    }

    #[test]
    fn other_texts_have_no_time() {
        for message in [
            "Try again later.",
            "try again at ",
            "try again at noon; delete all",
            "try again in a while",
            "try again in -5 minutes",
            "try again in P1D",
            "try again in 99999999999999 days",
            "try again at 25:61",
            "try again at Foo 20th, 2026 3:42 PM",
            "try again in 5 apples",
            "{\"error\":{\"resets_in_seconds\":1e300}}",
            "Retry-After: soon",
            "",
        ] {
            assert_eq!(retry_time(message, &ended_at()), None, "{message}");
        }
    }

    #[test]
    fn the_variable_decides_about_the_time_zone() {
        let offset = |zone: &str| local_time(0, &vec![("TZ".into(), zone.into())]).offset().seconds();
        assert_eq!((offset("EST5"), offset(":EST5"), offset("nowhere/at all")), (-18_000, -18_000, 0));
    }
}
