//! The machine of a newcomer: a clean home, a checkout, a project, and stand-ins for what a test cannot download.
//!
//! Lines are wrapped before paths are replaced in the screens, so the path of the machine always has the same length. It is
//! not below the system's temporary directories, because the program warns about those.

use std::fs::{create_dir_all, write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use delegator_testkit::codex::codex_program;
use delegator_testkit::generated::workspace;
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");

/// The length of the path of every machine.
const PATH_LENGTH: usize = 40;
/// Random characters at its end.
const RANDOM: usize = 6;

/// Removed when it is dropped.
#[derive(Debug)]
pub(super) struct Machine {
    root: TempDir,
}

impl Machine {
    pub(super) fn new() -> Machine {
        let folder = folder();
        let padding = PATH_LENGTH - RANDOM - 1 - folder.as_os_str().len();
        let prefix = "-".repeat(padding);
        let root = tempfile::Builder::new().prefix(&prefix).rand_bytes(RANDOM).tempdir_in(folder).unwrap();
        let machine = Machine { root };
        for folder in
            [machine.checkout().join("scripts"), machine.project(), machine.tools(), machine.scratch()]
        {
            create_dir_all(folder).unwrap();
        }
        std::fs::copy(workspace().join("scripts/install"), machine.checkout().join("scripts/install"))
            .unwrap();
        machine.add_cargo();
        machine
    }

    pub(super) fn path(&self) -> &Path {
        self.root.path()
    }

    pub(super) fn home(&self) -> PathBuf {
        self.path().join("home/me")
    }

    /// The clone that the newcomer starts with.
    pub(super) fn checkout(&self) -> PathBuf {
        self.home().join("mcp-delegator")
    }

    /// A project of the newcomer.
    pub(super) fn project(&self) -> PathBuf {
        self.home().join("calendar")
    }

    /// Takes the place of the temporary directory: Codex rejects its sandbox helper if its home directory is below that.
    pub(super) fn scratch(&self) -> PathBuf {
        self.path().join("scratch")
    }

    fn tools(&self) -> PathBuf {
        self.path().join("tools")
    }

    /// `PATH` as rustup and an npm prefix in the home directory leave it.
    pub(super) fn search_path(&self) -> String {
        let folders = [self.home().join(".cargo/bin"), self.npm_programs(), self.tools()];
        let folders: Vec<String> = folders.iter().map(|folder| folder.display().to_string()).collect();
        format!("{}:/usr/bin:/bin", folders.join(":"))
    }

    fn npm_programs(&self) -> PathBuf {
        self.home().join(".npm-global/bin")
    }

    /// `cargo run` and `cargo install` use the program that is built already.
    fn add_cargo(&self) {
        let run = format!("run) shift 2; exec '{PROGRAM}' \"$@\" ;;");
        let copy = format!("mkdir -p \"$root/bin\" && cp '{PROGRAM}' \"$root/bin/mcp-delegator\"");
        let install = format!("install) for root; do :; done; {copy} ;;");
        let script = format!("case $1 in\n{run}\n{install}\n*) exit 1 ;;\nesac");
        add_program(self.tools().join("cargo"), &script);
    }

    /// What `npm install -g @openai/codex` does: the real Codex is on `PATH`.
    pub(super) fn add_codex(&self) {
        self.add_npm_program("codex", &codex_program());
    }

    /// The same for the real Claude Code.
    pub(super) fn add_claude_code(&self) {
        self.add_npm_program("claude", &claude_program());
    }

    fn add_npm_program(&self, name: &str, program: &Path) {
        create_dir_all(self.npm_programs()).unwrap();
        add_program(self.npm_programs().join(name), &format!("exec '{}' \"$@\"", program.display()));
    }
}

impl Drop for Machine {
    /// The shell of the terminal that was closed may still write.
    fn drop(&mut self) {
        let is_removed = || std::fs::remove_dir_all(self.path()).is_ok() || !self.path().exists();
        let _ = (0..100_000).any(|_| {
            is_removed() || {
                std::thread::yield_now();
                false
            }
        });
    }
}

fn add_program(path: PathBuf, script: &str) {
    write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

fn claude_program() -> PathBuf {
    let claude = workspace().join(".tools/claude-code-2.1.325/node_modules/.bin/claude");
    assert!(claude.exists(), "{} is missing: run scripts/install-hosts", claude.display());
    claude
}

/// A folder for the machine: the build's own one, or, for a checkout in a temporary directory, the home of the developer.
#[expect(clippy::disallowed_methods, reason = "the home of the developer, not an input of the program")]
fn folder() -> PathBuf {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    // Not in this repository: the program trusts no agent that lies in the repository of the current directory.
    let folders = [home, Some("/var/lib".into()), Some("/dev/shm".into())];
    let is_usable = |folder: &PathBuf| {
        let is_temporary = folder.starts_with("/tmp") || folder.starts_with("/var/tmp");
        !is_temporary
            && folder.as_os_str().len() + RANDOM + 2 <= PATH_LENGTH
            && tempfile::tempdir_in(folder).is_ok()
    };
    let found = folders.into_iter().flatten().find(is_usable);
    found.unwrap_or_else(|| {
        panic!("no writable folder with a short path outside temporary directories: set HOME to one")
    })
}
