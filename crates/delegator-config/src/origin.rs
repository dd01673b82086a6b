//! Where a value was set.

use std::fmt;
use std::path::PathBuf;

use delegator_domain::named_enum;

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

/// Line and column in a text, both counted from 1, the column in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: usize,
    pub column: usize,
}

impl Position {
    /// Line and column of a byte offset. An offset inside a character counts as that character.
    pub(crate) fn of(text: &str, at: usize) -> Position {
        let before = &text[..text.floor_char_boundary(at)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Position {
            line: before.bytes().filter(|byte| *byte == b'\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
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
