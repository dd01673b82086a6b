//! Patches in the format of Codex's `apply_patch`, which other agents offer their models, too.

use crate::event::{ChangeKind, FileChange};
use crate::json::Text;

pub(crate) fn patched_files(patch: &str) -> Vec<FileChange<'static>> {
    let headers = [
        ("*** Add File: ", ChangeKind::Add),
        ("*** Update File: ", ChangeKind::Update),
        ("*** Delete File: ", ChangeKind::Delete),
    ];
    patch
        .lines()
        .filter_map(|line| {
            let (path, kind) = headers.iter().find_map(|(h, kind)| Some((line.strip_prefix(h)?, *kind)))?;
            Some(FileChange { path: Text::owned(path.trim()), kind })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_names_its_files() {
        let patch =
            "*** Begin Patch\n*** Add File: a\n+x\n*** Update File: b\n*** Delete File: c\n*** End Patch";
        let kinds: Vec<_> =
            patched_files(patch).into_iter().map(|c| (c.path.resolve().into_owned(), c.kind)).collect();
        let expected = [("a", ChangeKind::Add), ("b", ChangeKind::Update), ("c", ChangeKind::Delete)];
        assert_eq!(kinds, expected.map(|(path, kind)| (path.to_owned(), kind)));
    }
}
