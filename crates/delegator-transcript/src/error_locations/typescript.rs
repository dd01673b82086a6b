//! Parses tsc: `a.ts(3,5): error TS2322: …`, and with `--pretty` `a.ts:3:5 - error TS2322: …`.

use super::location::{Draft, FoundLocations, Line, LineParser, looks_like_file, parse_number};

pub(super) struct TypeScript;

impl<'t> LineParser<'t> for TypeScript {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        let draft = match &line.position {
            Some(position) => position.rest.strip_prefix(" - error ").and_then(|text| {
                let (kind, message) = split_code(text)?;
                Some(position.draft(message, Some(kind)))
            }),
            None => parse_parenthesised(line.trimmed),
        };
        match draft {
            Some(draft) => {
                found.add(&draft);
                true
            }
            // Indented locations of related declarations are consumed and ignored.
            None => {
                line.is_indented() && line.position.is_some_and(|position| position.rest.starts_with(" - "))
            }
        }
    }
}

/// `a.ts(3,5): error TS2322: …`; the C# compiler prints the same format with its own codes.
fn parse_parenthesised(text: &str) -> Option<Draft<'_>> {
    let (location, error) = text.split_once("): error ")?;
    let (file, location) = location.rsplit_once('(')?;
    let (line, rest) = parse_number(location)?;
    let (column, _) = parse_number(rest.strip_prefix(',')?)?;
    let (kind, message) = split_code(error)?;
    looks_like_file(file).then_some(Draft {
        file,
        line,
        column: Some(column),
        message: message.into(),
        kind: Some(kind),
    })
}

/// `TS2322: message`
fn split_code(text: &str) -> Option<(&str, &str)> {
    let (code, message) = text.split_once(": ")?;
    let is_code = code.len() <= 12 && code.bytes().all(|b| b.is_ascii_alphanumeric());
    is_code.then_some((code, message))
}
