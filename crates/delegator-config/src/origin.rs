//! Where a value was set.

use std::fmt;
use std::path::PathBuf;

use delegator_domain::named_enum;

use crate::problem::Position;

named_enum! {
    /// The five kinds of source, in ascending precedence.
    pub enum Source {
        Default = "default",
        UserConfig = "user_config",
        Project = "project",
        Environment = "environment",
        Flag = "flag",
    }
}

/// The exact position where a value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Default,
    /// The user's file or a project's, which `source` says.
    File {
        source: Source,
        path: PathBuf,
        position: Position,
    },
    Variable(String),
    Flag(String),
}

impl Origin {
    pub fn source(&self) -> Source {
        match self {
            Origin::Default => Source::Default,
            Origin::File { source, .. } => *source,
            Origin::Variable(_) => Source::Environment,
            Origin::Flag(_) => Source::Flag,
        }
    }
}

/// `path:line`, the variable, the flag, or `default`.
impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("default"),
            Origin::File { path, position, .. } => write!(f, "{}:{}", path.display(), position.line),
            Origin::Variable(name) | Origin::Flag(name) => f.write_str(name),
        }
    }
}
