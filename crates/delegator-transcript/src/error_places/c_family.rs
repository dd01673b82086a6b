//! gcc, clang and all that speak like them: `x.c:3:5: error: …`, `fatal error: …`; warnings and notes are none. The
//! flag in brackets says which warning was made an error. And the linker, when it knows the line.

use super::Found;
use super::place::{Line, Position};

pub(super) fn line(line: &Line<'_>, found: &mut Found<'_>) -> bool {
    let Some(position) = line.position else { return false };
    let said = position.message();
    let is_other =
        ["warning: ", "note: ", "remark: ", "info: ", "hint: "].iter().any(|w| said.starts_with(w));
    if is_other {
        return true;
    }
    let error = said.strip_prefix("error: ").or_else(|| said.strip_prefix("fatal error: "));
    match error {
        Some(message) => {
            let (message, flag) = without_flag(message);
            found.add(&position.draft(message, flag));
            true
        }
        None => {
            said.starts_with("undefined reference to ") && {
                found.add(&position.draft(said, None));
                true
            }
        }
    }
}

/// `/src/x.c:5: undefined reference to `f'`, on its own or behind the linker's name.
pub(super) fn linked(line: &Line<'_>, found: &mut Found<'_>) -> bool {
    let behind_name = line.words.split_once("ld: ").and_then(|(_, rest)| Position::at_start(rest));
    match line.position.or(behind_name) {
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
