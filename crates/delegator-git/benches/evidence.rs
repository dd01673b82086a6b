//! What looking before and after a task takes in a work tree of 100,000 files. `cargo bench -p delegator-git`.
//!
//! Prints a table; nothing here passes or fails. The reference is a plain `git status` of the same tree in the same round.
//! The tree is below `TMPDIR`, warm, its index is fresh and its objects are packed, as after a clone.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, makes its repository with git, and stops when it cannot go on"
)]

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use delegator_git::{Baseline, Git, Limits, drop_point, keep_restore_point};

const FOLDERS: usize = 1_000;
const FILES_EACH: usize = 100;
const CHANGED: usize = 500;
const ROUNDS: usize = 5;
const REFERENCE: &str = "refs/mcp-delegator/bench";

fn main() {
    let root = tempfile::tempdir().unwrap();
    let tree = root.path().canonicalize().unwrap().join("tree");
    let place = root.path().join("place");
    std::fs::create_dir(&place).unwrap();
    fill(&tree);
    println!("{} files; load {}", FOLDERS * FILES_EACH, load());
    println!(
        "{:<34} {:>12} {:>10} {:>10} {:>10}",
        "median of 5 rounds, ms", "git status", "before", "after", "both"
    );
    rounds("may only read, clean", &tree, 0, || look(&tree, &place));
    rounds("may only read, 500 files changed", &tree, CHANGED, || look(&tree, &place));
    rounds("may write, clean", &tree, 0, || keep(&tree, &place));
    rounds("may write, 500 files changed", &tree, CHANGED, || keep(&tree, &place));
    attributes(&tree);
    rounds("may only read, with attributes", &tree, 0, || look(&tree, &place));
    rounds("may write, with attributes", &tree, 0, || keep(&tree, &place));
}

fn runner() -> Git {
    Git::new(PathBuf::from("/usr/bin/git"), [], Duration::from_secs(120))
}

fn look(tree: &Path, place: &Path) -> Baseline {
    Baseline::take(&runner(), tree, place, Limits::default()).unwrap().unwrap()
}

fn keep(tree: &Path, place: &Path) -> Baseline {
    let kept = keep_restore_point(&runner(), tree, place, REFERENCE, Limits::default()).unwrap().unwrap();
    drop_point(&runner(), &kept.point).unwrap();
    kept.baseline.unwrap()
}

fn rounds(what: &str, tree: &Path, changed: usize, before: impl Fn() -> Baseline) {
    let mut taken: [Vec<Duration>; 4] = Default::default();
    for _ in 0..ROUNDS {
        let begun = Instant::now();
        git(tree, &["status", "--porcelain"]);
        taken[0].push(begun.elapsed());
        let begun = Instant::now();
        let baseline = before();
        let first = begun.elapsed();
        for n in 0..changed {
            std::fs::write(file(tree, n * 37), format!("changed\n{n}\n")).unwrap();
        }
        let begun = Instant::now();
        let compared = baseline.compare(Limits::default(), 0).unwrap();
        let second = begun.elapsed();
        assert_eq!(compared.files.len(), changed);
        for (list, time) in taken[1..].iter_mut().zip([first, second, first + second]) {
            list.push(time);
        }
        if changed > 0 {
            git(tree, &["checkout", "--quiet", "--force", "HEAD"]);
        }
    }
    let [status, before, after, both] = taken.map(|mut list| {
        list.sort();
        list[list.len() / 2].as_millis()
    });
    println!("{what:<34} {status:>12} {before:>10} {after:>10} {both:>10}");
}

fn file(tree: &Path, n: usize) -> PathBuf {
    tree.join(format!("d{}/e{}/f{}.txt", (n / FILES_EACH) / 50, n / FILES_EACH, n % FILES_EACH))
}

fn fill(tree: &Path) {
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

fn attributes(tree: &Path) {
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
    let told = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    told.split(' ').next().unwrap_or_default().to_owned()
}
