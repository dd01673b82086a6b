//! The settings of a repository that decide which files git finds and how it compares them.
//!
//! git reads them, because they may come from the user's configuration and from included files. None of them names a
//! command.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::GitError;
use crate::records::records;
use crate::run::{Call, Git};

/// Besides the settings, the keys that decide whether and how git can use the repository.
const KEYS: &str = "^(core\\.(filemode|symlinks|ignorecase|excludesfile|sharedrepository|trustctime|\
                    checkstat|autocrlf|eol|attributesfile|logallrefupdates|worktree|bare|repositoryformatversion)|extensions\\..*)$";

#[derive(Debug, Clone, Default)]
pub(crate) struct Settings {
    /// Keys and values; each key once.
    entries: Vec<(String, OsString)>,
}

/// The format of a repository with an ordinary work tree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RepositoryFormat {
    pub(crate) object_format: &'static str,
    /// Whether refs are files and not in a reftable.
    pub(crate) has_ref_files: bool,
}

#[derive(Debug)]
pub(crate) struct ReadSettings {
    pub(crate) settings: Settings,
    /// `None` if git must decide whether the repository has a work tree here.
    pub(crate) format: Option<RepositoryFormat>,
}

/// Reads the effective settings, including those of the user's own configuration.
pub(crate) fn read_settings(git: &Git, dir: &Path, git_dir: &Path) -> Result<ReadSettings, GitError> {
    let args = ["config", "-z", "--show-scope", "--type=path", "--get-regexp", KEYS];
    let call = Call { reads_user_config: true, ..Call::in_git_dir(git_dir, args) };
    let output = git.run_optional(dir, &call)?.unwrap_or_default();
    let mut entries = Vec::new();
    let mut records = records(&output);
    while let Some((scope, entry)) = records.next().zip(records.next()) {
        // Our own overrides on the command line are no settings of the repository.
        if scope != b"command" {
            entries.push(Entry::parse(scope, entry));
        }
    }
    let format = format_of(&entries);
    let settings = Settings::of(&entries);
    Ok(ReadSettings { settings, format })
}

struct Entry {
    is_of_repository: bool,
    key: String,
    value: OsString,
}

impl Entry {
    /// `key LF value`; a key without a value is true.
    fn parse(scope: &[u8], entry: &[u8]) -> Entry {
        let (key, value) = match entry.iter().position(|byte| *byte == b'\n') {
            Some(at) => (&entry[..at], &entry[at + 1..]),
            None => (entry, b"true".as_slice()),
        };
        Entry {
            is_of_repository: matches!(scope, b"local" | b"worktree"),
            key: String::from_utf8_lossy(key).to_lowercase(),
            value: OsStr::from_bytes(value).to_owned(),
        }
    }
}

/// The format of the repository, if its configuration has nothing that git treats specially.
fn format_of(entries: &[Entry]) -> Option<RepositoryFormat> {
    let mut format = RepositoryFormat { object_format: "sha1", has_ref_files: true };
    let (mut version, mut has_extension) = (None, false);
    for entry in entries.iter().filter(|entry| entry.is_of_repository) {
        let value = entry.value.to_str()?;
        match (entry.key.as_str(), value) {
            ("core.bare", "false") => {}
            ("core.bare" | "core.worktree", _) => return None,
            ("core.repositoryformatversion", _) => version = Some(value.to_owned()),
            ("extensions.objectformat", "sha1") => has_extension = true,
            ("extensions.objectformat", "sha256") => {
                (has_extension, format.object_format) = (true, "sha256");
            }
            ("extensions.refstorage", "files") => has_extension = true,
            ("extensions.refstorage", "reftable") => (has_extension, format.has_ref_files) = (true, false),
            ("extensions.worktreeconfig" | "extensions.partialclone" | "extensions.preciousobjects", _) => {
                has_extension = true;
            }
            (key, _) if key.starts_with("extensions.") => return None,
            _ => {}
        }
    }
    match version.as_deref() {
        Some("0") if !has_extension => Some(format),
        Some("1") => Some(format),
        _ => None,
    }
}

impl Settings {
    fn of(entries: &[Entry]) -> Settings {
        let mut found: Vec<(String, OsString)> = Vec::new();
        for entry in entries.iter().filter(|entry| !is_about_format(&entry.key)) {
            // The last value wins.
            found.retain(|(known, _)| *known != entry.key);
            found.push((entry.key.clone(), entry.value.clone()));
        }
        Settings { entries: found }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&OsStr> {
        self.entries.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_os_str())
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &(String, OsString)> {
        self.entries.iter()
    }
}

fn is_about_format(key: &str) -> bool {
    key.starts_with("extensions.")
        || matches!(key, "core.worktree" | "core.bare" | "core.repositoryformatversion")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(lines: &[(&str, &str)]) -> Option<RepositoryFormat> {
        let entry = |(scope, text): &(&str, &str)| Entry::parse(scope.as_bytes(), text.as_bytes());
        format_of(&lines.iter().map(entry).collect::<Vec<Entry>>())
    }

    #[test]
    fn only_ordinary_repositories_have_a_known_format() {
        let plain = Some(RepositoryFormat { object_format: "sha1", has_ref_files: true });
        let version = |number: &'static str| ("local", number);
        let (zero, one) =
            (version("core.repositoryformatversion\n0"), version("core.repositoryformatversion\n1"));
        assert_eq!(format(&[zero, ("local", "core.bare\nfalse")]), plain);
        assert_eq!(format(&[one, ("worktree", "extensions.worktreeconfig\ntrue")]), plain);
        assert_eq!(format(&[one, ("global", "core.worktree\n/elsewhere")]), plain, "git ignores it");
        let sha256 = format(&[one, ("local", "extensions.objectformat\nsha256")]).unwrap();
        assert_eq!((sha256.object_format, sha256.has_ref_files), ("sha256", true));
        assert!(!format(&[one, ("local", "extensions.refstorage\nreftable")]).unwrap().has_ref_files);
        for unusual in [
            &[][..],
            &[version("core.repositoryformatversion\n2")],
            &[("global", "core.repositoryformatversion\n0")],
            &[zero, ("local", "core.bare")],
            &[zero, ("local", "core.worktree\n..")],
            &[zero, ("local", "extensions.objectformat\nsha256")],
            &[one, ("local", "extensions.unknown\n1")],
            &[one, ("local", "extensions.objectformat\nsha512")],
        ] {
            assert_eq!(format(unusual), None, "{unusual:?}");
        }
    }
}
