//! Asks the user to confirm a call that lacks `confirm`.
//!
//! Some calls in a writing mode require `confirm`. If the client supports elicitation, the server asks its user: with an
//! elicitation request before protocol 2026-07-28, with an input-required response since then. If the client does not
//! support it, the call is refused.

use std::path::Path;

use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde_json::{Map, Value};

use crate::error::{AppError, ErrorCode};
use crate::input::validation::{OPTIONS, snake_case};
use crate::mcp::tools::confirmation_text;

/// The name of the elicitation, and of its boolean field.
const CONFIRM: &str = "confirm";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserDecision {
    Yes,
    No,
    /// The user closed the form without an answer.
    Dismissed,
}

/// Whether the client supports elicitation forms.
pub fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    // A client that names no mode supports forms.
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Whether the protocol of this request uses input-required responses instead of elicitation requests.
pub fn uses_input_required(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= "2026-07-28")
}

/// The response that asks the client for the confirmation first.
pub fn input_required(object: &Map<String, Value>, current_dir: &Path) -> Option<InputRequiredResult> {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(object, current_dir)?));
    Some(InputRequiredResult::from_input_requests([(CONFIRM.to_owned(), request)].into()))
}

/// The decision in the input responses of a repeated call.
pub fn decision_from_responses(responses: Option<&InputResponses>) -> Option<UserDecision> {
    let answer: ElicitResult = serde_json::from_value(responses?.get(CONFIRM)?.clone()).ok()?;
    Some(decision_of(&answer))
}

/// Sends an elicitation request. If the call is cancelled meanwhile, the request is cancelled, too.
pub async fn ask(
    context: &RequestContext<RoleServer>,
    object: &Map<String, Value>,
    current_dir: &Path,
) -> Option<UserDecision> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form(object, current_dir)?));
    let options = PeerRequestOptions::no_options();
    let mut pending = context.peer.send_cancellable_request(request, options).await.ok()?;
    tokio::select! {
        biased;
        () = context.ct.cancelled() => {
            let _ = pending.cancel(Some("The call was cancelled.".to_owned())).await;
            None
        }
        answer = &mut pending.rx => match answer {
            Ok(Ok(ClientResult::ElicitResult(answer))) => Some(decision_of(&answer)),
            _ => None,
        },
    }
}

fn decision_of(answer: &ElicitResult) -> UserDecision {
    let confirmed = answer.content.as_ref().is_some_and(|content| content[CONFIRM] == true);
    match answer.action {
        ElicitationAction::Accept if confirmed => UserDecision::Yes,
        ElicitationAction::Cancel => UserDecision::Dismissed,
        _ => UserDecision::No,
    }
}

/// Sets `confirm` in the arguments, and removes it from wherever else it stands.
pub fn set_confirmed(object: &mut Map<String, Value>) {
    let remove = |inputs: &mut Map<String, Value>| inputs.retain(|key, _| snake_case(key) != CONFIRM);
    if let Some(Value::Object(options)) = object.get_mut(OPTIONS) {
        remove(options);
    }
    remove(object);
    object.insert(CONFIRM.to_owned(), true.into());
}

/// The error after a refusal. It must not suggest how to bypass the user.
pub fn refusal(decision: UserDecision) -> AppError {
    let message = match decision {
        UserDecision::Dismissed => "The user closed the confirmation without an answer. Nothing was started.",
        UserDecision::Yes | UserDecision::No => "The user declined the call. Nothing was started.",
    };
    AppError::new(ErrorCode::ConfirmationRequired, message)
        .context("is_declined", true)
        .suggest("Do not repeat this call; ask the user what to do instead.")
}

fn form(object: &Map<String, Value>, current_dir: &Path) -> Option<ElicitRequestParams> {
    let message = confirmation_text::message(object, current_dir);
    let requested_schema = ElicitationSchema::builder().required_bool(CONFIRM).build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}
