//! The questions of an agent, and their answers.
//!
//! A question is open until it is answered, expires, is withdrawn by the agent, or the task ends. Each of
//! these is a change from `open`, so the first one wins, and an answer that comes too late gets the stored
//! question back.
//!
//! The texts in the database are redacted. So an option is stored by its position, and the unredacted text of
//! an answer is in a file until the supervisor has read it.

use delegator_domain::crash::{CrashPoint, crash_point};
use delegator_domain::notification::Topic;
use delegator_domain::question::{Question, QuestionNumber, QuestionState};
use delegator_domain::task::TaskId;
use rusqlite::{Connection, OptionalExtension, Row, named_params};

use super::notifications::enqueue_live;
use crate::columns::{Column, record};
use crate::compare_and_set::{Cas, Lost, Nonce};
use crate::error::{RegistryError, Result};
use crate::registry::{Registry, query_all};
use crate::row;
use crate::task::id_from;

record! {
    /// A question as it is stored, with redacted texts.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct StoredQuestion {
        pub question: Question = question_from,
        pub state: QuestionState,
        pub asked_at_ms: i64,
        pub expires_at_ms: i64,
        /// Set once it is answered.
        pub answer: Option<StoredAnswer> = answer_from,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoredAnswer {
    /// The position of the option in the question.
    pub option: Option<usize>,
    pub text: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerOutcome {
    Recorded(StoredQuestion),
    /// It was closed before; nothing was changed.
    Closed(StoredQuestion),
    Unknown,
}

pub(crate) const ONE: &str =
    "SELECT * FROM questions WHERE task = (SELECT seq FROM tasks WHERE id = ?1) AND number = ?2";
pub(crate) const OPEN: &str = "SELECT * FROM questions INDEXED BY questions_open \
     WHERE task = (SELECT seq FROM tasks WHERE id = ?1) AND state = 'open' ORDER BY number";
pub(crate) const ALL_OPEN: &str = "SELECT questions.*, tasks.id FROM questions INDEXED BY questions_open \
     JOIN tasks ON tasks.seq = questions.task WHERE questions.state = 'open' ORDER BY questions.task, questions.number";
pub(crate) const WITHDRAW_ALL: &str = "UPDATE questions INDEXED BY questions_open \
     SET state = 'withdrawn', closed_at_ms = ?2 WHERE task = ?1 AND state = 'open'";

impl Registry {
    pub fn ask(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        question: &Question,
        expires_at_ms: i64,
        now_ms: i64,
    ) -> Result<Cas<()>> {
        let question = &self.sink.question(question);
        let options = serde_json::json!(question.options).to_string();
        self.write_working(id, nonce, |db, stored| {
            let values = named_params! {
                ":task": stored.seq,
                ":number": question.number.0,
                ":kind": question.kind.name(),
                ":title": question.title,
                ":detail": question.detail,
                ":options": options,
                ":free_text": question.free_text,
                ":asked_at_ms": now_ms,
                ":expires_at_ms": expires_at_ms,
                ":state": QuestionState::Open.name(),
            };
            row::insert(db, "questions", values)?;
            enqueue_live(db, stored, Topic::Question(question.number), None, now_ms).map(Cas::Applied)
        })
        .inspect(|_| crash_point(CrashPoint::QuestionAsked))
    }

    /// Answers an open question; the first answer wins. `file` is a fresh name for the text. The caller has
    /// checked that the question permits this answer.
    pub fn answer(
        &mut self,
        id: &TaskId,
        number: QuestionNumber,
        answer: &StoredAnswer,
        file: &Nonce,
        now_ms: i64,
    ) -> Result<AnswerOutcome> {
        let find = |db: &Connection| find(db, id, number);
        let is_open = |found: &StoredQuestion| found.state == QuestionState::Open;
        match self.read(find)? {
            None => return Ok(AnswerOutcome::Unknown),
            Some(found) if !is_open(&found) => return Ok(AnswerOutcome::Closed(found)),
            Some(_) => {}
        }
        let dir = self.dir.task(id);
        if let Some(text) = &answer.text
            && let Err(error) = dir.write_message(file, text)
        {
            // The end of the task removes the folder.
            let closed = self.read(find)?.filter(|found| !is_open(found));
            return closed.map(AnswerOutcome::Closed).ok_or(error);
        }
        crash_point(CrashPoint::AnswerWritten);
        let text = self.sink.optional(answer.text.as_deref());
        let stored_file = answer.text.as_ref().map(|_| file.as_str());
        let sql = "UPDATE questions SET state = 'answered', answer_option = ?3, answer_text = ?4, answer_file = ?5, \
                   closed_at_ms = ?6 WHERE task = (SELECT seq FROM tasks WHERE id = ?1) AND number = ?2 AND state = 'open'";
        let outcome = self.write(|db| {
            let values = (id.as_str(), number.0, answer.option, &text, stored_file, now_ms);
            let is_first = db.prepare_cached(sql)?.execute(values)? == 1;
            Ok(match find(db)? {
                None => AnswerOutcome::Unknown,
                Some(found) if is_first => AnswerOutcome::Recorded(found),
                Some(found) => AnswerOutcome::Closed(found),
            })
        });
        crash_point(CrashPoint::AnswerRecorded);
        // After a disk error it is unknown whether the answer was recorded; the file stays until the end of
        // the task.
        if !matches!(outcome, Ok(AnswerOutcome::Recorded(_)) | Err(RegistryError::Database { .. })) {
            dir.remove_message(file);
        }
        outcome
    }

    /// Closes a question of the current attempt without an answer: `state` is expired or withdrawn. Lost if
    /// it is closed already, for example because it was answered meanwhile.
    pub fn close_question(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        number: QuestionNumber,
        state: QuestionState,
        now_ms: i64,
    ) -> Result<Cas<()>> {
        self.close_open_until((id, number), nonce, state, i64::MAX, now_ms)
    }

    /// Closes a question as expired, unless it was prolonged beyond this time: then it stays open, and this is
    /// lost.
    pub fn expire_question(
        &mut self,
        id: &TaskId,
        nonce: &Nonce,
        number: QuestionNumber,
        expires_at_ms: i64,
        now_ms: i64,
    ) -> Result<Cas<()>> {
        self.close_open_until((id, number), nonce, QuestionState::Expired, expires_at_ms, now_ms)
    }

    fn close_open_until(
        &mut self,
        (id, number): (&TaskId, QuestionNumber),
        nonce: &Nonce,
        state: QuestionState,
        until_ms: i64,
        now_ms: i64,
    ) -> Result<Cas<()>> {
        let sql = "UPDATE questions SET state = ?3, closed_at_ms = ?4 WHERE task = ?1 AND number = ?2 AND state = 'open' \
                   AND expires_at_ms <= ?5";
        let outcome = self.write_working(id, nonce, |db, stored| {
            Ok(match db.execute(sql, (stored.seq, number.0, state.name(), now_ms, until_ms))? {
                0 => Cas::Lost(Lost { actual: Some(stored.state) }),
                _ => Cas::Applied(()),
            })
        })?;
        crash_point(CrashPoint::QuestionClosed);
        Ok(outcome)
    }

    /// Keeps an open question open at least until a time.
    pub fn prolong_question(&mut self, id: &TaskId, number: QuestionNumber, until_ms: i64) -> Result<()> {
        let sql = "UPDATE questions SET expires_at_ms = ?3 WHERE task = (SELECT seq FROM tasks WHERE id = ?1) \
                   AND number = ?2 AND state = 'open' AND expires_at_ms < ?3";
        self.write(|db| db.execute(sql, (id.as_str(), number.0, until_ms)).map(drop))
    }

    /// The answers among these questions, unredacted. Removes the files with their texts.
    pub fn take_answers(
        &mut self,
        id: &TaskId,
        numbers: &[QuestionNumber],
    ) -> Result<Vec<(QuestionNumber, StoredAnswer)>> {
        let dir = self.dir.task(id);
        let mut taken = Vec::new();
        for number in numbers {
            let found = self.read(|db| {
                db.prepare_cached(ONE)?.query_row((id.as_str(), number.0), question_and_file_from).optional()
            })?;
            let Some((StoredQuestion { answer: Some(answer), .. }, file)) = found else { continue };
            let written = file.as_ref().map(|file| dir.read_message(file)).transpose()?.flatten();
            taken.push((*number, StoredAnswer { text: written.or(answer.text), ..answer }));
            file.iter().for_each(|file| dir.remove_message(file));
        }
        Ok(taken)
    }

    pub fn question(&self, id: &TaskId, number: QuestionNumber) -> Result<Option<StoredQuestion>> {
        self.read(|db| find(db, id, number))
    }

    pub fn open_questions(&self, id: &TaskId) -> Result<Vec<StoredQuestion>> {
        self.read(|db| query_all(db, OPEN, [id.as_str()], StoredQuestion::from_row))
    }

    pub fn all_open_questions(&self) -> Result<Vec<(TaskId, StoredQuestion)>> {
        let read = |row: &Row<'_>| Ok((id_from(row)?, StoredQuestion::from_row(row)?));
        self.read(|db| query_all(db, ALL_OPEN, (), read))
    }
}

pub(crate) fn withdraw_all(db: &Connection, seq: i64, now_ms: i64) -> rusqlite::Result<()> {
    db.prepare_cached(WITHDRAW_ALL)?.execute((seq, now_ms)).map(drop)
}

fn find(db: &Connection, id: &TaskId, number: QuestionNumber) -> rusqlite::Result<Option<StoredQuestion>> {
    db.prepare_cached(ONE)?.query_row((id.as_str(), number.0), StoredQuestion::from_row).optional()
}

fn question_and_file_from(row: &Row<'_>) -> rusqlite::Result<(StoredQuestion, Option<Nonce>)> {
    let file: Option<String> = row.get("answer_file")?;
    Ok((StoredQuestion::from_row(row)?, file.as_deref().and_then(Nonce::from_text)))
}

fn question_from(row: &Row<'_>) -> rusqlite::Result<Question> {
    Ok(Question {
        number: Column::read(row, "number")?,
        kind: Column::read(row, "kind")?,
        title: row.get("title")?,
        detail: row.get("detail")?,
        options: Column::read(row, "options")?,
        free_text: row.get("free_text")?,
    })
}

fn answer_from(row: &Row<'_>) -> rusqlite::Result<Option<StoredAnswer>> {
    let answer = StoredAnswer { option: row.get("answer_option")?, text: row.get("answer_text")? };
    Ok((QuestionState::read(row, "state")? == QuestionState::Answered).then_some(answer))
}
