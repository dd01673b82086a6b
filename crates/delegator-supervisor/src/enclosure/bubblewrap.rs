//! Encloses an agent with bubblewrap (`bwrap`), for kernels whose Landlock is too old.
//!
//! The agent sees the whole file system read-only, without the hidden paths, and with the writable ones bound
//! over it. It gets devices and shared memory of its own. It also needs its own process namespace: through
//! `/proc/PID/root` of a process outside it could write everywhere.
//!
//! Measured with 0.8.0: `bwrap` stays as the parent of the agent and exits with its exit code (128 + the
//! number of a signal). SIGTERM ends `bwrap` at once; the sweep then ends the agent.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::geteuid;

use super::capabilities::RETAINED;
use super::path_rules::{PathRules, WritablePath};
use crate::program::{ProbeError, exit_and_output};

const PROBE_TIMEOUT: Duration = Duration::from_secs(10);

/// Root could write to `/proc/sys` of a new `/proc`, and so make the kernel run a program outside.
const COMMON_ARGS: [&str; 13] = [
    "--ro-bind",
    "/",
    "/",
    "--dev",
    "/dev",
    "--unshare-pid",
    "--proc",
    "/proc",
    "--ro-bind",
    "/proc/sys",
    "/proc/sys",
    "--cap-drop",
    "ALL",
];

pub(super) fn args(paths: &PathRules, program: &Path, args: &[OsString]) -> Vec<OsString> {
    let PathRules { writable, protected, hidden } = paths;
    let mut all: Vec<OsString> = COMMON_ARGS.map(OsString::from).to_vec();
    // Other users have no capabilities to retain.
    if geteuid().is_root() {
        all.extend(RETAINED.iter().flat_map(|(_, name)| ["--cap-add", name]).map(OsString::from));
    }
    let (folders, others): (Vec<&PathBuf>, Vec<&PathBuf>) = hidden.iter().partition(|path| path.is_dir());
    all.extend(folders.iter().flat_map(|path| ["--tmpfs".into(), path.into()]));
    let files = others.into_iter().filter(|path| path.exists());
    all.extend(files.flat_map(|path| ["--ro-bind".into(), "/dev/null".into(), path.into()]));
    for WritablePath { path, .. } in writable {
        all.extend(["--bind".into(), path.into(), path.into()]);
    }
    // A directory above could be renamed and replaced, unless it is a mount point itself.
    let above: BTreeSet<&Path> = protected.iter().filter_map(|path| path.parent()).collect();
    let is_writable = |path: &Path| writable.iter().any(|other| path.starts_with(&other.path));
    for path in above.into_iter().filter(|path| is_writable(path)) {
        all.extend(["--bind".into(), path.into(), path.into()]);
    }
    for path in protected {
        all.extend(["--ro-bind".into(), path.into(), path.into()]);
    }
    all.extend(folders.iter().flat_map(|path| ["--remount-ro".into(), path.into()]));
    all.extend(["--".into(), program.into()]);
    all.extend(args.iter().cloned());
    all
}

/// Runs a command in it: whether user namespaces can be used shows only then.
pub(super) fn probe(program: &Path) -> Result<(), ProbeError> {
    let command = args(&PathRules::default(), Path::new("/bin/sh"), &["-c".into(), ":".into()]);
    let command = command.iter().map(OsString::as_os_str);
    match exit_and_output(program, command, &Vec::new(), PROBE_TIMEOUT)? {
        (true, _) => Ok(()),
        (false, output) => Err(ProbeError::NoSandbox { output }),
    }
}
