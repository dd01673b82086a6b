//! Paths in configuration values: absolute, or starting with `~/`.
//!
//! Relative paths are not allowed, because their meaning would depend on the directory the program is started
//! in.

use std::path::{Path, PathBuf};

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PathError {
    #[error("expected an absolute path (`~/` is the home directory)")]
    Relative,
    #[error("`~` cannot be replaced: HOME is not set to an absolute path")]
    NoHome,
    #[error("`~` cannot be replaced: HOME is not UTF-8 text")]
    HomeNotUtf8,
}

/// The path with a leading `~` replaced; an error if it is not absolute then.
pub(crate) fn absolute(path: &Path, home: Option<&Path>) -> Result<PathBuf, PathError> {
    match path.strip_prefix("~") {
        Ok(rest) if rest.as_os_str().is_empty() => Ok(home.ok_or(PathError::NoHome)?.to_owned()),
        Ok(rest) => Ok(home.ok_or(PathError::NoHome)?.join(rest)),
        Err(_) if path.is_absolute() => Ok(path.to_owned()),
        Err(_) => Err(PathError::Relative),
    }
}

/// The same for a path in a configuration value, which is text.
pub(crate) fn absolute_text(path: &str, home: Option<&Path>) -> Result<String, PathError> {
    if path.contains('\0') {
        return Err(PathError::Relative);
    }
    let absolute = absolute(Path::new(path), home)?;
    absolute.into_os_string().into_string().map_err(|_| PathError::HomeNotUtf8)
}
