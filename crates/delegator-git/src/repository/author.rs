//! The author of commits that are made for the user.

use std::ffi::OsString;
use std::path::Path;

use super::locate::Repository;
use crate::error::Result;
use crate::records::records;
use crate::run::{Call, Git};

/// The name and address of author and committer, as git finds them in the configuration of the user and of a
/// repository. Values are read, nothing is run.
pub(crate) fn author(git: &Git, repository: Option<&Repository>) -> Result<Vec<(&'static str, OsString)>> {
    let git_dir = repository.map_or(Path::new("/dev/null"), |repository| &repository.git_dir);
    let args = ["config", "-z", "--get-regexp", r"^(user|author|committer)\.(name|email)$"];
    let variables = vec![("GIT_DIR", git_dir.into())];
    let call = Call { reads_user_config: true, variables, ..Call::new(args) };
    let output = git.run_optional(Path::new("/"), call)?.unwrap_or_default();
    let entries: Vec<String> =
        records(&output).map(|entry| String::from_utf8_lossy(entry).into_owned()).collect();
    // The last value wins.
    let setting = |key: String| {
        let values = entries.iter().rev().filter_map(|entry| entry.split_once('\n'));
        values.into_iter().find(|(found, _)| *found == key).map(|(_, value)| value.to_owned())
    };
    let value = |role: &str, part: &str, default: &str| {
        let found = setting(format!("{role}.{part}")).or_else(|| setting(format!("user.{part}")));
        OsString::from(found.filter(|value| !value.is_empty()).unwrap_or_else(|| default.to_owned()))
    };
    let (name, email) = ("mcp-delegator", "mcp-delegator@localhost");
    Ok(vec![
        ("GIT_AUTHOR_NAME", value("author", "name", name)),
        ("GIT_COMMITTER_NAME", value("committer", "name", name)),
        ("GIT_AUTHOR_EMAIL", value("author", "email", email)),
        ("GIT_COMMITTER_EMAIL", value("committer", "email", email)),
    ])
}
