//! Formats an estimated duration, no more precise than it is.

use delegator_engine::ExpectedDuration;

const UNITS: [(u64, &str); 3] = [(3_600_000, "hour"), (60_000, "minute"), (1_000, "second")];

/// `5-10 minutes`, `about 1 hour`, `under a second`.
pub fn format_estimate(expected: ExpectedDuration) -> String {
    if expected.to_ms < 1_000 {
        return "under a second".to_owned();
    }
    // The upper end decides; less than two of a unit is shown in the smaller unit.
    let fits = |(unit, _): &&(u64, &str)| expected.to_ms >= unit * 2 || *unit == 1_000;
    let (unit, name) = UNITS.iter().find(fits).copied().unwrap_or((1_000, "second"));
    let rounded = |milliseconds: u64| (milliseconds + unit / 2) / unit;
    let (from, to) = (rounded(expected.from_ms), rounded(expected.to_ms).max(1));
    let plural = if to == 1 { "" } else { "s" };
    match from {
        0 => format!("up to {to} {name}{plural}"),
        same if same == to => format!("about {to} {name}{plural}"),
        from => format!("{from}-{to} {name}s"),
    }
}

/// A single duration in the same format.
pub fn format_duration(milliseconds: u64) -> String {
    format_estimate(ExpectedDuration { from_ms: milliseconds, to_ms: milliseconds })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn estimates_are_rounded() {
        let minute = 60_000;
        for (from_ms, to_ms, expected) in [
            (3, 900, "under a second"),
            (800, 1_400, "about 1 second"),
            (100, 4_000, "up to 4 seconds"),
            (20_000, 95_000, "20-95 seconds"),
            (5 * minute, 10 * minute, "5-10 minutes"),
            (8 * minute, 8 * minute + 5_000, "about 8 minutes"),
            (minute / 4, 9 * minute, "up to 9 minutes"),
            (90 * minute, 150 * minute, "2-3 hours"),
        ] {
            assert_eq!(format_estimate(ExpectedDuration { from_ms, to_ms }), expected);
        }
    }
}
