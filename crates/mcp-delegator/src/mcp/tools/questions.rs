//! Passes the questions of awaited agents on to the user of the client, while a call waits for their tasks.
//!
//! The client shows a question as an elicitation form, one at a time. An answer is recorded like one from the
//! command line: the first one wins. A user who declines or closes the form gives no answer; the question
//! stays open for others, and this call does not ask it again. The form is withdrawn when the question is
//! closed or the wait is over.
//!
//! The protocol of 2026-07-28 has no requests from the server to the client. There, a call that waits for a
//! task is answered with an input-required response as soon as an agent asks; the client repeats the call
//! with the answers. Only a call that changes nothing may be repeated, so a `run` does not ask. The state
//! that the client returns names the questions that were asked: a question that the user did not answer is
//! not asked again.

use std::collections::HashSet;

use delegator_domain::question::{Answer, Question, QuestionKind, QuestionNumber};
use delegator_domain::task::TaskId;
use delegator_engine::Engine;
use delegator_engine::wait_thread::OpenQuestions;
use delegator_registry::StoredQuestion;
use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, EnumSchema, InputRequest, InputRequiredResult, PrimitiveSchemaDefinition,
    StringSchema,
};
use serde_json::Value;
use tokio::sync::watch;

use crate::mcp::RequestContext;
use crate::mcp::server::run_blocking;
use crate::mcp::tools::confirmation::{can_ask, elicit, uses_input_required};
use crate::mcp::tools::confirmation_text::code_span;
use crate::spec::CommandSpec;

/// Fields of the form.
const OPTION: &str = "answer";
const TEXT: &str = "text";
/// Maximum characters of a text of the agent in the form.
const MAX_TEXT_CHARS: usize = 2_000;

pub(super) fn can_pass_on(context: &RequestContext) -> bool {
    can_ask(context) && !uses_input_required(context)
}

/// Asks the open questions until `open` is closed.
pub(super) async fn ask_user(
    context: &RequestContext,
    engine: &Engine,
    mut open: watch::Receiver<OpenQuestions>,
) {
    let mut shown: HashSet<(TaskId, QuestionNumber)> = HashSet::new();
    // The sender is gone when the wait is over.
    while open.has_changed().is_ok() {
        let key = |(task, stored): &(TaskId, StoredQuestion)| (task.clone(), stored.question.number);
        let next = open.borrow_and_update().iter().find(|entry| !shown.contains(&key(entry))).cloned();
        let Some((task, stored)) = next else {
            let _ = open.changed().await;
            continue;
        };
        shown.insert((task.clone(), stored.question.number));
        if let Some(answer) = ask(context, &task, &stored.question, open.clone()).await {
            record(engine, task, stored.question.number, answer).await;
        }
    }
}

/// An answer that comes too late, or does not fit, changes nothing: the question is closed, or stays open for
/// others.
async fn record(engine: &Engine, task: TaskId, number: QuestionNumber, answer: Answer) {
    let engine = engine.clone();
    let recorded = run_blocking(move || Ok(engine.conversations().answer(&task, number, &answer)?)).await;
    if let Err(error) = recorded {
        tracing::debug!(error = error.message, "an answer was not recorded");
    }
}

/// Shows the form. `None` if the user gave no answer, or the question was closed or the wait was over
/// meanwhile.
async fn ask(
    context: &RequestContext,
    task: &TaskId,
    question: &Question,
    mut open: watch::Receiver<OpenQuestions>,
) -> Option<Answer> {
    let is_this =
        |(id, stored): &(TaskId, StoredQuestion)| id == task && stored.question.number == question.number;
    let closed = async { drop(open.wait_for(|open| !open.iter().any(is_this)).await) };
    let answer = elicit(context, form(task, question), closed, "The question is not open any more.").await;
    parse_answer(question, &answer.ok()?)
}

fn form(task: &TaskId, question: &Question) -> ElicitRequestParams {
    let mut schema = ElicitationSchema::builder();
    let is_choice = !question.options.is_empty();
    if is_choice {
        let (ids, labels) =
            question.options.iter().map(|option| (option.id.clone(), option.label.clone())).unzip();
        if let Ok(titled) = EnumSchema::builder(ids).title("Answer").enum_titles(labels) {
            let options = PrimitiveSchemaDefinition::Enum(titled.build());
            schema = if question.free_text {
                schema.property(OPTION, options)
            } else {
                schema.required_property(OPTION, options)
            };
        }
    }
    if question.free_text {
        let title = if is_choice { "Or another answer" } else { "Answer" };
        let text = PrimitiveSchemaDefinition::String(StringSchema::new().title(title));
        schema = if is_choice { schema.property(TEXT, text) } else { schema.required_property(TEXT, text) };
    }
    let requested_schema = schema.build().unwrap_or_else(|_| ElicitationSchema::new(Default::default()));
    let message = message(task, question);
    ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }
}

/// The texts of the agent may try to look like ours, so they are shown as code.
fn message(task: &TaskId, question: &Question) -> String {
    let asks = match question.kind {
        QuestionKind::Permission => "asks for permission",
        QuestionKind::Question => "asks",
    };
    let title = code_span(&question.title, MAX_TEXT_CHARS);
    let detail = question.detail.as_ref().map(|detail| format!("\n\n{}", code_span(detail, MAX_TEXT_CHARS)));
    format!("The agent of task {task} {asks}: {title}{}", detail.unwrap_or_default())
}

/// The answer in an accepted form; `None` if it is declined, closed or empty.
fn parse_answer(question: &Question, result: &ElicitResult) -> Option<Answer> {
    if result.action != ElicitationAction::Accept {
        return None;
    }
    let content = result.content.as_ref()?;
    let text_of = |field: &str| content.get(field).and_then(Value::as_str).filter(|text| !text.is_empty());
    let text = text_of(TEXT).filter(|_| question.free_text).map(str::to_owned);
    let option = text_of(OPTION).map(str::to_owned);
    (option.is_some() || text.is_some()).then_some(Answer { option, text })
}

/// Whether this call asks with its response.
pub(super) fn can_respond(spec: &CommandSpec, context: &RequestContext) -> bool {
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

pub(super) fn is_new(entry: &(TaskId, StoredQuestion), request: &CallToolRequestParams) -> bool {
    !earlier_names(request).any(|known| known == name(entry))
}

/// The response that asks the questions that were not asked yet.
pub(super) fn input_required(open: &OpenQuestions, request: &CallToolRequestParams) -> InputRequiredResult {
    let new: Vec<_> = open.iter().filter(|entry| is_new(entry, request)).collect();
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
        let stored = run_blocking(move || Ok(reader.conversations().question(&id, Some(number))?)).await;
        if let Ok(stored) = stored
            && let Some(answer) = parse_answer(&stored.question, &result)
        {
            record(engine, task, number, answer).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use delegator_domain::question::{AnswerOption, OptionKind};
    use delegator_domain::task::TaskLocation;
    use serde_json::json;

    use super::*;

    fn question(options: &[&str], free_text: bool) -> Question {
        let option =
            |id: &&str| AnswerOption { id: (*id).into(), label: format!("{id}!"), kind: OptionKind::Other };
        Question {
            number: QuestionNumber(3),
            kind: QuestionKind::Permission,
            title: "Run `make`?\nYes".into(),
            detail: Some("make all".into()),
            options: options.iter().map(option).collect(),
            free_text,
        }
    }

    #[test]
    fn the_form_is_flat_and_has_a_field_for_options_and_for_text() {
        let task = TaskId::from_random(TaskLocation::Local, [7; 16]);
        for (options, free_text, fields, required) in [
            (&["yes", "no"][..], false, &["answer"][..], &["answer"][..]),
            (&["yes", "no"], true, &["answer", "text"], &[]),
            (&[], true, &["text"], &["text"]),
        ] {
            let form = json!(form(&task, &question(options, free_text)));
            let schema = &form["requestedSchema"];
            let names: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
            assert_eq!(names, fields, "{form}");
            let listed = schema.get("required").cloned().unwrap_or(json!([]));
            assert_eq!(listed, json!(required), "{form}");
            assert!(form["message"].as_str().unwrap().contains(task.as_str()), "{form}");
        }
    }

    #[test]
    fn only_an_accepted_form_with_content_is_an_answer() {
        let answer = |result: Value, free_text| {
            let result: ElicitResult = serde_json::from_value(result).unwrap();
            parse_answer(&question(&["yes"], free_text), &result).map(|answer| (answer.option, answer.text))
        };
        let accepted = |content: Value| json!({"action": "accept", "content": content});
        assert_eq!(answer(accepted(json!({"answer": "yes"})), false), Some((Some("yes".into()), None)));
        assert_eq!(answer(accepted(json!({"text": "maybe"})), true), Some((None, Some("maybe".into()))));
        assert_eq!(
            answer(accepted(json!({"answer": "yes", "text": ""})), true),
            Some((Some("yes".into()), None))
        );
        assert_eq!(answer(accepted(json!({})), true), None);
        assert_eq!(answer(json!({"action": "decline"}), true), None);
        assert_eq!(answer(json!({"action": "cancel", "content": {"answer": "yes"}}), true), None);
    }

    #[test]
    fn a_name_identifies_a_question() {
        let id: TaskId = "T-local-0123456789".parse().unwrap();
        assert_eq!(parse_name("T-local-0123456789:12"), Some((id, QuestionNumber(12))));
        for other in ["confirm", "T-local-0123456789", "T-local-0123456789:x", ":1"] {
            assert_eq!(parse_name(other), None, "{other}");
        }
    }
}
