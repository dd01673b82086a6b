//! Time to take a baseline before a task and to compare after it, in a work tree of 100,000 files; and to
//! show and apply the diff of a task that changed 500 of them. Before that, git processes, time and CPU in a
//! small repository.
//!
//! Run with `cargo bench -p delegator-git`, or `cargo bench -p delegator-git -- small` for the small
//! repository only. Prints tables; nothing here passes or fails. The references are plain `git status`,
//! `git diff` and `git apply` in the same tree and the same round. The tree is below `TMPDIR`, warm, its
//! index is fresh and its objects are packed, as after a clone.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, creates its repository with git, and stops on errors"
)]

mod small;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use delegator_git::{
    AgentChanges, ApplyRequest, Baseline, DiffPaths, Git, Limits, PreparedDiff, RestorePoint, TaskWorktree,
    create_restore_point, diff_of_task, drop_point, find_source, prepare_diff,
};

const FOLDERS: usize = 1_000;
const FILES_EACH: usize = 100;
const CHANGED: usize = 500;
const ROUNDS: usize = 5;
const REFERENCE: &str = "refs/mcp-delegator/bench";

fn main() {
    small::run();
    if std::env::args().any(|argument| argument == "small") {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let tree = root.path().canonicalize().unwrap().join("tree");
    let temp_dir = root.path().join("temp");
    std::fs::create_dir(&temp_dir).unwrap();
    create_repository(&tree);
    println!("{} files; load {}", FOLDERS * FILES_EACH, load());
    println!(
        "{:<34} {:>12} {:>10} {:>10} {:>10}",
        "median of 5 rounds, ms", "git status", "before", "after", "both"
    );
    rounds("read-only, clean", &tree, 0, || take_baseline(&tree, &temp_dir));
    rounds("read-only, 500 files changed", &tree, CHANGED, || take_baseline(&tree, &temp_dir));
    rounds("writing, clean", &tree, 0, || take_with_restore_point(&tree, &temp_dir));
    rounds("writing, 500 files changed", &tree, CHANGED, || take_with_restore_point(&tree, &temp_dir));
    println!(
        "{:<34} {:>12} {:>10} {:>10} {:>10} {:>10}",
        "median of 5 rounds, ms", "git diff", "diff", "git apply", "check", "apply"
    );
    diff_rounds("500 files changed", &tree, &temp_dir, false);
    diff_rounds("500 files changed, also by the user", &tree, &temp_dir, true);
    println!("{:<34} {:>16} {:>10} {:>10}", "median of 5 rounds, ms", "git worktree add", "worktree", "diff");
    worktree_rounds(&tree, &temp_dir);
    add_attributes(&tree);
    rounds("read-only, with attributes", &tree, 0, || take_baseline(&tree, &temp_dir));
    rounds("writing, with attributes", &tree, 0, || take_with_restore_point(&tree, &temp_dir));
}

fn git_runner() -> Git {
    Git::new(PathBuf::from("/usr/bin/git"), [], Duration::from_secs(120))
}

fn take_baseline(tree: &Path, temp_dir: &Path) -> Baseline {
    Baseline::take(&git_runner(), tree, temp_dir, Limits::default()).unwrap().unwrap()
}

fn take_with_restore_point(tree: &Path, temp_dir: &Path) -> Baseline {
    let created =
        create_restore_point(&git_runner(), tree, temp_dir, REFERENCE, Limits::default()).unwrap().unwrap();
    drop_point(&git_runner(), &created.point).unwrap();
    created.baseline.unwrap()
}

fn rounds(label: &str, tree: &Path, changed: usize, before: impl Fn() -> Baseline) {
    let mut times: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let started = Instant::now();
        git(tree, &["status", "--porcelain"]);
        times[0].push(started.elapsed());
        let started = Instant::now();
        let baseline = before();
        let first = started.elapsed();
        for n in 0..changed {
            std::fs::write(file(tree, n * 37), format!("changed\n{n}\n")).unwrap();
        }
        let started = Instant::now();
        let compared = baseline.compare(Limits::default(), 0).unwrap();
        let second = started.elapsed();
        assert_eq!(compared.files.len(), changed);
        for (list, time) in times[1..].iter_mut().zip([first, second, first + second]) {
            list.push(time);
        }
        if changed > 0 {
            git(tree, &["checkout", "--quiet", "--force", "HEAD"]);
        }
    }
    let [status, before, after, both] = times.map(|mut list| {
        list.sort();
        list[list.len() / 2].as_millis()
    });
    println!("{label:<34} {status:>12} {before:>10} {after:>10} {both:>10}");
}

fn apply(prepared: &mut PreparedDiff) -> Option<RestorePoint> {
    let point = prepared.create_point(REFERENCE).unwrap();
    prepared.apply(point.as_ref(), None).unwrap();
    point
}

/// Shows and applies the diff of a task that changed the last line of 500 files. `git apply` cannot apply it
/// to files whose first line the user has changed, so then its time is that of a failure.
fn diff_rounds(label: &str, tree: &Path, temp_dir: &Path, is_edited: bool) {
    let mut times: [Vec<Duration>; 5] = Default::default();
    let line = |n: usize| format!("file {}\n", n * 37);
    let write = |first: &str, last: Option<&str>| {
        for n in 0..CHANGED {
            let last = last.map_or_else(|| line(n), str::to_owned);
            let text = format!("{}{first}{}{last}", line(n), line(n).repeat(18));
            std::fs::write(file(tree, n * 37), text).unwrap();
        }
    };
    let limits = Limits::default();
    let patch = temp_dir.join("patch");
    let output = format!("--output={}", patch.display());
    for _ in 0..ROUNDS {
        let mut number = 0;
        let mut time = |work: &mut dyn FnMut()| {
            let started = Instant::now();
            work();
            times[number].push(started.elapsed());
            number += 1;
        };
        let git_program = git_runner();
        let created = create_restore_point(&git_program, tree, temp_dir, REFERENCE, limits).unwrap().unwrap();
        write("", Some("task\n"));
        let baseline = created.baseline.unwrap();
        let compared = baseline.compare(limits, 0).unwrap();
        assert!(baseline.store_end_state(&compared, &AgentChanges::default(), limits.time).unwrap());
        time(&mut || git(tree, &["diff", "--binary", "--full-index", &output]));
        let mut diff = Vec::new();
        time(&mut || {
            let found = diff_of_task(&git_program, &created.point, DiffPaths::Relative, temp_dir);
            diff = found.unwrap().unwrap().diff.bytes().to_vec();
        });
        assert_eq!(diff, std::fs::read(&patch).unwrap());
        drop_point(&git_program, &created.point).unwrap();
        let reset = || {
            git(tree, &["checkout", "--quiet", "--force", "HEAD"]);
            if is_edited {
                write("user\n", None);
            }
        };
        reset();
        time(&mut || drop(Command::new("/usr/bin/git").arg("apply").arg(&patch).current_dir(tree).output()));
        reset();
        let request = ApplyRequest { work_tree: tree, diff: &diff, base_commit: None, store: None };
        let mut prepared = None;
        time(&mut || prepared = Some(prepare_diff(&git_program, request, temp_dir).unwrap()));
        let prepared = prepared.unwrap();
        assert_eq!((prepared.report.files.len(), prepared.report.conflicts.len()), (CHANGED, 0));
        let (mut applied, mut prepared) = (None, prepared);
        time(&mut || applied = apply(&mut prepared));
        drop(prepared);
        drop_point(&git_program, &applied.unwrap()).unwrap();
        git(tree, &["checkout", "--quiet", "--force", "HEAD"]);
    }
    let [git_diff, diff, git_apply, check, apply] = times.map(|mut list| {
        list.sort();
        list[list.len() / 2].as_millis()
    });
    println!("{label:<34} {git_diff:>12} {diff:>10} {git_apply:>10} {check:>10} {apply:>10}");
}

/// Creates a worktree and compares it after 500 of its files changed, beside `git worktree add`.
fn worktree_rounds(tree: &Path, temp_dir: &Path) {
    let (mut reference, mut created, mut compared) = (Vec::new(), Vec::new(), Vec::new());
    let parent = tree.parent().unwrap();
    for round in 0..ROUNDS {
        let plain = parent.join(format!("plain-{round}"));
        let start = Instant::now();
        git(tree, &["worktree", "add", "--quiet", "-b", &format!("plain-{round}"), plain.to_str().unwrap()]);
        reference.push(start.elapsed());
        git(tree, &["worktree", "remove", "--force", plain.to_str().unwrap()]);
        let runner = git_runner();
        let worktree = TaskWorktree {
            source: find_source(&runner, tree, None, "delegator").unwrap(),
            path: parent.join(format!("T-{round}")),
            branch: format!("delegator/T-{round}"),
            store: parent.join(format!("T-{round}.start")),
            private_dir: Some(parent.join(format!("T-{round}.git"))),
        };
        let start = Instant::now();
        worktree.create(&runner, temp_dir).unwrap();
        created.push(start.elapsed());
        for number in 0..CHANGED {
            std::fs::write(file(&worktree.path, number * 7), format!("changed {round}\n")).unwrap();
        }
        let start = Instant::now();
        assert!(worktree.diff(&runner, temp_dir).unwrap().diff.has_changes());
        compared.push(start.elapsed());
        std::fs::remove_dir_all(&worktree.path).unwrap();
        worktree.remove(&runner).unwrap();
    }
    let median = |mut times: Vec<Duration>| {
        times.sort();
        times[times.len() / 2].as_millis()
    };
    println!(
        "{:<34} {:>16} {:>10} {:>10}",
        "new worktree, 500 files changed",
        median(reference),
        median(created),
        median(compared)
    );
}

fn file(tree: &Path, n: usize) -> PathBuf {
    tree.join(format!("d{}/e{}/f{}.txt", (n / FILES_EACH) / 50, n / FILES_EACH, n % FILES_EACH))
}

fn create_repository(tree: &Path) {
    for n in 0..FOLDERS * FILES_EACH {
        let path = file(tree, n);
        if n % FILES_EACH == 0 {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        }
        std::fs::write(path, format!("file {n}\n").repeat(20)).unwrap();
    }
    git(tree, &["init", "--quiet"]);
    commit(tree);
    git(tree, &["repack", "-adq"]);
}

fn add_attributes(tree: &Path) {
    std::fs::write(tree.join(".gitattributes"), "*.bat text eol=crlf\n").unwrap();
    commit(tree);
}

fn commit(tree: &Path) {
    git(tree, &["add", "--all"]);
    git(tree, &["-c", "user.name=b", "-c", "user.email=b@localhost", "commit", "--quiet", "-m", "files"]);
}

fn git(tree: &Path, args: &[&str]) {
    let output = Command::new("/usr/bin/git").args(args).current_dir(tree).output().unwrap();
    assert!(output.status.success(), "{output:?}");
}

fn load() -> String {
    let loadavg = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    loadavg.split(' ').next().unwrap_or_default().to_owned()
}
