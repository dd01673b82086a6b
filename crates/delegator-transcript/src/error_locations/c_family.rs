//! Parses gcc, clang and compilers with the same format: `x.c:3:5: error: …` and `fatal error: …`, with the
//! flag that made a warning an error in brackets. Also linker errors that name a source line. Warnings and
//! notes are consumed and ignored.

use super::location::{FoundLocations, Line, LineParser, Position};

pub(super) struct CFamily;

impl<'t> LineParser<'t> for CFamily {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        let Some(position) = line.position else { return false };
        let text = position.message();
        if let Some(message) = text.strip_prefix("error: ").or_else(|| text.strip_prefix("fatal error: ")) {
            let (message, flag) = without_flag(message);
            found.add(&position.draft(message, flag));
            return true;
        }
        ["warning: ", "note: ", "remark: ", "info: ", "hint: "].iter().any(|start| text.starts_with(start))
    }
}

/// `/src/x.c:5: undefined reference to `f'`, alone or after the linker's name.
pub(super) struct Linker;

impl<'t> LineParser<'t> for Linker {
    fn parse_line(&mut self, line: &Line<'t>, found: &mut FoundLocations<'_>) -> bool {
        let after_linker_name =
            line.trimmed.split_once("ld: ").and_then(|(_, rest)| Position::at_start(rest));
        match line.position.or(after_linker_name) {
            Some(position) if position.message().starts_with("undefined reference to ") => {
                found.add(&position.draft(position.message(), None));
                true
            }
            _ => false,
        }
    }
}

/// `unused variable 'x' [-Werror=unused-variable]`
fn without_flag(message: &str) -> (&str, Option<&str>) {
    match message.strip_suffix(']').and_then(|message| message.rsplit_once(" [")) {
        Some((message, flag)) if flag.starts_with("-W") => (message, Some(flag)),
        _ => (message, None),
    }
}
