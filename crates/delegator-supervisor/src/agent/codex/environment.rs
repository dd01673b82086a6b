//! The variables that only Codex gets, and its home directory.

use std::path::{Path, PathBuf};

use crate::agent::environment::{Variables, variable};

/// Passed to Codex in addition to the variables of every agent: its home, certificates and credentials.
pub(crate) const OWN_VARIABLES: [&str; 7] = [
    "CODEX_HOME",
    "CODEX_CA_CERTIFICATE",
    "OPENAI_API_KEY",
    "CODEX_API_KEY",
    "CODEX_ACCESS_TOKEN",
    "OPENAI_ORGANIZATION",
    "OPENAI_PROJECT",
];

/// Codex's home directory in that environment.
pub(super) fn codex_home(environment: &Variables) -> Option<PathBuf> {
    let value = |name: &str| variable(environment, name).filter(|value| !value.is_empty()).map(Path::new);
    value("CODEX_HOME").map(Path::to_path_buf).or_else(|| value("HOME").map(|home| home.join(".codex")))
}

/// The directory for temporary files in that environment.
pub(super) fn temporary_dir(environment: &Variables) -> PathBuf {
    variable(environment, "TMPDIR").map_or_else(|| "/tmp".into(), PathBuf::from)
}
