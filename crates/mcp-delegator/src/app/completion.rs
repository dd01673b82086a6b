//! Shell completion: prints the candidates for the word at the cursor.
//!
//! The script that `completions` prints calls this program with a variable that names the shell, and with the
//! words of the command line after `--`. Errors print nothing, so that a broken configuration or registry
//! never disturbs typing.

use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::process::ExitCode;

use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter, complete,
};
use delegator_config::Sources;
use delegator_domain::redact::Redactor;
use delegator_engine::Engine;
use delegator_registry::Filter;

use crate::commands::completions::{Shell, VARIABLE};
use crate::commands::context::sources;
use crate::input::tree::{self, Completers};
use crate::output::printer::Printer;
use crate::spec::catalog::Catalog;
use crate::spec::process::Process;

/// Tasks that are offered, the newest first.
const MAX_TASKS: u32 = 50;

pub fn run_if_requested(process: &Process, catalog: Catalog) -> Option<ExitCode> {
    let shell = Shell::named(process.variable(VARIABLE)?)?;
    let words: Vec<OsString> =
        process.argv.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let index = process.variable("_CLAP_COMPLETE_INDEX").and_then(|index| index.parse().ok());
    let index: usize = index.unwrap_or(words.len().saturating_sub(1));
    let is_empty = words.get(index).is_none_or(|word| word.is_empty());
    let before = words.get(..index).unwrap_or_default();
    let mut tree = tree::completable(catalog, &completers(process, catalog, before), is_empty);
    let current_dir = Some(process.current_dir.as_path());
    let mut text = Vec::new();
    let written = match shell {
        Shell::Bash => {
            complete_for_bash(process, &mut tree, words, index, current_dir).map(|found| text = found)
        }
        _ => shell.adapter().write_complete(&mut tree, words, current_dir, &mut text),
    };
    let printer = Printer::new(Redactor::builder().build());
    let printed = written.and_then(|()| printer.print_final(&String::from_utf8_lossy(&text)));
    Some(if printed.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// bash splits words at `=`: `--mode=re` arrives as `--mode`, `=`, `re`. Without the `=` it is the other way
/// to write the same, and the candidates are what bash inserts after it.
fn complete_for_bash(
    process: &Process,
    tree: &mut clap::Command,
    words: Vec<OsString>,
    index: usize,
    current_dir: Option<&Path>,
) -> std::io::Result<Vec<u8>> {
    let removed = words.iter().take(index).filter(|word| *word == "=").count();
    let words: Vec<OsString> = words.into_iter().filter(|word| word != "=").collect();
    let separator = process.variable("_CLAP_IFS").unwrap_or("\n");
    let candidates = complete(tree, words, index - removed, current_dir)?;
    let values: Vec<String> =
        candidates.iter().map(|candidate| candidate.get_value().to_string_lossy().into_owned()).collect();
    Ok(values.join(separator).into_bytes())
}

/// `before` are the words before the cursor.
fn completers(process: &Process, catalog: Catalog, before: &[OsString]) -> Completers {
    let (sources, path) = (sources(process), described_command(before));
    let agents = ArgValueCompleter::new(move |typed: &OsStr| agent_names(&sources, typed));
    let commands = ArgValueCompleter::new(move |typed: &OsStr| command_names(catalog, &path, typed));
    let state_dir = delegator_config::state_dir(&self::sources(process)).ok();
    let engine = move || state_dir.clone().map(|state_dir| Engine::new(state_dir, "/proc/self/exe"));
    let engine_for_sources = engine.clone();
    let task_ids = ArgValueCompleter::new(move |typed: &OsStr| task_ids(engine(), typed));
    let sources = ArgValueCompleter::new(move |typed: &OsStr| {
        let files = PathCompleter::file().complete(typed);
        self::task_ids(engine_for_sources(), typed).into_iter().chain(files).collect::<Vec<_>>()
    });
    Completers { task_ids, sources, commands, agents }
}

/// The words of the command that `help` or `man` describes, as far as they are typed.
fn described_command(before: &[OsString]) -> Vec<String> {
    let words = before.iter().skip_while(|word| !["help", "man"].iter().any(|name| word == name)).skip(1);
    words.map(|word| word.to_string_lossy().into_owned()).filter(|word| !word.starts_with('-')).collect()
}

/// The commands of the group at this path, with what they do.
fn command_names(catalog: Catalog, path: &[String], typed: &OsStr) -> Vec<CompletionCandidate> {
    let root = tree::root(catalog);
    let group = path.iter().try_fold(&root, |group, word| group.find_subcommand(word));
    let commands = group.into_iter().flat_map(clap::Command::get_subcommands);
    let typed = typed.to_string_lossy();
    let matching =
        commands.filter(|command| !command.is_hide_set() && command.get_name().starts_with(&*typed));
    let candidate = |command: &clap::Command| {
        CompletionCandidate::new(command.get_name().to_owned()).help(command.get_about().cloned())
    };
    matching.map(candidate).collect()
}

fn agent_names(sources: &Sources, typed: &OsStr) -> Vec<CompletionCandidate> {
    let config = delegator_config::load(sources);
    let config = config.as_ref().unwrap_or_else(|invalid| &invalid.valid_part);
    let typed = typed.to_string_lossy();
    let names = config.agent_names().into_iter().filter(|name| name.starts_with(&*typed));
    names.map(|name| CompletionCandidate::new(name.to_owned())).collect()
}

/// The ids of the newest tasks, with their titles. A word without `T-local-` is compared with the rest of the
/// ids.
fn task_ids(engine: Option<Engine>, typed: &OsStr) -> Vec<CompletionCandidate> {
    let typed = typed.to_string_lossy().to_lowercase();
    let newest = engine
        .and_then(|engine| engine.results().newest(&Filter::default(), MAX_TASKS).ok())
        .unwrap_or_default();
    let is_match = |id: &str| {
        let id = id.to_lowercase();
        id.starts_with(&typed) || id.rsplit('-').next().is_some_and(|random| random.starts_with(&typed))
    };
    let matching = newest.into_iter().filter(|task| is_match(task.id.as_str()));
    matching.map(|task| CompletionCandidate::new(task.id.as_str()).help(Some(task.title.into()))).collect()
}
