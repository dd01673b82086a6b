//! Adds or updates one server table in TOML text without reformatting it.
//!
//! A new table is appended at the end. Of an existing table only the value of `command` is replaced, at the span that
//! `toml` reports. `toml_edit` would change CRLF line endings to LF.

use toml::de::DeTable;
use toml_writer::{ToTomlValue, TomlStringBuilder};

use crate::commands::setup::hosts::{Edit, EntryError};

const GROUP: &str = "mcp_servers";

/// The entry as a TOML table.
pub fn table(name: &str, command: &str) -> String {
    format!("[{GROUP}.{name}]\ncommand = {}\nargs = [\"serve\"]\n", quote(command))
}

pub fn upsert_entry(text: &str, name: &str, command: &str) -> Result<Edit, EntryError> {
    let document = parse(text)?;
    let present = document.get(GROUP).and_then(|group| group.get_ref().as_table()?.get(name));
    let Some(present) = present else {
        let gap = match text {
            "" => "",
            text if text.ends_with("\n\n") => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let whole = format!("{text}{gap}{}", table(name, command));
        // An inline table cannot be extended by a later table.
        return match parse(&whole) {
            Ok(_) => Ok(Edit::Changed(whole)),
            Err(_) => Err(cannot_edit(format!("{GROUP} is an inline table, so no entry can be appended"))),
        };
    };
    let Some(entry) = present.get_ref().as_table() else {
        return Err(cannot_edit(format!("{GROUP}.{name} is not a table")));
    };
    let Some(present_command) = entry.get("command") else {
        return Err(cannot_edit(format!("{GROUP}.{name} has no command")));
    };
    if present_command.get_ref().as_str() == Some(command) {
        return Ok(Edit::Unchanged);
    }
    let span = present_command.span();
    Ok(Edit::Changed(format!("{}{}{}", &text[..span.start], quote(command), &text[span.end..])))
}

fn parse(text: &str) -> Result<DeTable<'_>, EntryError> {
    let table = DeTable::parse(text);
    table
        .map(toml::Spanned::into_inner)
        .map_err(|error| EntryError::Unreadable { format: "TOML", message: error.message().to_owned() })
}

fn cannot_edit(message: String) -> EntryError {
    EntryError::CannotEdit { message }
}

fn quote(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
}
