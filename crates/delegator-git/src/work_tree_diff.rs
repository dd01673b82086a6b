//! What a task changed in its checkout, as a diff against the commit that it started from.
//!
//! The files of the work tree are listed before the agent starts ([`TreeListing`]) and compared afterwards. The diff has
//! only paths that differ between the two, so files that a setup script created or changed are not in it; each of these
//! paths is compared with the commit, so the diff can be applied to it. Commits of the agent make no difference: its
//! files count. The agent owns the git directory too: if that is no longer usable, one of the mirror takes its place.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;

use crate::capture::{Limits, Purpose, capture};
use crate::error::GitError;
use crate::listing::{GITLINK, RepoPath, display_path, records, single_line};
use crate::remote::{Mirror, RemoteAccess, RemoteError, RemoteUrl, is_object_id};
use crate::repository::{Repository, find_repository};
use crate::run::{Call, Git};
use crate::scratch::Scratch;

/// Larger files are not part of a diff.
const LIMITS: Limits = Limits { file_bytes: 20 << 20, total_bytes: 200 << 20, time: Duration::from_secs(60) };
/// A diff may be larger than other output: binary files at the limit above need a quarter more.
const EXTRA_DIFF_BYTES: usize = 192 << 20;
/// The index in which the tree of the changes is built.
const INDEX: &str = "changes";

/// The files of a work tree that git does not ignore.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TreeListing {
    /// Mode and object id, as git prints them.
    entries: BTreeMap<RepoPath, String>,
    /// Files that are too large, unreadable, or repositories.
    left_out: BTreeSet<RepoPath>,
}

/// The changes of a task.
#[derive(Debug)]
pub struct WorkTreeDiff {
    /// A unified diff with full object ids and binary files; empty if nothing changed.
    pub diff: DiffText,
    /// Changed or new files that are too large or unreadable.
    pub left_out: Vec<String>,
    scratch: Scratch,
    tree: String,
    /// Takes the place of an unusable git directory, until the changes are pushed.
    _git_dir: Option<TempDir>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum DiffText {
    Complete(Vec<u8>),
    /// It is larger than this many bytes.
    TooLarge(usize),
}

/// The commit to push.
#[derive(Debug, Clone, Copy)]
pub struct PushedCommit<'a> {
    pub branch: &'a str,
    pub message: &'a str,
    /// Seconds since 1970. The same time makes the same commit, so that a push can be repeated.
    pub time_sec: u64,
}

impl DiffText {
    /// Empty if nothing changed or if there are too many bytes.
    pub fn bytes(&self) -> &[u8] {
        match self {
            DiffText::Complete(bytes) => bytes,
            DiffText::TooLarge(_) => &[],
        }
    }

    pub fn has_changes(&self) -> bool {
        *self != DiffText::Complete(Vec::new())
    }
}

impl TreeListing {
    /// Lists the work tree with its top level at `dir`. `temp_dir` is a directory of ours.
    pub fn take(git: &Git, dir: &Path, temp_dir: &Path) -> Result<TreeListing, GitError> {
        Ok(list(git, &checkout_repository(git, dir)?, temp_dir)?.1)
    }

    /// The format of `git ls-tree -r -z`; files that were left out have only a path, after a tab.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let left_out = self.left_out.iter().map(|path| ("", path));
        for (entry, path) in self.entries.iter().map(|(path, entry)| (entry.as_str(), path)).chain(left_out) {
            bytes.extend_from_slice(entry.as_bytes());
            bytes.push(b'\t');
            bytes.extend_from_slice(path);
            bytes.push(0);
        }
        bytes
    }

    pub fn from_bytes(bytes: &[u8]) -> Result<TreeListing, GitError> {
        let unreadable = || GitError::UnexpectedOutput { command: "ls-tree" };
        let mut listing = TreeListing::default();
        for record in records(bytes) {
            let tab = record.iter().position(|byte| *byte == b'\t').ok_or_else(unreadable)?;
            let entry = str::from_utf8(&record[..tab]).map_err(|_| unreadable())?;
            let path = record[tab + 1..].to_vec();
            // Mode, type and id: the type follows from the mode.
            let fields: Vec<&str> =
                entry.split(' ').filter(|field| !matches!(*field, "blob" | "commit")).collect();
            match fields.as_slice() {
                [""] => drop(listing.left_out.insert(path)),
                [mode, id] if mode.len() == 6 && is_object_id(id) => {
                    drop(listing.entries.insert(path, format!("{mode} {id}")))
                }
                _ => return Err(unreadable()),
            }
        }
        Ok(listing)
    }

    /// The changes since `before`, in the format of `update-index --index-info`: removals first, so that a file can take
    /// the place of a directory. Submodules are left out.
    fn index_info(&self, before: &TreeListing) -> Vec<u8> {
        let is_submodule = |entry: &&String| entry.starts_with(GITLINK);
        let removed = before.entries.iter().filter(|(path, entry)| {
            !self.entries.contains_key(*path) && !is_submodule(entry) && !self.left_out.contains(*path)
        });
        let zeros =
            self.entries.values().chain(before.entries.values()).next().map_or(40, |entry| entry.len() - 7);
        let removed = removed.map(|(path, _)| (format!("0 {}", "0".repeat(zeros)), path));
        let changed = self.entries.iter().filter(|(path, entry)| {
            before.entries.get(*path) != Some(entry)
                && !is_submodule(entry)
                && !before.left_out.contains(*path)
        });
        let changed = changed.map(|(path, entry)| (entry.clone(), path));
        let mut info = Vec::new();
        for (entry, path) in removed.chain(changed) {
            info.extend_from_slice(entry.as_bytes());
            info.push(b'\t');
            info.extend_from_slice(path);
            info.push(0);
        }
        info
    }
}

/// The repository of the checkout itself.
fn checkout_repository(git: &Git, dir: &Path) -> Result<Repository, GitError> {
    let no_repository = || GitError::io("find the repository of", dir)(std::io::ErrorKind::NotFound.into());
    find_repository(git, dir)?.filter(|found| found.top_level == dir).ok_or_else(no_repository)
}

fn list(git: &Git, repository: &Repository, temp_dir: &Path) -> Result<(Scratch, TreeListing), GitError> {
    let scratch = Scratch::create(git, repository, temp_dir)?;
    // Like a restore: all tracked files, small untracked ones, no ignored ones.
    let captured = capture(&scratch, LIMITS, &BTreeSet::new(), Purpose::Restore)?;
    let output = scratch.run_large(["ls-tree", "-r", "-z", "--full-tree", &captured.tree], b"")?;
    let mut listing = TreeListing::from_bytes(&output)?;
    listing.left_out = captured.left_out.into_iter().map(|left_out| left_out.path.into_bytes()).collect();
    Ok((scratch, listing))
}

impl WorkTreeDiff {
    /// What changed in the work tree since `before`, relative to the commit `base` of the mirror.
    pub fn take(
        git: &Git,
        (dir, base, mirror): (&Path, &str, &Mirror),
        before: &TreeListing,
        temp_dir: &Path,
    ) -> Result<WorkTreeDiff, GitError> {
        let found = checkout_repository(git, dir)
            .and_then(|repository| WorkTreeDiff::compare(git, &repository, base, before, temp_dir));
        match found {
            Err(error) if may_be_damage(&error) => {
                let (git_dir, repository) = mirror.create_git_dir(git, base, dir, temp_dir)?;
                let found = WorkTreeDiff::compare(git, &repository, base, before, temp_dir)?;
                Ok(WorkTreeDiff { _git_dir: Some(git_dir), ..found })
            }
            found => found,
        }
    }

    fn compare(
        git: &Git,
        repository: &Repository,
        base: &str,
        before: &TreeListing,
        temp_dir: &Path,
    ) -> Result<WorkTreeDiff, GitError> {
        let (scratch, after) = list(git, repository, temp_dir)?;
        scratch.run(INDEX, ["read-tree", base], b"")?;
        let info = after.index_info(before);
        scratch.run(INDEX, ["update-index", "--replace", "-z", "--index-info"], &info)?;
        let tree = single_line(&scratch.run(INDEX, ["write-tree", "--missing-ok"], b"")?);
        let args = [
            "diff-tree",
            "-r",
            "-p",
            "--binary",
            "--full-index",
            "--find-renames",
            "--no-ext-diff",
            "--no-textconv",
            base,
            &tree,
        ];
        let call = scratch.call("none", args, &repository.top_level);
        let call = Call { extra_output: EXTRA_DIFF_BYTES, ..call };
        let diff = diff_text(git.run(&repository.top_level, &call))?;
        let left_out = after.left_out.difference(&before.left_out).map(|path| display_path(path)).collect();
        Ok(WorkTreeDiff { diff, left_out, scratch, tree, _git_dir: None })
    }

    /// Pushes the changes as one commit on top of `base` to a branch that does not exist, or has this commit already.
    pub fn push(
        &self,
        access: &RemoteAccess,
        url: &RemoteUrl,
        base: &str,
        commit: PushedCommit<'_>,
    ) -> Result<(), RemoteError> {
        let PushedCommit { branch, message, time_sec } = commit;
        let top = &self.scratch.repository.top_level;
        let args = ["commit-tree", &self.tree, "-p", base, "-F", "-"];
        let mut call = self.scratch.call("none", args, top);
        call.variables.extend(self.author()?);
        for name in ["GIT_AUTHOR_DATE", "GIT_COMMITTER_DATE"] {
            call.variables.push((name, format!("@{time_sec} +0000").into()));
        }
        let commit = access.git().run(top, &Call { input: message.as_bytes(), ..call })?;
        access.push(&self.scratch, url, &format!("{}:refs/heads/{branch}", single_line(&commit)))
    }

    /// The user's name and address, if git knows them.
    fn author(&self) -> Result<Vec<(&'static str, OsString)>, GitError> {
        let setting = |key: &str, default: &str| -> Result<OsString, GitError> {
            let call = Call { reads_user_config: true, ..Call::new(["config", "--get", key]) };
            let call = Call { variables: vec![("GIT_DIR", "/dev/null".into())], ..call };
            let value = self.scratch.git.run_optional(Path::new("/"), &call)?;
            Ok(value.as_deref().map_or_else(|| default.to_owned(), single_line).into())
        };
        let name = setting("user.name", "mcp-delegator")?;
        let email = setting("user.email", "mcp-delegator@localhost")?;
        Ok(vec![
            ("GIT_AUTHOR_NAME", name.clone()),
            ("GIT_COMMITTER_NAME", name),
            ("GIT_AUTHOR_EMAIL", email.clone()),
            ("GIT_COMMITTER_EMAIL", email),
        ])
    }
}

fn diff_text(output: Result<Vec<u8>, GitError>) -> Result<DiffText, GitError> {
    match output {
        Err(GitError::TooMuchOutput { limit, .. }) => Ok(DiffText::TooLarge(limit)),
        output => Ok(DiffText::Complete(output?)),
    }
}

/// Whether the cause may be the git directory.
fn may_be_damage(error: &GitError) -> bool {
    match error {
        GitError::Failed { .. }
        | GitError::UnexpectedOutput { .. }
        | GitError::WorkTreeElsewhere { .. }
        | GitError::Io { .. } => true,
        GitError::Spawn { .. }
        | GitError::TimedOut { .. }
        | GitError::Cancelled { .. }
        | GitError::TooMuchOutput { .. }
        | GitError::TooManyLeftOut { .. }
        | GitError::NameTaken { .. } => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(entries: &[(&str, &str)]) -> TreeListing {
        let id = |letter: &str| format!("100644 {}", letter.repeat(40));
        let entries = entries.iter().map(|(path, letter)| (path.as_bytes().to_vec(), id(letter)));
        TreeListing { entries: entries.collect(), ..TreeListing::default() }
    }

    #[test]
    fn a_listing_is_read_as_it_was_written() {
        let mut sample = listing(&[("a b", "a"), ("d/\u{fc}\n", "b")]);
        sample.left_out.insert(b"huge".to_vec());
        assert_eq!(TreeListing::from_bytes(&sample.to_bytes()).unwrap(), sample);
        let printed = format!("100644 blob {}\tx\0", "a".repeat(40));
        assert_eq!(TreeListing::from_bytes(printed.as_bytes()).unwrap(), listing(&[("x", "a")]));
        for damaged in [&b"nonsense\0"[..], b"1 2\tx\0", b"100644 c0ffee\tx\0"] {
            assert!(TreeListing::from_bytes(damaged).is_err());
        }
    }

    #[test]
    fn a_diff_beyond_the_limit_is_no_error() {
        let too_large = GitError::TooMuchOutput { command: "diff-tree".to_owned(), limit: 7 };
        assert_eq!(diff_text(Err(too_large)).unwrap(), DiffText::TooLarge(7));
        assert!(diff_text(Err(GitError::Cancelled { command: "diff-tree".to_owned() })).is_err());
    }

    #[test]
    fn only_changed_paths_are_in_the_index_info() {
        let before = listing(&[("gone", "a"), ("same", "b"), ("changed", "c")]);
        let after = listing(&[("same", "b"), ("changed", "d"), ("new", "e")]);
        let info = String::from_utf8(after.index_info(&before)).unwrap();
        let lines: Vec<String> = info.split_terminator('\0').map(|line| line.replace('\t', " ")).collect();
        let line = |mode: &str, id: &str, path: &str| format!("{mode} {} {path}", id.repeat(40));
        assert_eq!(
            lines,
            [line("0", "0", "gone"), line("100644", "d", "changed"), line("100644", "e", "new")]
        );
    }
}
