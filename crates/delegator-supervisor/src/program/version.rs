//! Versions of programs.

/// Major, minor and patch.
pub(crate) type Version = (u32, u32, u32);

pub(crate) fn text((major, minor, patch): Version) -> String {
    format!("{major}.{minor}.{patch}")
}

/// The first version in what a program prints about itself: `codex-cli 0.166.0`, with or without a suffix
/// such as `-alpha.3`.
pub(super) fn from_output(output: &str) -> Option<Version> {
    output.split_whitespace().find_map(parse)
}

fn parse(word: &str) -> Option<Version> {
    let word = word.strip_prefix('v').unwrap_or(word).trim_end_matches('.');
    let plain = word.split(['-', '+']).next()?;
    let mut numbers = plain.split('.').map(|number| number.parse().ok());
    let version = (numbers.next()??, numbers.next()??, numbers.next()??);
    numbers.next().is_none().then_some(version)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_from_program_output() {
        let version = Some((0, 166, 0));
        assert_eq!(from_output("codex-cli 0.166.0\n"), version);
        assert_eq!(from_output("WARNING: odd (1.2)\ncodex-cli 0.166.0-alpha.3"), version);
        assert_eq!(from_output("Another CLI 0.166.0.\nRun 'x'"), version);
        assert_eq!(from_output("2.1.325 (Claude Code)\n"), Some((2, 1, 325)));
        for other in ["", "usage: codex [0.1]", "claude 2.1", "2.1.x (Claude Code)"] {
            assert_eq!(from_output(other), None, "{other}");
        }
    }
}
