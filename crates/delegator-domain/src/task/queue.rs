//! Decides which queued tasks may start next to others.
//!
//! Two writing tasks never share a work tree, and a thread has one task at a time. A blocked task is
//! overtaken by tasks that do not conflict with it; tasks that do conflict stay behind it, so that it cannot
//! starve.

use std::path::{Path, PathBuf};

use super::id::TaskId;
use crate::named_enum::named_enum;

/// A directory and everything below it, in which only one writing task may run.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct WorkTree {
    root: PathBuf,
    /// A linked git worktree is a separate tree, even inside the directory of another tree.
    linked: bool,
}

/// Prefix of a linked worktree in the text form; a plain directory starts with `/`.
const LINKED_PREFIX: &str = "linked:";

impl WorkTree {
    pub fn directory(root: PathBuf) -> WorkTree {
        WorkTree { root, linked: false }
    }

    pub fn linked(root: PathBuf) -> WorkTree {
        WorkTree { root, linked: true }
    }

    pub fn from_text(text: &str) -> WorkTree {
        match text.strip_prefix(LINKED_PREFIX) {
            Some(root) => WorkTree::linked(root.into()),
            None => WorkTree::directory(text.into()),
        }
    }

    pub fn to_text(&self) -> String {
        let prefix = if self.linked { LINKED_PREFIX } else { "" };
        format!("{prefix}{}", self.root.display())
    }

    pub fn is_linked(&self) -> bool {
        self.linked
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn overlaps(&self, other: &WorkTree) -> bool {
        let inside =
            |inner: &WorkTree, outer: &WorkTree| !inner.linked && inner.root.starts_with(&outer.root);
        self.root == other.root || inside(self, other) || inside(other, self)
    }

    pub fn overlaps_any(&self, others: &[WorkTree]) -> bool {
        others.iter().any(|other| self.overlaps(other))
    }
}

/// The properties of a task that decide which tasks may run at the same time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    pub id: TaskId,
    /// See [`super::Mode::may_write`].
    pub may_write: bool,
    /// Every tree the task may write to, that of its working directory first.
    pub work_trees: Vec<WorkTree>,
    pub allow_parallel_writes: bool,
    /// The threads of the task: the one it resumes and the one its agent reported.
    pub threads: Vec<String>,
}

named_enum! {
    /// Why a task has to wait for another.
    pub enum Obstacle {
        Thread = "thread",
        WorkTree = "work_tree",
        /// The task follows the other one in a chain.
        Predecessor = "predecessor",
    }
}

impl Claimant {
    /// Why this task must wait while `other` runs or is ahead of it in the queue.
    pub fn waits_for(&self, other: &Claimant) -> Option<Obstacle> {
        if self.threads.iter().any(|thread| other.threads.contains(thread)) {
            return Some(Obstacle::Thread);
        }
        let both_write = self.may_write && other.may_write && !self.allow_parallel_writes;
        let overlap = || self.work_trees.iter().any(|own| own.overlaps_any(&other.work_trees));
        (both_write && overlap()).then_some(Obstacle::WorkTree)
    }

    /// The first task of `ahead` that blocks this one, and why.
    pub fn blocked_by<'a>(&self, ahead: &'a [Claimant]) -> Option<(&'a Claimant, Obstacle)> {
        ahead.iter().find_map(|other| Some((other, self.waits_for(other)?)))
    }

    /// Whether `other` blocks every task that this one blocks; then this one need not be remembered.
    pub fn is_covered_by(&self, other: &Claimant) -> bool {
        let threads = self.threads.iter().all(|thread| other.threads.contains(thread));
        let trees = !self.may_write
            || self.work_trees.is_empty()
            || (other.may_write && self.work_trees.iter().all(|tree| other.work_trees.contains(tree)));
        threads && trees
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer(root: &str) -> Claimant {
        Claimant {
            id: TaskId::from_random(super::super::TaskLocation::Local, [7; 16]),
            may_write: true,
            work_trees: vec![WorkTree::from_text(root)],
            allow_parallel_writes: false,
            threads: Vec::new(),
        }
    }

    #[test]
    fn writers_exclude_each_other_in_one_tree_and_below_it() {
        for (left, right, overlap) in [
            ("/a", "/a", true),
            ("/a", "/a/b", true),
            ("/a/b", "/a", true),
            ("/a", "/ab", false),
            ("/a/b", "/a/c", false),
            ("/", "/a", true),
            ("/a", "linked:/a/w", false),
            ("linked:/a/w", "/a", false),
            ("linked:/a/w", "linked:/a/w", true),
            ("linked:/a/w", "/a/w", true),
            ("linked:/a/w", "/a/w/below", true),
            ("linked:/a/w", "linked:/a/v", false),
        ] {
            let expected = overlap.then_some(Obstacle::WorkTree);
            assert_eq!(writer(left).waits_for(&writer(right)), expected, "{left} beside {right}");
            assert_eq!(WorkTree::from_text(left).to_text(), left);
        }
    }

    #[test]
    fn every_tree_of_a_writer_counts() {
        let writer_of = |roots: &[&str]| Claimant {
            work_trees: roots.iter().map(|root| WorkTree::from_text(root)).collect(),
            ..writer("/a")
        };
        let wide = writer_of(&["/a", "/shared"]);
        assert_eq!(writer("/shared/docs").waits_for(&wide), Some(Obstacle::WorkTree));
        assert_eq!(wide.waits_for(&writer("/shared/docs")), Some(Obstacle::WorkTree));
        assert_eq!(writer_of(&["/b", "/shared"]).waits_for(&wide), Some(Obstacle::WorkTree));
        assert_eq!(writer_of(&["/b", "/c"]).waits_for(&wide), None);
        assert!(writer("/shared").is_covered_by(&wide));
        assert!(!wide.is_covered_by(&writer("/a")));
    }

    #[test]
    fn readers_and_parallel_writers_do_not_wait() {
        let reader = Claimant { may_write: false, ..writer("/a") };
        let parallel = Claimant { allow_parallel_writes: true, ..writer("/a") };
        assert_eq!(reader.waits_for(&writer("/a")), None);
        assert_eq!(writer("/a").waits_for(&reader), None);
        assert_eq!(parallel.waits_for(&writer("/a")), None);
        assert_eq!(
            writer("/a").waits_for(&parallel),
            Some(Obstacle::WorkTree),
            "without allow_parallel_writes a task still waits"
        );
    }

    #[test]
    fn a_thread_has_one_task_at_a_time() {
        let on_thread =
            |thread: &str| Claimant { may_write: false, threads: vec![thread.to_owned()], ..writer("/a") };
        assert_eq!(on_thread("t").waits_for(&on_thread("t")), Some(Obstacle::Thread));
        assert_eq!(on_thread("t").waits_for(&on_thread("u")), None);
        let parallel = Claimant { allow_parallel_writes: true, ..on_thread("t") };
        assert_eq!(parallel.waits_for(&on_thread("t")), Some(Obstacle::Thread));
    }

    #[test]
    fn blocked_by_names_the_first_obstacle_and_repetitions_are_covered() {
        let ahead = [writer("/x"), writer("/a/b"), writer("/a")];
        let (first, obstacle) = writer("/a").blocked_by(&ahead).unwrap();
        assert_eq!((first.work_trees[0].root(), obstacle), (Path::new("/a/b"), Obstacle::WorkTree));
        assert!(writer("/a").is_covered_by(&writer("/a")));
        assert!(!writer("/a").is_covered_by(&writer("/b")));
        let on_thread = Claimant { threads: vec!["t".into()], ..writer("/a") };
        assert!(!on_thread.is_covered_by(&writer("/a")));
        assert!(writer("/a").is_covered_by(&on_thread));
    }
}
