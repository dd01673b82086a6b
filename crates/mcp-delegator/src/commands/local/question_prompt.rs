//! The questions of awaited agents on the terminal, while the command waits: each is shown once, and a person
//! at the terminal can answer it there. Programs find them in the output at the end.

use std::io::{self, BufRead};

use delegator_domain::question::{Answer, Question, QuestionKind, QuestionNumber};
use delegator_registry::StoredQuestion;
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::{process, termios};

use crate::commands::answer::unspecific_answer;
use crate::commands::prelude::*;
use crate::commands::terminal_prompt;
use crate::output::data::conversation::QuestionData;
use crate::output::data::task_line::{Clock, short_age};
use crate::output::documents::conversation;

#[derive(Debug)]
pub struct QuestionPrompt<'a> {
    context: &'a Context<'a>,
    engine: &'a Engine,
    ids: &'a [TaskId],
    shown: Vec<(TaskId, QuestionNumber)>,
    /// The question that the next typed line answers.
    asked: Option<(TaskId, StoredQuestion)>,
}

impl<'a> QuestionPrompt<'a> {
    pub fn new(context: &'a Context<'a>, engine: &'a Engine, ids: &'a [TaskId]) -> QuestionPrompt<'a> {
        QuestionPrompt { context, engine, ids, shown: Vec::new(), asked: None }
    }

    /// Whether the terminal waits for an answer, so that nothing else may be drawn on it.
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Shows new questions and passes on a typed answer; never waits for one.
    pub fn step(&mut self) {
        if !self.context.screen.presentation.shows_progress() {
            return;
        }
        // An error here is one of the wait, too, which reports it.
        let open = self.engine.conversations().open_questions(self.ids).unwrap_or_default();
        self.forget_closed(&open);
        let can_answer = terminal_prompt::can_answer(self.context);
        for (task, question) in open {
            let key = (task, question.question.number);
            if self.is_asking() || self.shown.contains(&key) {
                continue;
            }
            if can_answer {
                self.print(&self.prompt(&key.0, &question));
                self.asked = Some((key.0.clone(), question));
            } else {
                let data = QuestionData::from(&question);
                self.print(&conversation::append_question(Document::default(), key.0.as_str(), &data));
            }
            self.shown.push(key);
        }
        if let (Some(line), Some((task, question))) =
            (self.asked.as_ref().and_then(|_| typed_line()), &self.asked)
        {
            self.answer(task, question, line.trim());
        }
    }

    fn answer(&self, task: &TaskId, question: &StoredQuestion, line: &str) {
        let question = &question.question;
        let given = typed_answer(question, line);
        let answered = given.map(|answer| self.engine.conversations().answer(task, question.number, &answer));
        // An answer that was recorded closes the question, which the next step notices.
        let again = match answered {
            Some(Ok(_)) => return,
            Some(Err(error)) => format!("{}\n{}", AppError::from(error).message, instruction(question)),
            None => instruction(question),
        };
        self.context.screen.announce(&format!("{again}:"));
    }

    /// The person may have answered elsewhere, or the time is over.
    fn forget_closed(&mut self, open: &[(TaskId, StoredQuestion)]) {
        let Some((task, asked)) = &self.asked else { return };
        let number = asked.question.number;
        if open.iter().any(|(other, question)| other == task && question.question.number == number) {
            return;
        }
        if let Ok(closed) = self.engine.conversations().question(task, Some(number)) {
            self.context.screen.announce(&format!("Question {number} is {}.", closed.state.name()));
        }
        self.asked = None;
    }

    fn print(&self, document: &Document) {
        let screen = &self.context.screen;
        screen.announce(&document.to_text(screen.presentation.body_style().plain()));
    }

    /// The question, its options with a number each, and how long it is open.
    fn prompt(&self, task: &TaskId, stored: &StoredQuestion) -> Document {
        let question = &stored.question;
        let now_ms = Timestamp::now().as_millisecond();
        let until = Clock { now_ms, variables: &variables(self.context) }.time(stored.expires_at_ms);
        let left_sec = u64::try_from((stored.expires_at_ms - now_ms) / 1000).unwrap_or(0);
        let asks = match question.kind {
            QuestionKind::Permission => "asks for permission",
            QuestionKind::Question => "asks",
        };
        let of_task = if self.ids.len() > 1 { format!(" of {task}") } else { String::new() };
        let mut document = Document::default().text(format!("The agent{of_task} {asks}: {}", question.title));
        if let Some(detail) = &question.detail {
            document = document.block(Block::Verbatim(detail.clone()));
        }
        let numbered = (1..).zip(&question.options);
        let rows = numbered.map(|(number, option): (u32, _)| vec![number.to_string(), option.label.clone()]);
        let document = document.table(&["key", "answer"], rows.collect());
        document.text(format!("{}, until {until} ({} left):", instruction(question), short_age(left_sec)))
    }
}

fn instruction(question: &Question) -> String {
    match (question.options.len(), question.free_text) {
        (0, _) => "Type an answer".to_owned(),
        (1, false) => "Type 1".to_owned(),
        (1, true) => "Type 1, or an answer of your own".to_owned(),
        (count, false) => format!("Type 1 to {count}"),
        (count, true) => format!("Type 1 to {count}, or an answer of your own"),
    }
}

/// The answer in a typed line: the number of an option, its id or label, or a text. `None` for an empty line.
fn typed_answer(question: &Question, line: &str) -> Option<Answer> {
    let number = line.parse::<usize>().ok().and_then(|number| number.checked_sub(1));
    match number.and_then(|at| question.options.get(at)) {
        Some(option) => Some(Answer { option: Some(option.id.clone()), text: None }),
        None if line.is_empty() => None,
        None => Some(unspecific_answer(question, line)),
    }
}

/// A line that was already typed. A job in the background must not read what is typed for the shell.
fn typed_line() -> Option<String> {
    let stdin = io::stdin();
    let is_background = termios::tcgetpgrp(&stdin).is_ok_and(|foreground| foreground != process::getpgrp());
    let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    if is_background || !matches!(poll(&mut polled, Some(&at_once)), Ok(1..)) {
        return None;
    }
    let mut line = String::new();
    matches!(stdin.lock().read_line(&mut line), Ok(1..)).then_some(line)
}

#[cfg(test)]
mod tests {
    use delegator_domain::question::{AnswerOption, OptionKind};

    use super::*;

    fn question(labels: &[(&str, &str)], free_text: bool) -> Question {
        let option = |(id, label): &(&str, &str)| AnswerOption {
            id: (*id).into(),
            label: (*label).into(),
            kind: OptionKind::Other,
        };
        Question {
            number: QuestionNumber(1),
            kind: QuestionKind::Question,
            title: "Which?".into(),
            detail: None,
            options: labels.iter().map(option).collect(),
            free_text,
        }
    }

    #[test]
    fn a_typed_line_is_a_number_an_option_or_a_text() {
        let answer = |free_text, line| {
            let question = question(&[("a", "Red"), ("b", "Blue")], free_text);
            typed_answer(&question, line).map(|answer| (answer.option, answer.text))
        };
        assert_eq!(answer(false, "2"), Some((Some("b".into()), None)));
        assert_eq!(answer(false, "red"), Some((Some("a".into()), None)));
        assert_eq!(answer(false, "3"), Some((Some("3".into()), None)), "which is then refused");
        assert_eq!(answer(false, "0"), Some((Some("0".into()), None)));
        assert_eq!(answer(true, "3"), Some((None, Some("3".into()))));
        assert_eq!(answer(true, ""), None);
    }

    #[test]
    fn the_instruction_names_what_can_be_typed() {
        for (options, free_text, expected) in [
            (&[][..], true, "Type an answer"),
            (&[("a", "Red")][..], false, "Type 1"),
            (&[("a", "Red"), ("b", "Blue")][..], false, "Type 1 to 2"),
            (&[("a", "Red"), ("b", "Blue")][..], true, "Type 1 to 2, or an answer of your own"),
        ] {
            assert_eq!(instruction(&question(options, free_text)), expected);
        }
    }
}
