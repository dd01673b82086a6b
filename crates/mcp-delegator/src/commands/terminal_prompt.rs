//! Questions to the person at the terminal.
//!
//! A question appears only where a person can answer it; elsewhere a flag must give the answer. It goes to
//! stderr and the answer comes from stdin, so stdout contains only the result.

use std::io::{self, BufRead};

use crate::commands::context::Context;
use crate::error::{AppError, ErrorCode, Problem};

pub fn can_answer(context: &Context<'_>) -> bool {
    let process = context.process;
    process.stdin_is_terminal && process.stderr_is_terminal && !process.is_unattended()
}

/// Whether a person reads what the command prints, and can answer.
pub fn is_attended(context: &Context<'_>) -> bool {
    !context.screen.presentation.is_for_programs() && can_answer(context)
}

/// Asks for the consent that is all a call lacks. Returns the input that states it, or the error if something
/// else is wrong or no person is there.
pub fn consent(context: &Context<'_>, error: AppError) -> Result<String, AppError> {
    let [Problem { consent: Some(reason), field, .. }] = error.problems.as_slice() else { return Err(error) };
    if !is_attended(context) {
        return Err(error);
    }
    require(context, &format!("Confirm: {reason}. Go on?"))?;
    Ok(field.clone())
}

/// Asks a question that must be answered with yes before the call continues.
pub fn require(context: &Context<'_>, question: &str) -> Result<(), AppError> {
    if confirm(context, question, false) {
        return Ok(());
    }
    Err(AppError::new(ErrorCode::ConfirmationRequired, "Not confirmed, so nothing was done."))
}

/// A person who still gave no clear answer means no.
const MAX_ATTEMPTS: usize = 3;

/// Asks a question with the answers yes and no. An empty line means `default`, the end of the input no; after
/// anything else the question is repeated.
pub fn confirm(context: &Context<'_>, question: &str, default: bool) -> bool {
    let choices = if default { "[Y/n]" } else { "[y/N]" };
    let question = context.screen.presentation.question(&format!("{question} {choices}"));
    let ask = || context.screen.printer.remark(&question);
    read_answer(&mut io::stdin().lock(), default, ask)
}

fn read_answer(input: &mut impl BufRead, default: bool, ask: impl Fn()) -> bool {
    for _ in 0..MAX_ATTEMPTS {
        ask();
        let mut line = String::new();
        if !matches!(input.read_line(&mut line), Ok(1..)) {
            return false;
        }
        match line.trim().to_lowercase().as_str() {
            "" => return default,
            "y" | "yes" => return true,
            "n" | "no" => return false,
            _ => {}
        }
    }
    false
}

/// Asks for one of several names. An empty line means the first one; `None` if no answer is clear.
pub fn choose<'a>(context: &Context<'_>, question: &str, names: &[&'a str]) -> Option<&'a str> {
    let first = names.first().copied().unwrap_or_default();
    let question = format!("{question} {} [{first}]", names.join(", "));
    let question = context.screen.presentation.question(&question);
    read_choice(&mut io::stdin().lock(), names, || context.screen.printer.remark(&question))
}

fn read_choice<'a>(input: &mut impl BufRead, names: &[&'a str], ask: impl Fn()) -> Option<&'a str> {
    for _ in 0..MAX_ATTEMPTS {
        ask();
        let mut line = String::new();
        if !matches!(input.read_line(&mut line), Ok(1..)) {
            return None;
        }
        let given = line.trim();
        let found = names.iter().find(|name| given.is_empty() || given.eq_ignore_ascii_case(name));
        if let Some(name) = found {
            return Some(name);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_empty_line_chooses_the_first_name_and_an_unknown_one_is_asked_again() {
        let choose = |input: &str| read_choice(&mut input.as_bytes(), &["codex", "claude"], || ());
        for (input, chosen) in [
            ("\n", Some("codex")),
            ("Claude\n", Some("claude")),
            ("gpt\nclaude\n", Some("claude")),
            ("a\nb\nc\ncodex\n", None),
            ("", None),
        ] {
            assert_eq!(choose(input), chosen, "{input:?}");
        }
    }

    #[test]
    fn only_an_empty_line_means_the_default() {
        for (input, default, answer, questions) in [
            ("\n", true, true, 1),
            ("\n", false, false, 1),
            (" YES \n", false, true, 1),
            ("n\n", true, false, 1),
            ("q\ny\n", false, true, 2),
            ("nope\n\n", true, true, 2),
            ("a\nb\nc\ny\n", true, false, 3),
            ("", true, false, 1),
            ("q", true, false, 2),
        ] {
            let count = Cell::new(0);
            let found = read_answer(&mut input.as_bytes(), default, || count.set(count.get() + 1));
            assert_eq!((found, count.get()), (answer, questions), "{input:?}");
        }
    }
}
