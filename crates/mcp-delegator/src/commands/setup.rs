//! `setup`: register this server with an MCP host.
//!
//! The host's file is edited only if the host is installed: its configuration file, or the directory of that file, must
//! exist. The previous content is saved in a backup beside it.

pub mod hosts;

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use delegator_config::replace_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::commands::context::Context;
use crate::commands::setup::hosts::{Edit, EntryError, Host, HostDirs};
use crate::commands::{Command, prepare};
use crate::error::{AppError, ErrorCode, io_error};
use crate::output::documents::document::{Block, Document, scalar};
use crate::output::outcome::CommandOutput;
use crate::spec::{CommandSpec, Example, RawOutput, Shape, Toolset};

/// Suffix of the backup file.
const BACKUP: &str = ".before-mcp-delegator";

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Setup {
    /// Program that uses this server
    #[schemars(extend("x-positional" = true))]
    pub host: Host,
    /// Print only the entry instead of writing it
    #[serde(default)]
    pub print: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupOutput {
    pub host: Host,
    /// Configuration file of the host
    pub file: String,
    /// The file was changed
    pub is_changed: bool,
    /// Backup of the previous content
    pub backup: Option<String>,
    /// The entry, as a complete file
    pub entry: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Adds one entry to the host's own configuration and changes nothing else; the previous file is saved beside it. \
              Running it again changes nothing.",
    shape: Shape::Action("host_configured"),
    idempotent: true,
    raw: RawOutput::With("print"),
    toolset: Toolset::Hidden,
    failures: &[ErrorCode::NotFound, ErrorCode::PermissionDenied],
    examples: &[
        Example { command: "mcp-delegator setup codex", shows: "the file that was changed" },
        Example { command: "mcp-delegator setup cursor --print", shows: "the entry, without writing it" },
    ],
    ..CommandSpec::new::<Setup, SetupOutput>(&["setup"], "Register this server with an MCP client")
};

pub const COMMAND: Command =
    Command { describe, prepare: Some(|input| prepare(input, run)), ..Command::new(&SPEC) };

fn run(context: &Context<'_>, input: Setup) -> Result<CommandOutput, AppError> {
    let host = input.host;
    let program = context.process.program.as_deref().and_then(Path::to_str);
    let command = program.unwrap_or(crate::spec::version::PROGRAM);
    let file = file_of(context, host)?;
    let mut output = SetupOutput {
        host,
        file: file.display().to_string(),
        is_changed: false,
        backup: None,
        entry: host.sample(command),
    };
    let message = if input.print {
        format!("Add this entry to {}", file.display())
    } else {
        let current = read_config(&file)?;
        match host
            .edit(current.as_deref().unwrap_or_default(), command)
            .map_err(|error| edit_error(error, &file))?
        {
            Edit::Unchanged => format!("{} already contains the entry", file.display()),
            Edit::Changed(after) => {
                output.backup = write_config(&file, current.as_deref(), &after)
                    .map_err(|error| file_error(&file, &error))?
                    .map(|backup| backup.display().to_string());
                output.is_changed = true;
                format!("{} was changed; restart the host", file.display())
            }
        }
    };
    let mut command_output = CommandOutput::done(&output).raw(output.entry);
    command_output.message = Some(message);
    Ok(command_output)
}

fn file_of(context: &Context<'_>, host: Host) -> Result<PathBuf, AppError> {
    let directory =
        |name: &str| context.process.variable(name).map(Path::new).filter(|path| path.is_absolute());
    let home = directory("HOME").ok_or_else(|| {
        AppError::new(
            ErrorCode::ConfigInvalid,
            "The host's configuration file is unknown, because HOME is not set.",
        )
    })?;
    let (config, codex, claude) =
        (directory("XDG_CONFIG_HOME"), directory("CODEX_HOME"), directory("CLAUDE_CONFIG_DIR"));
    Ok(host.config_file(HostDirs { home, config, codex, claude }))
}

/// Content of the host's file; `None` if only its directory exists.
fn read_config(file: &Path) -> Result<Option<String>, AppError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error(file, &error)),
        // The home directory always exists, so it does not show that the host is installed.
        Err(_) if is_host_directory(file) => Ok(None),
        Err(_) => {
            Err(AppError::new(ErrorCode::NotFound, format!("The file {} does not exist.", file.display()))
                .context("path", file.display().to_string())
                .suggest(
                    "Check that the host is installed and start it once, or use --print to see the entry.",
                ))
        }
    }
}

fn is_host_directory(file: &Path) -> bool {
    let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    // A hidden file lies directly in the home directory, which is not the host's own.
    !file.file_name().is_some_and(is_hidden) && file.parent().is_some_and(Path::is_dir)
}

/// Writes the file and returns the path of the backup.
fn write_config(file: &Path, before: Option<&str>, after: &str) -> io::Result<Option<PathBuf>> {
    let Some(before) = before else {
        replace_text(file, after, 0o600)?;
        return Ok(None);
    };
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let mut backup = file.as_os_str().to_owned();
    backup.push(BACKUP);
    let backup = PathBuf::from(backup);
    replace_text(&backup, before, mode)?;
    replace_text(file, after, mode)?;
    Ok(Some(backup))
}

fn file_error(file: &Path, error: &io::Error) -> AppError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            let message = format!("You do not have permission to read and write {}.", file.display());
            AppError::new(ErrorCode::PermissionDenied, message).context("path", file.display().to_string())
        }
        _ => io_error(&format!("Changing {}", file.display()), error),
    }
}

fn edit_error(error: EntryError, file: &Path) -> AppError {
    AppError::new(ErrorCode::ConfigInvalid, format!("{}: {error}.", file.display()))
        .context("path", file.display().to_string())
        .suggest("Nothing was changed. Use --print to see the entry, and add it by hand.")
}

fn describe(data: &Value) -> Document {
    let facts = [("file", "file"), ("changed", "is_changed"), ("backup", "backup")]
        .map(|(name, key)| (name.to_owned(), scalar(&data[key])));
    Document::default().block(Block::Facts(facts.to_vec())).block(Block::Verbatim(scalar(&data["entry"])))
}
