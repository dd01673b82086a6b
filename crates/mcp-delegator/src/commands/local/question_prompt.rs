//! The questions of awaited agents on the terminal, while the command waits: each is shown once, and a person
//! at the terminal can answer it there. Programs find them in the output at the end.

use std::io;

use delegator_domain::question::{Answer, AnswerOption, Question, QuestionKind, QuestionNumber};
use delegator_engine::{ConversationError, OpenScreens};
use delegator_registry::StoredQuestion;
use indicatif::ProgressBar;
use jiff::Timestamp;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process;
use rustix::termios::{self, QueueSelector};

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
    /// The beginning of that line.
    typed: Vec<u8>,
    /// No notification is sent about what a person sees here.
    _screens: Option<OpenScreens>,
}

impl<'a> QuestionPrompt<'a> {
    pub fn new(context: &'a Context<'a>, engine: &'a Engine, ids: &'a [TaskId]) -> QuestionPrompt<'a> {
        let is_shown = context.screen.presentation.shows_progress();
        let screens = is_shown.then(|| engine.screens().open(ids));
        QuestionPrompt {
            context,
            engine,
            ids,
            shown: Vec::new(),
            asked: None,
            typed: Vec::new(),
            _screens: screens,
        }
    }

    /// Whether the terminal waits for an answer, so that nothing else may be drawn on it.
    pub fn is_asking(&self) -> bool {
        self.asked.is_some()
    }

    /// Shows new questions above the progress bar and passes on a typed answer; never waits for one.
    pub fn step(&mut self, bar: &ProgressBar) {
        if !self.context.screen.presentation.shows_progress() {
            return;
        }
        // An error here is one of the wait, too, which reports it.
        let open = self.engine.conversations().open_questions(self.ids).unwrap_or_default();
        self.forget_closed(&open, bar);
        let can_answer = terminal_prompt::can_answer(self.context);
        for (task, question) in open {
            let key = (task, question.question.number);
            if self.is_asking() || self.shown.contains(&key) {
                continue;
            }
            if can_answer {
                // What was typed before a question is shown does not answer it.
                discard_input();
                self.typed.clear();
                self.print(&self.prompt(&key.0, &question), bar);
                self.asked = Some((key.0.clone(), question));
            } else {
                let data = QuestionData::from(&question);
                self.print(&conversation::append_question(Document::default(), key.0.as_str(), &data), bar);
            }
            self.shown.push(key);
        }
        if self.is_asking()
            && let Some(line) = self.typed_line()
            && let Some((task, question)) = &self.asked
        {
            self.answer(task, &question.question, line.trim(), bar);
        }
    }

    fn answer(&self, task: &TaskId, question: &Question, line: &str, bar: &ProgressBar) {
        let answered = typed_answer(question, line)
            .map(|answer| self.engine.conversations().answer(task, question.number, &answer));
        let again = Document::default();
        let again = match answered {
            // The answer closes the question, which the next step notices.
            Some(Ok(_)) => return,
            None | Some(Err(EngineError::Conversation(ConversationError::InvalidAnswer { .. }))) => again,
            Some(Err(error)) => again.text(AppError::from(error).message),
        };
        self.print(&again.text(format!("{}:", instruction(question))), bar);
    }

    /// The person may have answered elsewhere, or the time is over.
    fn forget_closed(&mut self, open: &[(TaskId, StoredQuestion)], bar: &ProgressBar) {
        let Some((task, asked)) = &self.asked else { return };
        let number = asked.question.number;
        if open.iter().any(|(other, question)| other == task && question.question.number == number) {
            return;
        }
        if let Ok(closed) = self.engine.conversations().question(task, Some(number)) {
            let state = closed.state.name();
            let text = format!("Question {number}{} is {state}.", self.of_task(task));
            self.print(&Document::default().text(text), bar);
        }
        self.asked = None;
    }

    fn print(&self, document: &Document, bar: &ProgressBar) {
        let screen = &self.context.screen;
        let text = document.to_text(screen.presentation.body_style().plain());
        bar.suspend(|| screen.announce(&text));
    }

    /// Which task it is, if the command waits for several.
    fn of_task(&self, task: &TaskId) -> String {
        if self.ids.len() > 1 { format!(" of {task}") } else { String::new() }
    }

    /// A line that was typed completely. A job in the background must not read what is typed for the shell.
    fn typed_line(&mut self) -> Option<String> {
        let stdin = io::stdin();
        let mut polled = [PollFd::new(&stdin, PollFlags::IN)];
        let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        if is_in_background(&stdin) || !matches!(poll(&mut polled, Some(&at_once)), Ok(1..)) {
            return None;
        }
        // Not until a line is complete, because that may never be.
        let mut chunk = [0; 4096];
        let read = rustix::io::read(&stdin, &mut chunk).unwrap_or(0);
        self.typed.extend_from_slice(&chunk[..read]);
        let end = self.typed.iter().position(|byte| *byte == b'\n')?;
        let line = String::from_utf8_lossy(&self.typed[..end]).into_owned();
        self.typed.clear();
        Some(line)
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
        let of_task = self.of_task(task);
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

/// What the person can type.
pub fn instruction(question: &Question) -> String {
    match (question.options.len(), question.free_text) {
        (0, _) => "Type an answer".to_owned(),
        (1, false) => "Type 1".to_owned(),
        (1, true) => "Type 1, or an answer of your own".to_owned(),
        (count, false) => format!("Type 1 to {count}"),
        (count, true) => format!("Type 1 to {count}, or an answer of your own"),
    }
}

/// The answer in a typed line: the numbers of options, the id or label of one, or a text. `None` for an empty line,
/// and for a number that the prompt does not show.
pub fn typed_answer(question: &Question, line: &str) -> Option<Answer> {
    let options = &question.options;
    if line.is_empty() {
        return None;
    }
    let numbered = |part: &str| options.get(part.trim().parse::<usize>().ok()?.checked_sub(1)?);
    let chosen: Option<Vec<&AnswerOption>> = line.split(',').map(numbered).collect();
    match chosen.as_deref() {
        Some([one]) => return Some(Answer { option: Some(one.id.clone()), text: None }),
        Some(several) if question.free_text => {
            let labels: Vec<&str> = several.iter().map(|option| option.label.as_str()).collect();
            return Some(Answer { option: None, text: Some(labels.join(", ")) });
        }
        _ => {}
    }
    let answer = unspecific_answer(question, line);
    let is_number = line.split(',').all(|part| part.trim().parse::<usize>().is_ok());
    (answer.option.is_some() || options.is_empty() || !is_number).then_some(answer)
}

fn is_in_background(stdin: &io::Stdin) -> bool {
    termios::tcgetpgrp(stdin).is_ok_and(|foreground| foreground != process::getpgrp())
}

fn discard_input() {
    let stdin = io::stdin();
    if !is_in_background(&stdin) {
        let _ = termios::tcflush(&stdin, QueueSelector::IFlush);
    }
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
        assert_eq!(answer(true, "2, 1"), Some((None, Some("Blue, Red".into()))), "several, by their labels");
        assert_eq!(answer(true, "3"), None, "no option has this number");
        assert_eq!(answer(true, "green, please"), Some((None, Some("green, please".into()))));
        assert_eq!(answer(true, ""), None);
        let without_options = typed_answer(&question(&[], true), "3").unwrap();
        assert_eq!((without_options.option, without_options.text), (None, Some("3".into())));
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
