//! Prints the questions of awaited agents on the terminal while the command waits, each once.

use delegator_domain::question::QuestionNumber;

use crate::commands::prelude::*;
use crate::output::data::conversation::QuestionData;
use crate::output::documents::conversation;
use crate::output::documents::text::TextStyle;

#[derive(Debug)]
pub struct AnnouncedQuestions<'a> {
    context: &'a Context<'a>,
    engine: &'a Engine,
    ids: &'a [TaskId],
    announced: Vec<(TaskId, QuestionNumber)>,
}

impl<'a> AnnouncedQuestions<'a> {
    pub fn new(context: &'a Context<'a>, engine: &'a Engine, ids: &'a [TaskId]) -> AnnouncedQuestions<'a> {
        AnnouncedQuestions { context, engine, ids, announced: Vec::new() }
    }

    /// Prints the new open questions with the command that answers each. Programs find them in the output at
    /// the end.
    pub fn announce_new(&mut self) {
        let screen = &self.context.screen;
        if !screen.presentation.shows_progress() {
            return;
        }
        // An error here is one of the wait, too, which reports it.
        for (task, stored) in self.engine.conversations().open_questions(self.ids).unwrap_or_default() {
            let key = (task, stored.question.number);
            if !self.announced.contains(&key) {
                let question = QuestionData::from(&stored);
                let document = conversation::append_question(Document::default(), key.0.as_str(), &question);
                screen.announce(&document.to_text(TextStyle::default()));
                self.announced.push(key);
            }
        }
    }
}
