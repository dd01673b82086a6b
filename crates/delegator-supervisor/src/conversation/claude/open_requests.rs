//! Requests of Claude Code that wait for the user.
//!
//! A request for permission is one question of ours. A request with questions of the agent contains up to four, which are
//! asked one after the other; all answers are sent together.

use std::collections::BTreeSet;

use delegator_domain::question::{Answer, AnswerOption, OptionKind, Question, QuestionKind, QuestionNumber};
use delegator_transcript::Text;
use delegator_transcript::wire::claude::{
    AgentQuestion, PermissionRequest, ToolAction, allow_tool, answer_questions, deny_tool,
};

use super::super::{Outbox, Step};

const ALLOW_ONCE: &str = "allow_once";
const ALLOW_ALWAYS: &str = "allow_always";
const REJECT_ONCE: &str = "reject_once";
const REJECTED: &str = "The user did not allow this.";
const NO_ANSWER: &str = "The user did not answer. Continue with what you consider best.";
const MAX_DETAIL_BYTES: usize = 4 << 10;

#[derive(Debug, Default)]
pub(super) struct OpenRequests {
    open: Vec<OpenRequest>,
    last_number: u32,
    /// Tools that the user has allowed until the task ends.
    allowed_tools: BTreeSet<String>,
}

#[derive(Debug)]
struct OpenRequest {
    request_id: String,
    /// The question that is open now.
    number: QuestionNumber,
    /// Raw JSON.
    input: String,
    kind: RequestKind,
}

#[derive(Debug)]
enum RequestKind {
    Permission { tool: String },
    Questions { answered: Vec<(String, String)>, current: String, waiting: Vec<PendingQuestion> },
}

/// A question of the agent that was not asked yet.
#[derive(Debug)]
struct PendingQuestion {
    text: String,
    options: Vec<AnswerOption>,
    detail: Option<String>,
}

impl OpenRequests {
    /// Asks the user whether a tool may be used, unless the user has allowed it until the end.
    pub(super) fn ask_permission(
        &mut self,
        request_id: &Text<'_>,
        request: &PermissionRequest<'_>,
        out: &mut Outbox,
    ) {
        let tool = request.tool.resolve().into_owned();
        if self.allowed_tools.contains(&tool) {
            return out.send(allow_tool(request_id, request.input));
        }
        let (title, subject) = match &request.action {
            ToolAction::Command { command } => ("Run a command".to_owned(), command.resolve().into_owned()),
            ToolAction::Edit { path } => ("Change a file".to_owned(), path.resolve().into_owned()),
            _ => (format!("Use the tool {tool}"), request.input.to_owned()),
        };
        let reason = request.reason.as_ref().map(|reason| format!("\n({})", reason.resolve()));
        let detail = truncated(subject + &reason.unwrap_or_default());
        let option =
            |id: &str, label: &str, kind| AnswerOption { id: id.to_owned(), label: label.to_owned(), kind };
        let question = Question {
            number: self.next_number(),
            kind: QuestionKind::Permission,
            title,
            detail: Some(detail),
            options: vec![
                option(ALLOW_ONCE, "Allow once", OptionKind::AllowOnce),
                option(ALLOW_ALWAYS, &format!("Allow {tool} until the task ends"), OptionKind::AllowAlways),
                option(REJECT_ONCE, "Reject", OptionKind::RejectOnce),
            ],
            free_text: false,
        };
        self.open.push(OpenRequest {
            request_id: request_id.resolve().into_owned(),
            number: question.number,
            input: request.input.to_owned(),
            kind: RequestKind::Permission { tool },
        });
        out.report(Step::Asked(question));
    }

    /// Asks the user the questions of the agent.
    pub(super) fn ask_questions(
        &mut self,
        request_id: &Text<'_>,
        input: &str,
        questions: &[AgentQuestion<'_>],
        out: &mut Outbox,
    ) {
        let mut waiting: Vec<PendingQuestion> = questions.iter().map(PendingQuestion::new).collect();
        let number = self.next_number();
        let current = waiting.remove(0).ask(number, out);
        self.open.push(OpenRequest {
            request_id: request_id.resolve().into_owned(),
            number,
            input: input.to_owned(),
            kind: RequestKind::Questions { answered: Vec::new(), current, waiting },
        });
    }

    /// Responds to the agent, or asks its next question.
    pub(super) fn answer(&mut self, number: QuestionNumber, answer: &Answer, out: &mut Outbox) {
        let Some(index) = self.open.iter().position(|request| request.number == number) else { return };
        let mut request = self.open.remove(index);
        let request_id = Text::plain(&request.request_id);
        match &mut request.kind {
            RequestKind::Permission { tool } => match answer.option.as_deref() {
                Some(ALLOW_ALWAYS) => {
                    self.allowed_tools.insert(std::mem::take(tool));
                    out.send(allow_tool(&request_id, &request.input));
                }
                Some(ALLOW_ONCE) => out.send(allow_tool(&request_id, &request.input)),
                _ => out.send(deny_tool(&request_id, answer.text.as_deref().unwrap_or(REJECTED))),
            },
            RequestKind::Questions { answered, current, waiting } => {
                // The id of an option is its label.
                if let Some(text) = answer.text.as_ref().or(answer.option.as_ref()) {
                    answered.push((std::mem::take(current), text.clone()));
                }
                if !waiting.is_empty() {
                    request.number = self.next_number();
                    *current = waiting.remove(0).ask(request.number, out);
                    return self.open.push(request);
                }
                let answers = answered.iter().map(|(question, answer)| (question.as_str(), answer.as_str()));
                out.send(match answered.is_empty() {
                    true => deny_tool(&request_id, NO_ANSWER),
                    false => answer_questions(&request_id, &request.input, answers),
                });
            }
        }
    }

    /// The agent no longer waits for the response.
    pub(super) fn withdraw(&mut self, request_id: &str, out: &mut Outbox) {
        self.open.retain(|request| {
            let is_withdrawn = request.request_id == request_id;
            if is_withdrawn {
                out.report(Step::Withdrawn(request.number));
            }
            !is_withdrawn
        });
    }

    pub(super) fn withdraw_all(&mut self, out: &mut Outbox) {
        for request in self.open.drain(..) {
            out.report(Step::Withdrawn(request.number));
        }
    }

    fn next_number(&mut self) -> QuestionNumber {
        self.last_number += 1;
        QuestionNumber(self.last_number)
    }
}

impl PendingQuestion {
    fn new(question: &AgentQuestion<'_>) -> PendingQuestion {
        let described = question.options.iter().filter_map(|option| {
            let description = option.description.as_ref()?.resolve();
            Some(format!("{}: {description}", option.label.resolve()))
        });
        let several =
            question.multiple.then(|| "Several answers are possible, separated by commas.".to_owned());
        let detail: Vec<String> = described.chain(several).collect();
        let option = |label: &Text<'_>| {
            let label = label.resolve().into_owned();
            AnswerOption { id: label.clone(), label, kind: OptionKind::Other }
        };
        PendingQuestion {
            text: question.question.resolve().into_owned(),
            options: question.options.iter().map(|it| option(&it.label)).collect(),
            detail: (!detail.is_empty()).then(|| truncated(detail.join("\n"))),
        }
    }

    /// Returns the text by which the agent knows the question.
    fn ask(self, number: QuestionNumber, out: &mut Outbox) -> String {
        out.report(Step::Asked(Question {
            number,
            kind: QuestionKind::Question,
            title: self.text.lines().next().unwrap_or_default().to_owned(),
            detail: match self.text.contains('\n') {
                true => Some(truncated(format!("{}\n{}", self.text, self.detail.unwrap_or_default()))),
                false => self.detail,
            },
            options: self.options,
            free_text: true,
        }));
        self.text
    }
}

fn truncated(mut text: String) -> String {
    if text.len() > MAX_DETAIL_BYTES {
        text.truncate(text.floor_char_boundary(MAX_DETAIL_BYTES));
        text.push('…');
    }
    text
}
