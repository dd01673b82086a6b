//! Adds or updates one server table in TOML text without reformatting it.
//!
//! A new table is appended at the end. In an existing table only some values are replaced, at the spans that
//! `toml` reports, or added after `command`. `toml_edit` would change CRLF line endings to LF.

use toml::de::DeTable;
use toml_writer::{ToTomlValue, TomlStringBuilder};

use crate::commands::setup::hosts::{Edit, Entry, EntryError, Registration};

const GROUP: &str = "mcp_servers";

/// With the value `approve`, Codex calls the tools of a server without asking. Without it, `codex exec`
/// refuses every call of a tool that is not marked as read-only, because there is no user to ask (measured
/// with 0.166).
const APPROVAL: &str = "default_tools_approval_mode";
const APPROVE: &str = "\"approve\"";

pub fn table(name: &str, new: &Registration) -> String {
    let approval = if new.approves_tools { format!("{APPROVAL} = {APPROVE}\n") } else { String::new() };
    format!(
        "[{GROUP}.{name}]\ncommand = {}\nargs = {}\n{approval}",
        quote(&new.command),
        quote_list(&new.args)
    )
}

pub fn read(text: &str, name: &str) -> Result<Option<Entry>, EntryError> {
    let document = parse(text)?;
    let entry =
        document.get(GROUP).and_then(|group| group.get_ref().as_table()?.get(name)?.get_ref().as_table());
    Ok(entry.map(|entry| {
        let text_of = |key| entry.get(key)?.get_ref().as_str();
        let args = entry.get("args").and_then(|args| args.get_ref().as_array());
        let args = args.into_iter().flat_map(|args| args.iter());
        Entry {
            command: text_of("command").map(str::to_owned),
            args: args.filter_map(|arg| arg.get_ref().as_str()).map(str::to_owned).collect(),
            approves_tools: text_of(APPROVAL) == Some("approve"),
        }
    }))
}

fn value_of<'a, 'b>(
    document: &'b DeTable<'a>,
    name: &str,
    key: &str,
) -> Option<&'b toml::Spanned<toml::de::DeValue<'a>>> {
    let group = document.get(GROUP)?.get_ref().as_table()?;
    group.get(name)?.get_ref().as_table()?.get(key)
}

pub fn upsert_entry(text: &str, name: &str, new: &Registration) -> Result<Edit, EntryError> {
    let document = parse(text)?;
    let present = document.get(GROUP).and_then(|group| group.get_ref().as_table()?.get(name));
    let Some(present) = present else {
        let gap = match text {
            "" => "",
            text if text.ends_with("\n\n") => "",
            text if text.ends_with('\n') => "\n",
            _ => "\n\n",
        };
        let whole = format!("{text}{gap}{}", table(name, new));
        // An inline table cannot be extended by a later table.
        return match parse(&whole) {
            Ok(_) => Ok(Edit::Changed(whole)),
            Err(_) => Err(cannot_edit(format!("{GROUP} is an inline table, so no entry can be appended"))),
        };
    };
    let Some(entry) = present.get_ref().as_table() else {
        return Err(cannot_edit(format!("{GROUP}.{name} is not a table")));
    };
    if !entry.contains_key("command") {
        return Err(EntryError::WithoutCommand { entry: format!("{GROUP}.{name}") });
    }
    let mut wanted = vec![("command", quote(&new.command))];
    wanted.extend(new.replaces_args.then(|| ("args", quote_list(&new.args))));
    wanted.extend(new.approves_tools.then(|| (APPROVAL, APPROVE.to_owned())));
    let set = |text: String, (key, value): (&str, String)| set_value(&text, name, key, &value);
    match wanted.into_iter().try_fold(text.to_owned(), set)? {
        same if same == text => Ok(Edit::Unchanged),
        changed => Ok(Edit::Changed(changed)),
    }
}

/// Removes an entry that starts a program; everything else stays, comments too.
pub fn remove_entry(text: &str, name: &str) -> Result<Edit, EntryError> {
    match read(text, name)? {
        None => Ok(Edit::Unchanged),
        Some(Entry { command: None, .. }) => {
            Err(EntryError::WithoutCommand { entry: format!("{GROUP}.{name}") })
        }
        Some(_) => match delegator_config::remove_toml_value(text, &[GROUP.to_owned(), name.to_owned()]) {
            Some(text) => Ok(Edit::Changed(text)),
            None => Err(cannot_edit("the entry cannot be removed without rewriting the file".to_owned())),
        },
    }
}

fn set_value(text: &str, name: &str, key: &str, value: &str) -> Result<String, EntryError> {
    let document = parse(text)?;
    let is_set = |text: &str| {
        let (Ok(document), Ok(wanted)) = (parse(text), toml::de::DeValue::parse(value)) else { return false };
        value_of(&document, name, key).is_some_and(|found| same(found.get_ref(), wanted.get_ref()))
    };
    if is_set(text) {
        return Ok(text.to_owned());
    }
    let splice = |range: std::ops::Range<usize>, new: &str| {
        format!("{}{new}{}", &text[..range.start], &text[range.end..])
    };
    let candidates = match (value_of(&document, name, key), value_of(&document, name, "command")) {
        (Some(present), _) => vec![splice(present.span(), value)],
        (None, Some(command)) => {
            let end = command.span().end;
            let line_end = text[end..].find('\n').map_or(text.len(), |at| end + at);
            let line_end = line_end - usize::from(text[..line_end].ends_with('\r'));
            let newline = if text.contains("\r\n") { "\r\n" } else { "\n" };
            // A table has one value per line; in an inline table the values are separated by commas.
            vec![
                splice(line_end..line_end, &format!("{newline}{key} = {value}")),
                splice(end..end, &format!(", {key} = {value}")),
            ]
        }
        (None, None) => Vec::new(),
    };
    let edited = candidates.into_iter().find(|text| is_set(text));
    edited.ok_or_else(|| cannot_edit(format!("{key} cannot be set without rewriting the file")))
}

fn same(one: &toml::de::DeValue<'_>, other: &toml::de::DeValue<'_>) -> bool {
    match (one.as_array(), other.as_array()) {
        (Some(one), Some(other)) => {
            one.len() == other.len()
                && one.iter().zip(other.iter()).all(|(a, b)| same(a.get_ref(), b.get_ref()))
        }
        _ => one.as_str().is_some() && one.as_str() == other.as_str(),
    }
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

fn quote_list(items: &[String]) -> String {
    format!("[{}]", items.iter().map(|item| quote(item)).collect::<Vec<_>>().join(", "))
}
