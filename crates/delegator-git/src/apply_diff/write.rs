//! Writes a prepared diff to the work tree.
//!
//! First a restore point is created, then the new files are staged, then each file is moved to its place. If a step
//! fails, all steps are taken back and the restore point is dropped. Index and HEAD are not written.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

use super::prepare::PreparedDiff;
use super::report::ApplyError;
use super::staging::{Journal, Staging, StepError};
use crate::diff::ChangeKind;
use crate::directory_modes::ancestors;
use crate::end_state::store_changes;
use crate::error::GitError;
use crate::index_file::IndexFile;
use crate::listing::{RepoPath, display_path, on_disk};
use crate::restore_plan::file_mode;
use crate::restore_point::{RestorePoint, drop_point};
use crate::restore_target::fill_index;
use crate::stamp::Stamp;
use crate::state::{FileVersion, is_regular};
use crate::write_restore_point::{CommittedTree, record};

const STAGED_INDEX: &str = "staged";

impl PreparedDiff {
    /// Applies the diff. The state before it is stored as a restore point named `reference`, or with a number appended
    /// if that exists. Returns `None` if there was nothing to change.
    pub fn apply(self, reference: &str) -> Result<Option<RestorePoint>, ApplyError> {
        let (prepared, point) = self.write_all(reference)?;
        if let Some(point) = &point {
            prepared.store_end_state(point);
        }
        Ok(point)
    }

    /// Without it only the whole tree can be restored, and an error then says so.
    pub(super) fn store_end_state(&self, point: &RestorePoint) {
        let before = (self.present.captured.tree.as_str(), &self.present.index);
        let _ = store_changes(&self.scratch, point, before, &self.changes);
    }

    pub(super) fn write_all(
        mut self,
        reference: &str,
    ) -> Result<(PreparedDiff, Option<RestorePoint>), ApplyError> {
        if !self.report.conflicts.is_empty() {
            return Err(ApplyError::Conflicts { conflicts: self.report.conflicts });
        }
        if self.changes.is_empty() {
            return Ok((self, None));
        }
        let staging = Staging::create(&self.scratch.repository)?;
        self.refuse_if_changed()?;
        let written = self.changes.iter().filter(|(_, version)| version.is_some());
        self.present.about_to_write = written.map(|(path, _)| path.clone()).collect();
        let reference = self.free_name(reference)?;
        let committed = CommittedTree::start(&self.scratch, &self.head)?;
        let point = record(&self.scratch, &mut self.present, (self.head.clone(), committed), &reference)?;
        if let Err(error) = self.write(&staging, &point) {
            if !matches!(error, ApplyError::Incomplete { .. }) {
                let _ = drop_point(&self.scratch.git, &point);
            }
            return Err(error);
        }
        Ok((self, Some(point)))
    }

    /// Changes made after the files were read are in neither the merge nor the restore point.
    fn refuse_if_changed(&self) -> Result<(), ApplyError> {
        let top = &self.scratch.repository.top_level;
        let is_changed =
            |(path, stamp): &(&RepoPath, &Option<Stamp>)| Stamp::at(&on_disk(top, path)) != **stamp;
        if let Some((path, _)) = self.stamps.iter().find(is_changed) {
            return Err(ApplyError::ConcurrentChange { path: display_path(path) });
        }
        if IndexFile::read(&self.scratch)?.entries != self.present.index.entries {
            return Err(ApplyError::ConcurrentChange { path: "the index".to_owned() });
        }
        Ok(())
    }

    fn free_name(&self, reference: &str) -> Result<String, GitError> {
        let scratch = &self.scratch;
        let mut name = reference.to_owned();
        let mut number = 1;
        while scratch.store().read(&name).is_some()
            || scratch.repository.resolve_ref(&scratch.git, &name)?.is_some()
        {
            number += 1;
            name = format!("{reference}.{number}");
        }
        Ok(name)
    }

    fn write(&self, staging: &Staging, point: &RestorePoint) -> Result<(), ApplyError> {
        self.stage(staging)?;
        let mut journal = Journal::new(staging);
        let Err((path, problem)) = self.write_files(staging, &mut journal) else { return Ok(()) };
        let path = display_path(&path);
        let error = match problem {
            StepError::Changed => ApplyError::ConcurrentChange { path: path.clone() },
            StepError::Io(source) => GitError::io("write", &path)(source).into(),
        };
        journal.roll_back().map_err(|source| ApplyError::Incomplete {
            problem: format!("{error}, and taking back the changes failed: {source}"),
            point: point.reference.clone(),
        })?;
        Err(error)
    }

    /// Writes the new files to the staging directory.
    fn stage(&self, staging: &Staging) -> Result<(), GitError> {
        let written = || self.changes.iter().filter_map(|(path, version)| Some((path, version.as_ref()?)));
        fill_index(&self.scratch, STAGED_INDEX, written())?;
        let prefix = format!("--prefix={}/", staging.new_files().display());
        self.scratch.run(STAGED_INDEX, ["checkout-index", "--all", "--force", &prefix], b"")?;
        let renamed = self.report.files.iter().filter_map(|file| match &file.change {
            ChangeKind::Renamed { from } => Some((&file.path, from)),
            _ => None,
        });
        let sources: BTreeMap<&RepoPath, &RepoPath> = renamed.collect();
        for (path, version) in written().filter(|(_, version)| is_regular(version)) {
            let top = &self.scratch.repository.top_level;
            let source = sources.get(path).copied().unwrap_or(path);
            let Some(mode) = file_mode(top, path).or_else(|| file_mode(top, source)) else { continue };
            let mode =
                if self.scratch.uses_executable_bits { with_executable_bit(mode, version) } else { mode };
            let staged = on_disk(&staging.new_files(), path);
            fs::set_permissions(&staged, Permissions::from_mode(mode))
                .map_err(GitError::io("set the mode of", &staged))?;
        }
        Ok(())
    }

    /// Writes before it removes, so that a renamed file exists at every moment. Only what is in the way of a new file is
    /// removed first.
    fn write_files(&self, staging: &Staging, journal: &mut Journal<'_>) -> Result<(), (RepoPath, StepError)> {
        let top = &self.scratch.repository.top_level;
        let (written, removed): (Vec<_>, Vec<_>) =
            self.changes.iter().partition(|(_, version)| version.is_some());
        let (first, last): (Vec<_>, Vec<_>) =
            removed.into_iter().partition(|(path, _)| self.is_in_the_way(path));
        let stamp = |path: &RepoPath| self.stamps.get(path).copied().flatten();
        let remove = |journal: &mut Journal<'_>, path: &RepoPath| {
            journal.remove(&on_disk(top, path), stamp(path)).map_err(|problem| (path.clone(), problem))
        };
        for (path, _) in first {
            remove(journal, path)?;
        }
        for (path, _) in written {
            let file = on_disk(top, path);
            let staged = on_disk(&staging.new_files(), path);
            let moved = journal.make_parents(top, &file);
            moved
                .and_then(|()| journal.write(&staged, &file, stamp(path)))
                .map_err(|problem| (path.clone(), problem))?;
        }
        for (path, _) in &last {
            remove(journal, path)?;
        }
        for (path, _) in self.changes.iter().filter(|(_, version)| version.is_none()) {
            remove_empty_parents(top, path);
        }
        Ok(())
    }

    /// Whether the path must be free before a new file can be written.
    fn is_in_the_way(&self, path: &RepoPath) -> bool {
        let is_written = |path: &[u8]| self.changes.get(path).is_some_and(Option::is_some);
        let below = [path.as_slice(), b"/"].concat();
        let mut inner =
            self.changes.range(below.clone()..).take_while(|(inner, _)| inner.starts_with(&below));
        ancestors(path).any(is_written) || inner.any(|(_, version)| version.is_some())
    }
}

/// As git does, removes directories that became empty.
pub(crate) fn remove_empty_parents(top: &std::path::Path, path: &[u8]) {
    let parents: Vec<&[u8]> = ancestors(path).collect();
    for above in parents.into_iter().rev() {
        if fs::remove_dir(on_disk(top, above)).is_err() {
            return;
        }
    }
}

/// Adds or removes permission to execute, where there is permission to read.
fn with_executable_bit(mode: u32, (git_mode, _): &FileVersion) -> u32 {
    match (git_mode == "100755", mode & 0o100 != 0) {
        (true, false) => mode | ((mode & 0o444) >> 2),
        (false, true) => mode & !0o111,
        _ => mode,
    }
}
