//! Reads a unified diff: which files it changes and how many lines. Pure.

use diffy::Line;
use diffy::patch_set::{FileOperation, FilePatch, ParseOptions, PatchKind, PatchSet};

/// What a diff does to one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileDiff {
    /// The path after the change; for a deleted file, the one before.
    pub path: String,
    pub kind: FileDiffKind,
    /// Binary contents have no lines.
    pub is_binary: bool,
    pub lines_added: u64,
    pub lines_removed: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileDiffKind {
    /// Contents or mode.
    Modified,
    /// A new file, also one that was copied from another.
    Added,
    Deleted,
    Renamed {
        from: String,
    },
}

/// The text is not a unified diff.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a unified diff: {problem}")]
pub struct NotADiff {
    pub problem: String,
}

/// The files of a unified diff, in its order. Paths are without the `a/` and `b/` that git puts before them.
pub fn parse_diff(text: &str) -> Result<Vec<FileDiff>, NotADiff> {
    let is_git_diff = text.lines().any(|line| line.starts_with("diff --git "));
    let options = if is_git_diff { ParseOptions::gitdiff() } else { ParseOptions::unidiff() };
    // As bytes: names may be quoted in another encoding than UTF-8.
    let patches = PatchSet::parse_bytes(text.as_bytes(), options);
    let mut files = Vec::new();
    for patch in patches {
        let patch = patch.map_err(|error| NotADiff { problem: error.to_string() })?;
        let file = file_diff(&patch);
        if !has_change(&patch) {
            return Err(NotADiff { problem: format!("it changes nothing in {:?}", file.path) });
        }
        files.push(file);
    }
    Ok(files)
}

/// The parser also accepts headers without contents, such as a text line that begins with `---`.
fn has_change(patch: &FilePatch<'_, [u8]>) -> bool {
    let PatchKind::Text(text) = patch.patch() else { return true };
    let has_file_lines = text.original().is_some() || text.modified().is_some();
    let is_modification = matches!(patch.operation(), FileOperation::Modify { .. });
    let has_new_mode = patch.old_mode().is_some() && patch.new_mode().is_some();
    !text.hunks().is_empty() || (!has_file_lines && (!is_modification || has_new_mode))
}

fn file_diff(patch: &FilePatch<'_, [u8]>) -> FileDiff {
    let (path, kind) = path_and_kind(patch.operation());
    let (mut lines_added, mut lines_removed) = (0, 0);
    if let PatchKind::Text(text) = patch.patch() {
        for line in text.hunks().iter().flat_map(|hunk| hunk.lines()) {
            match line {
                Line::Insert(_) => lines_added += 1,
                Line::Delete(_) => lines_removed += 1,
                Line::Context(_) => {}
            }
        }
    }
    FileDiff { path, kind, is_binary: patch.patch().is_binary(), lines_added, lines_removed }
}

fn path_and_kind(operation: &FileOperation<'_, [u8]>) -> (String, FileDiffKind) {
    match operation {
        FileOperation::Create(path) => (without_prefix(path, "b/"), FileDiffKind::Added),
        FileOperation::Delete(path) => (without_prefix(path, "a/"), FileDiffKind::Deleted),
        FileOperation::Modify { original, modified } => {
            let (from, path) = (without_prefix(original, "a/"), without_prefix(modified, "b/"));
            if from == path { (path, FileDiffKind::Modified) } else { (path, FileDiffKind::Renamed { from }) }
        }
        // These names have no prefix.
        FileOperation::Rename { from, to } => {
            (without_prefix(to, ""), FileDiffKind::Renamed { from: without_prefix(from, "") })
        }
        FileOperation::Copy { to, .. } => (without_prefix(to, ""), FileDiffKind::Added),
    }
}

fn without_prefix(path: &[u8], prefix: &str) -> String {
    String::from_utf8_lossy(path.strip_prefix(prefix.as_bytes()).unwrap_or(path)).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::select;

    proptest! {
        /// Pieces of diffs in any order are a diff or an error; nothing panics.
        #[test]
        fn any_text_is_parsed_or_refused(lines in vec(select(&PIECES[..]), 0..30), noise in ".{0,20}") {
            let text = format!("{}{noise}", lines.join("\n"));
            if let Ok(files) = parse_diff(&text) {
                prop_assert!(!files.is_empty());
                let changed = files.iter().map(|file| file.lines_added + file.lines_removed).sum::<u64>();
                prop_assert!(changed <= text.lines().count() as u64);
            }
        }
    }

    const PIECES: [&str; 22] = [
        "diff --git a/x b/x",
        "diff --git a/x y b/x y",
        "diff --git \"a/\\303\" \"b/\\303\"",
        "diff --git ü",
        "--- a/x",
        "+++ b/x",
        "--- /dev/null",
        "+++ /dev/null",
        "@@ -1 +1 @@",
        "@@ -0,0 +1,2 @@ fn",
        "@@ -9999999999999999999999 +1 @@",
        "-old",
        "+new",
        " same",
        "\\ No newline at end of file",
        "rename from x",
        "rename to \"y",
        "new file mode 100644",
        "deleted file mode 7",
        "Binary files a/x and b/x differ",
        "GIT binary patch",
        "literal 3",
    ];

    fn file(path: &str, kind: FileDiffKind, lines_added: u64, lines_removed: u64) -> FileDiff {
        FileDiff { path: path.to_owned(), kind, is_binary: false, lines_added, lines_removed }
    }

    fn binary(path: &str, kind: FileDiffKind) -> FileDiff {
        FileDiff { is_binary: true, ..file(path, kind, 0, 0) }
    }

    fn renamed(from: &str) -> FileDiffKind {
        FileDiffKind::Renamed { from: from.to_owned() }
    }

    /// Printed by git 2.47, for one change of each kind; with and without `--binary`.
    #[test]
    fn a_diff_of_git_is_read() {
        use FileDiffKind::{Added, Deleted, Modified};
        let expected = [
            file("dashes.sql", Modified, 1, 2),
            binary("data.bin", Modified),
            file("deleted.txt", Deleted, 0, 2),
            file("dir-moved.txt", renamed("moved.txt"), 1, 0),
            file("empty", Added, 0, 0),
            file("latin\u{fffd}.txt", Modified, 1, 1),
            file("link", Modified, 1, 1),
            binary("new.bin", Added),
            file("no-newline.txt", Modified, 1, 1),
            binary("old.bin", Deleted),
            file("renamed-new.txt", renamed("renamed-old.txt"), 0, 0),
            file("script.sh", Modified, 0, 0),
            file("sub/new.txt", Added, 2, 0),
            file("with space.txt", Modified, 1, 0),
            file("ünï\"q.txt", Modified, 1, 1),
        ];
        assert_eq!(parse_diff(include_str!("../recordings/git.diff")).unwrap(), expected);
        assert_eq!(parse_diff(include_str!("../recordings/git-binary.diff")).unwrap(), expected);
    }

    #[test]
    fn a_diff_of_another_program_is_read() {
        let text =
            "--- old.txt\t2026-11-16 00:00:00\n+++ old.txt\t2026-11-16 00:01:00\n@@ -1 +1,2 @@\n-a\n+b\n+c\n";
        assert_eq!(parse_diff(text).unwrap(), [file("old.txt", FileDiffKind::Modified, 2, 1)]);
    }

    #[test]
    fn what_is_not_a_diff_is_an_error() {
        let recorded = include_str!("../recordings/git.diff");
        let others = [
            "",
            "no diff\n",
            "<html>a gateway</html>",
            "*** Begin Patch\n*** Update File: a\n*** End Patch\n",
            "--- a\n",
            "--- a/x\n+++ b/x\n@@ -1 +1 @@\n-only half of it\n",
            "diff --git\n",
            "diff --git a/x b/y\n",
            &recorded[..recorded.find("-two").unwrap()],
        ];
        for text in others {
            assert!(parse_diff(text).is_err(), "{text}: {:?}", parse_diff(text));
        }
    }
}
