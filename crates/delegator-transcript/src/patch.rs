//! Patches in the format of Codex's `apply_patch`, which other agents offer their models, too.

use crate::event::{ChangeKind, FileChange};
use crate::file_diff;
use crate::json::Text;

pub(crate) fn patched_files(patch: &str) -> Vec<FileChange<'static>> {
    let headers = [
        ("*** Add File: ", ChangeKind::Add),
        ("*** Update File: ", ChangeKind::Update),
        ("*** Delete File: ", ChangeKind::Delete),
    ];
    let is_of_file = |line: &&str| !line.starts_with("*** ") || line.starts_with("*** Move to: ");
    let mut lines = patch.lines();
    let with_rest = std::iter::from_fn(move || lines.next().map(|line| (line, lines.clone())));
    with_rest
        .filter_map(|(line, rest)| {
            let (path, kind) = headers.iter().find_map(|(h, kind)| Some((line.strip_prefix(h)?, *kind)))?;
            let diff = rest.take_while(is_of_file).map(|line| ("", line));
            Some(FileChange { path: Text::owned(path.trim()), kind, diff: file_diff::bounded(diff) })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_has_its_files_with_their_lines() {
        let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Move to: d\n@@\n-y\n+z\n\
                     *** Delete File: c\n*** End Patch";
        let files = patched_files(patch);
        let files: Vec<_> =
            files.iter().map(|file| (file.path.resolve(), file.kind, file.diff.resolve())).collect();
        let expected = [
            ("a", ChangeKind::Add, "+x\n"),
            ("b", ChangeKind::Update, "*** Move to: d\n@@\n-y\n+z\n"),
            ("c", ChangeKind::Delete, ""),
        ];
        assert_eq!(files, expected.map(|(path, kind, diff)| (path.into(), kind, diff.into())));
    }
}
