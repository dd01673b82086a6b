//! Chooses the most informative line of an output that names no location.

use delegator_domain::text::{beginning, end};

use super::location::{MAX_KIND_CHARS, MAX_MESSAGE_CHARS, is_error_name, sanitize, split_error_name};

/// Errors are printed near the end.
const SEARCHED_BYTES: usize = 64 << 10;

/// Returns the line and, if it starts with the name of an error, that name.
pub(super) fn find(output: &str) -> (String, Option<String>) {
    let lines = || end(output, SEARCHED_BYTES).lines().map(str::trim).filter(|line| !line.is_empty());
    let best = lines().rev().max_by_key(|line| score(line)).filter(|line| score(line) > 0);
    let chosen = best.or_else(|| lines().next_back()).unwrap_or_default();
    match split_error_name(chosen).filter(|(name, message)| is_error_name(name) && !message.is_empty()) {
        Some((kind, message)) => (sanitize(message, MAX_MESSAGE_CHARS), Some(sanitize(kind, MAX_KIND_CHARS))),
        None => (sanitize(chosen, MAX_MESSAGE_CHARS), None),
    }
}

/// How likely a line is to state the error; of equal scores the first line wins.
fn score(line: &str) -> u8 {
    let line = beginning(line, MAX_MESSAGE_CHARS);
    let begins = |words: &[&str]| words.iter().any(|word| line.starts_with(word));
    let has = |words: &[&str]| words.iter().any(|word| line.contains(word));
    if begins(&["error", "Error", "ERROR", "fatal", "FATAL", "panic"]) || has(&["Error: ", "Exception: "]) {
        3
    } else if has(&["error:", "ERROR", "ERR!"]) {
        2
    } else {
        u8::from(has(&["not found", "No such file", "denied", "annot ", "failed", "FAILED", "rror"]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_informative_line_is_chosen() {
        for (output, message, kind) in [
            ("", "", None),
            ("one\ntwo\n\n", "two", None),
            (
                "bash: line 1: frobnicate: command not found\n",
                "bash: line 1: frobnicate: command not found",
                None,
            ),
            (
                "a\nerror: no such command: `tset`\n\nhelp: a command\n",
                "error: no such command: `tset`",
                None,
            ),
            ("npm ERR! Missing script: \"x\"\nnpm ERR!\n", "npm ERR! Missing script: \"x\"", None),
            (
                "working\nsqlite3.OperationalError: no such table\nbye\n",
                "no such table",
                Some("sqlite3.OperationalError"),
            ),
        ] {
            assert_eq!(find(output), (message.to_owned(), kind.map(str::to_owned)), "{output}");
        }
    }
}
