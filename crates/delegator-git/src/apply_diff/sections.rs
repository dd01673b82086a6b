//! The parts of a diff that is applied, one per file.
//!
//! git itself parses the diff first and lists one path per file; boundaries and headers come from [`crate::unified_diff`].
//! Content is applied by git, not here.

use std::collections::BTreeMap;

use super::report::ApplyError;
use crate::listing::{GITLINK, RepoPath};
use crate::unified_diff::{Headers, split_parts};

/// What a diff does with one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Edit {
    Modify,
    Create,
    Delete,
    Rename { from: RepoPath },
    Copy { from: RepoPath },
}

/// The part of a diff that concerns one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Section {
    /// The path after the change; of a deleted file, the path before.
    pub(crate) path: RepoPath,
    pub(crate) edit: Edit,
    pub(crate) headers: Headers,
    /// A diff of this file alone.
    pub(crate) bytes: Vec<u8>,
}

impl Section {
    /// The path before the change.
    pub(crate) fn source(&self) -> Option<&RepoPath> {
        match &self.edit {
            Edit::Create => None,
            Edit::Modify | Edit::Delete => Some(&self.path),
            Edit::Rename { from } | Edit::Copy { from } => Some(from),
        }
    }

    /// The path that has new content after the change.
    pub(crate) fn target(&self) -> Option<&RepoPath> {
        (self.edit != Edit::Delete).then_some(&self.path)
    }

    /// The path that no longer has its old content after the change.
    pub(crate) fn consumed(&self) -> Option<&RepoPath> {
        self.source().filter(|_| !matches!(self.edit, Edit::Copy { .. }))
    }

    pub(crate) fn is_submodule(&self) -> bool {
        [&self.headers.old_mode, &self.headers.new_mode].into_iter().flatten().any(|mode| mode == GITLINK)
    }
}

/// Splits a diff. `paths` are the paths that git lists for it, one per file.
pub(crate) fn split(diff: &[u8], paths: Vec<RepoPath>) -> Result<Vec<Section>, ApplyError> {
    let parts = split_parts(diff);
    if parts.len() != paths.len() {
        let problem = format!("git finds {} files in it, and it has headers of {}", paths.len(), parts.len());
        return Err(ApplyError::MalformedDiff { problem });
    }
    let sections = parts.into_iter().zip(paths).map(|(part, path)| {
        let (headers, bytes) = (part.headers, &diff[part.range]);
        let edit = match &headers {
            Headers { renamed_from: Some(from), .. } => Edit::Rename { from: from.clone() },
            Headers { copied_from: Some(from), .. } => Edit::Copy { from: from.clone() },
            Headers { is_new: true, .. } => Edit::Create,
            Headers { is_deleted: true, .. } => Edit::Delete,
            _ => Edit::Modify,
        };
        Section { path, edit, headers, bytes: bytes.to_vec() }
    });
    Ok(join_replacements(sections.collect()))
}

/// git shows a file that becomes a symbolic link, or the reverse, as deleted and created. Here it is one change.
fn join_replacements(sections: Vec<Section>) -> Vec<Section> {
    let mut joined: Vec<Section> = Vec::new();
    let mut deleted: BTreeMap<RepoPath, usize> = BTreeMap::new();
    for section in sections {
        match (&section.edit, deleted.remove(&section.path)) {
            (Edit::Create, Some(at)) => {
                let before = &mut joined[at];
                before.edit = Edit::Modify;
                before.headers.new_mode = section.headers.new_mode;
                before.headers.lacks_content |= section.headers.lacks_content;
                if let (Some(ids), Some((_, new))) = (&mut before.headers.ids, section.headers.ids) {
                    ids.1 = new;
                }
                before.bytes.extend(section.bytes);
                continue;
            }
            (Edit::Delete, None) => drop(deleted.insert(section.path.clone(), joined.len())),
            _ => {}
        }
        joined.push(section);
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths(names: &[&str]) -> Vec<RepoPath> {
        names.iter().map(|name| name.as_bytes().to_vec()).collect()
    }

    #[test]
    fn content_that_looks_like_a_header_is_content() {
        let diff = b"Subject: x\n\ndiff --git a/a b/a\nindex 1234567..89abcde 100755\n--- a/a\n+++ b/a\n\
                     @@ -1,3 +1,3 @@\n one\n--- a/b\n+++ b/b\n two\n@@ -9 +9 @@ fn\n-x\n+y\n-- \n2.47\n\
                     diff --git a/old b/new\nsimilarity index 90%\nrename from \"o\\303\\244\\tld\"\nrename to new\n\
                     --- a/old\n+++ b/new\n@@ -1 +1 @@\n-a\n+b\n\
                     --- a/plain\n+++ b/plain\n@@ -0,0 +1 @@\n+x\n";
        let sections = split(diff, paths(&["a", "new", "plain"])).unwrap();
        assert_eq!(sections.len(), 3);
        assert_eq!(sections[0].headers.ids, Some(("1234567".to_owned(), "89abcde".to_owned())));
        assert_eq!(sections[0].headers.old_mode.as_deref(), Some("100755"));
        assert_eq!(sections[1].edit, Edit::Rename { from: "oä\tld".as_bytes().to_vec() });
        assert_eq!((&sections[2].edit, sections[2].bytes.len()), (&Edit::Modify, 41));
        assert!(matches!(split(diff, paths(&["a"])), Err(ApplyError::MalformedDiff { .. })));
    }

    #[test]
    fn a_replaced_file_is_one_change() {
        let diff = b"diff --git a/l b/l\ndeleted file mode 100644\nindex 12..00\n--- a/l\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n\
                     diff --git a/l b/l\nnew file mode 120000\nindex 00..34\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+a\n";
        let sections = split(diff, paths(&["l", "l"])).unwrap();
        assert_eq!(
            (sections.len(), &sections[0].edit, sections[0].bytes.as_slice()),
            (1, &Edit::Modify, &diff[..])
        );
        assert_eq!(sections[0].headers.new_mode.as_deref(), Some("120000"));
        assert_eq!(sections[0].headers.ids, Some(("12".to_owned(), "34".to_owned())));
    }
}
