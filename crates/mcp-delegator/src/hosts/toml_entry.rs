//! One table of servers, put into TOML text: a new one goes to the end, of one that is there the command is mended.
//!
//! The text is edited at the spans that `toml` reports. `toml_edit` would change CRLF line endings to LF.

use toml::de::DeTable;
use toml_writer::{ToTomlValue, TomlStringBuilder};

use super::{Edit, EntryError};

const GROUP: &str = "mcp_servers";

/// The entry as a table of its own.
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
        // A group that is closed, as an inline table is, takes no more.
        return match parse(&whole) {
            Ok(_) => Ok(Edit::Changed(whole)),
            Err(_) => {
                Err(cannot_edit(format!("{GROUP} is written such that nothing can be added at the end")))
            }
        };
    };
    let Some(entry) = present.get_ref().as_table() else {
        return Err(cannot_edit(format!("{GROUP}.{name} is no table")));
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
        .map_err(|error| EntryError::Unreadable { format: "TOML", words: error.message().to_owned() })
}

fn cannot_edit(words: String) -> EntryError {
    EntryError::CannotEdit { words }
}

fn quote(text: &str) -> String {
    TomlStringBuilder::new(text).as_basic().to_toml_value()
}
