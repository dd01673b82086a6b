//! Finds the hunks of a diff that conflict with a file, so that a conflict can name them.
//!
//! If the original version is known, each hunk alone is merged three-way with the present version; otherwise
//! each hunk alone must match the present version. Only reports: whether a file has a conflict is decided
//! before.

use std::collections::BTreeSet;

use super::report::HunkRange;
use super::theirs::is_applicable;
use crate::diff::{ContentMerge, DiffHunk, FileDiff, merge_contents};
use crate::error::Result;
use crate::file_version::FileVersion;
use crate::records::RepoPath;
use crate::scratch::Scratch;

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
    let all = || file.hunks.iter().map(HunkRange::of).collect::<Vec<_>>();
    if file.hunks.len() < 2 || file.hunks.len() > MAX_HUNKS {
        return Ok(all());
    }
    let conflicts = match base {
        Some(base) => merge_each(scratch, file, base, now)?,
        None => match_each(scratch, file, path, now)?,
    };
    let found: Vec<HunkRange> = file
        .hunks
        .iter()
        .zip(conflicts)
        .filter(|(_, is_conflict)| *is_conflict)
        .map(|(hunk, _)| HunkRange::of(hunk))
        .collect();
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
    let merge = |id: String| ContentMerge {
        before: id,
        after: base.1.clone(),
        now: now.1.clone(),
        mode: now.0.clone(),
    };
    let merges: Vec<ContentMerge> = ids.into_iter().map(merge).collect();
    let merged = merge_contents(scratch, &merges.iter().cloned().collect())?;
    Ok(merges.iter().map(|merge| !merged.contains_key(merge)).collect())
}

/// Whether each hunk does not match the present version.
fn match_each(
    scratch: &Scratch,
    file: &FileDiff<'_>,
    path: &RepoPath,
    now: &FileVersion,
) -> Result<Vec<bool>> {
    let mut conflicts = Vec::new();
    for hunk in &file.hunks {
        conflicts.push(!is_applicable(scratch, &patch_of(path, hunk), path, now)?);
    }
    Ok(conflicts)
}

/// The content with one hunk applied where its header says.
fn with_hunk(content: &[u8], hunk: &DiffHunk<'_>) -> Vec<u8> {
    let lines: Vec<&[u8]> = content.split_inclusive(|byte| *byte == b'\n').collect();
    // An empty range names the line before it.
    let start = if hunk.old_lines == 0 { hunk.old_start } else { hunk.old_start.saturating_sub(1) };
    let position = |line: u64| usize::try_from(line).unwrap_or(usize::MAX).min(lines.len());
    let (start, end) = (position(start), position(start.saturating_add(hunk.old_lines)));
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
    let new_start = match (hunk.old_lines, hunk.new_lines) {
        (0, _) => hunk.old_start + 1,
        (_, 0) => hunk.old_start.saturating_sub(1),
        _ => hunk.old_start,
    };
    let ranges = format!("@@ -{},{} +{new_start},{} @@\n", hunk.old_start, hunk.old_lines, hunk.new_lines);
    let header = [b"--- \"a/", name.as_slice(), b"\"\n+++ \"b/", &name, b"\"\n", ranges.as_bytes()].concat();
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
