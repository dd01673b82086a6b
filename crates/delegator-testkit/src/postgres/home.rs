//! The temporary directory of a server, and the account that owns it.
//!
//! The processes of a server are found by their working directory, which is this directory or its `data`. A guard, a
//! shell that waits for the end of its input, kills them and removes the directory when the [`ServerHome`] is dropped.
//! It also does so when the test process dies, because that closes the guard's input too: no server is left behind.

use std::fs::File;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::stage::{pids, wait_until};

/// SIGQUIT is the immediate shutdown of PostgreSQL; unlike SIGKILL it frees the shared memory of the server. If the
/// server was killed before, `postmaster.pid` still names its segment.
const GUARD: &str = r#"
cat >/dev/null
home=$1
processes() {
  for process in /proc/[0-9]*; do
    if [ "$process/cwd" -ef "$home" ] || [ "$process/cwd" -ef "$home/data" ]; then echo "${process#/proc/}"; fi
  done
}
signal=QUIT rounds=0
while running=$(processes) && [ -n "$running" ]; do
  kill -s "$signal" $running
  kill -s CONT $running
  rounds=$((rounds + 1))
  if [ "$rounds" -gt 200 ]; then signal=KILL; fi
  sleep 0.01
done
segment=$(sed -n 7p "$home/data/postmaster.pid" | awk '{ print $2 }')
if [ -n "$segment" ]; then ipcrm -m "$segment"; fi
umount "$home/data"
rm -rf "$home"
"#;

#[derive(Debug)]
pub(super) struct ServerHome {
    path: PathBuf,
    guard: Child,
}

impl ServerHome {
    pub(super) fn new() -> ServerHome {
        let path = tempfile::Builder::new().prefix("postgres-").tempdir().unwrap().keep();
        let path = path.canonicalize().unwrap();
        give_to_account(&path);
        let mut guard = Command::new("sh");
        guard.args(["-c", GUARD, "guard"]).arg(&path).current_dir("/");
        // Outside of the group of the test, so that a signal to that group leaves it alive.
        guard.process_group(0);
        guard.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        ServerHome { guard: guard.spawn().unwrap(), path }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn data(&self) -> PathBuf {
        self.path.join("data")
    }

    /// A command that runs in this directory under the account of the server and appends its output to `log`.
    pub(super) fn command(&self, program: &Path) -> Command {
        let log = File::options().create(true).append(true).open(self.path.join("log")).unwrap();
        let mut command = Command::new(program);
        command.current_dir(&self.path).env_clear().env("PATH", "/usr/bin:/bin").env("HOME", &self.path);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        if let Some((user, group)) = account() {
            // Also drops the supplementary groups.
            command.uid(user).gid(group);
        }
        command
    }

    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.path.join("log")).unwrap_or_default()
    }

    pub(super) fn processes(&self) -> Vec<Pid> {
        let is_ours = |pid: &i32| {
            let directory = std::fs::read_link(format!("/proc/{pid}/cwd"));
            directory.is_ok_and(|directory| directory == self.path || directory == self.data())
        };
        pids().into_iter().filter(is_ours).filter_map(Pid::from_raw).collect()
    }

    pub(super) fn signal(&self, signal: Signal) {
        for process in self.processes() {
            // The process may have ended by itself.
            let _ = kill_process(process, signal);
        }
    }

    /// Kills all processes, also those that are being started.
    pub(super) fn kill(&self) {
        wait_until("the end of all processes of a server", || {
            self.signal(Signal::KILL);
            self.processes().is_empty()
        });
    }
}

impl Drop for ServerHome {
    fn drop(&mut self) {
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// User and group of the server, if they differ from those of the test: PostgreSQL refuses to run as root.
pub(super) fn account() -> Option<(u32, u32)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap();
    let fields: Vec<&str> = accounts
        .lines()
        .map(|line| line.split(':').collect::<Vec<_>>())
        .find(|fields| fields[0] == "postgres")
        .expect("the account postgres is missing: run scripts/install-postgresql");
    Some((fields[2].parse().unwrap(), fields[3].parse().unwrap()))
}

/// Whether the process is suspended or has ended.
pub(super) fn is_suspended(process: Pid) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, state)| state.starts_with('T'))
}

pub(super) fn give_to_account(path: &Path) {
    if let Some((user, group)) = account() {
        chown(path, Some(user), Some(group)).unwrap();
    }
}
