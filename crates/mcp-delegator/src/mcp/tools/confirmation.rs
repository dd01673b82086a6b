//! Asks the user to confirm a call that lacks `confirm`.
//!
//! Some calls in a writing mode require `confirm`. If the client supports elicitation, the server asks its user: with an
//! elicitation request before protocol 2026-07-28, with an input-required response since then. The form has no fields:
//! accepting it is the confirmation.
//!
//! A client without a user declares elicitation, too, and refuses by itself (measured: `codex exec` 0.166 sends `decline`,
//! `claude -p` 2.1.325 sends `cancel`, both at once). So an error claims a user's decision only if there was time for one.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, RequestContext};
use serde_json::{Map, Value};

use crate::error::{AppError, ErrorCode, Problem};
use crate::input::validation::{OPTIONS, snake_case};
use crate::mcp::tools::confirmation_text;

/// The name of the input, and of the elicitation.
const CONFIRM: &str = "confirm";
/// A user needs longer to read the question and decide. A faster answer comes from the client itself.
const MIN_READING_TIME: Duration = Duration::from_secs(1);

/// How the question to the user ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Accepted,
    Declined(AnswerTime),
    /// The form was closed without a decision.
    Dismissed(AnswerTime),
    /// The client cannot ask, or responded with an error.
    Unavailable,
}

/// The time from the question to the answer; `None` if it is unknown.
type AnswerTime = Option<Duration>;

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

/// The response that asks the client for the confirmation first. Its state, which the client returns, is the current time.
pub fn input_required(object: &Map<String, Value>, current_dir: &Path) -> InputRequiredResult {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(object, current_dir)));
    let mut question = InputRequiredResult::from_input_requests([(CONFIRM.to_owned(), request)].into());
    question.request_state = Some(Timestamp::now().as_millisecond().to_string());
    question
}

/// The answer in a repeated call.
pub fn answer_in(call: &CallToolRequestParams) -> Option<Answer> {
    let answer = call.input_responses.as_ref()?.get(CONFIRM)?;
    let answer: ElicitResult = serde_json::from_value(answer.clone()).ok()?;
    let sent_ms: Option<i64> = call.request_state.as_ref().and_then(|state| state.parse().ok());
    let elapsed_ms = sent_ms.and_then(|sent| Timestamp::now().as_millisecond().checked_sub(sent));
    let elapsed = elapsed_ms.and_then(|elapsed| u64::try_from(elapsed).ok()).map(Duration::from_millis);
    Some(Answer::of(&answer.action, elapsed))
}

/// Sends an elicitation request. If the call is cancelled meanwhile, the request is cancelled, too.
pub async fn ask(
    context: &RequestContext<RoleServer>,
    object: &Map<String, Value>,
    current_dir: &Path,
) -> Answer {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form(object, current_dir)));
    let options = PeerRequestOptions::no_options();
    let sent = Instant::now();
    let Ok(mut pending) = context.peer.send_cancellable_request(request, options).await else {
        return Answer::Unavailable;
    };
    tokio::select! {
        biased;
        () = context.ct.cancelled() => {
            let _ = pending.cancel(Some("The call was cancelled.".to_owned())).await;
            Answer::Unavailable
        }
        answer = &mut pending.rx => match answer {
            Ok(Ok(ClientResult::ElicitResult(answer))) => Answer::of(&answer.action, Some(sent.elapsed())),
            _ => Answer::Unavailable,
        },
    }
}

impl Answer {
    fn of(action: &ElicitationAction, time: AnswerTime) -> Answer {
        match action {
            ElicitationAction::Accept => Answer::Accepted,
            ElicitationAction::Cancel => Answer::Dismissed(time),
            _ => Answer::Declined(time),
        }
    }

    /// The error of a call, unless it was confirmed. `exec_tool` starts the same task without a confirmation.
    ///
    /// After a user's decision the error must not suggest how to bypass the user.
    pub fn refusal(self, exec_tool: Option<&str>) -> Option<AppError> {
        let without_user = |time: AnswerTime| time.filter(|time| *time < MIN_READING_TIME);
        Some(match self {
            Answer::Accepted => return None,
            Answer::Declined(time) => match without_user(time) {
                Some(time) => unavailable(&refused_by_client("declined", time), exec_tool),
                None => AppError::new(
                    ErrorCode::ConfirmationRequired,
                    "The client reports that the user declined the call. Nothing was started.",
                )
                .context("is_declined", true)
                .suggest("Do not repeat this call; ask the user what to do instead."),
            },
            Answer::Dismissed(time) => match without_user(time) {
                Some(time) => unavailable(&refused_by_client("dismissed the question", time), exec_tool),
                None => AppError::new(
                    ErrorCode::ConfirmationRequired,
                    "The confirmation was closed without an answer. Nothing was started.",
                )
                .suggest("Ask the user what to do; repeat the call only if the user agrees to it."),
            },
            Answer::Unavailable => unavailable("it cannot ask a user", exec_tool),
        })
    }
}

fn refused_by_client(action: &str, time: Duration) -> String {
    format!("it {action} after {} ms, before a user could read the question", time.as_millis())
}

/// The error if no user can confirm: why, and which call needs no confirmation form.
fn unavailable(reason: &str, exec_tool: Option<&str>) -> AppError {
    let exec = exec_tool.map(|tool| format!(" or call {tool} with the same inputs")).unwrap_or_default();
    let suggestion = format!(
        "If the user has agreed to this change, call again with confirm: true{exec}. Otherwise use mode read-only."
    );
    let problem = format!("is not true, and confirmation is not available in this client: {reason}");
    AppError::from_problems(vec![
        Problem::new(ErrorCode::ConfirmationRequired, CONFIRM, problem).suggest(Some(suggestion)),
    ])
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

fn form(object: &Map<String, Value>, current_dir: &Path) -> ElicitRequestParams {
    let message = confirmation_text::message(object, current_dir);
    let requested_schema = ElicitationSchema::new(BTreeMap::new());
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUICK: AnswerTime = Some(Duration::from_millis(20));
    const SLOW: AnswerTime = Some(Duration::from_secs(5));

    #[test]
    fn a_client_without_a_user_gets_the_alternatives() {
        for answer in [Answer::Declined(QUICK), Answer::Dismissed(QUICK), Answer::Unavailable] {
            let error = answer.refusal(Some("_codex_local_exec")).unwrap();
            assert!(error.message.contains("confirmation is not available"), "{error:?}");
            assert!(!error.message.contains("the user declined"), "{error:?}");
            let next = &error.suggestion.as_ref().unwrap().text;
            for part in ["If the user has agreed", "confirm: true", "_codex_local_exec", "read-only"] {
                assert!(next.contains(part), "{part}: {next}");
            }
            assert!(!error.context.contains_key("is_declined"), "{error:?}");
        }
        let text = Answer::Unavailable.refusal(None).unwrap().suggestion.unwrap().text;
        assert!(!text.contains("exec"), "{text}");
    }

    #[test]
    fn an_accepted_call_is_not_refused() {
        assert!(Answer::Accepted.refusal(None).is_none());
    }

    #[test]
    fn a_decision_of_the_user_comes_without_alternatives() {
        for time in [SLOW, None] {
            let declined = Answer::Declined(time).refusal(Some("_codex_local_exec")).unwrap();
            assert!(declined.message.contains("the user declined"), "{declined:?}");
            assert_eq!(declined.context["is_declined"], true);
            let dismissed = Answer::Dismissed(time).refusal(Some("_codex_local_exec")).unwrap();
            assert!(!dismissed.message.contains("declined"), "{dismissed:?}");
            for error in [declined, dismissed] {
                let next = error.suggestion.unwrap().text;
                assert!(!next.contains("confirm: true") && !next.contains("exec"), "{next}");
            }
        }
    }
}
