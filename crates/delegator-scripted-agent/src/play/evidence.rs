//! Files by which a test and the agent tell each other things.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::Mode;
use rustix::process::{Resource, getcwd, getppid, getrlimit, umask};
use serde_json::{Map, Value, json};

use super::{Played, Player, pace, trouble};
use crate::script::Record;

/// A file that is awaited for long is looked for less often: hundreds of agents may wait for the same one.
const FIRST_LOOK: Duration = Duration::from_millis(2);
const LOOK_AT_LEAST_EVERY: Duration = Duration::from_millis(50);

impl Player {
    pub(super) fn touch_file(&mut self, path: &str) -> Played {
        let path = self.path(path);
        std::fs::write(&path, "").map_err(trouble(path.display()))
    }

    pub(super) fn wait_for_file(&mut self, path: &str) -> Played {
        let path = self.path(path);
        let mut next_look = FIRST_LOOK;
        while !path.exists() {
            // Where our own folder is gone, nobody is left who could put it there.
            if getcwd(Vec::new()).is_err() {
                return Err(trouble(path.display())(io::ErrorKind::NotFound.into()));
            }
            pace::sleep(next_look);
            next_look = next_look.mul_f64(1.2).min(LOOK_AT_LEAST_EVERY);
        }
        Ok(())
    }

    pub(super) fn record(&mut self, record: &Record) -> Played {
        if let Some(file) = &record.stdin_file {
            let path = self.path(file);
            appear(&path, &self.heard).map_err(trouble(path.display()))?;
        }
        let path = self.path(&record.file);
        appear(&path, format!("{:#}\n", self.how_it_was_started()).as_bytes())
            .map_err(trouble(path.display()))
    }

    fn how_it_was_started(&self) -> Value {
        let argv: Vec<_> = self.argv.iter().map(|word| word.to_string_lossy()).collect();
        let pair = |(key, value): &(std::ffi::OsString, std::ffi::OsString)| {
            (key.to_string_lossy().into_owned(), Value::from(value.to_string_lossy()))
        };
        let env: Map<String, Value> = self.env.iter().map(pair).collect();
        let files = getrlimit(Resource::Nofile);
        json!({
            "argv": argv,
            "resumed_thread": self.thread_asked_for(),
            "cwd": self.cwd,
            "env": env,
            "umask": format!("{:04o}", current_umask().bits()),
            "pid": std::process::id(),
            "parent_pid": getppid().map(|pid| pid.as_raw_nonzero()),
            "process_group": own_number("NSpgid"),
            "session": own_number("NSsid"),
            "blocked_signals": status_line("SigBlk"),
            "ignored_signals": status_line("SigIgn"),
            "open_files_limit": {"soft": files.current, "hard": files.maximum},
            "inherited_descriptors": self.inherited,
            "stdin": String::from_utf8_lossy(&self.heard),
            "stdin_bytes": self.heard.len(),
            "stdin_ended": self.heard_all,
        })
    }
}

/// What is open above the standard streams and is not the agent's own, by number.
pub(super) fn inherited_descriptors(own: [&File; 3]) -> Map<String, Value> {
    let own = own.map(AsRawFd::as_raw_fd);
    let entries = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter(|number| *number > 2 && !own.contains(number))
        .filter_map(|number| {
            let target = std::fs::read_link(format!("/proc/self/fd/{number}")).ok()?;
            // The directory that is being read.
            let is_the_list = target.starts_with("/proc") && target.ends_with("fd");
            (!is_the_list).then(|| (number.to_string(), Value::from(target.to_string_lossy())))
        })
        .collect()
}

/// It can only be read by setting it.
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

/// The agent's group or session as its own pid namespace numbers it: 0 when its leader is outside of it, which
/// the system calls' wrappers take for impossible.
fn own_number(key: &str) -> Option<u32> {
    status_line(key)?.split_whitespace().last()?.parse().ok()
}

/// Whoever waits for the file finds it whole.
fn appear(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".part");
    let unfinished = PathBuf::from(unfinished);
    std::fs::write(&unfinished, bytes)?;
    std::fs::rename(unfinished, path)
}
