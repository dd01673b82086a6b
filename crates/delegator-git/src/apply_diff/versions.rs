//! The versions of the files that are merged: the present ones, and those that the diff is based on.
//!
//! The diff has line endings as stored in the repository. A file that is checked out with CRLF is compared
//! and merged with LF and written with CRLF again; this is decided by content, so no setting or attribute
//! matters, except for new files. New content is written to the temporary object store only.

use std::collections::{BTreeMap, BTreeSet};

use super::theirs::Candidate;
use crate::diff::FileDiff;
use crate::error::{Result, unless_failed};
use crate::records::{FileVersion, RepoPath, TreeFiles, is_regular, join_records, lines};
use crate::run::Call;
use crate::scratch::Scratch;

/// The shortest abbreviation of an object id that is trusted.
const MIN_ID_LENGTH: usize = 7;

/// The present files that the diff touches, as the diff shows them.
#[derive(Debug, Default)]
pub(crate) struct Ours {
    files: TreeFiles,
    /// Those that have CRLF on disk and LF in `files`.
    pub(crate) with_crlf: BTreeSet<RepoPath>,
}

impl Ours {
    /// `now` are the files on disk, byte for byte.
    pub(crate) fn read(scratch: &Scratch, sections: &[&FileDiff<'_>], now: &TreeFiles) -> Result<Ours> {
        let mut ours = Ours::default();
        let mut with_lf_in_diff: BTreeMap<&RepoPath, &FileVersion> = BTreeMap::new();
        for section in sections {
            let has_lf = !section.hunks.is_empty() && !section.bytes.windows(2).any(|pair| pair == b"\r\n");
            for path in section.paths() {
                let Some(version) = now.get(path) else { continue };
                ours.files.insert(path.clone(), version.clone());
                if has_lf && is_regular(version) {
                    with_lf_in_diff.insert(path, version);
                }
            }
        }
        let contents = scratch.read_small_blobs(&with_lf_in_diff.values().map(|(_, id)| id).collect())?;
        let mut converted = Vec::new();
        for (path, (_, id)) in with_lf_in_diff {
            if let Some(content) = contents.get(id).filter(|content| has_only_crlf(content)) {
                converted.push((path, to_lf(content)));
            }
        }
        let ids = scratch.write_blobs(converted.iter().map(|(_, content)| content.as_slice()))?;
        for ((path, _), id) in converted.into_iter().zip(ids) {
            ours.with_crlf.insert(path.clone());
            if let Some(version) = ours.files.get_mut(path) {
                version.1 = id;
            }
        }
        Ok(ours)
    }

    pub(crate) fn get(&self, path: &[u8]) -> Option<&FileVersion> {
        self.files.get(path)
    }

    /// Sets git's mode of a regular file, for a repository that does not use the executable bit.
    pub(crate) fn set_mode(&mut self, path: &[u8], mode: &str) {
        if let Some(version) = self.files.get_mut(path).filter(|version| is_regular(version)) {
            mode.clone_into(&mut version.0);
        }
    }
}

/// The versions that each part may be based on: what its header names, the base commit's, and the present
/// one.
pub(crate) fn candidates(
    scratch: &Scratch,
    sections: &[&FileDiff<'_>],
    base_commit: Option<&str>,
    ours: &Ours,
) -> Result<Vec<Vec<Candidate>>> {
    let is_id = |id: &str| id.len() >= MIN_ID_LENGTH && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A copy or rename of unchanged content has no ids, but another part may name the original version of the
    // same file.
    let mut named: BTreeMap<&RepoPath, &String> = BTreeMap::new();
    for section in sections {
        if let (Some(source), Some((old, _))) = (section.source(), &section.ids) {
            named.insert(source, old);
        }
    }
    let ids: BTreeSet<String> = named.values().filter(|id| is_id(id)).map(|id| (*id).clone()).collect();
    let blobs = resolve_blobs(scratch, &ids)?;
    let committed = match base_commit.filter(|id| is_id(id)) {
        // None if the repository does not have it.
        Some(commit) => unless_failed(scratch.tree_files(&format!("{commit}^{{tree}}")))?.unwrap_or_default(),
        None => TreeFiles::new(),
    };
    let of_section = |section: &&FileDiff<'_>| {
        let Some(source) = section.source() else { return Vec::new() };
        let (mine, committed) = (ours.get(source), committed.get(source));
        let header_mode = section.old_mode.as_ref();
        let mode = header_mode.or(committed.map(|(mode, _)| mode)).or(mine.map(|(mode, _)| mode));
        let mode = mode.cloned().unwrap_or_else(|| "100644".to_owned());
        let named = named.get(source).and_then(|id| blobs.get(*id)).cloned();
        let known = named.into_iter().chain(committed.map(|(_, id)| id.clone())).map(|id| (id, true));
        let mut found: Vec<Candidate> = Vec::new();
        for (id, is_known) in known.chain(mine.map(|(_, id)| (id.clone(), false))) {
            if found.iter().all(|other| other.version.1 != id) {
                found.push(Candidate { version: (mode.clone(), id), is_known });
            }
        }
        found
    };
    Ok(sections.iter().map(of_section).collect())
}

/// The full ids of the blobs that exist, by abbreviation.
fn resolve_blobs(scratch: &Scratch, ids: &BTreeSet<String>) -> Result<BTreeMap<String, String>> {
    if ids.is_empty() {
        return Ok(BTreeMap::new());
    }
    let found = scratch.check_objects(&lines(ids.iter().map(|id| format!("{id}^{{blob}}"))))?;
    let pairs = ids.iter().zip(found.lines());
    Ok(pairs.filter_map(|(id, line)| Some((id.clone(), line.split_once(" blob ")?.0.to_owned()))).collect())
}

/// Whether it is text in which every line ends in CRLF.
fn has_only_crlf(content: &[u8]) -> bool {
    let mut previous = 0;
    let mut has_line = false;
    for &byte in content {
        if byte == 0 || (byte == b'\n' && previous != b'\r') {
            return false;
        }
        has_line |= byte == b'\n';
        previous = byte;
    }
    has_line
}

/// Whether it is text without CRLF.
pub(crate) fn is_lf_text(content: &[u8]) -> bool {
    !content.contains(&0) && !content.windows(2).any(|pair| pair == b"\r\n")
}

fn to_lf(content: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(content.len());
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\r\n") {
            Some(line) => lines.extend([line, b"\n"].concat()),
            None => lines.extend_from_slice(line),
        }
    }
    lines
}

pub(crate) fn to_crlf(content: &[u8]) -> Vec<u8> {
    let mut lines = Vec::with_capacity(content.len());
    for line in content.split_inclusive(|byte| *byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(line) if !line.ends_with(b"\r") => lines.extend([line, b"\r\n"].concat()),
            _ => lines.extend_from_slice(line),
        }
    }
    lines
}

/// Those of the paths that have CRLF in the work tree and LF in the repository, by git's rules: the attributes
/// `text` and `eol`, then `core.autocrlf` and `core.eol`. Attributes are only read, so no filter runs. Errors
/// mean LF, the content of the diff.
pub(crate) fn checked_out_with_crlf(scratch: &Scratch, paths: &[&RepoPath]) -> BTreeSet<RepoPath> {
    if paths.is_empty() {
        return BTreeSet::new();
    }
    let (git, repository) = (&scratch.git, &scratch.repository);
    let setting = |key: &str| {
        let value = scratch.config.get(key).unwrap_or_default();
        value.to_string_lossy().to_lowercase()
    };
    let (autocrlf, eol) = (setting("core.autocrlf"), setting("core.eol"));
    let input = join_records(paths.iter().copied());
    let call = repository.call(["check-attr", "-z", "--stdin", "text", "eol"]);
    let listed = git.run(&repository.top_level, Call { input: &input, ..call }).unwrap_or_default();
    // Path NUL attribute NUL value NUL.
    let fields: Vec<&[u8]> = listed.split(|byte| *byte == 0).collect();
    let mut attributes: BTreeMap<(&[u8], &[u8]), &[u8]> = BTreeMap::new();
    for field in fields.chunks_exact(3) {
        attributes.insert((field[0], field[1]), field[2]);
    }
    let attribute = |path: &RepoPath, name: &'static [u8]| {
        let value = attributes.get(&(path.as_slice(), name)).copied().unwrap_or(b"unspecified");
        String::from_utf8_lossy(value).into_owned()
    };
    let has_crlf =
        |path: &&&RepoPath| is_crlf(&attribute(path, b"text"), &attribute(path, b"eol"), &autocrlf, &eol);
    paths.iter().filter(has_crlf).map(|path| (*path).clone()).collect()
}

fn is_crlf(text: &str, eol_attribute: &str, autocrlf: &str, eol: &str) -> bool {
    match (text, eol_attribute, autocrlf) {
        ("unset", ..) | (_, "lf", _) => false,
        (_, "crlf", _) | (_, _, "true" | "yes" | "on" | "1") => true,
        (_, _, "input") | ("unspecified", ..) => false,
        _ => eol == "crlf",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_endings_are_converted_only_if_they_are_uniform() {
        assert!(has_only_crlf(b"a\r\nb\r\n") && has_only_crlf(b"a\r\nb"));
        for other in [b"".as_slice(), b"a", b"a\r\nb\n", b"a\n", b"\0\r\n"] {
            assert!(!has_only_crlf(other), "{other:?}");
        }
        for text in [b"a\r\n\r\nb\r\n".as_slice(), b"a\r\nb"] {
            assert_eq!(to_crlf(&to_lf(text)), text);
        }
        assert_eq!(to_lf(b"a\r\nb\r"), b"a\nb\r");
    }

    #[test]
    fn attributes_come_before_settings() {
        for (text, eol_attribute, autocrlf, eol, expected) in [
            ("unspecified", "unspecified", "", "", false),
            ("unspecified", "unspecified", "true", "", true),
            ("unset", "unspecified", "true", "", false),
            ("set", "lf", "true", "", false),
            ("unspecified", "crlf", "", "", true),
            ("auto", "unspecified", "", "crlf", true),
            ("auto", "unspecified", "input", "crlf", false),
            ("unspecified", "unspecified", "", "crlf", false),
        ] {
            assert_eq!(
                is_crlf(text, eol_attribute, autocrlf, eol),
                expected,
                "{text} {eol_attribute} {autocrlf} {eol}"
            );
        }
    }
}
