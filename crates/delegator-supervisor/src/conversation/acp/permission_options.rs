//! The options that answer a permission request. Ids and order differ between agents, so only the kind
//! counts.

use delegator_domain::question::{AnswerOption, OptionKind};
use delegator_transcript::wire::acp::outgoing::{cancel_request, select_option};
use delegator_transcript::wire::acp::{self, PermissionOption};
use delegator_transcript::wire::json_rpc::RequestId;

const ALLOWING: [OptionKind; 2] = [OptionKind::AllowOnce, OptionKind::AllowAlways];
const REJECTING: [OptionKind; 2] = [OptionKind::RejectOnce, OptionKind::RejectAlways];

pub(super) fn answer_option(option: &PermissionOption<'_>) -> AnswerOption {
    let id = option.id.resolve().into_owned();
    let label = Some(option.name.resolve().into_owned()).filter(|name| !name.is_empty());
    let kind = match option.kind {
        acp::OptionKind::AllowOnce => OptionKind::AllowOnce,
        acp::OptionKind::AllowAlways => OptionKind::AllowAlways,
        acp::OptionKind::RejectOnce => OptionKind::RejectOnce,
        acp::OptionKind::RejectAlways => OptionKind::RejectAlways,
        acp::OptionKind::Other => OptionKind::Other,
    };
    AnswerOption { label: label.unwrap_or_else(|| id.clone()), id, kind }
}

/// The answer that allows or refuses this call, alone if there is such an option.
pub(super) fn choose(id: &RequestId, options: &[AnswerOption], is_allowed: bool) -> Vec<u8> {
    let kinds = if is_allowed { ALLOWING } else { REJECTING };
    let option = kinds.iter().find_map(|kind| options.iter().find(|option| option.kind == *kind));
    match option {
        Some(option) => select_option(id, &option.id),
        None => cancel_request(id),
    }
}
