//! What `doctor` reports about Codex.

use super::environment::{codex_home, temporary_dir};
use super::version::CodexVersion;
use crate::agent::environment::Variables;
use crate::agent::health::{HealthCheck, HealthStatus, HealthSubject};

/// Codex cannot create its sandbox helper if CODEX_HOME is below the temporary directory, and reports that only on
/// stderr.
pub(crate) fn check_home(environment: &Variables) -> HealthCheck {
    let subject = HealthSubject::Home;
    let check = |status, message, suggestion| HealthCheck { subject, status, message, suggestion };
    let temporary = temporary_dir(environment);
    match codex_home(environment) {
        Some(home) if home.starts_with(&temporary) => check(
            HealthStatus::Problem,
            format!(
                "{} is below {}; Codex cannot run sandboxed commands there",
                home.display(),
                temporary.display()
            ),
            Some("Set CODEX_HOME or TMPDIR to another directory.".to_owned()),
        ),
        Some(home) => check(HealthStatus::Ok, home.display().to_string(), None),
        None => check(HealthStatus::Warning, "neither CODEX_HOME nor HOME is set".to_owned(), None),
    }
}

/// A warning for a version outside of the measured ones. It is used anyway.
pub(crate) fn version_warning(version: (u32, u32, u32)) -> Option<String> {
    let (major, minor, patch) = version;
    let version = CodexVersion::new(major, minor, patch);
    let (oldest, newest) = (CodexVersion::OLDEST_MEASURED, CodexVersion::NEWEST_MEASURED);
    let side = match version {
        version if version > newest => "newer",
        version if version < oldest => "older",
        _ => return None,
    };
    Some(format!("{side} than the tested versions ({oldest} to {newest}); it will be used anyway"))
}

/// The measured versions.
pub(crate) fn tested_versions() -> String {
    format!("{} to {}", CodexVersion::OLDEST_MEASURED, CodexVersion::NEWEST_MEASURED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn home_below_the_temporary_directory_is_a_problem() {
        let status = |variables: &[(&str, &str)]| {
            let environment: Variables =
                variables.iter().map(|(name, value)| (name.into(), value.into())).collect();
            check_home(&environment).status
        };
        assert_eq!(status(&[("CODEX_HOME", "/tmp/x")]), HealthStatus::Problem);
        assert_eq!(status(&[("HOME", "/home/dev")]), HealthStatus::Ok);
        assert_eq!(status(&[("CODEX_HOME", "/tmp/x"), ("TMPDIR", "/var/tmp")]), HealthStatus::Ok);
        assert_eq!(status(&[]), HealthStatus::Warning);
    }

    #[test]
    fn newer_versions_than_the_measured_ones_are_reported() {
        assert_eq!(version_warning((0, 166, 0)), None);
        assert!(
            version_warning((1, 0, 0))
                .unwrap()
                .contains("newer than the tested versions (0.40.0 to 0.166.0)")
        );
        assert!(version_warning((0, 39, 9)).unwrap().contains("older"));
    }
}
