//! A configuration key: its value type, its default, and who may set it.

use std::fmt;

use serde_json::{Map, Value};

use super::text_format::TextFormat;

/// Prefix of every environment variable of this program.
pub const VARIABLE_PREFIX: &str = "MCP_DELEGATOR_";

#[derive(Debug)]
pub struct Key {
    /// Dotted for a key in a section (`budget.task_tokens`); `agents.<name>.command` for a field of an agent.
    pub name: &'static str,
    pub kind: ValueKind,
    pub default: DefaultValue,
    pub project: ProjectRight,
    pub scope: Scope,
    /// The value must never be shown.
    pub secret: bool,
    /// One line of documentation.
    pub description: &'static str,
}

#[derive(Debug)]
pub enum ValueKind {
    Bool,
    /// A whole number within inclusive bounds.
    Integer {
        min: i64,
        max: i64,
        unit: &'static str,
    },
    /// One of a closed set. Where a project may lower the value, the set is in ascending order.
    Choice(&'static [&'static str]),
    Choices(&'static [&'static str]),
    Text(TextFormat),
    Texts(TextFormat),
    Path,
    Paths,
    /// The name of a program to look up on PATH, or its absolute path.
    Program,
    /// A program and its arguments, run without a shell.
    Command,
    Labels,
    /// The table of configured agents; the fields of an agent are entries of their own.
    Agents,
    /// The table of configured repositories by path; the fields of a repository are entries of their own.
    Repositories,
}

/// The value of a key that no source sets.
#[derive(Debug)]
pub enum DefaultValue {
    /// No value; the text documents what applies instead.
    Unset(&'static str),
    /// No default: the key must be set.
    Required,
    Bool(bool),
    Integer(i64),
    Text(&'static str),
    List(&'static [&'static str]),
    EmptyTable,
    /// The number of cores, at least 2.
    Cores,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProjectRight {
    None,
    Set,
    /// Set it to a value lower than the user's.
    Lower,
}

/// Which project file applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The file of the work tree in which a task runs, wherever it was submitted from.
    Task,
    /// The file of the directory in which a call is made.
    Call,
}

impl Key {
    /// The environment variable that sets this key; `None` for the fields of agents and repositories.
    pub fn variable(&self) -> Option<String> {
        self.is_setting().then(|| format!("{VARIABLE_PREFIX}{}", self.name.replace('.', "_").to_uppercase()))
    }

    /// The command-line flag that sets this key, where a command offers one.
    pub fn flag(&self) -> String {
        flag_name(self.name)
    }

    /// Position of a value in the order that defines "lower"; `None` for types without an order.
    pub(crate) fn rank(&self, value: &Value) -> Option<u64> {
        match (&self.kind, value) {
            (ValueKind::Choice(ascending), Value::String(text)) => {
                ascending.iter().position(|choice| choice == text).and_then(|at| u64::try_from(at).ok())
            }
            _ => value.as_u64(),
        }
    }

    /// Whether the key has one value for the whole program, unlike the fields of agents and repositories.
    pub(crate) fn is_setting(&self) -> bool {
        !self.name.contains('<')
    }
}

/// The flag for a key of this name, whether or not the key exists.
pub(crate) fn flag_name(name: &str) -> String {
    format!("--{}", name.replace(['.', '_'], "-"))
}

impl DefaultValue {
    /// The value on a machine with this many cores; null if there is none.
    pub(crate) fn value(&self, cores: usize) -> Value {
        match *self {
            DefaultValue::Unset(_) | DefaultValue::Required => Value::Null,
            DefaultValue::Bool(value) => value.into(),
            DefaultValue::Integer(number) => number.into(),
            DefaultValue::Text(text) => text.into(),
            DefaultValue::List(items) => items.into(),
            DefaultValue::EmptyTable => Value::Object(Map::new()),
            DefaultValue::Cores => cores.max(2).into(),
        }
    }
}

impl ValueKind {
    /// Whether the values are numbers or a closed set.
    pub(crate) fn is_closed(&self) -> bool {
        use ValueKind::{Bool, Choice, Choices, Integer};
        matches!(self, Bool | Integer { .. } | Choice(_) | Choices(_))
    }

    pub(crate) fn is_list(&self) -> bool {
        use ValueKind::{Choices, Command, Paths, Texts};
        matches!(self, Choices(_) | Texts(_) | Paths | Command)
    }
}

/// The expected value, as shown in messages and in the reference.
impl fmt::Display for ValueKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ValueKind::Bool => f.write_str("true or false"),
            ValueKind::Integer { min, max, unit: "" } => write!(f, "a whole number from {min} to {max}"),
            ValueKind::Integer { min, max, unit } => {
                write!(f, "a whole number of {unit} from {min} to {max}")
            }
            ValueKind::Choice(values) => write!(f, "one of {}", values.join(", ")),
            ValueKind::Choices(values) => write!(f, "a list of {}", values.join(", ")),
            ValueKind::Text(format) => write!(f, "{format}"),
            ValueKind::Texts(format) => write!(f, "a list, each item {format}"),
            ValueKind::Path => f.write_str("an absolute path (`~/` is the home directory)"),
            ValueKind::Paths => f.write_str("a list of absolute paths (`~/` is the home directory)"),
            ValueKind::Program => {
                f.write_str("a program name, or an absolute path (`~/` is the home directory)")
            }
            ValueKind::Command => f.write_str("a list: a program name or absolute path, then its arguments"),
            ValueKind::Labels => f.write_str("a table of texts"),
            ValueKind::Agents => f.write_str("a table of agents, one table each"),
            ValueKind::Repositories => {
                f.write_str("a table of repositories by absolute path, one table each")
            }
        }
    }
}
