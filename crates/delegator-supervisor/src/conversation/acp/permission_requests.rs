//! Permission requests that wait for the user, and the options that answer requests.

use delegator_domain::question::{Answer, AnswerOption, OptionKind, Question, QuestionKind, QuestionNumber};
use delegator_transcript::wire::acp::outgoing::{cancel_request, select_option};
use delegator_transcript::wire::acp::{self, PermissionOption};
use delegator_transcript::wire::json_rpc::RequestId;

use super::super::{Outbox, Step};

const ALLOWING: [OptionKind; 2] = [OptionKind::AllowOnce, OptionKind::AllowAlways];
const REJECTING: [OptionKind; 2] = [OptionKind::RejectOnce, OptionKind::RejectAlways];

#[derive(Debug, Default)]
pub(super) struct PermissionRequests {
    open: Vec<(RequestId, Question)>,
    last_number: u32,
}

impl PermissionRequests {
    /// Asks the user.
    pub(super) fn ask(
        &mut self,
        id: RequestId,
        options: &[PermissionOption<'_>],
        (title, detail): (String, Option<String>),
        out: &mut Outbox,
    ) {
        self.last_number += 1;
        let question = Question {
            number: QuestionNumber(self.last_number),
            kind: QuestionKind::Permission,
            title,
            detail,
            options: options.iter().map(answer_option).collect(),
            free_text: false,
        };
        out.report(Step::Asked(question.clone()));
        self.open.push((id, question));
    }

    /// Answers the agent with the chosen option; without one, the permission is refused.
    pub(super) fn answer(&mut self, number: QuestionNumber, answer: &Answer, out: &mut Outbox) {
        let Some(index) = self.open.iter().position(|(_, question)| question.number == number) else {
            return;
        };
        let (id, question) = self.open.remove(index);
        let chosen = question.options.iter().find(|option| answer.option.as_ref() == Some(&option.id));
        let option = chosen.or_else(|| question.option_of_kind(&REJECTING));
        out.send(match option {
            Some(option) => select_option(&id, &option.id),
            None => cancel_request(&id),
        });
    }

    /// The turn is cancelled: the agent must get this answer to every open request.
    pub(super) fn cancel_all(&mut self, out: &mut Outbox) {
        for (id, question) in self.open.drain(..) {
            out.send(cancel_request(&id));
            out.report(Step::Withdrawn(question.number));
        }
    }

    /// The turn has ended: the agent no longer waits.
    pub(super) fn withdraw_all(&mut self, out: &mut Outbox) {
        for (_, question) in self.open.drain(..) {
            out.report(Step::Withdrawn(question.number));
        }
    }
}

fn answer_option(option: &PermissionOption<'_>) -> AnswerOption {
    let id = option.id.resolve().into_owned();
    let label = Some(option.name.resolve().into_owned()).filter(|name| !name.is_empty());
    AnswerOption { label: label.unwrap_or_else(|| id.clone()), id, kind: option_kind(option.kind) }
}

fn option_kind(kind: acp::OptionKind) -> OptionKind {
    match kind {
        acp::OptionKind::AllowOnce => OptionKind::AllowOnce,
        acp::OptionKind::AllowAlways => OptionKind::AllowAlways,
        acp::OptionKind::RejectOnce => OptionKind::RejectOnce,
        acp::OptionKind::RejectAlways => OptionKind::RejectAlways,
        acp::OptionKind::Other => OptionKind::Other,
    }
}

/// The answer that allows or refuses this call alone, if there is such an option. Ids and order differ between agents, so only
/// the kind counts.
pub(super) fn choose(id: &RequestId, options: &[PermissionOption<'_>], is_allowed: bool) -> Vec<u8> {
    let kinds = if is_allowed { ALLOWING } else { REJECTING };
    let option =
        kinds.iter().find_map(|kind| options.iter().find(|option| option_kind(option.kind) == *kind));
    match option {
        Some(option) => select_option(id, &option.id.resolve()),
        None => cancel_request(id),
    }
}
