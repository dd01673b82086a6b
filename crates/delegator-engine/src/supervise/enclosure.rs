//! Prepares the enclosure of a run: opens everything that the agent may write to, and creates its temporary
//! directory. A task whose enclosure cannot be prepared fails; it never runs without it.

use std::fs::DirBuilder;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::task::Mode;
use delegator_git::protected_settings;
use delegator_registry::{TaskDir, TaskFile};
use delegator_supervisor::agent::{Variables, variable};
use delegator_supervisor::enclosure::{Enclosure, PathRules, WritablePath};

use crate::Engine;
use crate::error::{EngineError, Result};
use crate::submit::launch_file::Launch;
use crate::upkeep::leftovers::{TEMPORARY_DIR_PREFIX, remove_temporary_dir};

/// Programs create sockets in their temporary directory, whose paths must be shorter than 108 bytes.
const MAX_TEMPORARY_BASE_BYTES: usize = 40;
const TEMPORARY_VARIABLES: [&str; 3] = ["TMPDIR", "TMP", "TEMP"];

/// The enclosure of a run; `None` if the agent has a sandbox of its own or runs without one. Adapts
/// `variables` to it. `workspace` are the open directories of the task.
pub(super) fn prepare(
    engine: &Engine,
    dir: &TaskDir,
    launch: &Launch,
    workspace: &[(&OwnedFd, &Path)],
    variables: &mut Variables,
) -> Result<Option<Enclosure>> {
    let Some(mechanism) = launch.enclosure.clone() else { return Ok(None) };
    let io_error = |source| EngineError::Io { doing: "prepare the enclosure of the agent", source };
    let (mut writable, mut protected) = (Vec::new(), Vec::new());
    if launch.settings.run.effective_mode() == Mode::WorkspaceWrite {
        for (directory, path) in workspace {
            writable.push(WritablePath::of(path, directory).map_err(io_error)?);
            protected.extend(protected_settings(path));
        }
    }
    for state_path in launch.agent.state_paths(variables).iter().filter_map(|path| path.open()) {
        launch.check_state_dir(&state_path.path, &engine.state_dir)?;
        writable.push(state_path);
    }
    // That of another agent, which could not run.
    remove_temporary_dir(dir);
    let temporary = create_temporary_dir(dir, variables)?;
    writable.push(WritablePath::resolve(&temporary).map_err(io_error)?);
    variables.retain(|(name, _)| !TEMPORARY_VARIABLES.iter().any(|variable| name == variable));
    variables.extend(TEMPORARY_VARIABLES.map(|name| (name.into(), temporary.clone().into())));
    let hidden = launch.settings.hidden.iter().chain([&engine.state_dir]);
    let hidden = hidden.filter_map(|path| path.canonicalize().ok());
    // A task that reads one of these directories cannot do without it.
    let hidden =
        hidden.filter(|hidden| !workspace.iter().any(|(_, path)| path.starts_with(hidden))).collect();
    let paths = PathRules { writable, protected, hidden };
    Ok(Some(Enclosure { mechanism, launcher: engine.program.clone(), paths }))
}

/// Creates a private directory and records its path first, so that a rescue can remove it.
fn create_temporary_dir(dir: &TaskDir, variables: &Variables) -> Result<PathBuf> {
    let random = dir.id().as_str().rsplit('-').next().unwrap_or_default();
    let name = format!("{TEMPORARY_DIR_PREFIX}{}", &random[..random.len().min(12)]);
    let path = temporary_base(variables).join(name);
    dir.write(TaskFile::TemporaryDir, path.as_os_str().as_bytes())?;
    let create = || -> io::Result<()> { DirBuilder::new().mode(0o700).create(&path) };
    create().map_err(EngineError::io("create the temporary directory of the agent"))?;
    crash_point(CrashPoint::TemporaryDirCreated);
    Ok(path)
}

/// The submitter's temporary directory without symbolic links, or `/tmp` if its path is too long.
fn temporary_base(variables: &Variables) -> PathBuf {
    let named = variable(variables, "TMPDIR").map(PathBuf::from);
    let named = named.filter(|path| path.is_absolute()).and_then(|path| path.canonicalize().ok());
    let usable = named.filter(|path| path.is_dir() && path.as_os_str().len() <= MAX_TEMPORARY_BASE_BYTES);
    let fallback = Path::new("/tmp");
    usable.unwrap_or_else(|| fallback.canonicalize().unwrap_or_else(|_| fallback.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_temporary_directory_has_a_short_path() {
        let folder = tempfile::tempdir_in("/tmp").unwrap();
        let long = folder.path().join("d".repeat(MAX_TEMPORARY_BASE_BYTES));
        std::fs::create_dir(&long).unwrap();
        let base = |value: &Path| temporary_base(&vec![("TMPDIR".into(), value.into())]);
        assert_eq!(base(folder.path()), folder.path().canonicalize().unwrap());
        for unusable in [&long, Path::new("relative"), Path::new("/no/such/directory")] {
            assert_eq!(base(unusable), Path::new("/tmp").canonicalize().unwrap());
        }
    }
}
