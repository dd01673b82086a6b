//! Applies a prepared diff: first the restore point, then the changes of files, and with a commit also index
//! and branch.

use std::collections::{BTreeMap, BTreeSet};

use super::commit::PlannedCommit;
use super::prepare::PreparedDiff;
use super::report::ApplyError;
use crate::diff::ChangeKind;
use crate::error::{Operation, Result, WriteError};
use crate::files::file_mode;
use crate::records::{FileVersion, RepoPath, ancestors, display_path, is_regular};
use crate::restore_point::{CommittedTree, RestorePoint, is_name_free, record};

use crate::tree_writer::{TreeChanges, TreeWriter, WritePlan};

impl PreparedDiff {
    /// Stores the present state as a restore point named `reference`, or with a number appended if that
    /// exists. Until this is dropped, no other process applies a diff or restores here. Returns `None` if no
    /// file would change.
    pub fn create_point(&mut self, reference: &str) -> Result<Option<RestorePoint>, ApplyError> {
        if !self.report.conflicts.is_empty() {
            return Err(ApplyError::Conflicts { conflicts: std::mem::take(&mut self.report.conflicts) });
        }
        let scratch = &self.scratch;
        self.writer = Some(TreeWriter::open(&scratch.git, &scratch.repository, reference)?.0);
        self.refuse_if_changed()?;
        if self.changes.is_empty() {
            return Ok(None);
        }
        let written = self.changes.iter().filter(|(_, version)| version.is_some());
        self.present.about_to_write = written.map(|(path, _)| path.clone()).collect();
        let (mut name, mut number) = (reference.to_owned(), 1);
        while !is_name_free(scratch, &name)? {
            number += 1;
            name = format!("{reference}.{number}");
        }
        let committed = CommittedTree::start(scratch, &self.head)?;
        Ok(Some(record(scratch, &mut self.present, &self.head, committed, &name)?))
    }

    /// Applies the diff, whose restore point was created before. With a commit, also moves the branch of HEAD
    /// and updates the index.
    pub fn apply(
        &mut self,
        point: Option<&RestorePoint>,
        commit: Option<&PlannedCommit>,
    ) -> Result<(), ApplyError> {
        let Some(writer) = self.writer.as_ref().filter(|_| point.is_some() || commit.is_some()) else {
            return Ok(());
        };
        let changes = self.tree_changes();
        Ok(writer.write(&self.scratch, point, || self.write_plan(writer, &changes, commit))?)
    }

    fn write_plan<'a>(
        &'a self,
        writer: &TreeWriter,
        changes: &'a TreeChanges,
        commit: Option<&PlannedCommit>,
    ) -> Result<WritePlan<'a>, WriteError> {
        let (mut index, mut refs, mut head) = (None, Vec::new(), self.head.clone());
        if let Some(commit) = commit {
            writer.lock_index()?;
            self.refuse_if_changed()?;
            index = Some(self.committed_index(commit)?);
            refs.push(self.branch_change(commit));
            head.commit = Some(commit.id.clone());
        }
        let operation = Operation::Apply;
        Ok(WritePlan { operation, changes, stamps: &self.stamps, index, refs, attach: None, head })
    }

    /// Changes made after the files were read are in neither the merge nor the restore point.
    fn refuse_if_changed(&self) -> Result<(), WriteError> {
        let mut stamps = self.stamps.iter();
        if let Some((path, _)) = stamps.find(|(path, stamp)| self.scratch.stamp(path) != **stamp) {
            return Err(WriteError::changed_file(&display_path(path)));
        }
        self.present.refuse_if_index_changed(&self.scratch)
    }

    fn tree_changes(&self) -> TreeChanges {
        let top = self.scratch.top();
        let renamed = self.report.files.iter().filter_map(|file| match &file.change {
            ChangeKind::Renamed { from } => Some((&file.path, from)),
            _ => None,
        });
        let sources: BTreeMap<&RepoPath, &RepoPath> = renamed.collect();
        let mode = |path: &RepoPath, version: &FileVersion| {
            let source = sources.get(path).copied().unwrap_or(path);
            let mode = file_mode(top, path).or_else(|| file_mode(top, source))?;
            let uses_bits = self.scratch.uses_executable_bits;
            is_regular(version).then(|| if uses_bits { with_executable_bit(mode, version) } else { mode })
        };
        let mut changes = TreeChanges::default();
        for (path, version) in &self.changes {
            match version {
                Some(new) => drop(changes.write.insert(path.clone(), (new.clone(), mode(path, new)))),
                None => drop(changes.remove.insert(path.clone())),
            }
        }
        // As git does, directories that became empty are removed.
        let emptied: BTreeSet<&[u8]> = changes.remove.iter().flat_map(|path| ancestors(path)).collect();
        changes.remove_directories = emptied.into_iter().rev().map(<[u8]>::to_vec).collect();
        changes
    }
}

/// Adds or removes permission to execute, where there is permission to read.
fn with_executable_bit(mode: u32, (git_mode, _): &FileVersion) -> u32 {
    let is_executable = mode & 0o100 != 0;
    if is_executable == (git_mode == "100755") {
        mode
    } else if is_executable {
        mode & !0o111
    } else {
        mode | ((mode & 0o444) >> 2)
    }
}
