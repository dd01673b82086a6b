//! Asks the user to confirm a call that lacks `confirm`.
//!
//! Some calls in a writing mode require `confirm`. If the client supports elicitation, the server asks its
//! user: with an elicitation request before protocol 2026-07-28, with an input-required response since then.
//! The form has no fields: accepting it is the confirmation.
//!
//! A client without a user declares elicitation, too, and refuses by itself (measured: `codex exec` 0.166
//! sends `decline`, `claude -p` 2.1.325 sends `cancel`, both at once). So an error claims a user's decision
//! only if there was time for one.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use rmcp::model::{
    CallToolRequestParams, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, InputRequest, InputRequiredResult, ServerRequest,
};
use rmcp::service::{PeerRequestOptions, ServiceError};
use serde_json::{Map, Value};

use crate::error::{AppError, ErrorCode, Problem};
use crate::input::validation::{OPTIONS, snake_case};
use crate::mcp::RequestContext;
use crate::mcp::tools::confirmation_text;

/// The name of the input, and of the elicitation.
const CONFIRM: &str = "confirm";
/// A user needs longer to read the question and decide. A faster answer comes from the client itself.
const MIN_READING_TIME: Duration = Duration::from_secs(1);

/// Time for the user to answer. Without an answer the call ends, and nothing was started.
pub const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// How the question to the user ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Confirmation {
    Accepted,
    Declined(AnswerTime),
    /// The form was closed without a decision.
    Dismissed(AnswerTime),
    /// The client cannot ask.
    Unavailable,
    /// The client's response is an error, or is not an answer; the text states which.
    Failed(String),
    TimedOut,
}

/// The time from the question to the answer; `None` if it is unknown.
type AnswerTime = Option<Duration>;

/// Whether the client supports elicitation forms.
pub fn can_ask(context: &RequestContext) -> bool {
    let elicitation = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    // A client that names no mode supports forms.
    elicitation.is_some_and(|modes| modes.form.is_some() || modes.url.is_none())
}

/// Whether the protocol of this request uses input-required responses instead of elicitation requests.
pub fn uses_input_required(context: &RequestContext) -> bool {
    let version = context.protocol_version();
    version.is_some_and(|version| version.as_str() >= "2026-07-28")
}

/// The response that asks the client for the confirmation first. Its state, which the client returns, is the
/// current time.
pub fn input_required(object: &Map<String, Value>, current_dir: &Path) -> InputRequiredResult {
    let request = InputRequest::Elicitation(ElicitRequest::new(form(object, current_dir)));
    let mut question = InputRequiredResult::from_input_requests([(CONFIRM.to_owned(), request)].into());
    question.request_state = Some(Timestamp::now().as_millisecond().to_string());
    question
}

/// The answer in a repeated call.
pub fn answer_in(call: &CallToolRequestParams) -> Option<Confirmation> {
    let answer = call.input_responses.as_ref()?.get(CONFIRM)?;
    let answer: ElicitResult = match serde_json::from_value(answer.clone()) {
        Ok(answer) => answer,
        Err(error) => return Some(Confirmation::Failed(format!("its answer is not valid: {error}"))),
    };
    let sent_ms: Option<i64> = call.request_state.as_ref().and_then(|state| state.parse().ok());
    let elapsed_ms = sent_ms.and_then(|sent| Timestamp::now().as_millisecond().checked_sub(sent));
    let elapsed = elapsed_ms.and_then(|elapsed| u64::try_from(elapsed).ok()).map(Duration::from_millis);
    Some(Confirmation::of(&answer.action, elapsed))
}

/// Asks with an elicitation request.
pub async fn ask(context: &RequestContext, object: &Map<String, Value>, current_dir: &Path) -> Confirmation {
    let (sent, timeout) = (Instant::now(), tokio::time::sleep(ANSWER_TIMEOUT));
    match elicit(context, form(object, current_dir), timeout, "The time for an answer is over.").await {
        Ok(answer) => Confirmation::of(&answer.action, Some(sent.elapsed())),
        Err(unanswered) => unanswered,
    }
}

/// Sends an elicitation request. It is cancelled with the call, and withdrawn for this reason when `until` is
/// over.
pub async fn elicit(
    context: &RequestContext,
    form: ElicitRequestParams,
    until: impl Future<Output = ()>,
    reason: &str,
) -> Result<ElicitResult, Confirmation> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form));
    let options = PeerRequestOptions::no_options();
    let sent = context.peer.send_cancellable_request(request, options).await;
    let mut pending = sent.map_err(|error| Confirmation::Failed(error.to_string()))?;
    let problem = tokio::select! {
        biased;
        () = context.ct.cancelled() => {
            let _ = pending.cancel(Some("The call was cancelled.".to_owned())).await;
            return Err(Confirmation::Unavailable);
        }
        answer = &mut pending.rx => match answer {
            Ok(Ok(ClientResult::ElicitResult(answer))) => return Ok(answer),
            Ok(Ok(_)) => "its answer has no valid action".to_owned(),
            Ok(Err(ServiceError::McpError(error))) => {
                format!("it responded with the error {}: {}", error.code.0, error.message)
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => "the connection was closed".to_owned(),
        },
        () = until => {
            let _ = pending.cancel(Some(reason.to_owned())).await;
            return Err(Confirmation::TimedOut);
        }
    };
    Err(Confirmation::Failed(problem))
}

impl Confirmation {
    fn of(action: &ElicitationAction, time: AnswerTime) -> Confirmation {
        match action {
            ElicitationAction::Accept => Confirmation::Accepted,
            ElicitationAction::Cancel => Confirmation::Dismissed(time),
            _ => Confirmation::Declined(time),
        }
    }

    /// The error of a call, unless it was confirmed. It names one way on, which is to ask the user, and after
    /// a user's decision none.
    pub fn refusal(&self) -> Option<AppError> {
        let quickly = |action: &str, time: &AnswerTime| {
            time.filter(|time| *time < MIN_READING_TIME).map(|time| quickly_refused(action, time))
        };
        let nothing_started = |why: &str, suggestion: &str| {
            AppError::new(ErrorCode::ConfirmationRequired, format!("{why} Nothing was started."))
                .suggest(suggestion)
        };
        Some(match self {
            Confirmation::Accepted => return None,
            Confirmation::Declined(time) => quickly("declined", time).unwrap_or_else(|| {
                nothing_started(
                    "The client reports that the user declined the call.",
                    "Do not repeat this call; ask the user what to do instead.",
                )
                .context("is_declined", true)
            }),
            Confirmation::Dismissed(time) => quickly("dismissed the question", time).unwrap_or_else(|| {
                nothing_started(
                    "The confirmation was closed without an answer.",
                    "Ask the user what to do; repeat the call only if the user agrees to it.",
                )
            }),
            Confirmation::Failed(problem) => {
                unconfirmed(&format!("the client could not ask the user: {problem}"), ASK_THE_USER)
            }
            Confirmation::TimedOut => nothing_started(
                &format!("The user did not answer the confirmation within {} s.", ANSWER_TIMEOUT.as_secs()),
                "Ask the user whether to start the task; repeat the call only if the user agrees to it.",
            ),
            Confirmation::Unavailable => {
                let problem = "confirmation is not available in this client: it cannot ask a user";
                unconfirmed(problem, ASK_THE_USER)
            }
        })
    }
}

/// The error after a refusal that may come from the user or from a client without one: true in both cases.
fn quickly_refused(action: &str, time: Duration) -> AppError {
    let problem = format!("the client {action} after {} ms", time.as_millis());
    let suggestion = format!(
        "If the user declined, do not repeat the call in any form. If no user saw the question (headless client), \
         confirmation is not available here. {ASK_THE_USER}"
    );
    unconfirmed(&problem, &suggestion)
}

/// The way on where no form was shown to the user.
pub const ASK_THE_USER: &str = "Ask the user. If the user agrees, call again with confirm: true.";

fn unconfirmed(reason: &str, suggestion: &str) -> AppError {
    let problem = format!("is not true, and the call was not confirmed: {reason}");
    Problem::new(ErrorCode::ConfirmationRequired, CONFIRM, problem).suggest(Some(suggestion)).into()
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
    fn a_client_without_a_user_learns_to_ask_the_user() {
        let failed = Confirmation::Failed("it responded with the error -32603: boom".to_owned());
        for answer in
            [Confirmation::Declined(QUICK), Confirmation::Dismissed(QUICK), Confirmation::Unavailable, failed]
        {
            let error = answer.refusal().unwrap();
            assert!(!error.message.contains("the user declined"), "{error:?}");
            let next = &error.suggestion.as_ref().unwrap().text;
            assert!(next.ends_with(ASK_THE_USER) && !next.contains("exec"), "{next}");
            let is_quick = matches!(answer, Confirmation::Declined(_) | Confirmation::Dismissed(_));
            assert_eq!(next.starts_with("If the user declined, do not repeat the call"), is_quick, "{next}");
            assert_eq!(error.message.contains("after 20 ms"), is_quick, "{error:?}");
            assert_eq!(
                error.message.contains("boom"),
                matches!(answer, Confirmation::Failed(_)),
                "{error:?}"
            );
            assert!(!error.context.contains_key("is_declined"), "{error:?}");
        }
    }

    #[test]
    fn an_accepted_call_is_not_refused() {
        assert!(Confirmation::Accepted.refusal().is_none());
    }

    #[test]
    fn a_question_without_an_answer_comes_without_a_way_on() {
        let error = Confirmation::TimedOut.refusal().unwrap();
        assert!(error.message.contains("within 600 s. Nothing was started."), "{error:?}");
        let next = error.suggestion.unwrap().text;
        assert!(!next.contains("confirm: true") && !next.contains("exec"), "{next}");
    }

    #[test]
    fn a_decision_of_the_user_comes_without_a_way_on() {
        for time in [SLOW, None] {
            let declined = Confirmation::Declined(time).refusal().unwrap();
            assert!(declined.message.contains("the user declined"), "{declined:?}");
            assert_eq!(declined.context["is_declined"], true);
            let dismissed = Confirmation::Dismissed(time).refusal().unwrap();
            assert!(!dismissed.message.contains("declined"), "{dismissed:?}");
            for error in [declined, dismissed] {
                let next = error.suggestion.unwrap().text;
                assert!(!next.contains("confirm: true") && !next.contains("exec"), "{next}");
            }
        }
    }
}
