//! The programs under test: built here, or passed by a test.

#![expect(clippy::disallowed_methods, reason = "a developer tool runs cargo and reads its environment")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::LoadError;

/// The cargo profile of releases; also the name of its directory in `target/`.
const SHIPPED_PROFILE: &str = "dist";

/// Outside of the repository: examining its files would dominate what a tier measures. Each user has a directory.
pub(crate) fn testbeds() -> PathBuf {
    PathBuf::from(format!("/var/tmp/mcp-delegator-load-{}", rustix::process::getuid().as_raw()))
}

/// Paths of the programs a test bed uses.
#[derive(Debug, Clone)]
pub struct Programs {
    /// `mcp-delegator`.
    pub delegator: PathBuf,
    /// The scripted agent and its leading arguments. It is called by its path.
    pub agent: Vec<String>,
    /// A program that becomes a server if its first argument is [`crate::SERVE`].
    pub server: PathBuf,
    /// Directory of the test beds; must be on a real disk.
    pub testbeds: PathBuf,
}

impl Programs {
    /// Builds the programs of this workspace as they are shipped.
    pub(crate) fn build() -> Result<Programs, LoadError> {
        let built = build_packages(&["mcp-delegator", "delegator-scripted-agent", "xtask"])?;
        Ok(Programs {
            delegator: built.join("mcp-delegator"),
            agent: vec![built.join("scripted-agent").display().to_string()],
            server: built.join("xtask"),
            testbeds: testbeds(),
        })
    }
}

/// The root of this repository.
pub(crate) fn workspace() -> Result<PathBuf, LoadError> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    workspace.canonicalize().map_err(LoadError::io("find the workspace"))
}

/// Builds only `mcp-delegator`, as it is shipped. Returns its path.
pub(crate) fn build_delegator() -> Result<PathBuf, LoadError> {
    Ok(build_packages(&["mcp-delegator"])?.join("mcp-delegator"))
}

/// Builds the programs of these packages. Returns their directory.
fn build_packages(packages: &[&str]) -> Result<PathBuf, LoadError> {
    let workspace = workspace()?;
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let status = Command::new(cargo)
        .args(["build", "--profile", SHIPPED_PROFILE, "--locked", "--bins", "--message-format", "short"])
        .args(packages.iter().flat_map(|package| ["--package", package]))
        .current_dir(&workspace)
        .status()
        .map_err(LoadError::io("run cargo"))?;
    if !status.success() {
        return Err(LoadError::Program { program: "cargo build".to_owned(), output: status.to_string() });
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
    Ok(target.join(SHIPPED_PROFILE))
}
