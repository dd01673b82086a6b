//! Questions of awaited agents in the protocol of 2026-07-28, which has no requests from the server to the
//! client.
//!
//! A call that waits for a task is answered with an input-required response as soon as an agent asks; the
//! client repeats the call with the answers. Only a call that changes nothing may be repeated, so a `run`
//! does not ask. The state that the client returns names the questions that were asked: a question that the
//! user did not answer is not asked again.

use delegator_domain::question::QuestionNumber;
use delegator_domain::task::TaskId;
use delegator_engine::Engine;
use delegator_engine::wait_thread::OpenQuestions;
use delegator_registry::StoredQuestion;
use rmcp::RoleServer;
use rmcp::model::{CallToolRequestParams, ElicitRequest, ElicitResult, InputRequest, InputRequiredResult};
use rmcp::service::RequestContext;

use crate::mcp::server::run_blocking;
use crate::mcp::tools::confirmation::{can_ask, uses_input_required};
use crate::mcp::tools::questions::{form, parse_answer, record};
use crate::spec::CommandSpec;

/// Whether this call asks with its response.
pub(super) fn can_respond(spec: &CommandSpec, context: &RequestContext<RoleServer>) -> bool {
    spec.is_safe() && can_ask(context) && uses_input_required(context)
}

/// The name of a question in the response: `T-local-…:1`.
fn name((task, stored): &(TaskId, StoredQuestion)) -> String {
    format!("{task}:{}", stored.question.number)
}

fn parse_name(name: &str) -> Option<(TaskId, QuestionNumber)> {
    let (task, number) = name.split_once(':')?;
    Some((task.parse().ok()?, QuestionNumber(number.parse().ok()?)))
}

/// The names of the questions that earlier responses have asked.
fn earlier_names(request: &CallToolRequestParams) -> impl Iterator<Item = &str> {
    request.request_state.as_deref().unwrap_or_default().split(' ').filter(|name| !name.is_empty())
}

pub(super) fn has_new(open: &OpenQuestions, request: &CallToolRequestParams) -> bool {
    open.iter().any(|entry| !earlier_names(request).any(|known| known == name(entry)))
}

/// The response that asks the questions that were not asked yet.
pub(super) fn input_required(open: &OpenQuestions, request: &CallToolRequestParams) -> InputRequiredResult {
    let new: Vec<_> =
        open.iter().filter(|entry| !earlier_names(request).any(|known| known == name(entry))).collect();
    let names = earlier_names(request).map(str::to_owned).chain(new.iter().map(|entry| name(entry)));
    let state = names.collect::<Vec<_>>().join(" ");
    let question = |entry: &(TaskId, StoredQuestion)| {
        let request = ElicitRequest::new(form(&entry.0, &entry.1.question));
        (name(entry), InputRequest::Elicitation(request))
    };
    let mut response = InputRequiredResult::from_input_requests(new.into_iter().map(question).collect());
    response.request_state = Some(state);
    response
}

/// Records the answers in a repeated call, to questions of the awaited tasks that an earlier response has
/// asked.
pub(super) async fn record_answers(engine: &Engine, awaited: &[TaskId], request: &CallToolRequestParams) {
    for (name, response) in request.input_responses.iter().flatten() {
        let Some((task, number)) = parse_name(name) else { continue };
        if !awaited.contains(&task) || !earlier_names(request).any(|known| known == name) {
            continue;
        }
        let Ok(result) = serde_json::from_value::<ElicitResult>(response.clone()) else { continue };
        let (reader, id) = (engine.clone(), task.clone());
        let stored = run_blocking(move || Ok(reader.question(&id, Some(number))?)).await;
        if let Ok(stored) = stored
            && let Some(answer) = parse_answer(&stored.question, &result)
        {
            record(engine, task, number, answer).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_identifies_a_question() {
        let id: TaskId = "T-local-0123456789".parse().unwrap();
        assert_eq!(parse_name("T-local-0123456789:12"), Some((id, QuestionNumber(12))));
        for other in ["confirm", "T-local-0123456789", "T-local-0123456789:x", ":1"] {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }
}
