//! `cloud submit`: delegate a task to a cloud environment.

use delegator_config::environments::{self, EnvironmentsError};
use delegator_domain::agents::DEFAULT_AGENT;
use delegator_domain::environment::Environment;
use delegator_domain::task::Provider;
use delegator_engine::RemoteSubmission;
use delegator_registry::{Idempotency, Submission};

use crate::commands::fleet::database::database;
use crate::commands::inputs::blank_task_problem;
use crate::commands::local::tasks::{labels, report_obstacles, title};
use crate::commands::prelude::*;
use crate::error::suggestion::CALL;
use crate::output::data::acknowledgement::AckMeta;
use crate::output::data::stored_task as task_data;
use crate::spec::paging::fingerprint;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Submit {
    #[serde(flatten)]
    pub submission: SubmissionInputs,
    /// Environment id or name
    #[schemars(length(min = 1, max = 128))]
    pub env_id: String,
    /// Solutions to try
    #[serde(default = "one")]
    #[schemars(range(min = 1, max = 4))]
    pub attempts: u8,
    /// Branch to start from; in a fleet also a tag or commit (default: the environment's)
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 255))]
    pub branch: Option<String>,
    /// The task that it repeats; not an input
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub retry_of: Option<TaskId>,
}

impl InputRules for Submit {
    fn problems(&self) -> Vec<Problem> {
        blank_task_problem(&self.submission.task).into_iter().collect()
    }
}

fn one() -> u8 {
    1
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Returns its id.",
    category: Category::ExecutionAck,
    shape: Shape::Action("task_submitted"),
    network: true,
    toolset: Toolset::Cloud,
    failures: &[
        ErrorCode::Unauthenticated,
        ErrorCode::NotFound,
        ErrorCode::NetworkError,
        ErrorCode::SubmissionUnconfirmed,
        ErrorCode::AgentProtocolError,
    ],
    precondition: |around| Ok(environments::read(&sources(around.process)).map(drop)?),
    input: InputType::with_rules::<Submit>(),
    ..CommandSpec::new::<Submit, ExecutionAck>(
        &["cloud", "submit"],
        "Delegate a coding task to a cloud environment",
    )
};

pub fn run(context: &Context<'_>, input: Submit) -> Result<CommandOutput, AppError> {
    accepted_output(context, submit(context, &input)?)
}

pub fn submit(context: &Context<'_>, input: &Submit) -> Result<Submission, AppError> {
    let environment = find_environment(context, &input.env_id)?;
    if environment.provider == Provider::Fleet {
        database(context)?;
    }
    let branch = input.branch.clone().or_else(|| environment.branch.clone());
    let given = &input.submission;
    let hashed = json!([given.task, environment.id, input.attempts, branch, given.labels]);
    let idempotency = given.idempotency_key.clone();
    let submission = RemoteSubmission {
        environment,
        text: given.task.clone(),
        attempts: input.attempts,
        branch,
        working_dir: context.process.current_dir.display().to_string(),
        title: title(context, &given.task),
        agent: DEFAULT_AGENT.to_owned(),
        labels: labels(context.config, &given.labels),
        input: json!(input),
        idempotency: idempotency.map(|key| Idempotency::new(key, fingerprint(&hashed))),
    };
    engine(context)?
        .remote()
        .submit(&submission)
        .map_err(|error| submission_error(error, submission.idempotency.is_some()))
}

/// If there was no answer, the task is recorded here, and the next query decides whether the provider has it.
/// Only a call with an idempotency key may be repeated: without one it would be a second task.
fn submission_error(error: EngineError, has_key: bool) -> AppError {
    let task = match &error {
        EngineError::Provider { task, .. } => task.clone(),
        _ => None,
    };
    let mut error = AppError::from(error);
    let Some(id) = task else { return error };
    error.message.push_str(&format!(" The task is recorded here as {id}."));
    if error.code == ErrorCode::NetworkError && !has_key {
        error.code = ErrorCode::SubmissionUnconfirmed;
    }
    let text = match &error.suggestion {
        Some(Suggestion { call: Some(_), .. }) => return error,
        Some(Suggestion { text, call: None }) => {
            format!("{text} Then see whether it was accepted, before you submit it again: {CALL}")
        }
        None => format!("See whether it was accepted, before you submit it again: {CALL}"),
    };
    error.suggest_call(text, NextCall::for_task(&["local", "status"], id.as_str()))
}

pub fn accepted_output(context: &Context<'_>, submitted: Submission) -> Result<CommandOutput, AppError> {
    let Submission { task, replayed } = submitted;
    let acknowledgement = ExecutionAck {
        summary: task.ended.is_some().then(|| task_data::summary(&task)),
        ..ExecutionAck::of(&task, Capability::Background)
    };
    let facts = AckMeta { replayed, ..AckMeta::default() };
    let message = format!("Task {} accepted", task.id);
    let mut output = CommandOutput::done(acknowledgement).with_facts(facts).message(message);
    report_obstacles(&engine(context)?, std::slice::from_ref(&task), &mut output)?;
    Ok(output)
}

fn find_environment(context: &Context<'_>, wanted: &str) -> Result<Environment, AppError> {
    let known = environments::read(&sources(context.process))?;
    match known.find(wanted) {
        Some(environment) => Ok(environment.clone()),
        None => Err(EnvironmentsError::Unknown {
            id: wanted.to_owned(),
            nearest: known.nearest(wanted).map(str::to_owned),
            path: known.file,
        }
        .into()),
    }
}
