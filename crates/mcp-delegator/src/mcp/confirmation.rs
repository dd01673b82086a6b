//! Asking the user for the word that a call lacks.
//!
//! A mode that writes wants `confirm`. Where the host can ask its user, the user is asked: by a request of ours in the
//! older protocol, by an answer that wants more input in the newer one. Everywhere else the rule stands.

use std::path::Path;

use rmcp::RoleServer;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema,
    InputRequest, InputRequiredResult, InputResponses, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde_json::{Map, Value};

use super::confirmation_text;
use crate::error::{AppError, ErrorCode};
use crate::requests::{OPTIONS, snake_case};

/// The name of the question, and of its answer.
const CONFIRM: &str = "confirm";

/// What the user said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserDecision {
    Yes,
    No,
    /// The question was closed without an answer.
    Dismissed,
}

/// Whether this host can ask its user.
pub fn can_ask(context: &RequestContext<RoleServer>) -> bool {
    let capabilities = context.client_capabilities();
    let elicitation = capabilities.and_then(|capabilities| capabilities.elicitation);
    // A host that names no mode means forms.
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Whether the protocol of this request wants questions as answers.
pub fn uses_input_required(context: &RequestContext<RoleServer>) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= "2026-07-28")
}

/// The answer that wants the user's word first.
pub fn input_required(object: &Map<String, Value>, current_dir: &Path) -> Option<InputRequiredResult> {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(object, current_dir)?));
    Some(InputRequiredResult::from_input_requests([(CONFIRM.to_owned(), request)].into()))
}

/// What came back with a repeated call.
pub fn decision_from_responses(responses: Option<&InputResponses>) -> Option<UserDecision> {
    let answer: ElicitResult = serde_json::from_value(responses?.get(CONFIRM)?.clone()).ok()?;
    Some(decision_of(&answer))
}

/// Asks by a request of our own. Where the call is cancelled meanwhile, the question is taken back.
pub async fn ask(
    context: &RequestContext<RoleServer>,
    object: &Map<String, Value>,
    current_dir: &Path,
) -> Option<UserDecision> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form(object, current_dir)?));
    let options = PeerRequestOptions::no_options();
    let mut asked = context.peer.send_cancellable_request(request, options).await.ok()?;
    tokio::select! {
        biased;
        () = context.ct.cancelled() => {
            let _ = asked.cancel(Some("The call was cancelled.".to_owned())).await;
            None
        }
        answer = &mut asked.rx => match answer {
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

/// The user's word, put where the call lacks it.
pub fn set_confirmed(object: &mut Map<String, Value>) {
    let without = |inputs: &mut Map<String, Value>| inputs.retain(|key, _| snake_case(key) != CONFIRM);
    if let Some(Value::Object(options)) = object.get_mut(OPTIONS) {
        without(options);
    }
    without(object);
    object.insert(CONFIRM.to_owned(), true.into());
}

/// What a model is told whose user did not agree. How to get round the user is not among it.
pub fn refusal(said: UserDecision) -> AppError {
    let message = match said {
        UserDecision::Dismissed => "The user was asked and gave no answer. Nothing was started.",
        UserDecision::Yes | UserDecision::No => "The user was asked and declined. Nothing was started.",
    };
    AppError::new(ErrorCode::ConfirmationRequired, message)
        .context("declined", true)
        .suggest("Do not make this call again; ask the user what to do instead.")
}

fn form(object: &Map<String, Value>, current_dir: &Path) -> Option<ElicitRequestParams> {
    let message = confirmation_text::message(object, current_dir);
    let requested_schema = ElicitationSchema::builder().required_bool(CONFIRM).build().ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema })
}
