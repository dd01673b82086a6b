//! git processes, time and CPU per task in a small repository, by phase: before the agent starts, after it
//! ended, and the storage of the end state of a writing task.
//!
//! Processes are counted in a round of their own, with a script in place of git that logs each call.

use std::cell::Cell;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use delegator_git::{AgentChanges, Baseline, Git, Limits, create_restore_point, drop_point};

use crate::{REFERENCE, commit, git, load};

const FOLDERS: usize = 8;
const FILES_EACH: usize = 5;
const ROUNDS: u32 = 100;
/// The unit of the times in `/proc/self/stat`: a hundredth of a second.
const TICK_MS: f64 = 10.0;

struct SmallTree {
    top: PathBuf,
    temp_dir: PathBuf,
    call_log: PathBuf,
    counting_git: PathBuf,
    writes: Cell<u64>,
}

/// One kind of task.
#[derive(Clone, Copy)]
struct Scenario {
    label: &'static str,
    may_write: bool,
    /// Whether the agent changes two files.
    changes_files: bool,
}

pub(crate) fn run() {
    let root = tempfile::tempdir().unwrap();
    let tree = SmallTree::create(&root.path().canonicalize().unwrap());
    println!("{} files; load {}", FOLDERS * FILES_EACH, load());
    println!(
        "{:<34} {:>20} {:>20} {:>10} {:>10} {:>10} {:>12}",
        "median of 100 rounds",
        "processes before",
        "processes after",
        "before ms",
        "after ms",
        "CPU ms",
        "git status ms"
    );
    for state in ["clean", "dirty"] {
        if state == "dirty" {
            tree.make_dirty();
        }
        for (may_write, changes_files) in [(false, false), (false, true), (true, false), (true, true)] {
            let label = match (may_write, changes_files) {
                (false, false) => "read-only",
                (false, true) => "read-only, 2 files changed",
                (true, false) => "writing",
                (true, true) => "writing, 2 files changed",
            };
            let scenario = Scenario { label, may_write, changes_files };
            tree.measure(state, scenario);
        }
    }
}

impl SmallTree {
    fn create(root: &Path) -> SmallTree {
        let tree = SmallTree {
            top: root.join("small"),
            temp_dir: root.join("small-temp"),
            call_log: root.join("calls"),
            counting_git: root.join("git"),
            writes: Cell::new(0),
        };
        std::fs::create_dir(&tree.temp_dir).unwrap();
        for n in 0..FOLDERS * FILES_EACH {
            tree.write(&format!("d{}/f{n}.txt", n / FILES_EACH), &format!("file {n}\n").repeat(20));
        }
        tree.write(".gitignore", "/target/\n.env\n");
        git(&tree.top, &["init", "--quiet"]);
        commit(&tree.top);
        tree.write("target/debug/program", "ignored\n");
        tree.write(".env", "SECRET=1\n");
        let script =
            format!("#!/bin/sh\necho \"$*\" >> '{}'\nexec /usr/bin/git \"$@\"\n", tree.call_log.display());
        std::fs::write(&tree.counting_git, script).unwrap();
        std::fs::set_permissions(&tree.counting_git, std::fs::Permissions::from_mode(0o755)).unwrap();
        tree
    }

    /// Writes a file that looks as if it was written an hour ago, so that git trusts its index, and at
    /// another second than before, so that git recognizes the change.
    fn write(&self, path: &str, text: &str) {
        let path = self.top.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        self.writes.set(self.writes.get() + 1);
        let past = SystemTime::now() - Duration::from_secs(3600 + self.writes.get());
        std::fs::File::options().write(true).open(path).unwrap().set_modified(past).unwrap();
    }

    fn make_dirty(&self) {
        self.write("d0/f0.txt", "changed\n");
        self.write("d1/f5.txt", "changed, too\n");
        self.write("d2/new.txt", "untracked\n");
        self.write("notes/new.txt", "untracked\n");
    }

    /// One task; returns the time of its phases.
    fn task(&self, program: &Path, scenario: Scenario, between: impl FnOnce()) -> (Duration, Duration) {
        let runner = Git::new(program.to_owned(), [], Duration::from_secs(120));
        let started = Instant::now();
        let (point, baseline) = if scenario.may_write {
            let created =
                create_restore_point(&runner, &self.top, &self.temp_dir, REFERENCE, Limits::default());
            let created = created.unwrap().unwrap();
            (Some(created.point), created.baseline.unwrap())
        } else {
            let taken = Baseline::take(&runner, &self.top, &self.temp_dir, Limits::default());
            (None, taken.unwrap().unwrap())
        };
        let before = started.elapsed();
        if scenario.changes_files {
            std::fs::write(self.top.join("d3/f15.txt"), "by the agent\n").unwrap();
            std::fs::write(self.top.join("d3/agent.txt"), "by the agent\n").unwrap();
        }
        between();
        let started = Instant::now();
        let compared = baseline.compare(Limits::default(), 0).unwrap();
        assert_eq!(compared.files.len(), if scenario.changes_files { 2 } else { 0 });
        if scenario.may_write {
            let agent = AgentChanges::default();
            assert!(baseline.store_end_state(&compared, &agent, Duration::from_secs(5)).unwrap());
        }
        drop(baseline);
        let after = started.elapsed();
        if let Some(point) = point {
            drop_point(&crate::git_runner(), &point).unwrap();
        }
        if scenario.changes_files {
            std::fs::remove_file(self.top.join("d3/agent.txt")).unwrap();
            self.write("d3/f15.txt", &"file 15\n".repeat(20));
            // Updates the index.
            git(&self.top, &["status", "--porcelain"]);
        }
        (before, after)
    }

    /// The names of the git commands since the last call.
    fn calls(&self) -> Vec<String> {
        let log = std::fs::read_to_string(&self.call_log).unwrap_or_default();
        let _ = std::fs::remove_file(&self.call_log);
        log.lines().map(command_name).collect()
    }

    fn measure(&self, state: &str, scenario: Scenario) {
        let mut before_calls = Vec::new();
        self.calls();
        self.task(&self.counting_git, scenario, || before_calls = self.calls());
        let after_calls = self.calls();
        let (mut before, mut after, mut status) = (Vec::new(), Vec::new(), Vec::new());
        let mut cpu = 0.0;
        for _ in 0..ROUNDS {
            let started = Instant::now();
            git(&self.top, &["status", "--porcelain"]);
            status.push(started.elapsed());
            let cpu_before = cpu_ms();
            let (first, second) = self.task(Path::new("/usr/bin/git"), scenario, || {});
            cpu += cpu_ms() - cpu_before;
            before.push(first);
            after.push(second);
        }
        println!(
            "{:<34} {:>20} {:>20} {:>10.2} {:>10.2} {:>10.1} {:>12.2}",
            format!("{}, {state}", scenario.label),
            before_calls.len(),
            after_calls.len(),
            median_ms(before),
            median_ms(after),
            cpu / f64::from(ROUNDS),
            median_ms(status),
        );
        println!("    before: {}\n    after: {}", before_calls.join(", "), after_calls.join(", "));
    }
}

/// The first argument that is neither an option nor the value of one.
fn command_name(line: &str) -> String {
    let mut words = line.split(' ');
    while let Some(word) = words.next() {
        match word {
            "-c" => drop(words.next()),
            option if option.starts_with('-') => {}
            name => return name.to_owned(),
        }
    }
    line.to_owned()
}

fn median_ms(mut times: Vec<Duration>) -> f64 {
    times.sort();
    times[times.len() / 2].as_secs_f64() * 1000.0
}

/// CPU time of this process and of its children that ended.
fn cpu_ms() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11..15].iter().map(|ticks| ticks.parse::<f64>().unwrap() * TICK_MS).sum()
}
