//! The author of commits that are made for the user.

use std::ffi::OsString;
use std::path::Path;

use crate::error::GitError;
use crate::listing::single_line;
use crate::run::{Call, Git};

/// The user's name and address, if git knows them.
pub(crate) fn author(git: &Git) -> Result<Vec<(&'static str, OsString)>, GitError> {
    let setting = |key: &str, default: &str| -> Result<OsString, GitError> {
        let call = Call { reads_user_config: true, ..Call::new(["config", "--get", key]) };
        let call = Call { variables: vec![("GIT_DIR", "/dev/null".into())], ..call };
        let value = git.run_optional(Path::new("/"), &call)?;
        Ok(value.as_deref().map_or_else(|| default.to_owned(), single_line).into())
    };
    let name = setting("user.name", "mcp-delegator")?;
    let email = setting("user.email", "mcp-delegator@localhost")?;
    Ok(vec![
        ("GIT_AUTHOR_NAME", name.clone()),
        ("GIT_COMMITTER_NAME", name),
        ("GIT_AUTHOR_EMAIL", email.clone()),
        ("GIT_COMMITTER_EMAIL", email),
    ])
}
