//! `--bundle`: one text file for a bug report.
//!
//! It contains the checks, the settings and facts about recent tasks, but no task text, path of a project or output of an
//! agent. Everything passes the redactor, which knows the secrets of the environment and of the configuration.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use delegator_registry::{Filter, Task};
use serde_json::{Value, json};

use super::check::Check;
use crate::commands::config_show::to_setting;
use crate::commands::context::Context;
use crate::commands::local::tasks::engine;
use crate::error::{AppError, ErrorCode, io_error};
use crate::output::values::UtcTime;
use crate::spec::version::{PRODUCT_VERSION, PROGRAM};

const MAX_TASKS: u32 = 20;

/// Writes the file, which must not exist, and returns its path.
pub fn write(context: &Context<'_>, path: &Path, checks: &[Check]) -> Result<PathBuf, AppError> {
    let path = context.process.current_dir.join(path);
    let text = context.screen.printer.redact(&text(context, checks));
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
    let changed = context.config.sourced().iter().filter(|setting| setting.origin.to_string() != "default");
    let settings: Vec<Value> = changed.map(|setting| json!(to_setting(setting))).collect();
    let tasks = engine(context).and_then(|engine| Ok(engine.newest(&Filter::default(), MAX_TASKS)?));
    let tasks = match tasks {
        Ok(tasks) => json!(tasks.iter().map(task_facts).collect::<Vec<Value>>()),
        Err(error) => json!(error.message),
    };
    let sections = [
        ("checks", json!(checks)),
        ("settings that differ from their default", json!(settings)),
        ("recent tasks, without their texts", tasks),
    ];
    let sections = sections.map(|(title, value)| {
        format!("\n== {title} ==\n\n{}\n", serde_json::to_string_pretty(&value).unwrap_or_default())
    });
    format!(
        "{PROGRAM} {PRODUCT_VERSION}: report for a bug report. Read it before you send it.\n{}",
        sections.concat()
    )
}

fn task_facts(task: &Task) -> Value {
    let ended = task.ended.as_ref();
    json!({
        "task_id": task.id.as_str(),
        "state": task.state.public_name(),
        "agent": task.agent,
        "mode": task.mode.name(),
        "model": task.model,
        "created": UtcTime::from_ms(task.created_at_ms),
        "started": task.started_at_ms.map(UtcTime::from_ms),
        "updated": UtcTime::from_ms(task.updated_at_ms),
        "starts": task.starts,
        "containment": task.containment,
        "has_survivors": ended.is_some_and(|ended| !ended.survivors.is_empty()),
    })
}
