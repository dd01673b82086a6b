//! The packages that the program is made of, as cargo resolves them for one platform.
//!
//! `cargo tree` says which packages are in the program, because it alone resolves the features of one package;
//! `cargo metadata` says what they are, and `Cargo.lock` has the checksums.

#![expect(clippy::disallowed_methods, reason = "a developer tool runs cargo")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::product::{NAME, Platform};
use crate::error::LoadError;

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    pub(crate) repository: Option<String>,
    /// `None`: a package of this workspace.
    pub(crate) source: Option<String>,
    pub(crate) manifest_path: PathBuf,
    /// Name and version of the packages that it uses directly.
    #[serde(skip)]
    pub(crate) uses: Vec<(String, String)>,
    /// SHA-256 of the package file.
    #[serde(skip)]
    pub(crate) checksum: Option<String>,
}

impl Package {
    pub(crate) fn key(&self) -> (String, String) {
        (self.name.clone(), self.version.clone())
    }
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
    resolve: Resolve,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    dependencies: Vec<String>,
}

#[derive(Deserialize)]
struct Lock {
    package: Vec<Locked>,
}

#[derive(Deserialize)]
pub(crate) struct Locked {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) source: Option<String>,
    checksum: Option<String>,
}

/// Sorted by name and version.
pub(crate) fn packages(workspace: &Path, platform: &Platform) -> Result<Vec<Package>, LoadError> {
    let tree = cargo(
        workspace,
        &["tree", "--package", NAME, "--edges", "normal", "--prefix", "none", "--target", platform.target],
    )?;
    let included: BTreeSet<(String, String)> = tree.lines().filter_map(name_and_version).collect();
    let metadata =
        cargo(workspace, &["metadata", "--format-version", "1", "--filter-platform", platform.target])?;
    let metadata: Metadata = parse("cargo metadata", serde_json::from_str(&metadata))?;
    let checksums: BTreeMap<_, _> = locked(workspace)?
        .into_iter()
        .map(|package| ((package.name, package.version), package.checksum))
        .collect();
    let keys: BTreeMap<String, _> =
        metadata.packages.iter().map(|package| (package.id.clone(), package.key())).collect();
    let mut uses: BTreeMap<String, Vec<String>> =
        metadata.resolve.nodes.into_iter().map(|node| (node.id, node.dependencies)).collect();
    let mut packages: Vec<Package> =
        metadata.packages.into_iter().filter(|package| included.contains(&package.key())).collect();
    for package in &mut packages {
        let used = uses.remove(&package.id).unwrap_or_default();
        package.uses =
            used.iter().filter_map(|id| keys.get(id)).filter(|key| included.contains(key)).cloned().collect();
        package.uses.sort();
        package.checksum = checksums.get(&package.key()).cloned().flatten();
    }
    packages.sort_by_key(Package::key);
    Ok(packages)
}

pub(crate) fn locked(workspace: &Path) -> Result<Vec<Locked>, LoadError> {
    let text =
        std::fs::read_to_string(workspace.join("Cargo.lock")).map_err(LoadError::io("read Cargo.lock"))?;
    Ok(parse::<Lock, _>("Cargo.lock", toml::from_str(&text))?.package)
}

/// `serde v1.0.0 (proc-macro)`.
fn name_and_version(line: &str) -> Option<(String, String)> {
    let mut words = line.split(' ');
    Some((words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned()))
}

fn cargo(workspace: &Path, args: &[&str]) -> Result<String, LoadError> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(args)
        .arg("--locked")
        .current_dir(workspace)
        .output()
        .map_err(LoadError::io("run cargo"))?;
    if !output.status.success() {
        let output = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(LoadError::Program { program: format!("cargo {}", args[0]), output });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn parse<T: DeserializeOwned, E: std::fmt::Display>(
    what: &str,
    parsed: Result<T, E>,
) -> Result<T, LoadError> {
    parsed.map_err(|error| LoadError::Program { program: what.to_owned(), output: error.to_string() })
}
