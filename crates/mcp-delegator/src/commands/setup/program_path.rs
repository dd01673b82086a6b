//! The path under which clients start this program.
//!
//! A client keeps the path for months, so it must survive an upgrade: the entry on PATH, usually a link or a
//! file that installers replace in place, is better than the file it leads to. A path that is about to
//! disappear is reported.

use std::path::{Component, Path, PathBuf};

use crate::spec::process::Process;
use crate::spec::version::PROGRAM;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Risk {
    BuildDirectory,
    TemporaryDirectory,
    /// Where npx, uvx and their like put a program that is not installed.
    Cache,
    VersionedDirectory,
}

impl Risk {
    pub fn message(self, path: &Path) -> String {
        let why = match self {
            Risk::BuildDirectory => {
                "lies in a build directory, which the next build or `cargo clean` changes"
            }
            Risk::TemporaryDirectory => "lies in a temporary directory, which is emptied",
            Risk::Cache => "lies in a cache, which is emptied",
            Risk::VersionedDirectory => "contains a version number, so an upgrade removes it",
        };
        format!(
            "{} {why}. Put {PROGRAM} on PATH (in a checkout: scripts/install), then run this command again.",
            path.display()
        )
    }
}

/// The most durable path of this program. `None` if the program cannot find itself.
pub fn stable_path(process: &Process) -> Option<PathBuf> {
    let program = process.program.as_deref()?;
    let own = real_path(program)?;
    let is_durable =
        |path: &PathBuf| real_path(path).is_some_and(|real| real == own) && risk(path, process).is_none();
    let as_called = process.argv.first().map(Path::new).filter(|called| called.components().count() > 1);
    let as_called = as_called.map(|called| process.current_dir.join(called));
    path_entries(process, PROGRAM).chain(as_called).find(is_durable).or_else(|| Some(program.to_owned()))
}

pub fn path_entries(process: &Process, name: &str) -> impl Iterator<Item = PathBuf> {
    let path = process.variable("PATH").unwrap_or_default().to_owned();
    let directories: Vec<PathBuf> = std::env::split_paths(&path).filter(|dir| dir.is_absolute()).collect();
    directories.into_iter().map(move |directory| directory.join(name)).filter(|path| path.is_file())
}

/// The file that a client starts for a command: a bare name is found on PATH.
pub fn started_file(process: &Process, command: &str) -> Option<PathBuf> {
    if command.contains('/') {
        Some(process.current_dir.join(command)).filter(|path| path.exists())
    } else {
        path_entries(process, command).next()
    }
}

pub fn real_path(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

/// Why this path may stop to exist, if there is a reason to expect it.
pub fn risk(path: &Path, process: &Process) -> Option<Risk> {
    let names: Vec<&str> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(name) => name.to_str(),
            _ => None,
        })
        .collect();
    let position = |wanted: &str| names.iter().position(|name| *name == wanted);
    let is_built =
        |profile| position("target").zip(position(profile)).is_some_and(|(target, at)| target < at);
    let temporary = ["/tmp", "/var/tmp"].into_iter().chain(process.variable("TMPDIR"));
    if ["debug", "release"].into_iter().any(is_built) {
        Some(Risk::BuildDirectory)
    } else if temporary.into_iter().any(|dir| path.starts_with(dir)) {
        Some(Risk::TemporaryDirectory)
    } else if names.iter().any(|name| [".cache", "_npx"].contains(name)) {
        Some(Risk::Cache)
    } else if names.iter().any(|name| is_version(name)) {
        Some(Risk::VersionedDirectory)
    } else {
        None
    }
}

/// `1.2.3` or `v1.2.3`, also with a suffix such as `_1` or `-beta`.
fn is_version(name: &str) -> bool {
    let name = name.strip_prefix('v').unwrap_or(name);
    let parts: Vec<&str> = name.splitn(3, '.').collect();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts.as_slice(), [major, minor, patch]
        if is_number(major) && is_number(minor) && patch.starts_with(|first: char| first.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn process(program: &Path, called: &str, path: &str) -> Process {
        Process {
            argv: vec![called.into()],
            environment: [("PATH".into(), path.into())].into_iter().collect(),
            current_dir: "/".into(),
            program: Some(program.to_owned()),
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stderr_is_terminal: false,
            terminal_columns: 80,
        }
    }

    #[test]
    fn risky_places_are_recognised() {
        let risk_of = |path: &str| risk(Path::new(path), &process(Path::new("/x"), "x", ""));
        assert_eq!(risk_of("/home/me/.cargo/bin/mcp-delegator"), None);
        assert_eq!(risk_of("/home/me/target/bin/mcp-delegator"), None);
        for build in ["/src/target/debug/mcp-delegator", "/src/target/x86_64-linux/release/mcp-delegator"] {
            assert_eq!(risk_of(build), Some(Risk::BuildDirectory));
        }
        assert_eq!(risk_of("/tmp/mcp-delegator"), Some(Risk::TemporaryDirectory));
        for cached in ["/home/me/.npm/_npx/9f/node_modules/m/bin/m", "/home/me/.cache/uv/archive-v0/Xy/bin/m"]
        {
            assert_eq!(risk_of(cached), Some(Risk::Cache));
        }
        for versioned in ["/opt/mcp-delegator/3.6.0/bin/mcp-delegator", "/brew/Cellar/m/v3.6.1_2/bin/m"] {
            assert_eq!(risk_of(versioned), Some(Risk::VersionedDirectory));
        }
    }

    #[test]
    fn the_entry_on_path_is_preferred_to_the_file_it_leads_to() {
        let folder = delegator_testkit::program::durable_dir();
        let at = |path: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            path
        };
        let program = at("opt/3.6.0/mcp-delegator");
        std::fs::write(&program, "").unwrap();
        let (link, called) = (at("bin/mcp-delegator"), at("current/mcp-delegator"));
        symlink(&program, &link).unwrap();
        symlink(&program, &called).unwrap();
        std::fs::write(at("other/mcp-delegator"), "another program").unwrap();
        let path = format!("{}:{}", folder.path().join("other").display(), link.parent().unwrap().display());
        assert_eq!(stable_path(&process(&program, "mcp-delegator", &path)), Some(link));
        let called_text = called.display().to_string();
        assert_eq!(stable_path(&process(&program, &called_text, "/nowhere")), Some(called));
        assert_eq!(stable_path(&process(&program, "mcp-delegator", "")), Some(program));
    }
}
