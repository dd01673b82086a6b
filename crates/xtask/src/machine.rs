//! The machine: its load and its limits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The load average of the last minute.
pub(crate) fn load1() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(f64::NAN)
}

pub(crate) fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Raises the limit of open files to the maximum an ordinary user may set.
pub(crate) fn raise_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    // With the lower limit a large tier fails with an error.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum });
}

/// Sets the usual limit of open files, for processes started from now on.
pub(crate) fn set_default_file_limit() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(1024), maximum: limit.maximum });
}

/// How many more processes may be started, by the tightest limit.
pub(crate) fn free_process_slots() -> u64 {
    let number = |path: &str| std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    let limits: [Option<u64>; 4] = [
        getrlimit(Resource::Nproc).current,
        number("/proc/sys/kernel/pid_max"),
        number("/proc/sys/kernel/threads-max"),
        number("/sys/fs/cgroup/pids.max"),
    ];
    let running = std::fs::read_dir("/proc").map_or(0, Iterator::count) as u64;
    limits.into_iter().flatten().min().unwrap_or(u64::MAX).saturating_sub(running)
}
