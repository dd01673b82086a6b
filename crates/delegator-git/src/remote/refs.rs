//! Parses what `git ls-remote --symref` prints: `ref: TARGET<tab>NAME` and `ID<tab>NAME`.

use crate::error::GitError;

/// The refs of a repository that were queried.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct RemoteRefs {
    /// The branch that HEAD names, without `refs/heads/`.
    pub(super) default_branch: Option<String>,
    /// Full name and commit.
    pub(super) refs: Vec<(String, String)>,
}

impl RemoteRefs {
    pub(super) fn parse(output: &[u8]) -> Result<RemoteRefs, GitError> {
        let unreadable = || GitError::UnexpectedOutput { command: "ls-remote" };
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

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.refs.iter().find(|(known, _)| known == name).map(|(_, id)| id.as_str())
    }

    /// The hash function of the repository's object ids, as git names it.
    pub(super) fn object_format(&self) -> &'static str {
        match self.refs.first() {
            Some((_, id)) if id.len() == 64 => "sha256",
            _ => "sha1",
        }
    }
}

pub(crate) fn is_object_id(text: &str) -> bool {
    matches!(text.len(), 40 | 64) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
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
    fn other_output_is_an_error() {
        for text in ["hello", "123\tHEAD", "<html>\trefs/heads/x"] {
            assert!(RemoteRefs::parse(text.as_bytes()).is_err(), "{text}");
        }
    }
}
