//! Applies the parts of a diff to known versions of their files, in indexes of our own.
//!
//! The result is the version that the task produced. git applies the whole diff at once to the most likely
//! original versions. Only if that fails, each part is tried by itself, so that every file that does not
//! match is found, and then each hunk, so that a conflict can name it. Neither the work tree nor the user's
//! index is read.

use std::collections::{BTreeMap, BTreeSet};

use crate::diff::{ContentMerge, DiffHunk, FileDiff, HunkRange, merge_contents};
use crate::error::{Result, unless_failed};
use crate::index::IndexFile;
use crate::records::{FileVersion, RepoPath, TreeFiles};
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
    let applied = scratch.run(INDEX, ["apply", "--cached", "--whitespace=nowarn", "-"], diff);
    if unless_failed(applied)?.is_none() {
        return Ok(None);
    }
    let entries = IndexFile::read_copy(scratch, INDEX)?.entries;
    Ok(Some(entries.into_iter().map(|entry| (entry.path.clone(), entry.version())).collect()))
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

/// Whether a diff of one file can be applied to this version, or reverted in it.
fn check_apply(
    scratch: &Scratch,
    option: &str,
    diff: &[u8],
    path: &RepoPath,
    version: &FileVersion,
) -> Result<bool> {
    scratch.fill_index(INDEX, [(path, version)])?;
    let args = ["apply", "--cached", "--check", "--whitespace=nowarn", option, "-"];
    Ok(unless_failed(scratch.run(INDEX, args, diff))?.is_some())
}

/// Each hunk costs two calls of git; of a file with more hunks all are reported.
const MAX_HUNKS: usize = 64;

/// The hunks of a part that conflict with the present version. If none does alone, all do together.
pub(crate) fn conflicting_hunks(
    scratch: &Scratch,
    file: &FileDiff<'_>,
    base: Option<&FileVersion>,
    path: &RepoPath,
    now: &FileVersion,
) -> Result<Vec<HunkRange>> {
    let all = || file.hunks.iter().map(|hunk| hunk.range).collect::<Vec<_>>();
    if file.hunks.len() < 2 || file.hunks.len() > MAX_HUNKS {
        return Ok(all());
    }
    let conflicts = match base {
        Some(base) => merge_each(scratch, file, base, now)?,
        None => {
            let matches = |hunk| check_apply(scratch, "--check", &patch_of(path, hunk), path, now);
            file.hunks.iter().map(|hunk| Ok(!matches(hunk)?)).collect::<Result<_>>()?
        }
    };
    let found = file.hunks.iter().zip(conflicts).filter(|(_, is_conflict)| *is_conflict);
    let found: Vec<HunkRange> = found.map(|(hunk, _)| hunk.range).collect();
    Ok(if found.is_empty() { all() } else { found })
}

/// Whether each hunk conflicts in a three-way merge.
fn merge_each(
    scratch: &Scratch,
    file: &FileDiff<'_>,
    base: &FileVersion,
    now: &FileVersion,
) -> Result<Vec<bool>> {
    let contents = scratch.read_small_blobs(&BTreeSet::from([&base.1]))?;
    let Some(content) = contents.get(&base.1) else { return Ok(vec![true; file.hunks.len()]) };
    let changed: Vec<Vec<u8>> = file.hunks.iter().map(|hunk| with_hunk(content, hunk)).collect();
    let ids = scratch.write_blobs(changed.iter().map(Vec::as_slice))?;
    let (mode, now) = now;
    let merge = |before: String| ContentMerge::new(mode.clone(), [&before, &base.1, now]);
    let merges: Vec<ContentMerge> = ids.into_iter().map(merge).collect();
    let merged = merge_contents(scratch, &merges.iter().cloned().collect())?;
    Ok(merges.iter().map(|merge| !merged.contains_key(merge)).collect())
}

/// The content with one hunk applied where its header says.
fn with_hunk(content: &[u8], hunk: &DiffHunk<'_>) -> Vec<u8> {
    let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    // An empty range names the line before it.
    let HunkRange { old_start, old_lines, .. } = hunk.range;
    let start = if old_lines == 0 { old_start } else { old_start.saturating_sub(1) };
    let position = |line: u64| usize::try_from(line).unwrap_or(usize::MAX).min(lines.len());
    let (start, end) = (position(start), position(start.saturating_add(old_lines)));
    let mut changed = lines[..start].concat();
    let mut hunk_lines = hunk.lines.iter().peekable();
    while let Some(line) = hunk_lines.next() {
        let Some((b'+' | b' ', text)) = line.split_first() else { continue };
        changed.extend_from_slice(text);
        if !hunk_lines.peek().is_some_and(|next| next.starts_with(b"\\")) {
            changed.push(b'\n');
        }
    }
    changed.extend(lines[end..].concat());
    changed
}

/// A diff of this hunk alone.
fn patch_of(path: &[u8], hunk: &DiffHunk<'_>) -> Vec<u8> {
    let mut name = Vec::new();
    for byte in path {
        match byte {
            b'"' | b'\\' => name.extend([b'\\', *byte]),
            0..0x20 | 0x7f.. => name.extend(format!("\\{byte:03o}").into_bytes()),
            _ => name.push(*byte),
        }
    }
    // Nothing before this hunk shifts its lines.
    let HunkRange { old_start, old_lines, new_lines, .. } = hunk.range;
    let new_start = match (old_lines, new_lines) {
        (0, _) => old_start + 1,
        (_, 0) => old_start.saturating_sub(1),
        _ => old_start,
    };
    let range = HunkRange { new_start, ..hunk.range };
    let header =
        [b"--- \"a/", name.as_slice(), b"\"\n+++ \"b/", &name, b"\"\n", format!("{range}\n").as_bytes()]
            .concat();
    hunk.lines.iter().fold(header, |patch, line| [&patch, *line, b"\n"].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::parse_unified_diff;

    #[test]
    fn one_hunk_changes_its_lines_only() {
        let diff = b"--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n a\n+new\n b\n@@ -4 +5 @@\n-d\n\\ No newline at end of file\n+D\n\
                     \\ No newline at end of file\n@@ -2,0 +3 @@\n+x\n";
        let files = parse_unified_diff(diff);
        let changed: Vec<Vec<u8>> =
            files[0].hunks.iter().map(|hunk| with_hunk(b"a\nb\nc\nd", hunk)).collect();
        assert_eq!(changed, [&b"a\nnew\nb\nc\nd"[..], b"a\nb\nc\nD", b"a\nb\nx\nc\nd"]);
        let patch = patch_of(b"q\"\n", &files[0].hunks[2]);
        assert_eq!(patch, b"--- \"a/q\\\"\\012\"\n+++ \"b/q\\\"\\012\"\n@@ -2,0 +3,1 @@\n+x\n");
        assert_eq!(with_hunk(b"", &files[0].hunks[2]), b"x\n");
    }
}
