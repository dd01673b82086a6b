//! Times for people: in their time zone, without seconds.
//!
//! Commands write all times as RFC 3339 in UTC (`values::rfc3339`), which JSON and Markdown keep. Only the
//! renderer of text replaces them, so a command cannot forget to. In blocks that a document marks as verbatim,
//! such as the messages of an agent, nothing is replaced.

use std::borrow::Cow;

use delegator_engine::{Variables, local_time};
use jiff::Timestamp;

use crate::output::values::rfc3339;

const LENGTH: usize = "2026-11-19T09:05:00.000Z".len();

/// Replaces the times in the format of `rfc3339` by `2026-11-19 09:05`, in the time zone that `variables` set
/// or that of the system.
pub fn with_local_times<'t>(text: &'t str, variables: &Variables) -> Cow<'t, str> {
    let times = text.match_indices('Z').filter_map(|(last, _)| {
        let start = (last + 1).checked_sub(LENGTH)?;
        let written = text.get(start..=last)?;
        let time = written.parse::<Timestamp>().ok().filter(|time| rfc3339(*time) == written)?;
        Some((start, local_time(time.as_millisecond(), variables)))
    });
    let (mut local, mut copied) = (String::new(), 0);
    for (start, time) in times {
        local.push_str(&text[copied..start]);
        local.push_str(&time.strftime("%Y-%m-%d %H:%M").to_string());
        copied = start + LENGTH;
    }
    if copied == 0 { text.into() } else { (local + &text[copied..]).into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_times_of_this_program_become_local() {
        let variables = vec![("TZ".into(), "EST5".into())];
        for (text, expected) in [
            ("retry at 2026-11-19T02:05:59.999Z.", "retry at 2026-11-18 21:05."),
            (
                "é2026-11-19T14:05:00.000Z to 2026-11-19T15:05:00.000Z",
                "é2026-11-19 09:05 to 2026-11-19 10:05",
            ),
            (
                "2026-11-19T14:05:00Z, 2026-99-19T14:05:00.000Z, éZ",
                "2026-11-19T14:05:00Z, 2026-99-19T14:05:00.000Z, éZ",
            ),
        ] {
            assert_eq!(with_local_times(text, &variables), expected);
        }
    }
}
