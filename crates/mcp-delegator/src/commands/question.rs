//! Questions to the person at the terminal.
//!
//! A question appears only where a person can answer it; elsewhere a flag must give the answer. It goes to stderr and
//! the answer comes from stdin, so stdout contains only the result.

use std::io::BufRead;

use crate::commands::context::Context;

/// Whether a person can read a question and answer it.
pub fn can_answer(context: &Context<'_>) -> bool {
    let process = context.process;
    process.stdin_is_terminal && process.stderr_is_terminal && !process.is_unattended()
}

/// Asks a question with the answers yes and no. Anything that is not clearly an answer, also the end of the input, means
/// `default`.
pub fn confirm(context: &Context<'_>, question: &str, default: bool) -> bool {
    let choices = if default { "[Y/n]" } else { "[y/N]" };
    context.screen.printer.remark(&format!("{question} {choices}"));
    let mut line = String::new();
    match std::io::stdin().lock().read_line(&mut line) {
        Ok(_) => parse(&line).unwrap_or(default),
        Err(_) => default,
    }
}

fn parse(line: &str) -> Option<bool> {
    match line.trim().to_lowercase().as_str() {
        "y" | "yes" => Some(true),
        "n" | "no" => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clear_answers_count() {
        for (line, answer) in
            [("y\n", Some(true)), (" YES ", Some(true)), ("n", Some(false)), ("", None), ("q", None)]
        {
            assert_eq!(parse(line), answer, "{line:?}");
        }
    }
}
