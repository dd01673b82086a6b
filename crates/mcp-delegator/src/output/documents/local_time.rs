//! Times for people: in their time zone, without seconds.
//!
//! Commands write all times as RFC 3339 in UTC (`values::rfc3339`), which JSON and Markdown keep. Only the
//! renderer of text replaces them, so a command cannot forget to. A document marks the words of an agent as
//! verbatim; in these nothing is replaced.

use std::borrow::Cow;

use delegator_engine::{Variables, local_time};
use jiff::Timestamp;

use crate::output::values::rfc3339;

const LENGTH: usize = "2026-11-19T09:05:00.000Z".len();

/// Replaces the times in the format of `rfc3339` by `2026-11-19 09:05`, in the time zone that `variables` set
/// or that of the system.
pub fn with_local_times<'t>(text: &'t str, variables: &Variables) -> Cow<'t, str> {
    let times = text.match_indices('Z').filter_map(|(end, _)| {
        let written = text.get((end + 1).checked_sub(LENGTH)?..=end)?;
        let time = written.parse::<Timestamp>().ok().filter(|time| rfc3339(*time) == written)?;
        let local = local_time(time.as_millisecond(), variables);
        Some((written, local.strftime("%Y-%m-%d %H:%M").to_string()))
    });
    times.fold(Cow::Borrowed(text), |text, (written, local)| text.replace(written, &local).into())
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
