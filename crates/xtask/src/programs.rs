//! The programs under test: built here, or passed by a test.

#![expect(clippy::disallowed_methods, reason = "a developer tool runs cargo and reads its environment")]

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::LoadError;

/// The cargo profile of releases; also the name of its directory in `target/`.
const SHIPPED_PROFILE: &str = "dist";

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
        let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let workspace = workspace.canonicalize().map_err(LoadError::io("find the workspace"))?;
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let packages = ["mcp-delegator", "delegator-scripted-agent", "xtask"];
        let status = Command::new(cargo)
            .args(["build", "--profile", SHIPPED_PROFILE, "--locked", "--bins", "--message-format", "short"])
            .args(packages.iter().flat_map(|package| ["--package", package]))
            .current_dir(&workspace)
            .status()
            .map_err(LoadError::io("run cargo"))?;
        if !status.success() {
            return Err(LoadError::Program { program: "cargo build".to_owned(), output: status.to_string() });
        }
        let target =
            std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| workspace.join("target"), PathBuf::from);
        let program = |name: &str| target.join(SHIPPED_PROFILE).join(name);
        Ok(Programs {
            delegator: program("mcp-delegator"),
            agent: vec![program("scripted-agent").display().to_string()],
            server: program("xtask"),
            // Outside of the repository: examining its files would dominate what a tier measures.
            testbeds: PathBuf::from("/var/tmp/mcp-delegator-load"),
        })
    }
}
