//! Installs the peers from their package registries, with the registries' own clients.
//!
//! Each peer gets a directory of its own. With a cache directory, a peer that was installed completely is used again.
//! Install scripts of npm packages do not run.

#![expect(clippy::disallowed_methods, reason = "the race runs npm, python3 and node")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::arena::{dir_name, run_to_end};
use super::peers::{Peer, Registry};
use crate::error::LoadError;

/// Has the ranks of o200k_base in its package.
const TOKENIZER: (&str, &str) = ("gpt-tokenizer", "4.0.0");
/// Prints the number of tokens of each file, one per line.
const COUNT_TOKENS: &str = "const {encode} = require('gpt-tokenizer/encoding/o200k_base');
const fs = require('fs');
for (const file of process.argv.slice(1)) console.log(encode(fs.readFileSync(file, 'utf8')).length);";
/// Exists once an installation is complete.
const COMPLETE: &str = ".complete";

/// Installs a peer below `packages`. Returns the command that starts its server.
pub(crate) fn install(peer: &Peer, packages: &Path) -> Result<PathBuf, LoadError> {
    match peer.registry {
        Registry::Npm => {
            let dir = npm_install(packages, peer.name, peer.version)?;
            Ok(dir.join("node_modules/.bin").join(peer.command))
        }
        Registry::PyPi => {
            let dir = pip_install(packages, peer)?;
            Ok(dir.join("bin").join(peer.command))
        }
    }
}

fn npm_install(packages: &Path, name: &str, version: &str) -> Result<PathBuf, LoadError> {
    installed_once(packages, name, version, |dir| {
        fs::write(dir.join("package.json"), "{\"private\": true}")
            .map_err(LoadError::io("write package.json"))?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"]);
        run_to_end(npm.arg(format!("{name}@{version}")).current_dir(dir), "npm install")?;
        Ok(())
    })
}

fn pip_install(packages: &Path, peer: &Peer) -> Result<PathBuf, LoadError> {
    installed_once(packages, peer.name, peer.version, |dir| {
        run_to_end(Command::new("python3").args(["-m", "venv"]).arg(dir), "python3 -m venv")?;
        let mut pip = Command::new(dir.join("bin/python"));
        pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]);
        run_to_end(pip.arg(format!("{}=={}", peer.name, peer.version)).args(peer.with), "pip install")?;
        Ok(())
    })
}

/// Runs `install` in the directory of this package, unless it has succeeded there before.
fn installed_once(
    packages: &Path,
    name: &str,
    version: &str,
    install: impl FnOnce(&Path) -> Result<(), LoadError>,
) -> Result<PathBuf, LoadError> {
    let dir = packages.join(format!("{}-{version}", dir_name(name)));
    if dir.join(COMPLETE).exists() {
        return Ok(dir);
    }
    if dir.exists() {
        fs::remove_dir_all(&dir).map_err(LoadError::io("remove an incomplete installation"))?;
    }
    fs::create_dir_all(&dir).map_err(LoadError::io("create a package directory"))?;
    install(&dir)?;
    fs::write(dir.join(COMPLETE), "").map_err(LoadError::io("finish an installation"))?;
    Ok(dir)
}

/// Counts the tokens (o200k_base) of each of these files.
pub(crate) fn count_tokens(packages: &Path, files: &[PathBuf]) -> Result<Vec<f64>, LoadError> {
    let (name, version) = TOKENIZER;
    let dir = npm_install(packages, name, version)?;
    let mut node = Command::new("node");
    // `--` ends the options of node itself.
    node.args(["-e", COUNT_TOKENS, "--"]).args(files).current_dir(dir);
    let printed = run_to_end(&mut node, "node")?;
    Ok(printed.lines().filter_map(|line| line.trim().parse().ok()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_installations_are_repeated_and_complete_ones_are_not() {
        let packages = std::env::temp_dir().join(format!("xtask-race-install-{}", std::process::id()));
        let failed = installed_once(&packages, "@a/b", "1.0.0", |dir| {
            fs::write(dir.join("half"), "").unwrap();
            Err(LoadError::ServerGone)
        });
        assert!(failed.is_err());
        let dir = installed_once(&packages, "@a/b", "1.0.0", |dir| {
            assert!(!dir.join("half").exists());
            Ok(())
        });
        assert_eq!(dir.unwrap(), packages.join("a-b-1.0.0"));
        installed_once(&packages, "@a/b", "1.0.0", |_| Err(LoadError::ServerGone)).unwrap();
        fs::remove_dir_all(packages).unwrap();
    }
}
