//! Command specs: one typed definition per command.
//!
//! A [`CommandSpec`] states a command's path, input type, failures, output and toolset. The clap tree, the
//! MCP tool, the manifest, help, completions, man pages and the documentation are generated from it, so the
//! command line and MCP cannot differ.

pub mod catalog;
pub mod command_exit_codes;
pub mod formats;
pub mod input_schema;
pub mod input_type;
pub mod output_schema;
pub mod paging;
pub mod process;
pub mod shell;
pub mod tool_schema;
pub mod version;

use std::path::Path;

use delegator_config::Config;
use delegator_domain::named_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{AppError, ErrorCode};
use formats::Format;
pub use input_schema::{InputSchema, Marker, Property, PropertyType};
pub use input_type::{Input, InputRules, InputType};
pub use output_schema::output_schema;
use process::Process;
use version::PROGRAM;

/// The input of a command that takes none.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct NoInputs {}

/// The spec of a call that names no command.
pub const ROOT: CommandSpec = CommandSpec {
    danger: Danger::Safe,
    failures: &[ErrorCode::CommandRenamed],
    toolset: Toolset::Hidden,
    config: ConfigUse::Unused,
    ..CommandSpec::new::<NoInputs, Map<String, Value>>(&[], "Delegate coding tasks to coding agents")
};

named_enum! {
    /// The five categories of the tool envelope.
    pub enum Category {
        ExecutionAck = "execution_ack",
        WaitResult = "wait_result",
        StatusSnapshot = "status_snapshot",
        ResultSet = "result_set",
        RegistryInfo = "registry_info",
    }
}

impl Category {
    pub fn schema_id(self) -> String {
        format!("codex/v3.6/{}/v1", self.name())
    }
}

/// The shape of `data` in the standard envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `data` contains the array under this key.
    List(&'static str),
    Show(&'static str),
    Action(&'static str),
}

named_enum! {
    pub enum Danger {
        /// Changes nothing.
        Safe = "safe",
        Mutating = "mutating",
        Destructive = "destructive",
    }
}

/// Where a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Surface {
    CommandLine,
    /// An MCP server. Its standard input carries the protocol or belongs to another program, and a model
    /// chose the paths.
    Server,
}

impl Surface {
    pub fn formats(self) -> &'static [Format] {
        match self {
            Surface::CommandLine => &Format::ALL,
            Surface::Server => &[Format::Markdown, Format::Json],
        }
    }
}

/// What an invalid configuration means for a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigUse {
    /// The command fails.
    Required,
    /// The command uses the valid part; each problem is a warning.
    ValidPart,
    /// The command uses the valid part, and its data contains the problems.
    Reported,
    /// The command does not use the configuration.
    Unused,
}

/// Which MCP toolset a command is served in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolset {
    Local,
    Cloud,
    Registry,
    /// What finishes a task in a worktree or with questions; served only if configured.
    Worktree,
    /// The other tools that are served only if configured.
    Extra,
    /// Never an MCP tool: servers, live views, shell integration.
    Hidden,
}

impl Toolset {
    pub fn name(self) -> Option<&'static str> {
        match self {
            Toolset::Local => Some("local"),
            Toolset::Cloud => Some("cloud"),
            Toolset::Registry => Some("registry"),
            Toolset::Worktree => Some("worktree"),
            Toolset::Extra => Some("extra"),
            Toolset::Hidden => None,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedTools {
    pub prefix: String,
    /// Without the prefix.
    pub names: Vec<String>,
}

impl ServedTools {
    pub fn prefixed_name(&self, name: &str) -> Option<String> {
        self.names.iter().any(|served| served == name).then(|| format!("{}{name}", self.prefix))
    }
}

// A command line, and what it shows. No doc comment, which would be a description in the schema.
#[derive(Debug, Clone, Copy, Serialize, JsonSchema)]
#[schemars(rename = "CommandExample")]
pub struct Example {
    pub command: &'static str,
    pub shows: &'static str,
}

pub const fn example(command: &'static str, shows: &'static str) -> Example {
    Example { command, shows }
}

/// Where a call comes from, and the directory that its relative paths start in.
#[derive(Debug, Clone, Copy)]
pub struct CallOrigin<'a> {
    pub surface: Surface,
    pub current_dir: &'a Path,
}

/// What preflight checks may read: configuration and directories of the call.
#[derive(Debug, Clone, Copy)]
pub struct PreflightContext<'a> {
    pub process: &'a Process,
    pub config: &'a Config,
    pub current_dir: &'a Path,
    pub state_dir: Option<&'a Path>,
}

impl<'a> PreflightContext<'a> {
    pub fn new(config: &'a Config, process: &'a Process, state_dir: Option<&'a Path>) -> Self {
        PreflightContext { process, config, current_dir: &process.current_dir, state_dir }
    }
}

/// When a command prints its own format instead of an envelope.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawOutput {
    Never,
    Always,
    /// If this input is true.
    With(&'static str),
    /// Stdout belongs to a protocol, whatever flags the call has: errors go to stderr.
    Protocol,
}

impl RawOutput {
    pub fn applies_to(self, input: &Map<String, Value>) -> bool {
        match self {
            RawOutput::Never => false,
            RawOutput::Always | RawOutput::Protocol => true,
            RawOutput::With(name) => input.get(name) == Some(&Value::Bool(true)),
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub struct CommandSpec {
    pub path: &'static [&'static str],
    pub about: &'static str,
    pub details: &'static str,
    pub category: Category,
    pub shape: Shape,
    /// The shape of the data of some calls, for example of a list instead of one item.
    pub other_shape: Option<Shape>,
    /// Other values of `action`, for calls that only plan, find nothing to do or do something else.
    pub other_actions: &'static [&'static str],
    pub danger: Danger,
    pub idempotent: bool,
    pub network: bool,
    /// The duration depends on the input, so a retry after a timeout may time out again.
    pub open_ended: bool,
    /// Runs until it is stopped: it handles signals itself and logs what it does.
    pub is_service: bool,
    pub raw: RawOutput,
    /// Prints items as they arrive; in a pipe, one line each.
    pub streams: bool,
    pub toolset: Toolset,
    pub config: ConfigUse,
    /// Failures besides those that any command can have, and those that follow from its category and inputs.
    pub failures: &'static [ErrorCode],
    pub examples: &'static [Example],
    /// Former or expected names of the command; they redirect to it.
    pub former_names: &'static [&'static str],
    pub input: InputType,
    /// Inputs of which a call has exactly one. The first is the usual one.
    pub exactly_one_of: &'static [&'static str],
    /// What a call needs whatever its inputs are; checked before them.
    pub precondition: fn(&PreflightContext<'_>) -> Result<(), AppError>,
    /// The schema of `data`.
    pub output: fn() -> schemars::Schema,
}

impl CommandSpec {
    /// The spec of a command with input `I` and data `O`, with cautious defaults; each command states where
    /// it differs.
    pub const fn new<I: Input, O: JsonSchema>(
        path: &'static [&'static str],
        about: &'static str,
    ) -> CommandSpec {
        CommandSpec {
            path,
            about,
            details: "",
            category: Category::RegistryInfo,
            shape: Shape::Show("result"),
            other_shape: None,
            other_actions: &[],
            danger: Danger::Mutating,
            idempotent: false,
            network: false,
            open_ended: false,
            is_service: false,
            raw: RawOutput::Never,
            streams: false,
            toolset: Toolset::Extra,
            config: ConfigUse::Required,
            failures: &[],
            examples: &[],
            former_names: &[],
            input: InputType::of::<I>(),
            exactly_one_of: &[],
            precondition: |_| Ok(()),
            output: output_schema::<O>,
        }
    }

    pub const fn read_only<I: Input, O: JsonSchema>(
        path: &'static [&'static str],
        about: &'static str,
    ) -> CommandSpec {
        CommandSpec { danger: Danger::Safe, idempotent: true, ..CommandSpec::new::<I, O>(path, about) }
    }

    pub fn is_safe(&self) -> bool {
        self.danger == Danger::Safe
    }

    /// `local.exec`: the name in the CLI envelope. A call without a command has the program's name.
    pub fn name(&self) -> String {
        match self.path {
            [] => PROGRAM.to_owned(),
            path => path.join("."),
        }
    }

    /// The path without `local`, if the command has one.
    pub fn short_path(&self) -> Option<&'static [&'static str]> {
        catalog::short_path(self.path)
    }

    /// `exec`: the path as typed on the command line, the short one if there is one.
    pub fn cli_path(&self) -> String {
        self.short_path().unwrap_or(self.path).join(" ")
    }

    /// `local_exec`: the name in the standard envelope and, after the prefix, in the tool envelope.
    pub fn snake_name(&self) -> String {
        self.path.join("_").replace('-', "_")
    }

    pub fn tool_name(&self, prefix: &str) -> String {
        match self.path {
            [] => PROGRAM.to_owned(),
            _ => format!("{prefix}{}", self.snake_name()),
        }
    }

    /// Whether some MCP server can offer the command as a tool: a program must be able to call it, without a
    /// terminal.
    pub fn is_tool(&self) -> bool {
        self.toolset != Toolset::Hidden && !self.streams
    }

    /// `Give either task_id or task_ids.`, if the command has such a rule.
    pub fn alternatives_rule(&self) -> Option<String> {
        (!self.exactly_one_of.is_empty())
            .then(|| format!("Give either {}.", self.exactly_one_of.join(" or ")))
    }

    /// The details in help, manifest and tool list: how the command behaves, and which inputs it needs.
    pub fn full_details(&self) -> String {
        let rule = self.alternatives_rule();
        let sentences = [Some(self.details), rule.as_deref()];
        sentences.into_iter().flatten().filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" ")
    }

    pub fn inputs(&self) -> InputSchema {
        InputSchema::of(self)
    }

    pub fn output_schema(&self) -> Value {
        (self.output)().to_value()
    }
}
