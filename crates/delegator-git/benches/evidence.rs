//! Time to take a baseline before a task and to compare after it, in a work tree of 100,000 files.
//!
//! Run with `cargo bench -p delegator-git`. Prints a table; nothing here passes or fails. The reference is a plain
//! `git status` of the same tree in the same round. The tree is below `TMPDIR`, warm, its index is fresh and its objects
//! are packed, as after a clone.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, creates its repository with git, and stops on errors"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use delegator_git::{Baseline, Git, Limits, create_restore_point, drop_point};

const FOLDERS: usize = 1_000;
const FILES_EACH: usize = 100;
const CHANGED: usize = 500;
const ROUNDS: usize = 5;
const REFERENCE: &str = "refs/mcp-delegator/bench";

fn main() {
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
