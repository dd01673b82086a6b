//! tsc: `a.ts(3,5): error TS2322: …`, and in colour `a.ts:3:5 - error TS2322: …`.

use super::Found;
use super::place::{Draft, Line, is_file, number};

pub(super) fn line(line: &Line<'_>, found: &mut Found<'_>) -> bool {
    let draft = match &line.position {
        Some(position) => position.rest.strip_prefix(" - error ").and_then(|said| {
            let (kind, message) = coded(said)?;
            Some(position.draft(message, Some(kind)))
        }),
        None => in_parentheses(line.words),
    };
    match draft {
        Some(draft) => {
            found.add(&draft);
            true
        }
        // What is shown besides, indented: where something is declared.
        None => line.is_indented() && line.position.is_some_and(|position| position.rest.starts_with(" - ")),
    }
}

/// `a.ts(3,5): error TS2322: …`; a C# compiler writes the same with codes of its own.
fn in_parentheses(words: &str) -> Option<Draft<'_>> {
    let (place, said) = words.split_once("): error ")?;
    let (file, place) = place.rsplit_once('(')?;
    let (line, rest) = number(place)?;
    let (column, _) = number(rest.strip_prefix(',')?)?;
    let (kind, message) = coded(said)?;
    is_file(file).then_some(Draft {
        file,
        line,
        column: Some(column),
        message: message.into(),
        kind: Some(kind),
    })
}

/// `TS2322: message`
fn coded(said: &str) -> Option<(&str, &str)> {
    let (code, message) = said.split_once(": ")?;
    let is_code = code.len() <= 12 && code.bytes().all(|b| b.is_ascii_alphanumeric());
    is_code.then_some((code, message))
}
