//! What a registration changes in the files of a client: the entry, and the permission if it is in another file.

use crate::commands::prelude::*;
use crate::commands::setup::clients::{self, config_file, is_host_directory, settings_file};
use crate::commands::setup::file_edit::{FileEdit, edit_error, read_if_present};
use crate::commands::setup::hosts::{Edit, EntryError, Host, Registration, permissions};
use crate::commands::setup::{Permission, Registered, cloud_tools_hint, has_environments, next_steps};

#[derive(Debug)]
pub struct Plan {
    host: Host,
    entry: FileEdit,
    permission: Option<FileEdit>,
}

pub fn plan(context: &Context<'_>, host: Host, new: &Registration) -> Result<Plan, AppError> {
    let file = config_file(context.process, host)?;
    let before = read_config(host, &file)?;
    let entry = FileEdit::of(host, file, before, |text| host.edit(text, new))?;
    let permission =
        if new.approves_tools { permission_edit(context, host, permissions::allow)? } else { None };
    Ok(Plan { host, entry, permission })
}

/// The edit of the file with the client's permissions, if it has such a file.
pub fn permission_edit(
    context: &Context<'_>,
    host: Host,
    edit: fn(&str) -> Result<Edit, EntryError>,
) -> Result<Option<FileEdit>, AppError> {
    let Some(file) = settings_file(context.process, host)? else { return Ok(None) };
    let before = read_if_present(&file)?;
    let advice = "Nothing was changed. Correct the file, then run this command again.";
    FileEdit::of(host, file, before, edit).map(Some).map_err(|error| error.suggest(advice))
}

impl Plan {
    /// Writes the files that change. The answer describes the entry that the client's file then contains.
    pub fn write(self, context: &Context<'_>, dry_run: bool) -> Result<Registered, AppError> {
        let Plan { host, entry: file, permission } = self;
        let entry = host.registered_entry(file.after());
        let entry = entry.map_err(|error| edit_error(error, host, &file.file))?;
        let entry =
            entry.ok_or_else(|| AppError::new(ErrorCode::Internal, "The edited file has no entry."))?;
        // Without the entry, which follows, the permission has no effect.
        let permission = permission.map(|file| file.write(dry_run)).transpose()?.map(Permission::of);
        let edited = file.write(dry_run)?;
        let has_tool_approval = clients::find(context.process, host)?.has_tool_approval;
        let mut next = next_steps(host, edited.is_changed, has_tool_approval);
        next.extend(cloud_tools_hint(has_environments(context), &entry.args, host.name()));
        let entry = Registration::from(entry);
        Ok(Registered { host, edited, entry: host.sample(&entry), has_tool_approval, permission, next })
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
