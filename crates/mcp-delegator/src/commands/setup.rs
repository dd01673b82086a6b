//! `setup`: register this server with an MCP client, or list the clients.
//!
//! The client's file is edited only if the client is installed. The previous content is saved beside it, in a
//! file that no later call overwrites. What gives the client more rights (approval of tool calls) needs the
//! user's consent.

pub mod clients;
pub mod hosts;
pub mod program_path;
mod removal;

use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};

use delegator_config::{KEYS, Origin, ValueKind, environments, replace_text};

use crate::commands::prelude::*;
use crate::commands::setup::clients::{Client, config_file, is_host_directory};
use crate::commands::setup::hosts::{Edit, EntryError, Host, Registration};
use crate::commands::terminal_prompt;

const BACKUP: &str = ".before-mcp-delegator";
const REMOVED: &str = "host_removed";
const MAX_BACKUPS: u32 = 1000;

pub const APPROVAL_QUESTION: &str = "Codex asks you before it calls a tool that changes something, and `codex exec` refuses such calls. \
     Let Codex call the tools of this server without asking?";

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Setup {
    /// Program that uses this server (default: list the programs)
    #[schemars(extend("x-markers" = [Marker::Positional]))]
    pub host: Option<Host>,
    /// Print only the entry instead of writing it
    pub print: bool,
    /// Remove the entry of this server instead of adding it
    pub remove: bool,
    /// With --remove: show what would be removed; change nothing
    pub dry_run: bool,
    /// Toolsets to register: local, cloud, registry, worktree, extra, codex-compat (default: those that can be used)
    #[schemars(extend("default" = null))]
    pub toolsets: Vec<String>,
    /// Let Codex call the tools without asking; `codex exec` needs this
    pub approve_tools: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct SetupOutput {
    /// The registration, if the call names a client
    #[serde(flatten)]
    pub registered: Option<Registered>,
    /// All clients, if it names none
    #[serde(skip_serializing_if = "Option::is_none")]
    pub clients: Option<Vec<Client>>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Registered {
    pub host: Host,
    /// Configuration file of the client
    pub file: String,
    /// The file was changed
    pub is_changed: bool,
    /// Backup of the previous content
    pub backup: Option<String>,
    /// The entry, as a complete file
    pub entry: String,
    /// The client calls the tools without asking; only of clients that have such a setting
    pub has_tool_approval: Option<bool>,
    /// What to do next
    pub next: Vec<String>,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Adds one entry to the client's own configuration and changes nothing else; the previous file is saved beside it. \
              Running it again changes nothing.",
    shape: Shape::Action("host_configured"),
    other_shape: Some(Shape::List("clients")),
    other_actions: &[REMOVED],
    idempotent: true,
    raw: RawOutput::With("print"),
    toolset: Toolset::Hidden,
    config: ConfigUse::ValidPart,
    failures: &[ErrorCode::NotFound],
    examples: &[
        example("mcp-delegator setup", "the supported clients, and which are found here"),
        example("mcp-delegator setup codex", "the file that was changed"),
        example("mcp-delegator setup cursor --print", "the entry, without writing it"),
        example("mcp-delegator setup codex --remove --dry-run", "the entry that would be removed"),
    ],
    input: InputType::with_rules::<Setup>(),
    ..CommandSpec::new::<Setup, SetupOutput>(&["setup"], "Register this server with an MCP client")
};

impl InputRules for Setup {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.approve_tools && self.host != Some(Host::Codex) {
            let problem = Problem::invalid("approve_tools", "is a setting of Codex only");
            problems.push(problem.suggest(Some("Give the client codex, or leave it out.")));
        }
        if self.print && self.host.is_none() {
            problems.push(
                Problem::new(ErrorCode::MissingArgument, "host", "is missing, so there is no entry to print")
                    .suggest(Some("Name a client, as in: mcp-delegator setup codex --print")),
            );
        }
        if self.remove && self.host.is_none() {
            let problem = Problem::new(
                ErrorCode::MissingArgument,
                "host",
                "is missing, so there is no entry to remove",
            );
            problems.push(problem.suggest(Some("Name a client, as in: mcp-delegator setup codex --remove")));
        }
        if self.remove && (self.print || self.approve_tools || !self.toolsets.is_empty()) {
            let problem = "cannot be given together with inputs for a new entry";
            problems.push(Problem::invalid("remove", problem));
        }
        if self.dry_run && !self.remove {
            let problem = Problem::invalid("dry_run", "belongs to --remove");
            problems.push(problem.suggest(Some("To see the entry without writing it, give --print.")));
        }
        let names = toolset_names();
        let given = self.toolsets.iter().flat_map(|names| split_names(names));
        problems.extend(given.filter(|name| !names.contains(name)).map(|name| {
            let nearest = delegator_domain::similar_names::nearest(name, names.iter().copied());
            Problem::invalid("toolsets", format!("there is no toolset {name}"))
                .value(name.into())
                .suggest(nearest.map(|nearest| format!("Did you mean {nearest}?")))
                .permit(format!("Give some of {}.", names.join(", ")))
        }));
        problems
    }
}

fn toolset_names() -> &'static [&'static str] {
    match KEYS.iter().find(|key| key.name == "toolsets").map(|key| &key.kind) {
        Some(ValueKind::Choices(names)) => names,
        _ => &[],
    }
}

fn split_names(given: &str) -> impl Iterator<Item = &str> {
    given.split(',').map(str::trim).filter(|name| !name.is_empty())
}

pub fn run(context: &Context<'_>, input: Setup) -> Result<CommandOutput, AppError> {
    let Some(host) = input.host else { return list_clients(context) };
    if input.remove {
        return removed(context, host, input.dry_run);
    }
    let mut registration = registration(context, &input.toolsets, input.approve_tools);
    let registered = if input.print {
        sample(context, host, &registration)?
    } else {
        if !registration.approves_tools && may_ask_for_approval(context, host)? {
            registration.approves_tools = terminal_prompt::confirm(context, APPROVAL_QUESTION, false);
        }
        plan(context, host, &registration)?.write(context)?
    };
    let message = match (input.print, registered.is_changed) {
        (true, _) => format!("Add this entry to {}", registered.file),
        (false, true) => format!("{} was changed", registered.file),
        (false, false) => format!("{} already contains the entry", registered.file),
    };
    let entry = registered.entry.clone();
    let data = SetupOutput { registered: Some(registered), clients: None };
    let output = CommandOutput::done(data).raw(entry).message(message);
    Ok(output.warn(path_warning(context, &registration)))
}

fn removed(context: &Context<'_>, host: Host, dry_run: bool) -> Result<CommandOutput, AppError> {
    let removed = removal::remove(context, host, dry_run)?;
    let message = match (removed.is_changed, dry_run) {
        (false, _) => format!("{} has no entry of this server", removed.file),
        (true, true) => format!("The entry would be removed from {}", removed.file),
        (true, false) => format!("The entry was removed from {}", removed.file),
    };
    let output = CommandOutput::done(SetupOutput { registered: Some(removed), clients: None });
    let output = CommandOutput { shape: Some(Shape::Action(REMOVED)), dry_run, ..output };
    Ok(output.fact("dry_run", dry_run).message(message))
}

fn may_ask_for_approval(context: &Context<'_>, host: Host) -> Result<bool, AppError> {
    if host != Host::Codex || !terminal_prompt::can_answer(context) {
        return Ok(false);
    }
    let client = clients::find(context.process, host)?;
    Ok(client.is_editable() && client.has_tool_approval != Some(true))
}

fn list_clients(context: &Context<'_>) -> Result<CommandOutput, AppError> {
    let clients = clients::all(context.process)?;
    let output = CommandOutput::done(SetupOutput { registered: None, clients: Some(clients) });
    Ok(CommandOutput { shape: Some(Shape::List("clients")), ..output })
}

pub fn registration(context: &Context<'_>, toolsets: &[String], approves_tools: bool) -> Registration {
    let program = program_path::stable_path(context.process);
    let program = program.as_deref().and_then(Path::to_str).unwrap_or(crate::spec::version::PROGRAM);
    let given: Vec<&str> = toolsets.iter().flat_map(|item| split_names(item)).collect();
    let toolsets = match given.as_slice() {
        [] if has_all_toolsets(context) => None,
        [] => Some("local,registry".to_owned()),
        given => Some(given.join(",")),
    };
    let mut args = vec!["serve".to_owned()];
    args.extend(toolsets.into_iter().flat_map(|toolsets| ["--toolsets".to_owned(), toolsets]));
    let replaces_args = !given.is_empty();
    Registration { command: program.to_owned(), args, replaces_args, approves_tools }
}

/// Whether the server's own choice of toolsets is right: the user configured it, or all of its tools can be
/// used.
fn has_all_toolsets(context: &Context<'_>) -> bool {
    let is_configured =
        context.config.sourced().iter().any(|it| it.key.name == "toolsets" && it.origin != Origin::Default);
    is_configured || has_environments(context)
}

fn has_environments(context: &Context<'_>) -> bool {
    environments::read(&sources(context.process)).is_ok_and(|found| !found.all.is_empty())
}

/// How to get the cloud tools, if a server with these arguments does not have them but could.
fn cloud_tools_hint(has_environments: bool, args: &[String], client: &str) -> Option<String> {
    let chosen = chosen_toolsets(args)?;
    let environment =
        if has_environments { "" } else { "add an environment ('mcp-delegator help env add'), then " };
    (!split_names(chosen).any(|name| name == "cloud")).then(|| {
        format!(
            "The tools for cloud tasks are not registered. To add them, {environment}run 'setup {client}' with --toolsets \
             local,cloud,registry."
        )
    })
}

fn chosen_toolsets(args: &[String]) -> Option<&str> {
    const FLAG: &str = "--toolsets";
    let with_equals = || args.iter().find_map(|arg| arg.strip_prefix(FLAG)?.strip_prefix('='));
    let position = args.iter().position(|arg| arg == FLAG);
    position.and_then(|at| args.get(at + 1)).map(String::as_str).or_else(with_equals)
}

/// A warning if the path that clients get may stop to exist.
pub fn path_warning(context: &Context<'_>, registration: &Registration) -> Option<Warning> {
    let path = Path::new(&registration.command);
    program_path::risk(path, context.process)
        .map(|risk| Warning::new(WarningCode::RiskyPath, risk.message(path)))
}

fn sample(context: &Context<'_>, host: Host, new: &Registration) -> Result<Registered, AppError> {
    Ok(Registered {
        host,
        file: config_file(context.process, host)?.display().to_string(),
        is_changed: false,
        backup: None,
        entry: host.sample(new),
        has_tool_approval: (host == Host::Codex).then_some(new.approves_tools),
        next: Vec::new(),
    })
}

#[derive(Debug)]
pub struct Plan {
    host: Host,
    file: PathBuf,
    before: Option<String>,
    edit: Edit,
}

pub fn plan(context: &Context<'_>, host: Host, new: &Registration) -> Result<Plan, AppError> {
    let file = config_file(context.process, host)?;
    let before = read_config(host, &file)?;
    let edit = host.edit(before.as_deref().unwrap_or_default(), new);
    let edit = edit.map_err(|error| edit_error(error, host, &file))?;
    Ok(Plan { host, file, before, edit })
}

impl Plan {
    pub fn is_change(&self) -> bool {
        self.edit != Edit::Unchanged
    }

    /// Writes the file, if it changes. The answer describes the entry that the file then contains.
    pub fn write(self, context: &Context<'_>) -> Result<Registered, AppError> {
        let Plan { host, file, before, edit } = self;
        let (after, is_changed) = match &edit {
            Edit::Unchanged => (before.as_deref().unwrap_or_default(), false),
            Edit::Changed(after) => (after.as_str(), true),
        };
        let entry = host.registered_entry(after).map_err(|error| edit_error(error, host, &file))?;
        let entry =
            entry.ok_or_else(|| AppError::new(ErrorCode::Internal, "The edited file has no entry."))?;
        let backup = if is_changed {
            write_config(&file, before.as_deref(), after).map_err(|error| file_error(&file, &error))?
        } else {
            None
        };
        let has_tool_approval = (host == Host::Codex).then_some(entry.approves_tools);
        let mut next = next_steps(host, is_changed, has_tool_approval);
        next.extend(cloud_tools_hint(has_environments(context), &entry.args, host.name()));
        let entry = Registration {
            command: entry.command.unwrap_or_default(),
            args: entry.args,
            replaces_args: false,
            approves_tools: entry.approves_tools,
        };
        Ok(Registered {
            host,
            file: file.display().to_string(),
            is_changed,
            backup: backup.map(|backup| backup.display().to_string()),
            entry: host.sample(&entry),
            has_tool_approval,
            next,
        })
    }
}

fn next_steps(host: Host, is_changed: bool, has_tool_approval: Option<bool>) -> Vec<String> {
    let mut steps = Vec::new();
    if is_changed {
        steps.push(format!("Restart {}.", host.title()));
    }
    if has_tool_approval == Some(false) {
        steps.push(format!(
            "`codex exec` refuses tools that change something. To allow them, run 'mcp-delegator setup {} --approve-tools'.",
            host.name()
        ));
    }
    steps
}

fn read_if_present(file: &Path) -> Result<Option<String>, AppError> {
    match fs::read_to_string(file) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(file_error(file, &error)),
    }
}

/// Content of the client's file; `None` if only its directory exists.
fn read_config(host: Host, file: &Path) -> Result<Option<String>, AppError> {
    match read_if_present(file)? {
        Some(text) => Ok(Some(text)),
        None if is_host_directory(file) => Ok(None),
        None => {
            let message =
                format!("{} is not found: the file {} does not exist.", host.title(), file.display());
            let print = NextCall::new(&["setup"]).with("host", host.name()).with("print", true);
            let text =
                "Check that it is installed and start it once. Or print the entry and add it by hand: {call}";
            Err(AppError::new(ErrorCode::NotFound, message)
                .context("path", file.display().to_string())
                .suggest_call(text, print))
        }
    }
}

fn write_config(file: &Path, before: Option<&str>, after: &str) -> io::Result<Option<PathBuf>> {
    let Some(before) = before else {
        replace_text(file, after, 0o600)?;
        return Ok(None);
    };
    let mode = file.metadata()?.permissions().mode() & 0o777;
    let backup = write_backup(file, before, mode)?;
    replace_text(file, after, mode)?;
    Ok(Some(backup))
}

/// Saves the text beside the file, under a name that does not exist yet.
fn write_backup(file: &Path, text: &str, mode: u32) -> io::Result<PathBuf> {
    for number in 1..=MAX_BACKUPS {
        let mut backup = file.as_os_str().to_owned();
        backup.push(BACKUP);
        if number > 1 {
            backup.push(format!(".{number}"));
        }
        match fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(&backup) {
            Ok(mut created) => {
                created.write_all(text.as_bytes())?;
                created.sync_all()?;
                return Ok(backup.into());
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("there are {MAX_BACKUPS} backups already; remove the oldest")))
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

fn edit_error(error: EntryError, host: Host, file: &Path) -> AppError {
    let advice = match &error {
        EntryError::WithoutCommand { .. } => {
            "Nothing was changed. Remove the entry first if the client should start the server itself.".into()
        }
        EntryError::Unreadable { .. } | EntryError::CannotEdit { .. } => {
            let print = NextCall::new(&["setup"]).with("host", host.name()).with("print", true);
            Suggestion::with_call("Nothing was changed. Print the entry and add it by hand: {call}", print)
        }
    };
    AppError::new(ErrorCode::ConfigInvalid, format!("{}: {error}.", file.display()))
        .context("path", file.display().to_string())
        .suggest(advice)
}

impl CommandData for SetupOutput {
    fn document(&self) -> Document {
        if let Some(clients) = &self.clients {
            let row = |client: &Client| {
                vec![client.host.name().to_owned(), client.state.name().to_owned(), client.file.clone()]
            };
            return Document::titled("MCP clients")
                .block(Block::Table {
                    columns: vec!["client", "state", "file"],
                    rows: clients.iter().map(row).collect(),
                })
                .text("Register this server with one of them: mcp-delegator setup CLIENT");
        }
        let Some(registered) = &self.registered else { return Document::default() };
        let document = Document::default()
            .block(Block::facts([
                ("file", Some(registered.file.clone())),
                ("changed", Some(registered.is_changed.to_string())),
                ("backup", registered.backup.clone()),
            ]))
            .block(Block::Verbatim(registered.entry.clone()));
        let steps = registered.next.iter().cloned();
        steps.fold(document, |document, step| document.text(step))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cloud_tools_are_mentioned_only_if_they_are_missing_and_exist() {
        let hint = |has_environments: bool, args: &[&str]| {
            let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
            cloud_tools_hint(has_environments, &args, "cursor")
        };
        let local = ["serve", "--toolsets", "local,registry"];
        assert!(hint(false, &local).is_some_and(|hint| hint.contains("env add")));
        assert!(hint(true, &["serve", "--toolsets=local"]).is_some_and(|hint| !hint.contains("env add")));
        for complete in [&["serve"][..], &["serve", "--toolsets", "local,cloud"]] {
            assert_eq!(hint(false, complete), None, "{complete:?}");
        }
    }
}
