//! Starts the agent, its verification or a command that answers its tool calls: in the validated directory,
//! with the submitter's umask, in its own process group.

#![expect(clippy::disallowed_methods, reason = "this module starts programs")]

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::fs::Mode;
use rustix::process::umask;

use super::ports::{Ports, RunSpec};
use crate::poll_fds::retry_while_busy;
use crate::process::niceness::with_niceness;

/// Files the supervisor creates are for the owner only.
const OUR_UMASK: u32 = 0o077;

/// Starts an agent, with a pipe for each stream.
pub(crate) fn spawn(spec: &RunSpec, ports: &dyn Ports) -> io::Result<Child> {
    spec.pinned.iter().try_for_each(|(checked, path)| check_pinned(checked, path))?;
    start_piped(command(spec), spec, ports)
}

/// Starts a command of the user with the agent's environment, outside its enclosure.
pub(crate) fn spawn_tool(
    program: &OsStr,
    args: &[OsString],
    spec: &RunSpec,
    ports: &dyn Ports,
) -> io::Result<Child> {
    start_piped(in_workdir(Path::new(program), args, spec), spec, ports)
}

fn start_piped(mut command: Command, spec: &RunSpec, ports: &dyn Ports) -> io::Result<Child> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    start(command, spec, ports)
}

/// Starts a verification, without input and with one pipe for all output, which is its standard error.
pub(crate) fn spawn_verification(spec: &RunSpec, ports: &dyn Ports) -> io::Result<Child> {
    let (reader, writer) = io::pipe()?;
    let mut command = command(spec);
    command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = start(command, spec, ports)?;
    child.stderr = Some(OwnedFd::from(reader).into());
    Ok(child)
}

/// Refuses a path that no longer leads to the validated directory.
fn check_pinned(checked: &OwnedFd, path: &Path) -> io::Result<()> {
    let (opened, named) = (rustix::fs::fstat(checked)?, rustix::fs::lstat(path)?);
    if (opened.st_dev, opened.st_ino) == (named.st_dev, named.st_ino) {
        return Ok(());
    }
    let problem = format!("{} was replaced by another directory after it was validated", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, problem))
}

fn command(spec: &RunSpec) -> Command {
    let (program, args) = (&spec.plan.program, &spec.plan.args);
    match &spec.enclosure {
        Some(enclosure) => in_workdir(&enclosure.launcher, &enclosure.wrap(program, args), spec),
        None => in_workdir(program, args, spec),
    }
}

fn in_workdir(program: &Path, args: &[OsString], spec: &RunSpec) -> Command {
    let mut command = Command::new(program);
    command.args(args).env_clear();
    command.envs(spec.environment.iter().map(|(name, value)| (name, value)));
    command.envs(spec.plan.env.iter().map(|(name, value)| (name, value)));
    // The descriptor is not inherited, but still open when the child changes its directory.
    command.current_dir(format!("/proc/self/fd/{}", spec.workdir.as_raw_fd()));
    command.process_group(0);
    command
}

fn start(mut command: Command, spec: &RunSpec, ports: &dyn Ports) -> io::Result<Child> {
    retry_while_busy(ports.wake_fd(), || {
        umask(Mode::from_raw_mode(spec.umask & 0o777));
        let child = with_niceness(spec.niceness, || command.spawn());
        umask(Mode::from_raw_mode(OUR_UMASK));
        child
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn replaced_directory_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("added"), folder.path().join("other"));
        std::fs::create_dir(&path).unwrap();
        std::fs::create_dir(&other).unwrap();
        let checked: OwnedFd = std::fs::File::open(&path).unwrap().into();
        check_pinned(&checked, &path).unwrap();

        std::fs::rename(&path, folder.path().join("moved")).unwrap();
        symlink(&other, &path).unwrap();
        let refused = check_pinned(&checked, &path).unwrap_err();
        assert!(refused.to_string().contains("was replaced"), "{refused}");

        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        assert!(check_pinned(&checked, &path).is_err(), "another directory of the same name");
        std::fs::remove_dir(&path).unwrap();
        assert!(check_pinned(&checked, &path).is_err(), "no directory at all");
    }
}
