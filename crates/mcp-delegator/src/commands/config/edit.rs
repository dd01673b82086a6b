//! `config edit`: change the user's configuration file in their editor.
//!
//! The editor opens a private copy beside the file. The copy replaces the file only if it is valid; otherwise
//! the user can edit it again, or it is kept for later.

#![expect(
    clippy::disallowed_methods,
    reason = "the editor is the user's own program, run only on their terminal"
)]

use std::io::Write;
use std::process::Command;

use delegator_config::user_edit::{EditError, replace_user_text, user_file_path, user_file_text};

use crate::commands::prelude::*;
use crate::commands::terminal_prompt;
use crate::spec::NoInputs;

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct EditedFile {
    pub file: String,
    pub is_changed: bool,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Opens a copy in $VISUAL, $EDITOR or vi, and replaces the file only if the copy is valid. Needs a terminal.",
    shape: Shape::Action("configuration_edited"),
    toolset: Toolset::Hidden,
    config: ConfigUse::Reported,
    failures: &[ErrorCode::DependencyMissing, ErrorCode::ConfirmationRequired],
    ..CommandSpec::new::<NoInputs, EditedFile>(&["config", "edit"], "Edit your configuration file")
};

pub fn run(context: &Context<'_>, _: NoInputs) -> Result<CommandOutput, AppError> {
    if !terminal_prompt::can_answer(context) {
        let message = "config edit opens an editor, but there is no terminal.";
        let set = NextCall::new(&["config", "set"]);
        return Err(AppError::new(ErrorCode::ConfirmationRequired, message)
            .suggest_call("Change single settings with {call}.", set));
    }
    let sources = sources(context.process);
    let file = user_file_path(&sources)?;
    let before = user_file_text(&sources)?;
    let copy =
        write_copy(&file, &before).map_err(|error| io_error("Copying the configuration file", &error))?;
    loop {
        open_editor(context, &copy)?;
        let after =
            std::fs::read_to_string(&copy).map_err(|error| io_error("Reading the edited copy", &error))?;
        let is_changed = after != before;
        let result = if is_changed {
            replace_user_text(&sources, &before, after).and_then(|edit| edit.write())
        } else {
            Ok(())
        };
        let Err(error) = result else {
            // A copy that remains is of no use, and does no harm.
            let _ = std::fs::remove_file(&copy);
            let data = EditedFile { file: file.display().to_string(), is_changed };
            return Ok(CommandOutput::done(data));
        };
        let may_retry = matches!(error, EditError::Invalid(_));
        let error = AppError::from(error);
        if may_retry {
            context.screen.announce_always(&context.screen.presentation.error_text(&error));
            if terminal_prompt::confirm(context, "Edit it again?", true) {
                continue;
            }
        }
        return Err(with_copy(error, &copy));
    }
}

fn with_copy(error: AppError, copy: &Path) -> AppError {
    let note = format!("Your edit is in {}. The configuration file is unchanged.", copy.display());
    error.context("path", copy.display().to_string()).detail(note)
}

/// A private copy of the text that outlives this process.
fn write_copy(file: &Path, text: &str) -> std::io::Result<PathBuf> {
    let directory = file.parent().unwrap_or(Path::new("/"));
    std::fs::create_dir_all(directory)?;
    let mut copy = tempfile::Builder::new().prefix("config-edit-").suffix(".toml").tempfile_in(directory)?;
    copy.write_all(text.as_bytes())?;
    copy.into_temp_path().keep().map_err(|error| error.error)
}

fn open_editor(context: &Context<'_>, copy: &Path) -> Result<(), AppError> {
    let process = context.process;
    let editor = process.variable("VISUAL").or(process.variable("EDITOR")).unwrap_or("vi");
    // A shell, as for git: the variable may contain arguments.
    let status =
        Command::new("/bin/sh").arg("-c").arg(format!("{editor} \"$1\"")).arg("sh").arg(copy).status();
    match status {
        Ok(status) if status.success() => Ok(()),
        ended => {
            let problem = ended.map_or_else(|error| error.to_string(), |status| status.to_string());
            let message = format!("The editor '{editor}' failed: {problem}.");
            let error = AppError::new(ErrorCode::DependencyMissing, message);
            Err(with_copy(error.suggest("Set VISUAL or EDITOR to your editor."), copy))
        }
    }
}

impl CommandData for EditedFile {
    fn document(&self) -> Document {
        let state = if self.is_changed { "was changed" } else { "was not changed" };
        Document::default().text(format!("{} {state}", self.file))
    }
}
