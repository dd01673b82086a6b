//! Sets and removes one value in TOML text and leaves every other byte as it is: comments, order, line endings.
//!
//! A change is inserted at the positions that the parser reports. There are several ways to write a value
//! (a line, a dotted key, an inline table, a section), so the possible texts are tried in turn, and the first
//! one that parses to the wanted document is taken. `toml_edit` would change CRLF line endings to LF, and
//! would remove the comments above a removed key.

use std::ops::Range;

use toml::de::{DeTable, DeValue};
use toml::{Spanned, Table, Value};
use toml_writer::{ToTomlKey, TomlKeyBuilder};

/// The text with this value, which is written as TOML, at this path; `None` if there is no place for it.
pub(crate) fn set(text: &str, path: &[String], value: &str) -> Option<String> {
    let mut expected: Table = toml::from_str(text).ok()?;
    let new: Table = toml::from_str(&format!("value = {value}")).ok()?;
    insert(&mut expected, path, new.get("value")?.clone())?;
    let document = DeTable::parse(text).ok()?;
    let candidates = match find(document.get_ref(), path) {
        Some((_, present)) if is_block(text, present) => return set(&unset(text, path)?, path, value),
        Some((_, present)) => vec![splice(text, present.span(), value)],
        None => insertions(text, document.get_ref(), path, value),
    };
    candidates.into_iter().find(|candidate| is_same(candidate, &expected))
}

/// The text without the value at this path; `None` if there is none, or if it cannot be removed alone.
pub fn unset(text: &str, path: &[String]) -> Option<String> {
    let mut expected: Table = toml::from_str(text).ok()?;
    remove(&mut expected, path)?;
    let document = DeTable::parse(text).ok()?;
    let (key, value) = find(document.get_ref(), path)?;
    let entry = key.start..value.span().end;
    let last = if is_block(text, value) { end_of_block(value) } else { entry.end };
    let lines = line_start(text, entry.start)..(line_end(text, last) + 1).min(text.len());
    let after = text[entry.end..].trim_start_matches([' ', '\t']);
    let with_comma = entry.start..text.len() - after.strip_prefix(',').unwrap_or(after).trim_start().len();
    let before = text[..entry.start].trim_end();
    let after_comma = before.strip_suffix(',').unwrap_or(before).len()..entry.end;
    [lines, after_comma, with_comma]
        .into_iter()
        .map(|range| splice(text, range, ""))
        .find(|candidate| is_same(candidate, &expected))
}

/// Whether there is a value at this path; `None` if the text is not valid TOML.
pub(crate) fn contains(text: &str, path: &[String]) -> Option<bool> {
    Some(find(DeTable::parse(text).ok()?.get_ref(), path).is_some())
}

/// Every way to add the value, the usual one first.
fn insertions(text: &str, document: &DeTable<'_>, path: &[String], value: &str) -> Vec<String> {
    let Some((name, section)) = path.split_last() else { return Vec::new() };
    let mut found = insertions_in(text, document, path, section.len(), value);
    if !section.is_empty() {
        let (newline, name) = (newline(text), std::slice::from_ref(name));
        let end = if text.is_empty() || text.ends_with('\n') { "" } else { newline };
        let gap = if text.is_empty() { "" } else { newline };
        let (header, line) = (dotted(section), format!("{} = {value}", dotted(name)));
        found.push(format!("{text}{end}{gap}[{header}]{newline}{line}{newline}"));
    }
    let above = (0..section.len()).rev();
    found.extend(above.flat_map(|depth| insertions_in(text, document, path, depth, value)));
    found
}

/// Every way to add the value to the table at the first `depth` names of the path: after its last value, or
/// else after its header.
fn insertions_in(
    text: &str,
    document: &DeTable<'_>,
    path: &[String],
    depth: usize,
    value: &str,
) -> Vec<String> {
    let container = find(document, &path[..depth]).map(|(_, container)| container);
    let table = if depth == 0 { Some(document) } else { container.and_then(|it| it.get_ref().as_table()) };
    let Some(table) = table else { return Vec::new() };
    let leaves = table.iter().map(|(_, value)| value).filter(|value| !is_block(text, value));
    let last = leaves.map(|value| value.span().end).max();
    let newline = newline(text);
    let insert_line = |end: usize, line: &str| {
        let at = line_end(text, end);
        let at = at - usize::from(text[..at].ends_with('\r'));
        splice(text, at..at, &format!("{newline}{line}"))
    };
    let with_key = |key: String| {
        let line = format!("{key} = {value}");
        match (last, container) {
            (Some(end), _) => vec![insert_line(end, &line), splice(text, end..end, &format!(", {line}"))],
            (None, Some(container)) => vec![
                insert_line(container.span().end, &line),
                splice(text, container.span(), &format!("{{ {line} }}")),
            ],
            (None, None) => vec![at_the_top(text, table, &line)],
        }
    };
    [&path[depth..], path].map(dotted).into_iter().flat_map(with_key).collect()
}

/// The text with a first value: before the first section and the comments above that, or else at the end.
fn at_the_top(text: &str, document: &DeTable<'_>, line: &str) -> String {
    let newline = newline(text);
    match document.iter().map(|(key, _)| line_start(text, key.span().start)).min() {
        Some(first) => {
            let blank_line = text[..first].rfind(&newline.repeat(2));
            let at = blank_line.map_or(0, |at| at + 2 * newline.len());
            splice(text, at..at, &format!("{line}{newline}{newline}"))
        }
        None if text.is_empty() || text.ends_with('\n') => format!("{text}{line}{newline}"),
        None => format!("{text}{newline}{line}{newline}"),
    }
}

/// The key and the value at a path.
fn find<'a, 'i>(table: &'a DeTable<'i>, path: &[String]) -> Option<(Range<usize>, &'a Spanned<DeValue<'i>>)> {
    let (name, rest) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == name)?;
    match rest {
        [] => Some((key.span(), value)),
        rest => find(value.get_ref().as_table()?, rest),
    }
}

/// Whether the value is a table that is not written in braces: a section, or the table of dotted keys.
fn is_block(text: &str, value: &Spanned<DeValue<'_>>) -> bool {
    value.get_ref().is_table() && !text[value.span().start..].starts_with('{')
}

fn end_of_block(value: &Spanned<DeValue<'_>>) -> usize {
    let inside = value.get_ref().as_table().into_iter().flat_map(|table| table.iter());
    inside.map(|(_, value)| end_of_block(value)).fold(value.span().end, usize::max)
}

fn insert(table: &mut Table, path: &[String], value: Value) -> Option<()> {
    let (name, rest) = path.split_first()?;
    if rest.is_empty() {
        table.insert(name.clone(), value);
        return Some(());
    }
    let inner = table.entry(name.clone()).or_insert_with(|| Value::Table(Table::new()));
    insert(inner.as_table_mut()?, rest, value)
}

fn remove(table: &mut Table, path: &[String]) -> Option<Value> {
    match path.split_first()? {
        (name, []) => table.remove(name),
        (name, rest) => remove(table.get_mut(name)?.as_table_mut()?, rest),
    }
}

/// Whether the text has these values. A section without values counts as absent.
fn is_same(text: &str, expected: &Table) -> bool {
    toml::from_str(text).is_ok_and(|found: Table| without_empty(found) == without_empty(expected.clone()))
}

fn without_empty(table: Table) -> Table {
    let converted = table.into_iter().map(|(name, value)| match value {
        Value::Table(inner) => (name, Value::Table(without_empty(inner))),
        other => (name, other),
    });
    converted.filter(|(_, value)| value.as_table().is_none_or(|inner| !inner.is_empty())).collect()
}

/// The path as TOML writes it.
fn dotted(path: &[String]) -> String {
    let keys = path.iter().map(|name| TomlKeyBuilder::new(name).as_default().to_toml_key());
    keys.collect::<Vec<_>>().join(".")
}

fn newline(text: &str) -> &'static str {
    if text.contains("\r\n") { "\r\n" } else { "\n" }
}

fn splice(text: &str, range: Range<usize>, new: &str) -> String {
    format!("{}{new}{}", &text[..range.start], &text[range.end..])
}

fn line_start(text: &str, at: usize) -> usize {
    text[..at].rfind('\n').map_or(0, |newline| newline + 1)
}

fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |newline| at + newline)
}

#[cfg(test)]
mod tests;
