//! Codex's home directory.

use std::path::{Path, PathBuf};

use crate::agent::health::{HealthCheck, HealthStatus, HealthSubject};
use crate::variables::{Variables, set_variable, variable};

/// Codex's home directory in that environment.
pub(super) fn codex_home(environment: &Variables) -> Option<PathBuf> {
    let named = set_variable(environment, "CODEX_HOME").map(PathBuf::from);
    named.or_else(|| Some(Path::new(set_variable(environment, "HOME")?).join(".codex")))
}

/// Codex cannot create its sandbox helper if CODEX_HOME is below the temporary directory, and reports that
/// only on stderr.
pub(in crate::agent) fn check_home(environment: &Variables) -> HealthCheck {
    let subject = HealthSubject::Home;
    let check = |status, message, suggestion| HealthCheck { subject, status, message, suggestion };
    let temporary = variable(environment, "TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from);
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
}
