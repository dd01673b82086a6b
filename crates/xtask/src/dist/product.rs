//! What packages and catalogues say about this program: one value, from which all of them are generated.
//!
//! Version, licence and repository come from the workspace manifest, so that no package can disagree with it.

use std::path::Path;

use serde::Deserialize;

use crate::error::LoadError;

pub(crate) const NAME: &str = "mcp-delegator";
/// Lists in catalogues end after 100 characters.
pub(crate) const DESCRIPTION: &str =
    "Delegates coding tasks to coding agents and verifies against git what they did";
pub(crate) const TITLE: &str = "mcp-delegator";
/// The name in the MCP registry. The npm package and the wheel repeat it, which proves that they belong to it.
pub(crate) const REGISTRY_NAME: &str = "io.github.mcp-delegator/mcp-delegator";
pub(crate) const KEYWORDS: [&str; 5] = ["mcp", "codex", "claude", "coding-agent", "delegation"];
/// How a client starts the server; `setup` registers the same.
pub const SERVER_ARGS: [&str; 3] = ["serve", "--toolsets", "local,registry"];
/// The oldest glibc that the program runs with.
pub(crate) const GLIBC: (u32, u32) = (2, 28);

/// A system for which there are packages.
#[derive(Debug, PartialEq, Eq)]
pub struct Platform {
    /// In the names of archives.
    pub name: &'static str,
    pub(crate) target: &'static str,
    /// `cpu` of npm; `linux` is its `os`.
    pub(crate) npm_cpu: &'static str,
    /// What Python and `uname -m` call the processor.
    pub(crate) machine: &'static str,
    /// The block of a Homebrew formula.
    pub(crate) homebrew: &'static str,
}

pub const PLATFORMS: [Platform; 2] = [
    Platform {
        name: "x86_64-linux",
        target: "x86_64-unknown-linux-gnu",
        npm_cpu: "x64",
        machine: "x86_64",
        homebrew: "on_intel",
    },
    Platform {
        name: "aarch64-linux",
        target: "aarch64-unknown-linux-gnu",
        npm_cpu: "arm64",
        machine: "aarch64",
        homebrew: "on_arm",
    },
];

impl Platform {
    pub fn named(name: &str) -> Option<&'static Platform> {
        PLATFORMS.iter().find(|platform| platform.name == name)
    }

    pub fn of_this_machine() -> Option<&'static Platform> {
        PLATFORMS.iter().find(|platform| platform.machine == std::env::consts::ARCH)
    }

    pub(crate) fn npm_package(&self) -> String {
        format!("@{NAME}/linux-{}", self.npm_cpu)
    }
}

/// The fields of `[workspace.package]`.
#[derive(Debug, Clone, Deserialize)]
pub struct Product {
    pub version: String,
    pub(crate) license: String,
    pub(crate) repository: String,
}

impl Product {
    pub fn read(workspace: &Path) -> Result<Product, LoadError> {
        #[derive(Deserialize)]
        struct Manifest {
            workspace: Section,
        }
        #[derive(Deserialize)]
        struct Section {
            package: Product,
        }
        let text = std::fs::read_to_string(workspace.join("Cargo.toml"))
            .map_err(LoadError::io("read Cargo.toml"))?;
        let manifest: Manifest = toml::from_str(&text).map_err(|error| LoadError::Program {
            program: "Cargo.toml".to_owned(),
            output: error.to_string(),
        })?;
        Ok(manifest.workspace.package)
    }

    /// The name of an archive without its suffix; also the folder in it.
    pub(crate) fn archive_name(&self, platform: &Platform) -> String {
        format!("{NAME}-{}-{}", self.version, platform.name)
    }

    pub(crate) fn download(&self, file: &str) -> String {
        format!("{}/releases/download/v{}/{file}", self.repository, self.version)
    }

    /// The page of the package in npm and PyPI, whose readers may never have seen the repository.
    pub(crate) fn readme(&self) -> String {
        format!(
            "# {TITLE}\n\n{DESCRIPTION}.\nAn MCP server and a command line for Linux with glibc {}.{} or newer.\n\n\
             ```sh\n{NAME} demo     # offline, without an account\n{NAME} init     # registers it with your MCP clients\n```\n\n\
             Documentation: {}\n\n<!-- mcp-name: {REGISTRY_NAME} -->\n",
            GLIBC.0, GLIBC.1, self.repository
        )
    }
}
