//! `setup`: tell a host program about this server.
//!
//! The host's file is touched only where the host is: its file, or the directory the file belongs in, must be there.
//! What was there before is kept beside it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use delegator_config::replace_text;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::error::{AppError, ErrorCode, io_error};
use crate::hosts::{Edit, EntryError, Host, HostDirs};
use crate::outcome::CommandOutput;
use crate::run::Context;
use crate::spec::{CommandSpec, Example, OutputSchema, RawOutput, Shape, Toolset, run_typed};
use crate::views::document::{Block, Document, scalar};

/// What is put behind the name of a file to keep what was in it.
const BACKUP: &str = ".before-mcp-delegator";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostName {
    ClaudeCode,
    Codex,
    Cursor,
    Vscode,
    ClaudeDesktop,
}

impl HostName {
    fn host(self) -> Host {
        match self {
            HostName::ClaudeCode => Host::ClaudeCode,
            HostName::Codex => Host::Codex,
            HostName::Cursor => Host::Cursor,
            HostName::Vscode => Host::Vscode,
            HostName::ClaudeDesktop => Host::ClaudeDesktop,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Setup {
    /// The program that shall call us
    #[schemars(extend("x-positional" = true))]
    pub host: HostName,
    /// Print what belongs into the file, and nothing else, instead of writing it
    #[serde(default)]
    pub print: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct SetupOutput {
    pub host: HostName,
    /// The host's file
    pub file: String,
    /// The file was changed
    pub changed: bool,
    /// What was in it before
    pub backup: Option<String>,
    /// The entry alone, as it stands in a file with nothing else
    pub entry: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Puts one entry into the host's own configuration and leaves the rest of it as it is; what was there before is \
              kept beside it. A second time changes nothing.",
    shape: Shape::Action("host_configured"),
    idempotent: true,
    raw: RawOutput::With("print"),
    toolset: Toolset::Hidden,
    failures: &[ErrorCode::NotFound, ErrorCode::PermissionDenied],
    examples: &[
        Example { command: "mcp-delegator setup codex", shows: "the file that was changed" },
        Example { command: "mcp-delegator setup cursor --print", shows: "what to write, without writing it" },
    ],
    output: OutputSchema::Type(crate::spec::input_schema::schema_of::<SetupOutput>),
    describe,
    run: Some(|context, input| run_typed(context, input, run)),
    ..CommandSpec::declare::<Setup>(&["setup"], "Tell a host program about this server")
};

fn run(context: &Context<'_>, input: Setup) -> Result<CommandOutput, AppError> {
    let host = input.host.host();
    let program = context.process.program.as_deref().and_then(Path::to_str);
    let command = program.unwrap_or(crate::spec::PROGRAM);
    let file = file_of(context, host)?;
    let mut output = SetupOutput {
        host: input.host,
        file: file.display().to_string(),
        changed: false,
        backup: None,
        entry: host.sample(command),
    };
    let message = if input.print {
        format!("This belongs into {}", file.display())
    } else {
        let current = read_config(&file)?;
        match host
            .edit(current.as_deref().unwrap_or_default(), command)
            .map_err(|error| edit_error(error, &file))?
        {
            Edit::Unchanged => format!("{} has the entry already", file.display()),
            Edit::Changed(after) => {
                output.backup = write_config(&file, current.as_deref(), &after)
                    .map_err(|error| file_error(&file, &error))?
                    .map(|backup| backup.display().to_string());
                output.changed = true;
                format!("{} was changed; start the host anew", file.display())
            }
        }
    };
    let mut answer = CommandOutput::done(json!(output)).raw(output.entry);
    answer.message = Some(message);
    Ok(answer)
}

fn file_of(context: &Context<'_>, host: Host) -> Result<PathBuf, AppError> {
    let directory =
        |name: &str| context.process.variable(name).map(Path::new).filter(|path| path.is_absolute());
    let home = directory("HOME").ok_or_else(|| {
        AppError::new(ErrorCode::ConfigInvalid, "HOME is not set, so the host's file is unknown.")
    })?;
    let (config, codex, claude) =
        (directory("XDG_CONFIG_HOME"), directory("CODEX_HOME"), directory("CLAUDE_CONFIG_DIR"));
    Ok(host.config_file(HostDirs { home, config, codex, claude }))
}

/// The host's file, or nothing where there is only its directory.
fn read_config(file: &Path) -> Result<Option<String>, AppError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(file_error(file, &error)),
        // The home directory is everybody's: that it is there says nothing about a host.
        Err(_) if is_host_directory(file) => Ok(None),
        Err(_) => Err(AppError::new(ErrorCode::NotFound, format!("There is no {}.", file.display()))
            .context("path", file.display().to_string())
            .suggest("Is the host installed? Start it once, or give --print to see what to write.")),
    }
}

fn is_host_directory(file: &Path) -> bool {
    let is_hidden = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with('.');
    // A file that is hidden itself lies in a directory that is not the host's own.
    !file.file_name().is_some_and(is_hidden) && file.parent().is_some_and(Path::is_dir)
}

/// Writes, and says where the old text is kept.
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
            let message = format!("{} may not be read and written by you.", file.display());
            AppError::new(ErrorCode::PermissionDenied, message).context("path", file.display().to_string())
        }
        _ => io_error(&format!("Changing {}", file.display()), error),
    }
}

fn edit_error(error: EntryError, file: &Path) -> AppError {
    AppError::new(ErrorCode::ConfigInvalid, format!("{}: {error}.", file.display()))
        .context("path", file.display().to_string())
        .suggest("Nothing was changed. Give --print to see the entry, and put it in by hand.")
}

fn describe(data: &Value) -> Document {
    let facts = ["file", "changed", "backup"].map(|key| (key.to_owned(), scalar(&data[key])));
    Document::default().block(Block::Facts(facts.to_vec())).block(Block::Verbatim(scalar(&data["entry"])))
}
