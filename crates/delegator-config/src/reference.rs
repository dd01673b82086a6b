//! The reference of all keys, generated from the table so that it cannot differ from it.

use std::fmt::Write;

use crate::keys::{DefaultValue, KEYS, Key, ProjectRight, Scope, VARIABLE_PREFIX, ValueKind};

pub fn reference() -> String {
    let mut table = String::from(
        "| key | value | default | variable | project file | meaning |\n|---|---|---|---|---|---|\n",
    );
    for key in KEYS {
        let cells = [
            format!("`{}`", key.name),
            key.kind.to_string(),
            default_cell(key),
            variable_cell(key),
            project_cell(key),
            meaning_cell(key),
        ];
        let row = cells.map(|cell| cell.replace('|', "\\|")).join(" | ");
        // Writing to a String cannot fail.
        let _ = writeln!(table, "| {row} |");
    }
    table
}

fn default_cell(key: &Key) -> String {
    match key.default {
        DefaultValue::Unset(then) => format!("none: {then}"),
        DefaultValue::Required => "required".to_owned(),
        DefaultValue::Bool(value) => format!("`{value}`"),
        DefaultValue::Integer(number) => format!("`{number}`"),
        DefaultValue::Text(text) => format!("`{text}`"),
        DefaultValue::List([]) | DefaultValue::EmptyTable => "empty".to_owned(),
        DefaultValue::List(items) => format!("`{}`", items.join(",")),
        DefaultValue::Cores => "the number of cores, at least 2".to_owned(),
    }
}

fn variable_cell(key: &Key) -> String {
    let Some(variable) = key.variable() else {
        let table = key.name.split('.').next().unwrap_or_default();
        return format!("in `{VARIABLE_PREFIX}{}`", table.to_uppercase());
    };
    let note = match key.kind {
        ValueKind::Labels => ", as `name=text,…`",
        ValueKind::Agents | ValueKind::Repositories => ", a JSON object",
        _ if key.kind.is_list() => ", comma-separated",
        _ => "",
    };
    format!("`{variable}`{note}")
}

fn project_cell(key: &Key) -> String {
    let right = match key.project {
        ProjectRight::None => return "no".to_owned(),
        ProjectRight::Set => "yes",
        ProjectRight::Lower => "may lower",
    };
    let scope = match key.scope {
        Scope::Task => "for tasks in its work tree",
        Scope::Call => "for calls made in its work tree",
    };
    format!("{right}, {scope}")
}

fn meaning_cell(key: &Key) -> String {
    let secret = if key.secret { " Secret: never shown." } else { "" };
    format!("{}{secret}", key.description)
}
