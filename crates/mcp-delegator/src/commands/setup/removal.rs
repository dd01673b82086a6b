//! `setup --remove`: take this server out of a client's configuration.
//!
//! Only the entry and the permission go that `setup` writes. An entry that connects by URL is the user's own and
//! stays.

use crate::commands::prelude::*;
use crate::commands::setup::file_edit::{FileEdit, edit_error, read_if_present};
use crate::commands::setup::hosts::{Host, Registration, permissions};
use crate::commands::setup::plan::permission_edit;
use crate::commands::setup::{Permission, Registered, clients};

pub(super) fn remove(context: &Context<'_>, host: Host, dry_run: bool) -> Result<Registered, AppError> {
    let file = clients::config_file(context.process, host)?;
    let before = read_if_present(&file)?;
    let file = FileEdit::of(host, file, before, |text| host.remove(text))?;
    let entry = host.registered_entry(file.before());
    let entry = entry.map_err(|error| edit_error(error, host, &file.file))?;
    let permission = permission_edit(context, host, permissions::disallow)?;
    let edited = file.write(dry_run)?;
    let permission = permission.map(|file| file.write(dry_run)).transpose()?;
    let entry = entry.filter(|_| edited.is_changed).map(Registration::from);
    let next = edited.is_changed.then(|| format!("Restart {}.", host.title()));
    Ok(Registered {
        host,
        edited,
        entry: entry.map(|entry| host.sample(&entry)).unwrap_or_default(),
        has_tool_approval: None,
        permission: permission.filter(|edited| edited.is_changed).map(Permission::of),
        next: next.into_iter().collect(),
    })
}
