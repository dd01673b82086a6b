//! gcc, clang and all that speak like them: `x.c:3:5: error: …`, `fatal error: …`; warnings and notes are none. The
//! flag in brackets says which warning was made an error. And the linker, when it knows the line.

use super::FoundLocations;
use super::location::{Line, Position};

pub(super) fn parse_line(line: &Line<'_>, found: &mut FoundLocations<'_>) -> bool {
    let Some(position) = line.position else { return false };
    let text = position.message();
    let is_not_error =
        ["warning: ", "note: ", "remark: ", "info: ", "hint: "].iter().any(|w| text.starts_with(w));
    if is_not_error {
        return true;
    }
    let error = text.strip_prefix("error: ").or_else(|| text.strip_prefix("fatal error: "));
    match error {
        Some(message) => {
            let (message, flag) = without_flag(message);
            found.add(&position.draft(message, flag));
            true
        }
        None => {
            text.starts_with("undefined reference to ") && {
                found.add(&position.draft(text, None));
                true
            }
        }
    }
}

/// `/src/x.c:5: undefined reference to `f'`, on its own or behind the linker's name.
pub(super) fn parse_linker_line(line: &Line<'_>, found: &mut FoundLocations<'_>) -> bool {
    let after_linker_name = line.trimmed.split_once("ld: ").and_then(|(_, rest)| Position::at_start(rest));
    match line.position.or(after_linker_name) {
        Some(position) if position.message().starts_with("undefined reference to ") => {
            found.add(&position.draft(position.message(), None));
            true
        }
        _ => false,
    }
}

/// `unused variable 'x' [-Werror=unused-variable]`
fn without_flag(message: &str) -> (&str, Option<&str>) {
    match message.strip_suffix(']').and_then(|message| message.rsplit_once(" [")) {
        Some((message, flag)) if flag.starts_with("-W") => (message, Some(flag)),
        _ => (message, None),
    }
}
