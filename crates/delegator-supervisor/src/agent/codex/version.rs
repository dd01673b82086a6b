//! Versions of Codex and the features of each.
//!
//! The table was measured with released programs: an unknown feature name after `--disable` is a fatal error, an
//! unknown configuration key is not. A version newer than all measured ones is assumed to support what the newest one
//! does.

use std::fmt;

use delegator_domain::named_enum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CodexVersion {
    pub major: u32,
    pub minor: u32,
    pub patch: u32,
}

named_enum! {
    /// A feature that not every version has.
    pub enum Ability {
        ExecResume = "resume",
        OutputSchema = "output_schema",
        /// Codex exec events; before, `--json` prints the internal protocol.
        ThreadEvents = "thread events",
        DisableFeature = "--disable",
        AddDir = "add_dirs",
        UntrustedProjects = "untrusted projects",
        ShellSnapshots = "shell snapshots",
        /// The setting that enables plans; before, plans are always reported.
        PlanSetting = "the plan setting",
        UnboundedRetries = "unbounded retries",
        /// Permission profiles that deny reading a directory; versions before 0.166 were not measured.
        DeniedReads = "denied reads",
    }
}

impl Ability {
    /// The first version that has it.
    pub fn since(self) -> CodexVersion {
        let minor = match self {
            Ability::ExecResume => 35,
            Ability::OutputSchema => 41,
            Ability::ThreadEvents => 44,
            Ability::DisableFeature => 47,
            Ability::AddDir => 48,
            Ability::UntrustedProjects => 59,
            Ability::ShellSnapshots => 67,
            Ability::PlanSetting => 146,
            Ability::UnboundedRetries => 148,
            Ability::DeniedReads => 166,
        };
        CodexVersion::new(0, minor, 0)
    }
}

impl CodexVersion {
    /// The newest measured version.
    pub const NEWEST_MEASURED: CodexVersion = CodexVersion::new(0, 166, 0);
    /// The oldest measured version.
    pub const OLDEST_MEASURED: CodexVersion = CodexVersion::new(0, 40, 0);

    pub const fn new(major: u32, minor: u32, patch: u32) -> CodexVersion {
        CodexVersion { major, minor, patch }
    }

    /// A program that does not report its version is treated like the newest measured version.
    pub(super) fn known_or_newest(version: Option<(u32, u32, u32)>) -> CodexVersion {
        version.map_or(CodexVersion::NEWEST_MEASURED, |(major, minor, patch)| {
            CodexVersion::new(major, minor, patch)
        })
    }

    /// Parses the output of `codex --version`: `codex-cli 0.166.0`, with or without a suffix such as `-alpha.3`.
    pub fn from_output(output: &str) -> Option<CodexVersion> {
        output.lines().flat_map(str::split_whitespace).find_map(CodexVersion::parse_token)
    }

    fn parse_token(token: &str) -> Option<CodexVersion> {
        let token = token.strip_prefix('v').unwrap_or(token).trim_end_matches('.');
        let plain = token.split(['-', '+']).next()?;
        let mut numbers = plain.split('.').map(|number| number.parse::<u32>().ok());
        let version = CodexVersion::new(numbers.next()??, numbers.next()??, numbers.next()??);
        numbers.next().is_none().then_some(version)
    }

    pub fn supports(self, ability: Ability) -> bool {
        self >= ability.since()
    }
}

impl fmt::Display for CodexVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_is_parsed_from_program_output() {
        let version = CodexVersion::new(0, 166, 0);
        assert_eq!(CodexVersion::from_output("codex-cli 0.166.0\n"), Some(version));
        assert_eq!(CodexVersion::from_output("WARNING: odd (1.2)\ncodex-cli 0.166.0-alpha.3"), Some(version));
        assert_eq!(CodexVersion::from_output("Another CLI 0.166.0.\nRun 'x'"), Some(version));
        assert_eq!(CodexVersion::from_output("usage: codex [0.1]"), None);
        assert_eq!(CodexVersion::from_output(""), None);
    }

    #[test]
    fn unknown_newer_versions_support_what_the_newest_measured_one_does() {
        let future = CodexVersion::new(1, 0, 0);
        assert!(future.supports(Ability::UnboundedRetries));
        assert!(!CodexVersion::new(0, 147, 0).supports(Ability::UnboundedRetries));
    }
}
