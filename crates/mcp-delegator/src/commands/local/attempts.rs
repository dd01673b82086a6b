//! Several attempts at one task: their inputs, their submission, and which tasks a group id stands for.

use delegator_domain::task::{GroupId, TaskId};
use delegator_engine::{ComparedAttempt, ComparedGroup, Engine, SubmitOutcome, Target};
use delegator_registry::Task;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commands::context::Context;
use crate::commands::inputs::{self, AgentInputs, AgentNames, TaskRef, check_agent_inputs};
use crate::commands::local::tasks::{TaskRequest, build_submission, ended, variables};
use crate::error::{AppError, ErrorCode, Problem};
use crate::input::attempts::{attempt_inputs, check_attempts};
use crate::spec::paging::fingerprint;

/// Inputs of run and exec.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AttemptsInputs {
    /// Number of attempts at the task, each in a worktree of its own; results compares them, apply takes one
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4), extend("x-advanced" = true, "default" = 1))]
    pub attempts: Option<u8>,
    /// Agents of the attempts; a shorter list is used in turn
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        inner(length(min = 1, max = 64)),
        length(max = 4),
        extend("x-comma-separated" = true, "x-advanced" = true, "default" = null)
    )]
    pub agents: Vec<String>,
    /// Models of the attempts; a shorter list is used in turn
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        inner(regex(pattern = inputs::MODEL)),
        length(max = 4),
        extend("x-comma-separated" = true, "x-advanced" = true, "default" = null)
    )]
    pub models: Vec<String>,
}

/// Rules between the inputs of a task with attempts.
pub fn check_inputs(input: &Value) -> Vec<Problem> {
    let mut problems = check_agent_inputs(input);
    problems.extend(check_attempts(input));
    problems
}

/// Submits the attempts that the input of a request asks for: one task, or a group.
pub fn submit_attempts(
    context: &Context<'_>,
    engine: &Engine,
    request: &TaskRequest<'_>,
) -> Result<SubmitOutcome, AppError> {
    let mut attempts = Vec::new();
    for input in attempt_inputs(&request.input) {
        let agent = inputs_of_attempt(request.agent, &input);
        attempts.push(build_submission(
            context,
            engine,
            TaskRequest { agent: &agent, input, ..request.clone() },
        )?);
    }
    if let [first, others @ ..] = attempts.as_mut_slice()
        && !others.is_empty()
        && let Some(key) = &mut first.idempotency
    {
        // The key is that of the group, so it covers the input of every attempt.
        let own = std::mem::take(&mut key.request_hash);
        let of_others = others.iter_mut().filter_map(|attempt| attempt.idempotency.take());
        let hashes: Vec<String> = std::iter::once(own).chain(of_others.map(|key| key.request_hash)).collect();
        key.request_hash = fingerprint(&json!(hashes));
    }
    Ok(engine.submit_attempts(attempts)?)
}

/// The agent inputs of one attempt, with what its input has in place of the lists.
fn inputs_of_attempt(given: &AgentInputs, input: &Value) -> AgentInputs {
    let text = |key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
    let isolation = match text("isolation").as_deref() {
        Some("worktree") => Some(inputs::Isolation::Worktree),
        _ => given.isolation,
    };
    AgentInputs {
        agent: text("agent").map(AgentNames::One).or_else(|| given.agent.clone()),
        model: text("model"),
        isolation,
        ..given.clone()
    }
}

/// The tasks that an id stands for: one, or all attempts of a group.
pub fn resolve_tasks(engine: &Engine, given: &TaskRef) -> Result<Vec<TaskId>, AppError> {
    Ok(match engine.resolve_target(given.as_str())? {
        Target::Task(id) => vec![id],
        Target::Group(group) => engine.group(&group)?.into_iter().map(|task| task.id).collect(),
    })
}

/// The attempts of a group that have ended; none if the id is not that of a group.
pub fn ended_attempts(engine: &Engine, given: &TaskRef) -> Vec<TaskId> {
    let Ok(Target::Group(group)) = engine.resolve_target(given.as_str()) else { return Vec::new() };
    let attempts = engine.group(&group).unwrap_or_default().into_iter();
    attempts.filter(|task| task.state.is_terminal()).map(|task| task.id).collect()
}

/// Refuses while an attempt, or a task that follows one, has not ended.
pub fn refuse_unfinished(engine: &Engine, tasks: &[Task]) -> Result<(), AppError> {
    for attempt in tasks {
        ended(attempt.clone())?;
        for follower in engine.rest_of_chain(&attempt.id)? {
            ended(follower)?;
        }
    }
    Ok(())
}

/// Compares the attempts of a group.
pub fn compare(context: &Context<'_>, engine: &Engine, group: &GroupId) -> Result<ComparedGroup, AppError> {
    Ok(engine.compare_group(group, &variables(context))?)
}

/// The attempt with this number, by default the recommended one.
pub fn chosen<'a>(
    group: &GroupId,
    compared: &'a ComparedGroup,
    number: Option<u8>,
) -> Result<&'a ComparedAttempt, AppError> {
    let numbers: Vec<u8> = compared.attempts.iter().map(|attempt| attempt.number).collect();
    let find = |number: u8| compared.attempts.iter().find(|attempt| attempt.number == number);
    match number {
        Some(number) => find(number).ok_or_else(|| no_attempt(group, &numbers, number)),
        None => compared.recommendation.attempt.and_then(find).ok_or_else(|| {
            let message =
                format!("No attempt of {group} is recommended: {}.", compared.recommendation.reason);
            AppError::new(ErrorCode::WrongState, message)
                .context("task_id", group.as_str())
                .suggest("Name one with {input:attempt}.")
        }),
    }
}

/// The task of an attempt, by default of the recommended one.
pub fn attempt_of(
    context: &Context<'_>,
    engine: &Engine,
    group: &GroupId,
    number: Option<u8>,
) -> Result<Task, AppError> {
    let Some(number) = number else {
        let compared = compare(context, engine, group)?;
        return Ok(chosen(group, &compared, None)?.task.clone());
    };
    let attempts = engine.group(group)?;
    let numbers: Vec<u8> = attempts.iter().map(attempt_number).collect();
    let found = attempts.into_iter().find(|task| attempt_number(task) == number);
    found.ok_or_else(|| no_attempt(group, &numbers, number))
}

fn attempt_number(task: &Task) -> u8 {
    task.group.as_ref().map_or(1, |member| member.attempt)
}

fn no_attempt(group: &GroupId, numbers: &[u8], number: u8) -> AppError {
    let known: Vec<String> = numbers.iter().map(u8::to_string).collect();
    let message = format!("is not an attempt of {group}; there are {}", known.join(", "));
    AppError::from_problems(vec![
        Problem::new(ErrorCode::InvalidValue, "attempt", message).value(number.into()),
    ])
}

/// The group of a task that is the first of several attempts.
pub fn group_of(task: &Task) -> Option<&GroupId> {
    task.group.as_ref().map(|member| &member.group)
}
