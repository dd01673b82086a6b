//! Applies the parts of a diff to known versions of their files, in indexes of our own.
//!
//! The result is the version that the task produced. git applies the whole diff at once to the most likely
//! original versions. Only if that fails, each part is tried by itself, so that every file that does not
//! match is found. Neither the work tree nor the user's index is read.

use std::collections::BTreeMap;

use crate::diff::FileDiff;
use crate::error::{GitError, Result};
use crate::file_version::{FileVersion, TreeFiles};
use crate::index::IndexFile;
use crate::records::RepoPath;
use crate::scratch::Scratch;

const INDEX: &str = "patched";

/// A version that the diff may be based on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidate {
    pub(crate) version: FileVersion,
    /// The diff or the base commit names it. Otherwise it is the present version.
    pub(crate) is_known: bool,
}

/// A part of the diff applied to one version of its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Applied {
    /// `None` for a created file.
    pub(crate) base: Option<Candidate>,
    /// `None` for a deleted file.
    pub(crate) theirs: Option<FileVersion>,
}

/// Applies every part; `None` where no candidate matches. `candidates` are in order of preference.
pub(crate) fn apply_sections(
    scratch: &Scratch,
    sections: &[&FileDiff<'_>],
    candidates: &[Vec<Candidate>],
) -> Result<Vec<Option<Applied>>> {
    if let Some(applied) = apply_together(scratch, sections, candidates)? {
        return Ok(applied);
    }
    let each = sections.iter().zip(candidates);
    each.map(|(section, candidates)| apply_alone(scratch, section, candidates)).collect()
}

/// Applies all parts that have a candidate at once; `None` if git refuses.
fn apply_together(
    scratch: &Scratch,
    sections: &[&FileDiff<'_>],
    candidates: &[Vec<Candidate>],
) -> Result<Option<Vec<Option<Applied>>>> {
    let mut index = BTreeMap::new();
    let mut diff = Vec::new();
    for (section, candidates) in sections.iter().zip(candidates) {
        if let Some(source) = section.source() {
            let Some(Candidate { version, .. }) = candidates.first() else { continue };
            if index.insert(source.clone(), version.clone()).is_some_and(|other| other != *version) {
                return Ok(None);
            }
        }
        diff.extend_from_slice(section.bytes);
    }
    let files = if diff.is_empty() { Some(TreeFiles::new()) } else { run_apply(scratch, &index, &diff)? };
    let Some(files) = files else { return Ok(None) };
    let results = sections.iter().zip(candidates).map(|(section, candidates)| {
        let is_included = section.source().is_none() || !candidates.is_empty();
        is_included.then(|| result(section, candidates.first(), &files))
    });
    Ok(Some(results.collect()))
}

fn apply_alone(
    scratch: &Scratch,
    section: &FileDiff<'_>,
    candidates: &[Candidate],
) -> Result<Option<Applied>> {
    let Some(source) = section.source() else {
        let files = run_apply(scratch, &TreeFiles::new(), section.bytes)?;
        return Ok(files.map(|files| result(section, None, &files)));
    };
    for candidate in candidates {
        let index = BTreeMap::from([(source.clone(), candidate.version.clone())]);
        if let Some(files) = run_apply(scratch, &index, section.bytes)? {
            return Ok(Some(result(section, Some(candidate), &files)));
        }
    }
    Ok(None)
}

fn result(section: &FileDiff<'_>, base: Option<&Candidate>, files: &TreeFiles) -> Applied {
    let theirs = section.target().and_then(|path| files.get(path)).cloned();
    Applied { base: base.cloned(), theirs }
}

/// Applies a diff to an index with these files; `None` if it does not match.
fn run_apply(scratch: &Scratch, files: &TreeFiles, diff: &[u8]) -> Result<Option<TreeFiles>> {
    scratch.fill_index(INDEX, files.iter())?;
    match scratch.run(INDEX, ["apply", "--cached", "--whitespace=nowarn", "-"], diff) {
        Err(GitError::Failed { .. }) => return Ok(None),
        applied => applied?,
    };
    let entries = IndexFile::read_copy(scratch, INDEX)?.entries;
    Ok(Some(entries.into_iter().map(|entry| (entry.path.clone(), entry.version())).collect()))
}

/// Whether a diff of one file can be applied to this version.
pub(crate) fn is_applicable(
    scratch: &Scratch,
    diff: &[u8],
    path: &RepoPath,
    version: &FileVersion,
) -> Result<bool> {
    check_apply(scratch, "--check", diff, path, version)
}

/// Whether the part can be reverted in this version, which then contains the change.
pub(crate) fn is_contained(
    scratch: &Scratch,
    section: &FileDiff<'_>,
    path: &RepoPath,
    version: &FileVersion,
) -> Result<bool> {
    check_apply(scratch, "--reverse", section.bytes, path, version)
}

fn check_apply(
    scratch: &Scratch,
    option: &str,
    diff: &[u8],
    path: &RepoPath,
    version: &FileVersion,
) -> Result<bool> {
    scratch.fill_index(INDEX, [(path, version)].into_iter())?;
    let args = ["apply", "--cached", "--check", "--whitespace=nowarn", option, "-"];
    match scratch.run(INDEX, args, diff) {
        Err(GitError::Failed { .. }) => Ok(false),
        checked => checked.map(|_| true),
    }
}
