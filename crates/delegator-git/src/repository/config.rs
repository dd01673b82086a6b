//! The settings of a repository that decide which files git finds and how it compares them, and the author of
//! commits that are made for the user.
//!
//! git reads them, because they may come from the user's configuration and from included files. None of them
//! names a command.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use crate::error::Result;
use crate::records::{display_path, records};
use crate::run::{Call, Git};

/// Also the keys that decide whether and how git can use the repository.
const KEYS: &str = "^(core\\.(filemode|symlinks|ignorecase|excludesfile|sharedrepository|trustctime|\
                    checkstat|autocrlf|eol|attributesfile|worktree|bare|repositoryformatversion)|extensions\\..*)$";
/// Settings that our own git directories do not take over: conversions, and the format of the repository.
const NOT_TAKEN_OVER: [&str; 6] = [
    "core.autocrlf",
    "core.eol",
    "core.attributesfile",
    "core.worktree",
    "core.bare",
    "core.repositoryformatversion",
];

#[derive(Debug, Clone, Default)]
pub(crate) struct GitConfig {
    /// In the order of git: the last value of a key wins.
    entries: Vec<ConfigEntry>,
}

#[derive(Debug, Clone)]
struct ConfigEntry {
    is_of_repository: bool,
    key: String,
    value: OsString,
}

impl GitConfig {
    /// Reads the settings, including those of the user's own configuration.
    pub(crate) fn read(git: &Git, dir: &Path, git_dir: &Path) -> Result<GitConfig> {
        let args = ["config", "-z", "--show-scope", "--type=path", "--get-regexp", KEYS];
        let call = Call { reads_user_config: true, ..Call::in_git_dir(git_dir, args) };
        let output = git.run_optional(dir, call)?.unwrap_or_default();
        let mut entries = Vec::new();
        let mut records = records(&output);
        while let Some((scope, entry)) = records.next().zip(records.next()) {
            // Our own overrides on the command line are no settings of the repository.
            if scope != b"command" {
                entries.push(ConfigEntry::parse(scope, entry));
            }
        }
        Ok(GitConfig { entries })
    }

    pub(crate) fn get(&self, key: &str) -> Option<&OsStr> {
        self.entries.iter().rev().find(|entry| entry.key == key).map(|entry| entry.value.as_os_str())
    }

    /// The settings as options of a git process that uses a git directory of ours.
    pub(crate) fn options(&self) -> Vec<OsString> {
        let is_taken_over = |entry: &&ConfigEntry| {
            !entry.key.starts_with("extensions.") && !NOT_TAKEN_OVER.contains(&entry.key.as_str())
        };
        let option = |entry: &ConfigEntry| {
            let mut setting = OsString::from(format!("{}=", entry.key));
            setting.push(&entry.value);
            ["-c".into(), setting]
        };
        self.entries.iter().filter(is_taken_over).flat_map(option).collect()
    }

    /// The hash function of object ids, as git names it; `None` if the configuration has something that git
    /// treats specially, so that git must decide whether there is a work tree.
    pub(crate) fn object_format(&self) -> Option<&'static str> {
        let (mut format, mut version, mut has_extension) = ("sha1", None, false);
        for entry in self.entries.iter().filter(|entry| entry.is_of_repository) {
            let value = entry.value.to_str()?;
            has_extension |= entry.key.starts_with("extensions.");
            match (entry.key.as_str(), value) {
                ("core.bare", "false") => {}
                ("core.bare" | "core.worktree", _) => return None,
                ("core.repositoryformatversion", _) => version = Some(value),
                ("extensions.objectformat", "sha1") => format = "sha1",
                ("extensions.objectformat", "sha256") => format = "sha256",
                ("extensions.refstorage", "files" | "reftable")
                | (
                    "extensions.worktreeconfig" | "extensions.partialclone" | "extensions.preciousobjects",
                    _,
                ) => {}
                (key, _) if key.starts_with("extensions.") => return None,
                _ => {}
            }
        }
        (version == Some("1") || (version == Some("0") && !has_extension)).then_some(format)
    }
}

impl ConfigEntry {
    /// `key LF value`; a key without a value is true.
    fn parse(scope: &[u8], entry: &[u8]) -> ConfigEntry {
        let (key, value) = match entry.iter().position(|byte| *byte == b'\n') {
            Some(at) => (&entry[..at], &entry[at + 1..]),
            None => (entry, b"true".as_slice()),
        };
        ConfigEntry {
            is_of_repository: matches!(scope, b"local" | b"worktree"),
            key: String::from_utf8_lossy(key).to_lowercase(),
            value: OsStr::from_bytes(value).to_owned(),
        }
    }
}

/// The name and address of author and committer, as git finds them in the configuration of the user and of a
/// repository. Values are read, nothing is run.
pub(crate) fn author(git: &Git, git_dir: Option<&Path>) -> Result<Vec<(&'static str, OsString)>> {
    let args = ["config", "-z", "--get-regexp", r"^(user|author|committer)\.(name|email)$"];
    let variables = vec![("GIT_DIR", git_dir.unwrap_or(Path::new("/dev/null")).into())];
    let call = Call { reads_user_config: true, variables, ..Call::new(args) };
    let output = git.run_optional(Path::new("/"), call)?.unwrap_or_default();
    let entries: Vec<String> = records(&output).map(display_path).collect();
    // The last value wins.
    let settings: BTreeMap<&str, &str> = entries.iter().filter_map(|entry| entry.split_once('\n')).collect();
    let value = |role: &str, part: &str, default: &str| {
        let setting = |section: &str| settings.get(format!("{section}.{part}").as_str()).copied();
        let found = setting(role).or_else(|| setting("user")).filter(|value| !value.is_empty());
        OsString::from(found.unwrap_or(default))
    };
    let (name, email) = ("mcp-delegator", "mcp-delegator@localhost");
    Ok(vec![
        ("GIT_AUTHOR_NAME", value("author", "name", name)),
        ("GIT_COMMITTER_NAME", value("committer", "name", name)),
        ("GIT_AUTHOR_EMAIL", value("author", "email", email)),
        ("GIT_COMMITTER_EMAIL", value("committer", "email", email)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(lines: &[(&str, &str)]) -> Option<&'static str> {
        let entry = |(scope, text): &(&str, &str)| ConfigEntry::parse(scope.as_bytes(), text.as_bytes());
        GitConfig { entries: lines.iter().map(entry).collect() }.object_format()
    }

    #[test]
    fn only_ordinary_repositories_have_a_known_format() {
        let plain = Some("sha1");
        let version = |number: &'static str| ("local", number);
        let (zero, one) =
            (version("core.repositoryformatversion\n0"), version("core.repositoryformatversion\n1"));
        assert_eq!(format(&[zero, ("local", "core.bare\nfalse")]), plain);
        assert_eq!(format(&[one, ("worktree", "extensions.worktreeconfig\ntrue")]), plain);
        assert_eq!(format(&[one, ("global", "core.worktree\n/elsewhere")]), plain, "git ignores it");
        assert_eq!(format(&[one, ("local", "extensions.objectformat\nsha256")]), Some("sha256"));
        assert_eq!(format(&[one, ("local", "extensions.refstorage\nreftable")]), plain);
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
