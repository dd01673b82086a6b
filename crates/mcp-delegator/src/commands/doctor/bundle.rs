//! `--bundle`: one text file for a bug report.
//!
//! It contains the checks, the settings and facts about recent tasks, but no task text and no output of an
//! agent. The paths of the project and of the home directory are replaced. Everything passes the redactor,
//! which knows the secrets of the environment and of the configuration.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;

use delegator_config::Origin;
use delegator_registry::Filter;

use super::check::Check;
use crate::commands::config::show::to_setting;
use crate::commands::prelude::*;
use crate::output::data::stored_task::{failure_counts, report_of_task};
use crate::output::documents::document::pretty;
use crate::spec::version::{PRODUCT_VERSION, PROGRAM};

/// Tasks whose facts are listed, and tasks whose failures are counted.
const MAX_TASKS: usize = 20;
const MAX_COUNTED: u32 = 1_000;

/// Writes the file, which must not exist, and returns its path.
pub fn write(context: &Context<'_>, path: &Path, checks: &[Check]) -> Result<PathBuf, AppError> {
    let path = context.process.current_dir.join(path);
    let text = context.screen.printer.redact(&without_paths(context, text(context, checks)));
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.map_err(|error| write_error(&path, &error))?;
    Ok(path)
}

fn write_error(path: &Path, error: &io::Error) -> AppError {
    let message = |why: &str| format!("{} {why}", path.display());
    match error.kind() {
        io::ErrorKind::AlreadyExists => {
            AppError::new(ErrorCode::AlreadyExists, message("exists already; it was not overwritten."))
                .suggest("Name another file.")
        }
        io::ErrorKind::PermissionDenied => {
            AppError::new(ErrorCode::PermissionDenied, message("cannot be written."))
        }
        _ => io_error(&format!("Writing {}", path.display()), error),
    }
}

fn text(context: &Context<'_>, checks: &[Check]) -> String {
    let changed = context.config.sourced().iter().filter(|setting| setting.origin != Origin::Default);
    let settings: Vec<Value> = changed.map(|setting| json!(to_setting(setting))).collect();
    let tasks =
        engine(context).and_then(|engine| Ok(engine.results().newest(&Filter::default(), MAX_COUNTED)?));
    let (tasks, failures) = match tasks {
        Ok(tasks) => {
            let reports: Value = tasks.iter().take(MAX_TASKS).map(report_of_task).collect();
            (reports, json!({"tasks": tasks.len(), "failed": failure_counts(&tasks)}))
        }
        Err(error) => (json!(error.message), Value::Null),
    };
    let sections = [
        ("checks", json!(checks)),
        ("settings that differ from their default", json!(settings)),
        ("failures by kind", failures),
        ("recent tasks, without their texts", tasks),
    ];
    let sections = sections.map(|(title, value)| format!("\n== {title} ==\n\n{}\n", pretty(&value)));
    format!(
        "{PROGRAM} {PRODUCT_VERSION}: report for a bug report. Read it before you send it.\n{}",
        sections.concat()
    )
}

fn without_paths(context: &Context<'_>, text: String) -> String {
    let home = context.process.variable("HOME").map(Path::new).filter(|home| home.parent().is_some());
    let project_file = context.config.project_file.as_deref();
    let directories = [Some(context.process.current_dir.as_path()), project_file.and_then(Path::parent)];
    // A project that contains the home directory would hide too much.
    let is_project =
        |path: &&Path| path.parent().is_some() && !home.is_some_and(|home| home.starts_with(path));
    let mut projects: Vec<&Path> = directories.into_iter().flatten().filter(is_project).collect();
    // The inner one first.
    projects.sort_by_key(|path| std::cmp::Reverse(path.components().count()));
    let text = projects.into_iter().fold(text, |text, path| replace_path(&text, path, "PROJECT"));
    match home {
        Some(home) => replace_path(&text, home, "~"),
        None => text,
    }
}

/// Replaces a path, also as the start of a longer one, in JSON text.
fn replace_path(text: &str, path: &Path, with: &str) -> String {
    let quoted = Value::from(path.display().to_string()).to_string();
    let wanted = quoted.trim_matches('"');
    let is_part_of_name = |letter: char| letter.is_alphanumeric() || "-_.".contains(letter);
    let (mut replaced, mut copied) = (String::with_capacity(text.len()), 0);
    for (at, found) in text.match_indices(wanted) {
        let end = at + found.len();
        let continues = text[end..].starts_with(is_part_of_name) || text[..at].ends_with(is_part_of_name);
        if !continues {
            replaced.push_str(&text[copied..at]);
            replaced.push_str(with);
            copied = end;
        }
    }
    replaced.push_str(&text[copied..]);
    replaced
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_names_of_a_path_are_replaced() {
        let replaced =
            replace_path("/home/me/x, /home/me: /home/meredith /old/home/me", Path::new("/home/me"), "~");
        assert_eq!(replaced, "~/x, ~: /home/meredith /old/home/me");
    }
}
