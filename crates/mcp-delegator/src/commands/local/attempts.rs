//! Several attempts at one task: their inputs, their submission, and which tasks a group id stands for.

use delegator_domain::task::{GroupId, MAX_ATTEMPTS};
use delegator_engine::{ComparedAttempt, ComparedGroup, Submission, SubmitOutcome, Target};

use crate::commands::inputs::{self, Isolation};
use crate::commands::local::followers::build_submission;
use crate::commands::prelude::*;
use crate::output::data::group::GroupData;
use crate::spec::paging::fingerprint;

/// Inputs of run and exec.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct AttemptsInputs {
    /// Number of attempts at the task, each in a worktree of its own; results compares them, apply takes one
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 4), extend("x-markers" = [Marker::Advanced], "default" = 1))]
    pub attempts: Option<u8>,
    /// Agents of the attempts; a shorter list is used in turn
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        inner(length(min = 1, max = 64)),
        length(max = 4),
        extend("x-markers" = [Marker::CommaSeparated, Marker::Advanced], "default" = null)
    )]
    pub agents: Vec<String>,
    /// Models of the attempts; a shorter list is used in turn
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        inner(regex(pattern = inputs::MODEL)),
        length(max = 4),
        extend("x-markers" = [Marker::CommaSeparated, Marker::Advanced], "default" = null)
    )]
    pub models: Vec<String>,
}

impl AttemptsInputs {
    fn count(&self) -> usize {
        self.attempts.unwrap_or(1).clamp(1, MAX_ATTEMPTS).into()
    }

    /// The input of each attempt, as if it had been submitted by itself. A list that is too short is used in
    /// turn.
    pub fn inputs(&self, input: &TaskInput) -> Vec<TaskInput> {
        let count = self.count();
        let attempt = |number: usize| {
            let mut attempt = input.clone();
            if let Some(agent) = entry(&self.agents, number) {
                attempt.agent.agent = Some(AgentNames::One(agent.clone()));
            }
            if let Some(model) = entry(&self.models, number) {
                attempt.agent.model = Some(model.clone());
            }
            if count > 1 {
                attempt.agent.isolation = Some(Isolation::Worktree);
            } else if attempt.agent.isolation == Some(Isolation::None) {
                // The same input as without it, also for an idempotency key.
                attempt.agent.isolation = None;
            }
            attempt
        };
        (0..count).map(attempt).collect()
    }

    /// A problem of one attempt, in terms of what was given: an agent or a model may come from a list.
    pub fn name_entry(&self, problem: Problem, number: usize) -> Problem {
        let (list, items) = match problem.field.as_str() {
            "agent" => ("agents", &self.agents),
            "model" => ("models", &self.models),
            _ => return problem,
        };
        match entry(items, number) {
            Some(item) => Problem {
                field: format!("{list}.{}", number % items.len()),
                value: Some(item.as_str().into()),
                ..problem
            },
            None => problem,
        }
    }

    pub fn problems(&self, agent: &AgentInputs) -> Vec<Problem> {
        let count = self.count();
        let mut problems = Vec::new();
        let lists = [
            ("agents", &self.agents, "agent", agent.agent.is_some()),
            ("models", &self.models, "model", agent.model.is_some()),
        ];
        for (list, items, single, is_single_given) in lists {
            let problem = |message: String| Problem::invalid(list, message).value(json!(items));
            if items.len() > count {
                let message = format!("has {} entries, but {{input:attempts}} is {count}", items.len());
                let hint = format!("Set {{input:attempts}} to {}, or remove entries.", items.len());
                problems.push(problem(message).suggest(Some(hint)));
            }
            if !items.is_empty() && is_single_given {
                problems.push(problem(format!("cannot be given together with {{input:{single}}}")));
            }
        }
        if count > 1 && agent.isolation == Some(Isolation::None) {
            let message = "must be worktree for several attempts";
            problems.push(
                Problem::invalid("isolation", message)
                    .value("none".into())
                    .suggest(Some("Remove {input:isolation}: each attempt gets a worktree of its own.")),
            );
        }
        problems
    }
}

fn entry(items: &[String], number: usize) -> Option<&String> {
    items.get(number.checked_rem(items.len())?)
}

pub fn submit_attempts(
    context: &Context<'_>,
    engine: &Engine,
    request: &TaskRequest,
    attempts: &AttemptsInputs,
) -> Result<SubmitOutcome, AppError> {
    let build = |input| build_submission(context, engine, TaskRequest { input, ..request.clone() });
    let mut attempts: Vec<Submission> =
        attempts.inputs(&request.input).into_iter().map(build).collect::<Result<_, _>>()?;
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
    Ok(engine.submissions().submit_attempts(attempts)?)
}

/// The tasks that an id stands for: one, or all attempts of a group.
pub fn resolve_tasks(engine: &Engine, given: &TaskRef) -> Result<Vec<TaskId>, AppError> {
    Ok(match engine.results().resolve_target(given.as_str())? {
        Target::Task(id) => vec![id],
        Target::Group(group) => engine.results().group(&group)?.into_iter().map(|task| task.id).collect(),
    })
}

/// The tasks that a call names: each as given, with its id or the reason why it has none.
pub type Targets = Vec<(String, Result<TaskId, AppError>)>;

/// Resolves all ids of a call, that of a group to those of its attempts. A task that is named twice counts
/// once.
pub fn resolve_targets(engine: &Engine, given: &[TaskRef]) -> Targets {
    let mut targets: Targets = Vec::new();
    for given in given {
        let found = match resolve_tasks(engine, given) {
            Ok(ids) => ids.into_iter().map(|id| (id.to_string(), Ok(id))).collect(),
            Err(error) => vec![(given.as_str().to_owned(), Err(error))],
        };
        for target in found {
            if !targets.iter().any(|(known, _)| *known == target.0) {
                targets.push(target);
            }
        }
    }
    targets
}

/// The attempts of a group that have ended; none if the id is not that of a group.
pub fn ended_attempts(engine: &Engine, given: &TaskRef) -> Vec<TaskId> {
    let Ok(Target::Group(group)) = engine.results().resolve_target(given.as_str()) else { return Vec::new() };
    let attempts = engine.results().group(&group).unwrap_or_default().into_iter();
    attempts.filter(|task| task.state.is_terminal()).map(|task| task.id).collect()
}

/// Refuses while an attempt, or a task that follows one, has not ended.
pub fn refuse_unfinished(engine: &Engine, tasks: &[Task]) -> Result<(), AppError> {
    for attempt in tasks {
        ended(attempt.clone())?;
        for follower in engine.results().rest_of_chain(&attempt.id)? {
            ended(follower)?;
        }
    }
    Ok(())
}

pub fn compare(context: &Context<'_>, engine: &Engine, group: &GroupId) -> Result<ComparedGroup, AppError> {
    Ok(engine.results().compare_group(group, &variables(context))?)
}

/// A group, compared if all of its attempts have ended.
pub fn group_data(context: &Context<'_>, engine: &Engine, group: &GroupId) -> Result<GroupData, AppError> {
    let tasks = engine.results().group(group)?;
    if tasks.iter().any(|task| !task.state.is_terminal()) {
        return Ok(GroupData::of_tasks(group, &tasks));
    }
    Ok(GroupData::of_compared(group, &compare(context, engine, group)?))
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
    let attempts = engine.results().group(group)?;
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
    Problem::invalid("attempt", message).value(number.into()).into()
}

/// The group of a task that is the first of several attempts.
pub fn group_of(task: &Task) -> Option<&GroupId> {
    task.group.as_ref().map(|member| &member.group)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn parse(value: Value) -> (AttemptsInputs, TaskInput) {
        let mut task = value.clone();
        task["task"] = "x".into();
        (serde_json::from_value(value).unwrap(), serde_json::from_value(task).unwrap())
    }

    fn inputs_of(value: Value) -> Vec<TaskInput> {
        let (attempts, task) = parse(value);
        attempts.inputs(&task)
    }

    #[test]
    fn a_short_list_is_used_in_turn() {
        let attempts = inputs_of(json!({"attempts": 3, "agents": ["a", "b"], "models": ["m"]}));
        let expected = |agent| parse(json!({"agent": agent, "model": "m", "isolation": "worktree"})).1;
        assert_eq!(attempts, [expected("a"), expected("b"), expected("a")]);
    }

    #[test]
    fn one_attempt_is_an_ordinary_task() {
        assert_eq!(inputs_of(json!({"attempts": 1})), [parse(json!({})).1]);
        assert_eq!(inputs_of(json!({"isolation": "none"})), [parse(json!({})).1]);
    }

    #[test]
    fn a_problem_of_an_attempt_names_the_entry_of_the_list() {
        let (attempts, _) = parse(json!({"attempts": 3, "agents": ["a", "b"]}));
        let problem = |field: &str| Problem::invalid(field, "is wrong");
        let of_agent = attempts.name_entry(problem("agent"), 1);
        assert_eq!((of_agent.field.as_str(), of_agent.value), ("agents.1", Some(json!("b"))));
        assert_eq!(attempts.name_entry(problem("agent"), 2).field, "agents.0");
        assert_eq!(attempts.name_entry(problem("model"), 1), problem("model"));
        assert_eq!(AttemptsInputs::default().name_entry(problem("agent"), 0), problem("agent"));
    }

    #[test]
    fn contradictions_are_problems() {
        let fields = |value: Value| -> Vec<String> {
            let (attempts, task) = parse(value);
            attempts.problems(&task.agent).into_iter().map(|problem| problem.field).collect()
        };
        assert_eq!(fields(json!({"attempts": 2, "agents": ["a", "b", "c"]})), ["agents"]);
        assert_eq!(fields(json!({"agents": ["a", "b"]})), ["agents"]);
        assert_eq!(fields(json!({"attempts": 2, "models": ["a"], "model": "b"})), ["models"]);
        assert_eq!(fields(json!({"attempts": 2, "isolation": "none"})), ["isolation"]);
        assert_eq!(fields(json!({"attempts": 1, "isolation": "none"})), [""; 0]);
        assert_eq!(fields(json!({"attempts": 4, "agents": ["a"], "isolation": "worktree"})), [""; 0]);
    }
}
