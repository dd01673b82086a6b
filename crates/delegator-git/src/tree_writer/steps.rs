//! The steps that change files and directories. Each can be taken back, also by a later process.
//!
//! New files are complete in the staging directory before the first step, so a killed process leaves each
//! file either old or new. What a step moves out of the way stays in the staging directory: what is there
//! shows whether the step was done. A file that is not as it was read, or not as a step wrote it, is never
//! overwritten.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::files::{Stamp, Stamps, directory_mode, file_mode};
use crate::records::{FileVersion, RepoPath, ancestors, display_path, on_disk};

#[derive(Debug, Default)]
pub(crate) struct TreeChanges {
    /// The files to write, with their permission bits if they are known.
    pub(crate) write: BTreeMap<RepoPath, (FileVersion, Option<u32>)>,
    pub(crate) remove: BTreeSet<RepoPath>,
    /// Outermost first.
    pub(crate) make_directories: Vec<RepoPath>,
    /// Innermost first. One that is not empty stays.
    pub(crate) remove_directories: Vec<RepoPath>,
    pub(crate) file_modes: Vec<(RepoPath, u32)>,
    pub(crate) directory_modes: BTreeMap<RepoPath, u32>,
    /// Whether directories without permission to write are changed.
    pub(crate) unlocks_directories: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Step {
    path: RepoPath,
    action: Action,
}

#[derive(Debug, Serialize, Deserialize)]
enum Action {
    Write {
        old: Option<Stamp>,
        new: Stamp,
    },
    Remove {
        old: Option<Stamp>,
    },
    MakeDirectory,
    RemoveDirectory {
        mode: u32,
    },
    /// `from` is unknown if a step before creates the directory.
    SetMode {
        from: Option<u32>,
        to: u32,
    },
}

impl Step {
    fn new(path: &[u8], action: Action) -> Step {
        Step { path: path.to_vec(), action }
    }
}

impl TreeChanges {
    /// Writes before it removes, so that a renamed file exists at every moment. Only what is in the way of a
    /// new file is removed first. `stamps` are those of the files when they were read.
    pub(crate) fn steps(&self, places: &Places<'_>, stamps: &Stamps) -> io::Result<Vec<Step>> {
        let stamp = |path: &RepoPath| stamps.get(path).copied().flatten();
        let remove = |path: &RepoPath| Step::new(path, Action::Remove { old: stamp(path) });
        let (unlocked, mut steps) = self.unlock(places.top);
        let (first, last): (Vec<_>, Vec<_>) = self.remove.iter().partition(|path| self.is_in_the_way(path));
        steps.extend(first.into_iter().map(remove));
        for path in self.write.keys() {
            steps.extend(places.directories_at(path).iter().map(|path| places.remove_directory(path)));
        }
        let parents: BTreeSet<&[u8]> = self.write.keys().flat_map(|path| ancestors(path)).collect();
        let missing = parents.into_iter().filter(|path| directory_mode(places.top, path).is_none());
        steps.extend(missing.map(|path| Step::new(path, Action::MakeDirectory)));
        for path in self.write.keys() {
            let new = fs::symlink_metadata(places.staged(path)).map(|found| Stamp::of(&found))?;
            // What a path leads to through a link, or a directory there, is not the file to replace.
            let is_free = places.place(path).is_err() || directory_mode(places.top, path).is_some();
            let old = stamp(path).filter(|_| !is_free);
            steps.push(Step::new(path, Action::Write { old, new }));
        }
        steps.extend(last.into_iter().map(remove));
        steps.extend(self.remove_directories.iter().map(|path| places.remove_directory(path)));
        steps.extend(self.make_directories.iter().map(|path| Step::new(path, Action::MakeDirectory)));
        for (path, to) in &self.file_modes {
            let from = file_mode(places.top, path);
            steps.push(Step::new(path, Action::SetMode { from, to: *to }));
        }
        // Innermost first: permission to enter the outer ones may be removed.
        let mut modes = unlocked.clone();
        modes.extend(self.directory_modes.iter().map(|(path, mode)| (path.clone(), *mode)));
        for (path, to) in modes.into_iter().rev() {
            let now = directory_mode(places.top, &path);
            let from = if unlocked.contains_key(&path) { now.map(|mode| mode | 0o700) } else { now };
            if from != Some(to) {
                steps.push(Step { path, action: Action::SetMode { from, to } });
            }
        }
        Ok(steps)
    }

    /// The permissions of the directories in which something changes and which do not permit it, and steps
    /// that do.
    fn unlock(&self, top: &Path) -> (BTreeMap<RepoPath, u32>, Vec<Step>) {
        let changed = self.write.keys().chain(&self.remove).chain(&self.make_directories);
        let changed = changed.chain(&self.remove_directories).filter(|_| self.unlocks_directories);
        let parents: BTreeSet<&[u8]> = changed.flat_map(|path| ancestors(path)).collect();
        let modes = parents.into_iter().filter_map(|path| Some((path, directory_mode(top, path)?)));
        let locked = modes.filter(|(_, mode)| mode & 0o700 != 0o700);
        let locked: BTreeMap<RepoPath, u32> = locked.map(|(path, mode)| (path.to_vec(), mode)).collect();
        let unlock = |mode: u32| Action::SetMode { from: Some(mode), to: mode | 0o700 };
        let steps = locked.iter().map(|(path, mode)| Step::new(path, unlock(*mode))).collect();
        (locked, steps)
    }

    /// Whether the path must be free before a new file can be written.
    fn is_in_the_way(&self, path: &RepoPath) -> bool {
        let below = [path.as_slice(), b"/"].concat();
        let mut inner = self.write.range(below.clone()..);
        ancestors(path).any(|above| self.write.contains_key(above))
            || inner.next().is_some_and(|(path, _)| path.starts_with(&below))
    }
}

/// Why a step was not done or taken back.
#[derive(Debug)]
pub(crate) enum StepError {
    /// The file is not as it was read or written.
    Changed,
    Io(io::Error),
}

impl From<io::Error> for StepError {
    fn from(error: io::Error) -> StepError {
        match error.kind() {
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotFound => StepError::Changed,
            _ => StepError::Io(error),
        }
    }
}

/// The work tree, and the staging directory on its file system.
pub(crate) struct Places<'a> {
    pub(crate) top: &'a Path,
    pub(crate) staging: &'a Path,
}

/// What could not be taken back.
#[derive(Debug, Default)]
pub(crate) struct TakenBack {
    /// Files that changed after they were written; they stay as they are.
    pub(crate) edited: Vec<String>,
    pub(crate) problem: Option<String>,
}

impl Places<'_> {
    pub(crate) fn staged(&self, path: &[u8]) -> PathBuf {
        on_disk(&self.staging.join("new"), path)
    }

    fn aside(&self, number: usize) -> PathBuf {
        self.staging.join("old").join(number.to_string())
    }

    /// A path in the work tree. What leads there must be directories, so that nothing outside is changed.
    fn place(&self, path: &[u8]) -> Result<PathBuf, StepError> {
        let is_plain = |part: &[u8]| !matches!(part, b"" | b"." | b".." | b".git");
        let is_parent = |above: &[u8]| directory_mode(self.top, above).is_some();
        let is_inside = path.split(|byte| *byte == b'/').all(is_plain) && ancestors(path).all(is_parent);
        is_inside.then(|| on_disk(self.top, path)).ok_or(StepError::Changed)
    }

    /// A directory in place of a file to write, and those in it, innermost first.
    fn directories_at(&self, path: &[u8]) -> Vec<RepoPath> {
        use std::os::unix::ffi::OsStrExt;
        if directory_mode(self.top, path).is_none() {
            return Vec::new();
        }
        let entries = fs::read_dir(on_disk(self.top, path)).into_iter().flatten().flatten();
        let inner = entries.map(|entry| [path, b"/", entry.file_name().as_bytes()].concat());
        let mut found: Vec<RepoPath> = inner.flat_map(|path| self.directories_at(&path)).collect();
        found.push(path.to_vec());
        found
    }

    fn remove_directory(&self, path: &[u8]) -> Step {
        let mode = directory_mode(self.top, path).unwrap_or(0o777);
        Step::new(path, Action::RemoveDirectory { mode })
    }

    /// Does all steps. Fails with the path of the first one that cannot be done.
    pub(crate) fn perform_all(&self, steps: &[Step]) -> Result<(), (String, StepError)> {
        for (number, step) in steps.iter().enumerate() {
            self.perform(number, step).map_err(|problem| (display_path(&step.path), problem))?;
        }
        // A program that had a file open may have written to it after it was moved.
        for (number, step) in steps.iter().enumerate() {
            if let Action::Write { old: old @ Some(_), .. } | Action::Remove { old } = &step.action
                && Stamp::at(&self.aside(number)) != *old
            {
                return Err((display_path(&step.path), StepError::Changed));
            }
        }
        Ok(())
    }

    fn perform(&self, number: usize, step: &Step) -> Result<(), StepError> {
        let Step { path, action } = step;
        let (place, aside) = match (self.place(path), action) {
            // It is gone with the directory that it was in.
            (Err(_), Action::RemoveDirectory { .. } | Action::SetMode { .. }) => return Ok(()),
            (place, _) => (place?, self.aside(number)),
        };
        match action {
            Action::Write { old: None, .. } => Ok(rename_to_free_name(&self.staged(path), &place)?),
            Action::Write { old, .. } => exchange(&self.staged(path), &place, &aside, *old),
            Action::Remove { old } => move_away(&place, &aside, *old),
            Action::MakeDirectory => match fs::create_dir(&place) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && place.is_dir() => Ok(()),
                made => Ok(made?),
            },
            // What is in it, or replaced it, appeared since.
            Action::RemoveDirectory { .. } => remove_empty_directory(&place),
            Action::SetMode { to, .. } => match self.has_mode(path) {
                Some(now) if now != *to => Ok(fs::set_permissions(place, Permissions::from_mode(*to))?),
                _ => Ok(()),
            },
        }
    }

    fn has_mode(&self, path: &[u8]) -> Option<u32> {
        directory_mode(self.top, path).or_else(|| file_mode(self.top, path))
    }

    /// Takes back every step that was done, the last one first. Continues after a problem.
    pub(crate) fn take_back_all(&self, steps: &[Step]) -> TakenBack {
        let mut result = TakenBack::default();
        for (number, step) in steps.iter().enumerate().rev() {
            match self.take_back(number, step) {
                Ok(()) => {}
                Err(StepError::Changed) => result.edited.push(display_path(&step.path)),
                Err(StepError::Io(error)) => {
                    let path = display_path(&step.path);
                    result.problem.get_or_insert_with(|| format!("{path}: {error}"));
                }
            }
        }
        result.edited.reverse();
        result
    }

    fn take_back_write(
        &self,
        number: usize,
        path: &RepoPath,
        old: Option<Stamp>,
        new: Stamp,
    ) -> Result<(), StepError> {
        let (staged, aside) = (self.staged(path), self.aside(number));
        if [&staged, &aside].into_iter().any(|file| Stamp::at(file) == Some(new)) {
            return Ok(());
        }
        let saved = [&aside, &staged].into_iter().find_map(|file| Some((file, Stamp::at(file)?)));
        let now = Stamp::at(&on_disk(self.top, path));
        let spare = self.staging.join("old").join(format!("{number}-new"));
        match saved {
            None if old.is_some() || now.is_none() => Ok(()),
            None => move_away(&self.place(path)?, &staged, Some(new)),
            Some((saved, stamp)) if Some(stamp) == old => {
                exchange(saved, &self.place(path)?, &spare, Some(new))
            }
            // It holds an edit: a process was killed while it moved the file back, or a program had the file
            // open.
            Some((saved, _)) => {
                match now {
                    None => rename_to_free_name(saved, &self.place(path)?)?,
                    Some(now) if now == new || Some(now) == old => {
                        exchange(saved, &self.place(path)?, &spare, Some(now))?;
                    }
                    Some(_) => {}
                }
                Err(StepError::Changed)
            }
        }
    }

    fn take_back(&self, number: usize, step: &Step) -> Result<(), StepError> {
        let (aside, path) = (self.aside(number), &step.path);
        match &step.action {
            Action::Write { old, new } => self.take_back_write(number, path, *old, *new),
            Action::Remove { .. } => match fs::symlink_metadata(&aside) {
                Ok(_) => Ok(rename_to_free_name(&aside, &self.place(path)?)?),
                Err(_) => Ok(()),
            },
            Action::MakeDirectory => remove_empty_directory(&on_disk(self.top, path)),
            Action::RemoveDirectory { mode } => {
                let Ok(place) = self.place(path) else { return Ok(()) };
                match fs::create_dir(&place) {
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
                    made => {
                        Ok(made.and_then(|()| fs::set_permissions(place, Permissions::from_mode(*mode)))?)
                    }
                }
            }
            Action::SetMode { from, to } if self.has_mode(path) == Some(*to) => {
                // A directory that a step created must permit to remove what is in it.
                let mode = Permissions::from_mode(from.unwrap_or(*to | 0o700));
                Ok(fs::set_permissions(self.place(path)?, mode)?)
            }
            Action::SetMode { .. } => Ok(()),
        }
    }
}

/// Removes a directory, unless it is gone or something is in it.
fn remove_empty_directory(place: &Path) -> Result<(), StepError> {
    use io::ErrorKind::{DirectoryNotEmpty, NotADirectory, NotFound};
    match fs::remove_dir(place) {
        Err(error) if !matches!(error.kind(), DirectoryNotEmpty | NotADirectory | NotFound) => {
            Err(StepError::Io(error))
        }
        _ => Ok(()),
    }
}

/// Whether the file system lacks the kind of rename.
fn is_unsupported(error: Errno) -> bool {
    matches!(error, Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP)
}

/// Replaces `file`, which must have this stamp and is then at `aside`.
fn exchange(staged: &Path, file: &Path, aside: &Path, expected: Option<Stamp>) -> Result<(), StepError> {
    match renameat_with(CWD, staged, CWD, file, RenameFlags::EXCHANGE) {
        Err(error) if is_unsupported(error) => {
            fs::hard_link(file, aside)?;
            if Stamp::at(aside) != expected {
                fs::remove_file(aside)?;
                return Err(StepError::Changed);
            }
            return Ok(fs::rename(staged, file)?);
        }
        exchanged => exchanged.map_err(io::Error::from)?,
    }
    if Stamp::at(staged) != expected {
        renameat_with(CWD, staged, CWD, file, RenameFlags::EXCHANGE).map_err(io::Error::from)?;
        return Err(StepError::Changed);
    }
    Ok(fs::rename(staged, aside)?)
}

/// Moves a file away that must have this stamp.
fn move_away(file: &Path, aside: &Path, expected: Option<Stamp>) -> Result<(), StepError> {
    rename_to_free_name(file, aside)?;
    if Stamp::at(aside) != expected {
        rename_to_free_name(aside, file)?;
        return Err(StepError::Changed);
    }
    Ok(())
}

fn rename_to_free_name(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(error) if is_unsupported(error) => match fs::symlink_metadata(to) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(_) => fs::rename(from, to),
        },
        renamed => Ok(renamed?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;
    use std::io::Write;

    struct Tree {
        root: tempfile::TempDir,
        stamps: Stamps,
    }

    impl Tree {
        /// `changed`, `removed` and `d/e/inner` in a work tree; new versions of `changed`, `d` and
        /// `x/y/created`.
        fn new() -> Tree {
            let root = tempfile::tempdir().unwrap();
            let tree = Tree { root, stamps: BTreeMap::new() };
            for name in ["changed", "removed", "d/e/inner"] {
                tree.write("tree", name, name);
            }
            fs::set_permissions(tree.top().join("d/e"), Permissions::from_mode(0o700)).unwrap();
            for name in ["changed", "d", "x/y/created"] {
                tree.write("staging/new", name, "new");
            }
            fs::create_dir(tree.root.path().join("staging/old")).unwrap();
            let names = ["changed", "removed", "d/e/inner", "d", "x/y/created"];
            let stamp = |name: &str| (name.into(), Stamp::at(&tree.top().join(name)));
            Tree { stamps: names.into_iter().map(stamp).collect(), ..tree }
        }

        fn top(&self) -> PathBuf {
            self.root.path().join("tree")
        }

        fn write(&self, folder: &str, name: &str, text: &str) {
            let path = self.root.path().join(folder).join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn steps(&self) -> Vec<Step> {
            let paths =
                |names: &[&str]| names.iter().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
            let version = (("100644".to_owned(), String::new()), None);
            let written = paths(&["changed", "d", "x/y/created"]);
            let changes = TreeChanges {
                write: written.into_iter().map(|path| (path, version.clone())).collect(),
                remove: paths(&["removed", "d/e/inner"]).into_iter().collect(),
                ..TreeChanges::default()
            };
            self.with_places(|places| changes.steps(places, &self.stamps).unwrap())
        }

        fn with_places<T>(&self, with: impl FnOnce(&Places<'_>) -> T) -> T {
            let (top, staging) = (self.top(), self.root.path().join("staging"));
            with(&Places { top: &top, staging: &staging })
        }

        fn contents(&self) -> BTreeMap<PathBuf, (u32, Option<Vec<u8>>)> {
            let mut found = BTreeMap::new();
            let mut folders = vec![self.top()];
            while let Some(folder) = folders.pop() {
                for entry in fs::read_dir(folder).unwrap() {
                    let path = entry.unwrap().path();
                    let mode = fs::symlink_metadata(&path).unwrap().permissions().mode();
                    found.insert(path.clone(), (mode, fs::read(&path).ok()));
                    folders.extend(Some(path).filter(|path| path.is_dir()));
                }
            }
            found
        }
    }

    #[test]
    fn steps_are_taken_back_wherever_they_were_interrupted_and_once_more() {
        for done in 0.. {
            let tree = Tree::new();
            let (before, steps) = (tree.contents(), tree.steps());
            if done > steps.len() {
                assert_eq!(steps.len(), 9);
                return;
            }
            tree.with_places(|places| {
                for (number, step) in steps.iter().enumerate().take(done) {
                    places.perform(number, step).unwrap();
                }
                assert_eq!(
                    done == steps.len(),
                    tree.contents() != before && !tree.top().join("removed").exists()
                );
                for _ in 0..2 {
                    let taken_back = places.take_back_all(&steps);
                    assert!(taken_back.edited.is_empty() && taken_back.problem.is_none(), "{taken_back:?}");
                    assert_eq!(tree.contents(), before, "after {done} steps");
                }
            });
        }
    }

    #[test]
    fn files_that_were_edited_after_they_were_written_stay_and_are_named() {
        let tree = Tree::new();
        let steps = tree.steps();
        tree.with_places(|places| {
            places.perform_all(&steps).unwrap();
            for name in ["changed", "removed", "d", "x/y/created"] {
                tree.write("tree", name, "user");
            }
            let taken_back = places.take_back_all(&steps);
            assert_eq!(taken_back.edited, ["d/e/inner", "changed", "d", "x/y/created", "removed"]);
            for name in ["changed", "removed", "d", "x/y/created"] {
                assert_eq!(fs::read_to_string(tree.top().join(name)).unwrap(), "user");
            }
        });
    }

    #[test]
    fn a_file_that_changed_after_it_was_read_is_left_alone() {
        for (name, text) in [("changed", "user"), ("removed", "user"), ("x/y/created", "user")] {
            let tree = Tree::new();
            let steps = tree.steps();
            tree.write("tree", name, text);
            let before = tree.contents();
            tree.with_places(|places| {
                let refused = places.perform_all(&steps);
                assert!(matches!(refused, Err((path, StepError::Changed)) if path == name));
                assert!(places.take_back_all(&steps).edited.is_empty());
            });
            assert_eq!(tree.contents(), before);
        }
    }

    #[test]
    fn what_a_program_writes_to_a_file_that_was_moved_away_is_not_lost() {
        let tree = Tree::new();
        let steps = tree.steps();
        let mut open = File::options().append(true).open(tree.top().join("changed")).unwrap();
        tree.with_places(|places| {
            for (number, step) in steps.iter().enumerate() {
                places.perform(number, step).unwrap();
            }
            open.write_all(b" by a program").unwrap();
            let is_noticed = |number: usize, step: &Step| match &step.action {
                Action::Write { old: old @ Some(_), .. } => Stamp::at(&places.aside(number)) != *old,
                _ => false,
            };
            assert!(steps.iter().enumerate().any(|(number, step)| is_noticed(number, step)));
            assert_eq!(places.take_back_all(&steps).edited, ["changed"]);
        });
        assert_eq!(fs::read_to_string(tree.top().join("changed")).unwrap(), "changed by a program");
    }

    #[test]
    fn a_step_never_leads_out_of_the_work_tree() {
        let tree = Tree::new();
        std::os::unix::fs::symlink(tree.root.path(), tree.top().join("link")).unwrap();
        tree.with_places(|places| {
            for path in ["../outside", "link/outside", "/outside", ".git/config", "d/../removed", ""] {
                assert!(places.place(path.as_bytes()).is_err(), "{path}");
            }
            assert!(places.place(b"d/e/new").is_ok());
        });
    }
}
