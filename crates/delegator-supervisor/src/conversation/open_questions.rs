//! Requests of an agent that wait for the user, for agents that ask for permission and ask questions.
//!
//! A request for permission is one question of ours. A request with several questions of the agent is asked
//! one after the other; its answers are complete when the last one is answered. `R` identifies the request to
//! the agent.

use delegator_domain::question::{Answer, AnswerOption, OptionKind, Question, QuestionKind, QuestionNumber};
use delegator_transcript::Text;

use super::outbox::{Outbox, Step};

const MAX_DETAIL_BYTES: usize = 4 << 10;

#[derive(Debug)]
pub(super) struct OpenQuestions<R> {
    open: Vec<OpenRequest<R>>,
    last_number: u32,
}

#[derive(Debug)]
struct OpenRequest<R> {
    request: R,
    number: QuestionNumber,
    kind: RequestKind,
}

#[derive(Debug)]
enum RequestKind {
    Permission { options: Vec<AnswerOption> },
    Questions { answered: Vec<AnsweredQuestion>, current: String, waiting: Vec<AgentQuestion> },
}

#[derive(Debug)]
pub(super) struct Permission {
    pub(super) title: String,
    pub(super) detail: Option<String>,
    pub(super) options: Vec<AnswerOption>,
}

impl Permission {
    /// With options that the agent knows by their kinds.
    pub(super) fn new(title: String, detail: String, options: &[(OptionKind, String)]) -> Permission {
        let option = |(kind, label): &(OptionKind, String)| AnswerOption {
            id: kind.name().to_owned(),
            label: label.clone(),
            kind: *kind,
        };
        let options = options.iter().map(option).collect();
        Permission { title, detail: Some(truncated(detail)), options }
    }
}

#[derive(Debug)]
pub(super) struct AgentQuestion {
    /// By which the agent knows the question.
    pub(super) key: String,
    pub(super) text: String,
    /// Suggested answers and what they mean.
    pub(super) options: Vec<(String, Option<String>)>,
    pub(super) multiple: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct AnsweredQuestion {
    pub(super) key: String,
    pub(super) answer: Option<String>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// The chosen option; `None` without an answer. The text is for the agent.
    Permission {
        chosen: Option<AnswerOption>,
        text: Option<String>,
    },
    Answers(Vec<AnsweredQuestion>),
}

impl<R> Default for OpenQuestions<R> {
    fn default() -> Self {
        Self { open: Vec::new(), last_number: 0 }
    }
}

impl<R> OpenQuestions<R> {
    pub(super) fn ask_permission(&mut self, request: R, permission: Permission, out: &mut Outbox) {
        let Permission { title, detail, options } = permission;
        let number = self.next_number();
        out.report(Step::Question(Question {
            number,
            kind: QuestionKind::Permission,
            title,
            detail,
            options: options.clone(),
            free_text: false,
        }));
        self.open.push(OpenRequest { request, number, kind: RequestKind::Permission { options } });
    }

    /// Asks the questions of the agent, of which there is at least one.
    pub(super) fn ask_questions(&mut self, request: R, mut questions: Vec<AgentQuestion>, out: &mut Outbox) {
        if questions.is_empty() {
            return;
        }
        let number = self.next_number();
        let current = questions.remove(0).ask(number, out);
        let kind = RequestKind::Questions { answered: Vec::new(), current, waiting: questions };
        self.open.push(OpenRequest { request, number, kind });
    }

    /// The reply to the agent, or `None` if its next question was asked, or if the question is not open.
    pub(super) fn answer(
        &mut self,
        number: QuestionNumber,
        answer: Answer,
        out: &mut Outbox,
    ) -> Option<(R, Reply)> {
        let index = self.open.iter().position(|request| request.number == number)?;
        let mut open = self.open.remove(index);
        match open.kind {
            RequestKind::Permission { options } => {
                let chosen = options.into_iter().find(|option| Some(&option.id) == answer.option.as_ref());
                Some((open.request, Reply::Permission { chosen, text: answer.text }))
            }
            RequestKind::Questions { mut answered, current, mut waiting } => {
                // The id of an option is its label.
                answered.push(AnsweredQuestion { key: current, answer: answer.text.or(answer.option) });
                if waiting.is_empty() {
                    return Some((open.request, Reply::Answers(answered)));
                }
                open.number = self.next_number();
                let current = waiting.remove(0).ask(open.number, out);
                open.kind = RequestKind::Questions { answered, current, waiting };
                self.open.push(open);
                None
            }
        }
    }

    /// The agent no longer waits for these requests, which are returned.
    pub(super) fn withdraw(&mut self, is_withdrawn: impl Fn(&R) -> bool, out: &mut Outbox) -> Vec<R> {
        let withdrawn = self.open.extract_if(.., |open| is_withdrawn(&open.request));
        let withdrawn = withdrawn.map(|open| {
            out.report(Step::Withdrawn(open.number));
            open.request
        });
        withdrawn.collect()
    }

    fn next_number(&mut self) -> QuestionNumber {
        self.last_number += 1;
        QuestionNumber(self.last_number)
    }
}

impl AgentQuestion {
    pub(super) fn new(
        key: &Text<'_>,
        text: &Text<'_>,
        options: &[(Text<'_>, Option<Text<'_>>)],
        multiple: bool,
    ) -> AgentQuestion {
        let owned = |text: &Text<'_>| text.resolve().into_owned();
        let options =
            options.iter().map(|(label, description)| (owned(label), description.as_ref().map(owned)));
        AgentQuestion { key: owned(key), text: owned(text), options: options.collect(), multiple }
    }

    /// Returns the key.
    fn ask(self, number: QuestionNumber, out: &mut Outbox) -> String {
        let described = self.options.iter().filter_map(|(label, description)| {
            description.as_ref().map(|description| format!("{label}: {description}"))
        });
        let is_long = self.text.contains('\n').then(|| self.text.clone());
        let several = self.multiple.then(|| "Several answers are possible, separated by commas.".to_owned());
        let detail: Vec<String> = is_long.into_iter().chain(described).chain(several).collect();
        let option = |label: &String| AnswerOption {
            id: label.clone(),
            label: label.clone(),
            kind: OptionKind::Other,
        };
        out.report(Step::Question(Question {
            number,
            kind: QuestionKind::Question,
            title: self.text.lines().next().unwrap_or_default().to_owned(),
            detail: (!detail.is_empty()).then(|| truncated(detail.join("\n"))),
            options: self.options.iter().map(|(label, _)| option(label)).collect(),
            free_text: true,
        }));
        self.key
    }
}

pub(super) fn truncated(mut text: String) -> String {
    if text.len() > MAX_DETAIL_BYTES {
        text.truncate(text.floor_char_boundary(MAX_DETAIL_BYTES));
        text.push('…');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(key: &str) -> AgentQuestion {
        AgentQuestion { key: key.to_owned(), text: "a\nb".to_owned(), options: Vec::new(), multiple: true }
    }

    #[test]
    fn numbers_go_on_and_a_question_is_answered_once() {
        let mut questions = OpenQuestions::default();
        let mut out = Outbox::default();
        questions.ask_questions("r1", vec![question("k1"), question("k2")], &mut out);
        let options = [(OptionKind::AllowOnce, "Yes".to_owned())];
        let permission = Permission::new("t".to_owned(), "é".repeat(5000), &options);
        questions.ask_permission("r2", permission, &mut out);
        let steps: Vec<_> = out.steps.drain(..).collect();
        let [Step::Question(first), Step::Question(second)] = &steps[..] else { panic!("{steps:?}") };
        assert_eq!((first.number.0, first.title.as_str(), second.number.0), (1, "a", 2));
        assert!(second.detail.as_ref().unwrap().len() < 5000);
        let text = |text: &str| Answer { option: None, text: Some(text.to_owned()) };
        assert_eq!(questions.answer(QuestionNumber(1), text("one"), &mut out), None);
        assert!(matches!(&out.steps[..], [Step::Question(next)] if next.number.0 == 3));
        assert_eq!(questions.answer(QuestionNumber(1), text("again"), &mut out), None);
        let (request, Reply::Answers(answers)) =
            questions.answer(QuestionNumber(3), Answer::default(), &mut out).unwrap()
        else {
            panic!("the questions are answered")
        };
        let answers: Vec<_> = answers.iter().map(|it| (it.key.as_str(), it.answer.as_deref())).collect();
        assert_eq!((request, answers), ("r1", vec![("k1", Some("one")), ("k2", None)]));
        let option = Answer { option: Some("no such option".to_owned()), text: None };
        let reply = questions.answer(QuestionNumber(2), option, &mut out);
        assert_eq!(reply, Some(("r2", Reply::Permission { chosen: None, text: None })));
    }

    #[test]
    fn withdrawn_requests_are_reported() {
        let mut questions = OpenQuestions::default();
        let mut out = Outbox::default();
        questions.ask_questions("r1", vec![question("k")], &mut out);
        questions.ask_questions("r2", vec![question("k")], &mut out);
        out.steps.clear();
        assert_eq!(questions.withdraw(|request| *request == "r2", &mut out), ["r2"]);
        assert_eq!(out.steps, [Step::Withdrawn(QuestionNumber(2))]);
        questions.withdraw(|_| true, &mut out);
        assert_eq!(out.steps.len(), 2);
    }
}
