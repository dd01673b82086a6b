//! The command registry: one typed definition per command.
//!
//! A [`CommandSpec`] is all there is to know about a command: its path, its input type, what it may answer and who
//! may call it. The clap tree, the MCP tool, the manifest, help, completions, man pages and the documentation are
//! generated from it, so a command cannot exist in only one of them, or differ between two.
//!
//! A command whose `run` is `None` is *declared*: its name and inputs are settled and stand in the manifest as
//! `available: false`, but it is absent from help and tool lists, and answers UNSUPPORTED.

pub mod exit_codes;
pub mod input_schema;
pub mod mcp_tool;
pub mod waiting;

use std::path::Path;

use delegator_config::Config;
use delegator_domain::task::Mode;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::commands;
use crate::error::{AppError, ErrorCode, Problem};
use crate::outcome::CommandOutput;
use crate::run::Context;
use crate::views::document::Document;
pub use input_schema::{InputSchema, Property, PropertyType};
use waiting::BlockingCommand;

pub const PROGRAM: &str = "mcp-delegator";

/// What a call that names no command is attributed to.
pub const ROOT: CommandSpec = CommandSpec {
    danger: Danger::Safe,
    toolset: Toolset::Hidden,
    ..CommandSpec::declare::<commands::inputs::NoInputs>(&[], "Hand coding tasks to coding agents")
};

/// The five categories of the tool envelope (000).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Category {
    ExecutionAck,
    WaitResult,
    StatusSnapshot,
    ResultSet,
    RegistryInfo,
}

impl Category {
    pub const ALL: [Category; 5] = [
        Category::ExecutionAck,
        Category::WaitResult,
        Category::StatusSnapshot,
        Category::ResultSet,
        Category::RegistryInfo,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Category::ExecutionAck => "execution_ack",
            Category::WaitResult => "wait_result",
            Category::StatusSnapshot => "status_snapshot",
            Category::ResultSet => "result_set",
            Category::RegistryInfo => "registry_info",
        }
    }

    pub fn schema_id(self) -> String {
        format!("codex/v3.6/{}/v1", self.name())
    }
}

/// The shape of `data` in the standard envelope (004).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// `data` already holds the array under this plural.
    List(&'static str),
    Show(&'static str),
    Action(&'static str),
}

/// What a call can do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Danger {
    /// Changes nothing.
    Safe,
    Mutating,
    Destructive,
}

impl Danger {
    pub fn name(self) -> &'static str {
        match self {
            Danger::Safe => "safe",
            Danger::Mutating => "mutating",
            Danger::Destructive => "destructive",
        }
    }
}

/// Which MCP toolset a command is served in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Toolset {
    Local,
    Cloud,
    Registry,
    /// Beyond the fifteen; served only when asked for.
    Extra,
    /// Never a tool: protocol servers, live views, shell plumbing.
    Hidden,
}

impl Toolset {
    pub fn name(self) -> Option<&'static str> {
        match self {
            Toolset::Local => Some("local"),
            Toolset::Cloud => Some("cloud"),
            Toolset::Registry => Some("registry"),
            Toolset::Extra => Some("extra"),
            Toolset::Hidden => None,
        }
    }
}

/// The tools a caller can call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServedTools {
    pub prefix: String,
    /// Without the prefix.
    pub names: Vec<String>,
}

impl ServedTools {
    /// What a tool is called, if it is there.
    pub fn prefixed_name(&self, name: &str) -> Option<String> {
        self.names.iter().any(|served| served == name).then(|| format!("{}{name}", self.prefix))
    }
}

/// A name the command had, or that people expect it to have.
#[derive(Debug, Clone, Copy)]
pub struct FormerName {
    pub path: &'static [&'static str],
    pub code: ErrorCode,
}

#[derive(Debug, Clone, Copy)]
pub struct Example {
    pub command: &'static str,
    pub shows: &'static str,
}

/// Where a call would be made, as far as one may look before it is.
#[derive(Debug, Clone, Copy)]
pub struct PreflightContext<'a> {
    pub config: &'a Config,
    pub current_dir: &'a Path,
    pub state_dir: Option<&'a Path>,
}

/// How far agents may go under this configuration.
pub fn max_mode(config: &Config) -> Mode {
    config.text("max_mode").and_then(Mode::from_name).unwrap_or(Mode::ReadOnly)
}

/// When a command writes its own format, and an envelope only on request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RawOutput {
    Never,
    Always,
    /// Where this input is true.
    With(&'static str),
}

impl RawOutput {
    pub fn applies_to(self, input: &Map<String, Value>) -> bool {
        match self {
            RawOutput::Never => false,
            RawOutput::Always => true,
            RawOutput::With(name) => input.get(name) == Some(&Value::Bool(true)),
        }
    }
}

pub type Handler = fn(&Context<'_>, Value) -> Result<CommandOutput, AppError>;

/// Where the shape of `data` is written down.
#[derive(Debug, Clone, Copy)]
pub enum OutputSchema {
    /// The `data` of the command's 000 category.
    Category,
    Type(fn() -> schemars::Schema),
}

#[derive(Debug)]
pub struct CommandSpec {
    pub path: &'static [&'static str],
    pub about: &'static str,
    pub details: &'static str,
    pub category: Category,
    pub shape: Shape,
    pub danger: Danger,
    pub idempotent: bool,
    pub network: bool,
    /// Its run length depends on its input, so a timeout says nothing about the next try.
    pub open_ended: bool,
    pub raw: RawOutput,
    /// Its items come one by one; in a pipe, a line each.
    pub streams: bool,
    pub toolset: Toolset,
    pub requires_person: bool,
    /// Failures beyond those every command can have.
    pub failures: &'static [ErrorCode],
    pub examples: &'static [Example],
    pub former_names: &'static [FormerName],
    pub input: fn() -> schemars::Schema,
    /// The input as its own type has it: aliases resolved, defaults filled in.
    pub canonicalize: fn(Value) -> Result<Value, serde_json::Error>,
    /// Rules between inputs that a schema cannot say.
    pub check: fn(&Value) -> Vec<Problem>,
    /// What the surroundings have against the input. It looks, and changes nothing.
    pub preflight: fn(&Value, &PreflightContext<'_>) -> Vec<Problem>,
    pub output: OutputSchema,
    /// The data for a reader.
    pub describe: fn(&Value) -> Document,
    pub run: Option<Handler>,
    /// For a command that stays with tasks: `run` in two halves.
    pub blocking: Option<BlockingCommand>,
}

impl CommandSpec {
    /// A definition with the cautious defaults; each command states where it differs.
    pub const fn declare<I>(path: &'static [&'static str], about: &'static str) -> CommandSpec
    where
        I: schemars::JsonSchema + DeserializeOwned + Serialize,
    {
        CommandSpec {
            path,
            about,
            details: "",
            category: Category::RegistryInfo,
            shape: Shape::Show("result"),
            danger: Danger::Mutating,
            idempotent: false,
            network: false,
            open_ended: false,
            raw: RawOutput::Never,
            streams: false,
            toolset: Toolset::Extra,
            requires_person: false,
            failures: &[],
            examples: &[],
            former_names: &[],
            input: input_schema::schema_of::<I>,
            canonicalize: canonicalize::<I>,
            check: |_| Vec::new(),
            preflight: |_, _| Vec::new(),
            output: OutputSchema::Category,
            describe: Document::from_value,
            run: None,
            blocking: None,
        }
    }

    pub fn is_available(&self) -> bool {
        self.run.is_some()
    }

    pub fn is_safe(&self) -> bool {
        self.danger == Danger::Safe
    }

    /// `local.exec`: the name in 002. A call that named no command is told under the program's own name.
    pub fn name(&self) -> String {
        match self.path {
            [] => PROGRAM.to_owned(),
            path => path.join("."),
        }
    }

    /// `local exec`: the words to type.
    pub fn cli_path(&self) -> String {
        self.path.join(" ")
    }

    /// `local_exec`: the name in 004, and in 000 behind the prefix.
    pub fn snake_name(&self) -> String {
        self.path.join("_").replace('-', "_")
    }

    pub fn tool_name(&self, prefix: &str) -> String {
        match self.path {
            [] => PROGRAM.to_owned(),
            _ => format!("{prefix}{}", self.snake_name()),
        }
    }

    pub fn inputs(&self) -> InputSchema {
        InputSchema::of(self)
    }
}

fn canonicalize<I: DeserializeOwned + Serialize>(input: Value) -> Result<Value, serde_json::Error> {
    serde_json::from_value::<I>(input).and_then(|typed| serde_json::to_value(&typed))
}

/// Turns a handler over a typed input into one over the validated JSON.
pub fn run_typed<I: DeserializeOwned>(
    context: &Context<'_>,
    input: Value,
    run: impl FnOnce(&Context<'_>, I) -> Result<CommandOutput, AppError>,
) -> Result<CommandOutput, AppError> {
    run(context, serde_json::from_value(input).map_err(input_rejected)?)
}

/// What passed the schema and yet is not what the command takes is a mistake of ours.
pub fn input_rejected(error: serde_json::Error) -> AppError {
    AppError::new(ErrorCode::Internal, format!("Validated input was refused: {error}"))
}

/// Every command, in the order of the manifest.
pub fn all() -> &'static [&'static CommandSpec] {
    commands::ALL
}

pub fn find(path: &[&str]) -> Option<&'static CommandSpec> {
    all().iter().copied().find(|spec| spec.path == path)
}

/// The heading of a group of commands.
pub fn group_about(path: &[&str]) -> &'static str {
    match path {
        ["local"] => "Tasks on this machine",
        ["cloud"] => "Tasks in an environment: our own fleet or hosted Codex",
        ["queue"] => "Hold or release the queue",
        ["events"] => "Read what an agent said",
        ["fleet"] => "The workers around the database",
        ["env"] => "The environments of the cloud commands",
        ["config"] => "The configuration in force",
        _ => "",
    }
}
