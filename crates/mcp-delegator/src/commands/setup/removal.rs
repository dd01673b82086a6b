//! `setup --remove`: take this server out of a client's configuration.
//!
//! Only the entry goes that `setup` writes. An entry that connects by URL is the user's own and stays.

use crate::commands::prelude::*;
use crate::commands::setup::hosts::{Edit, Host, Registration};
use crate::commands::setup::{Registered, clients, edit_error, file_error, read_if_present, write_config};

pub(super) fn remove(context: &Context<'_>, host: Host, dry_run: bool) -> Result<Registered, AppError> {
    let file = clients::config_file(context.process, host)?;
    let before = read_if_present(&file)?.unwrap_or_default();
    let failed = |error| edit_error(error, host, &file);
    let entry = host.registered_entry(&before).map_err(failed)?;
    let edit = host.remove(&before).map_err(failed)?;
    let backup = match &edit {
        Edit::Changed(after) if !dry_run => {
            write_config(&file, Some(&before), after).map_err(|error| file_error(&file, &error))?
        }
        _ => None,
    };
    let is_changed = edit != Edit::Unchanged;
    let removed = entry.filter(|_| is_changed).map(|entry| Registration {
        command: entry.command.unwrap_or_default(),
        args: entry.args,
        replaces_args: false,
        approves_tools: entry.approves_tools,
    });
    Ok(Registered {
        host,
        file: file.display().to_string(),
        is_changed,
        backup: backup.map(|backup| backup.display().to_string()),
        entry: removed.map(|entry| host.sample(&entry)).unwrap_or_default(),
        has_tool_approval: None,
        next: if is_changed { vec![format!("Restart {}.", host.title())] } else { Vec::new() },
    })
}
