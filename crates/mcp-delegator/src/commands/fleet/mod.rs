//! Commands for the operators of a fleet: its state, its tables, its tasks, and which workers claim them.
//!
//! Only `fleet status` and `fleet tasks` are tools, in the toolset `extra`. The others change the fleet for
//! all its users, so they are for people.

pub mod cancel;
pub mod claiming;
pub mod database;
pub mod grant;
pub mod migrate;
pub mod status;
pub mod tasks;

/// Milliseconds for a reader of a table: one number, one unit.
fn format_age(milliseconds: i64) -> String {
    match milliseconds.max(0) / 1000 {
        seconds if seconds < 120 => format!("{seconds} s"),
        seconds if seconds < 2 * 3600 => format!("{} min", seconds / 60),
        seconds if seconds < 48 * 3600 => format!("{} h", seconds / 3600),
        seconds => format!("{} d", seconds / (24 * 3600)),
    }
}

/// A number of bytes for a reader, with the largest unit that leaves a number of at least 1.
fn format_size(bytes: u64) -> String {
    const UNITS: [(u32, &str); 4] = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    match UNITS.into_iter().find(|(bits, _)| bytes >> bits > 0) {
        Some((bits, unit)) => {
            let tenths = (u128::from(bytes) * 10) >> bits;
            format!("{}.{} {unit}", tenths / 10, tenths % 10)
        }
        None => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_have_one_unit() {
        let ages = [0, 119_999, 120_000, 7_199_999, 7_200_000, 172_800_000].map(format_age);
        assert_eq!(ages, ["0 s", "119 s", "2 min", "119 min", "2 h", "2 d"]);
    }

    #[test]
    fn sizes_have_binary_units() {
        let sizes = [0, 1023, 1024, 1_600_000, 10 << 30, u64::MAX].map(format_size);
        assert_eq!(sizes, ["0 B", "1023 B", "1.0 KiB", "1.5 MiB", "10.0 GiB", "16777215.9 TiB"]);
    }
}
