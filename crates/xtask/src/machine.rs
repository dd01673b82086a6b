//! The machine: its load and its limits.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The load average of the last minute.
pub(crate) fn load1() -> f64 {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|field| field.parse().ok()).unwrap_or(f64::NAN)
}

/// Processor time since the start of the machine, in ticks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct CpuTicks {
    total: u64,
    steal: u64,
}

impl CpuTicks {
    pub(crate) fn now() -> CpuTicks {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        CpuTicks::parse(text.lines().next().unwrap_or_default())
    }

    /// The first eight fields of the first line of `/proc/stat`; the others are contained in them.
    fn parse(line: &str) -> CpuTicks {
        let fields: Vec<u64> =
            line.split_whitespace().skip(1).take(8).filter_map(|field| field.parse().ok()).collect();
        CpuTicks { total: fields.iter().sum(), steal: fields.get(7).copied().unwrap_or(0) }
    }

    /// Percent of the processor time since then that the hypervisor gave to other machines.
    pub(crate) fn steal_since(self, before: CpuTicks) -> f64 {
        let total = self.total.saturating_sub(before.total);
        let steal = self.steal.saturating_sub(before.steal);
        if total == 0 { 0.0 } else { steal as f64 * 100.0 / total as f64 }
    }
}

/// The name of the processor.
pub(crate) fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("model name"));
    line.map_or_else(|| "unknown".to_owned(), |line| line.trim_start_matches([' ', '\t', ':']).to_owned())
}

/// The version of the kernel.
pub(crate) fn kernel() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steal_is_a_part_of_all_ticks() {
        let before = CpuTicks::parse("cpu  10 0 10 60 0 0 0 20 5 5");
        assert_eq!(before, CpuTicks { total: 100, steal: 20 });
        let after = CpuTicks::parse("cpu  20 0 20 110 0 0 0 50 5 5");
        assert_eq!(after.steal_since(before), 30.0);
        assert_eq!(before.steal_since(before), 0.0);
    }
}
