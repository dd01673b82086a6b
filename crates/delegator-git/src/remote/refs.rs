//! Which refs a name can mean, and what `git ls-remote --symref` prints about them: `ref: TARGET<tab>NAME`
//! and `ID<tab>NAME`.

use crate::error::{GitError, Result};
use crate::records::is_object_id;

/// The shortest abbreviation of a commit id; git's own abbreviations are not shorter.
const MIN_ABBREVIATION: usize = 7;

/// The refs of a repository that were queried.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RemoteRefs {
    /// The branch that HEAD names, without `refs/heads/`.
    pub(super) default_branch: Option<String>,
    /// Full name and commit.
    pub(super) refs: Vec<(String, String)>,
}

/// What a task starts from, as the repository knows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct FoundRevision {
    /// The full name of a ref, or the id of a commit, which may be abbreviated.
    pub(super) name: String,
    /// The commit of the ref. Whether there is a commit of this id is not known yet.
    pub(super) commit: Option<String>,
    /// `None` for a tag or a commit.
    pub(super) branch: Option<String>,
}

/// The refs that a name can mean, in the order in which they are tried.
fn candidates(wanted: &str) -> Vec<String> {
    if wanted.starts_with("refs/heads/") || wanted.starts_with("refs/tags/") {
        return vec![wanted.to_owned()];
    }
    vec![format!("refs/heads/{wanted}"), format!("refs/tags/{wanted}")]
}

/// The name under which `ls-remote` has the commit of an annotated tag.
fn peeled(name: &str) -> String {
    format!("{name}^{{}}")
}

/// The patterns for `ls-remote` that find what a name can mean.
pub(super) fn patterns(wanted: &str) -> Vec<String> {
    candidates(wanted).into_iter().flat_map(|name| [peeled(&name), name]).collect()
}

impl RemoteRefs {
    pub(super) fn parse(output: &[u8]) -> Result<RemoteRefs> {
        let unreadable = || GitError::unexpected("ls-remote");
        let text = str::from_utf8(output).map_err(|_| unreadable())?;
        let mut found = RemoteRefs::default();
        for line in text.lines() {
            let (value, name) = line.split_once('\t').ok_or_else(unreadable)?;
            match value.strip_prefix("ref: ") {
                Some(target) if name == "HEAD" => {
                    found.default_branch = target.strip_prefix("refs/heads/").map(str::to_owned);
                }
                Some(_) => {}
                None if is_object_id(value) => found.refs.push((name.to_owned(), value.to_owned())),
                None => return Err(unreadable()),
            }
        }
        Ok(found)
    }

    /// The branch, tag or commit of a name, in this order.
    pub(super) fn find(&self, wanted: &str) -> Option<FoundRevision> {
        let found = candidates(wanted).into_iter().find_map(|name| {
            let commit = self.get(&peeled(&name)).or_else(|| self.get(&name))?.to_owned();
            let branch = name.strip_prefix("refs/heads/").map(str::to_owned);
            Some(FoundRevision { name, commit: Some(commit), branch })
        });
        let is_id = (MIN_ABBREVIATION..=64).contains(&wanted.len())
            && wanted.bytes().all(|byte| byte.is_ascii_hexdigit());
        found.or_else(|| is_id.then(|| FoundRevision { name: wanted.to_owned(), commit: None, branch: None }))
    }

    pub(super) fn default_revision(&self) -> Option<FoundRevision> {
        let branch = self.default_branch.clone()?;
        // The name of the branch was not queried, but HEAD has its commit.
        let commit = self.get("HEAD")?.to_owned();
        Some(FoundRevision {
            name: format!("refs/heads/{branch}"),
            commit: Some(commit),
            branch: Some(branch),
        })
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.refs.iter().find(|(known, _)| known == name).map(|(_, id)| id.as_str())
    }

    /// The hash function of the repository's object ids, as git names it.
    pub(super) fn object_format(&self) -> &'static str {
        self.refs.first().map_or("sha1", |(_, id)| object_format_of(id))
    }
}

/// The hash function of an object id, as git names it.
pub(super) fn object_format_of(id: &str) -> &'static str {
    if id.len() == 64 { "sha256" } else { "sha1" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn default_branch_and_commits_are_read() {
        let (a, b) = ("a".repeat(40), "b".repeat(40));
        let text =
            format!("ref: refs/heads/trunk\tHEAD\n{a}\tHEAD\n{b}\trefs/heads/x\n{b}\trefs/remotes/o/HEAD\n");
        let refs = RemoteRefs::parse(text.as_bytes()).unwrap();
        assert_eq!(refs.default_branch.as_deref(), Some("trunk"));
        assert_eq!((refs.get("HEAD"), refs.get("refs/heads/x"), refs.get("x")), (Some(&*a), Some(&*b), None));
        assert_eq!(refs.object_format(), "sha1");
        assert_eq!(RemoteRefs::parse(b"").unwrap(), RemoteRefs::default());
    }

    #[test]
    fn a_name_is_a_branch_a_tag_or_a_commit_in_this_order() {
        let (a, b, c) = ("a".repeat(40), "b".repeat(40), "c".repeat(40));
        let text = format!(
            "{a}\trefs/heads/both\n{b}\trefs/tags/both\n{b}\trefs/tags/v1\n{c}\trefs/tags/v1^{{}}\n{a}\trefs/heads/deadbeef\n"
        );
        let refs = RemoteRefs::parse(text.as_bytes()).unwrap();
        let find = |wanted: &str| refs.find(wanted).map(|found| (found.name, found.commit, found.branch));
        let name = |text: &str| text.to_owned();
        assert_eq!(find("both"), Some((name("refs/heads/both"), Some(a.clone()), Some(name("both")))));
        assert_eq!(find("refs/tags/both"), Some((name("refs/tags/both"), Some(b), None)));
        assert_eq!(find("v1"), Some((name("refs/tags/v1"), Some(c.clone()), None)), "the commit of the tag");
        assert_eq!(find("deadbeef").unwrap().1, Some(a));
        for id in ["c0ffee1", &c] {
            assert_eq!(find(id), Some((name(id), None, None)));
        }
        for unknown in ["c0ffee", "none", "", "--all", "HEAD", "refs/heads/c0ffee1"] {
            assert_eq!(find(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn other_output_is_an_error() {
        for text in ["hello", "123\tHEAD", "<html>\trefs/heads/x"] {
            assert!(RemoteRefs::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
