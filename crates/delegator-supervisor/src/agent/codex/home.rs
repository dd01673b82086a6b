//! Codex's home directory, and the shell snapshots that Codex leaves there after a forced end: files that
//! contain every exported variable.
//!
//! They are named after the thread (`<thread>.<nonce>.sh`, `<thread>.tmp-<nonce>`). Only files of our own
//! thread are removed: other runs share the directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::agent::health::{HealthCheck, HealthStatus, HealthSubject};
use crate::variables::{Variables, named_directory, variable};

const FOLDER: &str = "shell_snapshots";

pub(super) fn codex_home(environment: &Variables) -> Option<PathBuf> {
    named_directory(environment, "CODEX_HOME", ".codex")
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

/// The shell snapshots that Codex may leave behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShellSnapshots {
    pub codex_home: PathBuf,
}

impl ShellSnapshots {
    pub(in crate::agent) fn of(environment: &Variables) -> Option<ShellSnapshots> {
        codex_home(environment).map(|codex_home| ShellSnapshots { codex_home })
    }

    /// Removes those of one thread; returns a warning if that fails.
    pub(crate) fn remove(&self, thread_id: Option<&str>) -> Option<String> {
        let error = remove_shell_snapshots(&self.codex_home, thread_id?).err()?;
        Some(format!("could not remove a shell snapshot in {}: {error}", self.codex_home.display()))
    }
}

fn is_snapshot_of(name: &str, thread_id: &str) -> bool {
    let Some(rest) = name.strip_prefix(thread_id).filter(|_| !thread_id.is_empty()) else { return false };
    let Some((before, ending)) = rest.rsplit_once('.') else { return false };
    let is_first_dot = before.is_empty() || before.starts_with('.');
    is_first_dot && (ending == "sh" || ending.starts_with("tmp-"))
}

fn remove_shell_snapshots(codex_home: &Path, thread_id: &str) -> io::Result<()> {
    let folder = codex_home.join(FOLDER);
    let entries = match std::fs::read_dir(&folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries?,
    };
    for entry in entries {
        let name = entry?.file_name();
        if name.to_str().is_some_and(|name| is_snapshot_of(name, thread_id)) {
            match std::fs::remove_file(folder.join(&name)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                outcome => outcome?,
            }
        }
    }
    Ok(())
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

    const THREAD: &str = "01a1dca3-fd12-7200-9e8a-f2f52ed5a6c6";

    #[test]
    fn only_snapshots_of_the_thread_are_chosen() {
        for ours in ["{}.1731630000000000000.sh", "{}.sh", "{}.tmp-17316300"] {
            assert!(is_snapshot_of(&ours.replace("{}", THREAD), THREAD), "{ours}");
        }
        for other in ["{}", "{}0.sh", "{}.json", "x{}.sh", "{}-a.1.sh", "notes.sh"] {
            assert!(!is_snapshot_of(&other.replace("{}", THREAD), THREAD), "{other}");
        }
        assert!(!is_snapshot_of(".sh", ""));
    }

    #[test]
    fn snapshots_of_other_threads_are_not_removed() {
        let home = tempfile::tempdir().unwrap();
        remove_shell_snapshots(home.path(), THREAD).unwrap();
        let folder = home.path().join(FOLDER);
        let (own, other) = (folder.join(format!("{THREAD}.1.sh")), folder.join("other.1.sh"));
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&own, "export A=1").unwrap();
        std::fs::write(&other, "export A=1").unwrap();
        remove_shell_snapshots(home.path(), THREAD).unwrap();
        assert!(!own.exists() && other.exists());
    }
}
