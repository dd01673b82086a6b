//! `setup`: register this server with an MCP client, or list the clients.
//!
//! The client's file is edited only if the client is installed. The previous content is saved beside it, in a
//! file that no later call overwrites. What gives the client more rights (approval of tool calls) needs the
//! user's consent.

pub mod clients;
mod file_edit;
pub mod hosts;
pub mod plan;
pub mod program_path;
mod removal;

use delegator_config::{KEYS, Origin, ValueKind, environments};

use crate::commands::prelude::*;
use crate::commands::setup::clients::{Client, config_file, settings_file};
use crate::commands::setup::file_edit::EditedFile;
use crate::commands::setup::hosts::{Host, Registration, permissions};
use crate::commands::setup::plan::plan;
use crate::commands::terminal_prompt;

const REMOVED: &str = "host_removed";

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
    /// Let Codex or Claude Code call the tools without asking; `codex exec` and `claude -p` need this
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
    #[serde(flatten)]
    pub edited: EditedFile,
    /// The entry, as a complete file
    pub entry: String,
    /// The client calls the tools without asking; only of clients that have such a setting
    pub has_tool_approval: Option<bool>,
    /// The permission to do so, and its file, if the call concerns it and it is not part of the entry
    pub permission: Option<Permission>,
    /// What to do next
    pub next: Vec<String>,
}

#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Permission {
    #[serde(flatten)]
    pub edited: EditedFile,
    /// The permission, as a complete file
    pub entry: String,
}

impl Permission {
    fn of(edited: EditedFile) -> Permission {
        Permission { edited, entry: permissions::sample() }
    }
}

impl Registered {
    fn files(&self) -> impl Iterator<Item = &EditedFile> {
        [&self.edited].into_iter().chain(self.permission.as_ref().map(|permission| &permission.edited))
    }

    /// The names of the files that were changed, or would be; empty if there are none.
    fn changed_files(&self) -> String {
        file_names(self.files().filter(|edited| edited.is_changed))
    }
}

fn file_names<'a>(files: impl Iterator<Item = &'a EditedFile>) -> String {
    files.map(|edited| edited.file.as_str()).collect::<Vec<_>>().join(" and ")
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
        if self.approve_tools && self.host.is_none_or(|host| host.unattended_command().is_none()) {
            let problem = Problem::invalid("approve_tools", "is a setting of Codex and Claude Code only");
            problems.push(problem.suggest(Some("Give the client codex or claude-code, or leave it out.")));
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
            registration.approves_tools =
                terminal_prompt::confirm(context, &approval_question(&[host]), false);
        }
        plan(context, host, &registration)?.write(context, false)?
    };
    let message = match (input.print, registered.changed_files()) {
        (true, _) if registered.permission.is_some() => {
            format!("Add these entries to {}", file_names(registered.files()))
        }
        (true, _) => format!("Add this entry to {}", registered.edited.file),
        (false, files) if files.is_empty() => {
            format!("{} already contains the entry", registered.edited.file)
        }
        (false, files) => format!("Changed: {files}"),
    };
    let permission = registered.permission.as_ref().map(|permission| permission.entry.as_str());
    let entry = registered.entry.clone() + permission.unwrap_or_default();
    let data = SetupOutput { registered: Some(registered), clients: None };
    let output = CommandOutput::done(data).raw(entry).message(message);
    Ok(output.warn(path_warning(context, &registration)))
}

fn removed(context: &Context<'_>, host: Host, dry_run: bool) -> Result<CommandOutput, AppError> {
    let removed = removal::remove(context, host, dry_run)?;
    let message = match (removed.changed_files(), dry_run) {
        (files, _) if files.is_empty() => format!("{} has no entry of this server", removed.edited.file),
        (files, true) => format!("The entry would be removed from {files}"),
        (files, false) => format!("The entry was removed from {files}"),
    };
    let output = CommandOutput::done(SetupOutput { registered: Some(removed), clients: None });
    let output = CommandOutput { shape: Some(Shape::Action(REMOVED)), dry_run, ..output };
    Ok(output.fact("dry_run", dry_run).message(message))
}

fn may_ask_for_approval(context: &Context<'_>, host: Host) -> Result<bool, AppError> {
    Ok(terminal_prompt::can_answer(context) && clients::find(context.process, host)?.lacks_approval())
}

/// The question whether these clients may call the tools without asking; each has an unattended command.
pub fn approval_question(hosts: &[Host]) -> String {
    let asks = |host: &Host| {
        let (title, command) = (host.title(), host.unattended_command()?);
        Some(format!(
            "{title} asks you before it calls a tool that changes something, and `{command}` refuses such calls. "
        ))
    };
    let titles: Vec<&str> = hosts.iter().map(|host| host.title()).collect();
    let asks: String = hosts.iter().filter_map(asks).collect();
    format!("{asks}Let {} call the tools of this server without asking?", titles.join(" and "))
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
    let settings = settings_file(context.process, host)?.filter(|_| new.approves_tools);
    Ok(Registered {
        host,
        edited: EditedFile::unchanged(&config_file(context.process, host)?),
        entry: host.sample(new),
        has_tool_approval: host.unattended_command().map(|_| new.approves_tools),
        permission: settings.map(|file| Permission::of(EditedFile::unchanged(&file))),
        next: Vec::new(),
    })
}

fn next_steps(host: Host, is_changed: bool, has_tool_approval: Option<bool>) -> Vec<String> {
    let mut steps = Vec::new();
    if is_changed {
        steps.push(format!("Restart {}.", host.title()));
    }
    if let (Some(command), Some(false)) = (host.unattended_command(), has_tool_approval) {
        steps.push(format!(
            "`{command}` refuses tools that change something. To allow them, run 'mcp-delegator setup {} --approve-tools'.",
            host.name()
        ));
    }
    steps
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
        let described = |document: Document, edited: &EditedFile, entry: &str| {
            let facts = Block::facts([
                ("file", Some(edited.file.clone())),
                ("changed", Some(edited.is_changed.to_string())),
                ("backup", edited.backup.clone()),
            ]);
            document.block(facts).block(Block::Verbatim(entry.to_owned()))
        };
        let document = described(Document::default(), &registered.edited, &registered.entry);
        let document = document.with(registered.permission.as_ref(), |document, permission| {
            described(document, &permission.edited, &permission.entry)
        });
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
