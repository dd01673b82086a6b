//! Files through which a test and the agent synchronise and exchange data.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;
use rustix::process::{Resource, getcwd, getppid, getrlimit, umask};
use serde_json::{Map, Value, json};

use super::{Runner, StepResult, pace, script_error};
use crate::script::Record;

/// The interval grows while waiting, because hundreds of agents may wait for the same file.
const FIRST_POLL: Duration = Duration::from_millis(2);
const MAX_POLL: Duration = Duration::from_millis(50);

impl Runner {
    pub(super) fn touch_file(&mut self, path: &str) -> StepResult {
        let path = self.path(path);
        std::fs::write(&path, "").map_err(script_error(path.display()))
    }

    pub(super) fn wait_for_file(&mut self, path: &str) -> StepResult {
        let path = self.path(path);
        let mut poll_interval = FIRST_POLL;
        while !path.exists() {
            // If our working directory was deleted, the file will never appear.
            if getcwd(Vec::new()).is_err() {
                return Err(script_error(path.display())(io::ErrorKind::NotFound.into()));
            }
            pace::sleep(poll_interval);
            poll_interval = poll_interval.mul_f64(1.2).min(MAX_POLL);
        }
        Ok(())
    }

    pub(super) fn record(&mut self, record: &Record) -> StepResult {
        if let Some(file) = &record.stdin_file {
            let path = self.path(file);
            write_atomically(&path, &self.stdin_bytes).map_err(script_error(path.display()))?;
        }
        let path = self.path(&record.file);
        write_atomically(&path, format!("{:#}\n", self.start_record()).as_bytes())
            .map_err(script_error(path.display()))
    }

    fn start_record(&self) -> Value {
        let argv: Vec<_> = self.argv.iter().map(|arg| arg.to_string_lossy()).collect();
        let pair = |(key, value): &(std::ffi::OsString, std::ffi::OsString)| {
            (key.to_string_lossy().into_owned(), Value::from(value.to_string_lossy()))
        };
        let env: Map<String, Value> = self.env.iter().map(pair).collect();
        let files = getrlimit(Resource::Nofile);
        json!({
            "argv": argv,
            "resumed_thread": self.requested_thread(),
            "cwd": self.cwd,
            "env": env,
            "umask": format!("{:04o}", current_umask().bits()),
            "pid": std::process::id(),
            "parent_pid": getppid().map(|pid| pid.as_raw_nonzero()),
            "process_group": own_id("NSpgid"),
            "session": own_id("NSsid"),
            "blocked_signals": status_line("SigBlk"),
            "ignored_signals": status_line("SigIgn"),
            "open_files_limit": {"soft": files.current, "hard": files.maximum},
            "inherited_descriptors": self.inherited,
            "stdin": String::from_utf8_lossy(&self.stdin_bytes),
            "stdin_bytes": self.stdin_bytes.len(),
            "stdin_ended": self.stdin_ended,
        })
    }
}

/// Open descriptors above the standard streams, except the agent's own, by number.
pub(super) fn inherited_descriptors(own: [&File; 3]) -> Map<String, Value> {
    let own = own.map(AsRawFd::as_raw_fd);
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|number| *number > 2 && !own.contains(number))
        .filter_map(|number| {
            let target = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
            // Skips the directory that is being listed.
            let is_fd_directory = target.starts_with("/proc") && target.ends_with("fd");
            (!is_fd_directory).then(|| (number.to_string(), Value::from(target.to_string_lossy())))
        })
        .collect()
}

/// The umask can only be read by setting it.
fn current_umask() -> Mode {
    let mask = umask(Mode::empty());
    umask(mask);
    mask
}

/// A line of `/proc/self/status`.
fn status_line(key: &str) -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| Some(line.strip_prefix(key)?.strip_prefix(':')?.trim().to_owned()))
}

/// The agent's group or session in its own pid namespace: 0 if the leader is outside of it, which the wrappers of
/// the system calls do not expect.
fn own_id(key: &str) -> Option<u32> {
    status_line(key)?.split_whitespace().last()?.parse().ok()
}

/// Writes to a temporary file and renames it, so that a waiting process never finds an incomplete file.
fn write_atomically(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut partial = path.as_os_str().to_owned();
    partial.push(".part");
    let partial = PathBuf::from(partial);
    std::fs::write(&partial, bytes)?;
    std::fs::rename(partial, path)
}
