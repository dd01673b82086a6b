//! The complete input of one task: of a call, of one of its attempts, or of a task that follows another one.
//!
//! A follower names only some of its inputs. The others are those of its predecessor, unless they belong to a
//! single task (its text, verify command, output schema, images, thread) or to another agent.
//! [`TaskInput::followers`] computes the complete input of each, as if it had been submitted by itself, so
//! that the same rules apply to all tasks of a chain.

use delegator_domain::history_rewriting;
use delegator_domain::task::{ChainOutcome, EnvPolicyName, MAX_CHAIN_DEPTH, MAX_CHAIN_TASKS, Mode, TaskId};
use delegator_registry::Task;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commands::inputs::{
    AgentInputs, FollowerInput, FollowerTask, RunMode, SubmissionInputs, TaskRef, blank_task_problem,
};
use crate::error::{AppError, ErrorCode, Problem, truncate_text};
use crate::output::data::structured_output;
use crate::spec::Surface;

/// It is stored with the task, without its text, which has a place of its own.
#[serde_with::skip_serializing_none]
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct TaskInput {
    #[serde(flatten)]
    pub submission: SubmissionInputs,
    #[serde(default)]
    pub mode: RunMode,
    #[serde(flatten)]
    pub agent: AgentInputs,
    /// The thread that it continues, or any task of that thread.
    pub thread_id: Option<String>,
    pub task_id: Option<TaskRef>,
    #[serde(rename = "async")]
    pub is_async: Option<bool>,
    pub call_budget_sec: Option<u64>,
    /// It reviews the changes of another task: of `reviews`, or else of its predecessor.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub review: bool,
    pub reviews: Option<TaskId>,
    pub retry_of: Option<TaskId>,
}

#[derive(Debug)]
pub struct Follower {
    /// Where it is: `on_success.on_failure`.
    pub field: String,
    pub on: ChainOutcome,
    pub given: FollowerInput,
    /// Its complete input, without followers.
    pub input: TaskInput,
    /// The position of its predecessor in the list; `None` if that is the task itself.
    pub predecessor: Option<usize>,
    depth: usize,
}

impl TaskInput {
    /// All followers, each after its predecessor. Ends soon after the first one that exceeds the limits of a
    /// chain.
    pub fn followers(&self) -> Vec<Follower> {
        let links = [&self.agent.on_success, &self.agent.on_failure].map(Option::as_deref);
        let mut found = direct_followers(links, self, None);
        let mut next = 0;
        while let Some(follower) = found.get(next)
            && found.len() <= MAX_CHAIN_TASKS
        {
            if let FollowerInput::Task(given) = &follower.given
                && follower.depth < MAX_CHAIN_DEPTH
            {
                let links = [&given.on_success, &given.on_failure].map(Option::as_deref);
                let further = direct_followers(links, &follower.input, Some((next, follower)));
                found.extend(further);
            }
            next += 1;
        }
        found
    }

    /// The input of a follower as if it had been submitted by itself.
    fn follower(&self, given: &FollowerTask) -> TaskInput {
        let review = given.review == Some(true);
        let mode = if review { Mode::ReadOnly } else { given.mode.unwrap_or(self.mode.sandbox()) };
        TaskInput {
            submission: SubmissionInputs {
                task: given.task.clone().unwrap_or_default(),
                idempotency_key: None,
                ..self.submission.clone()
            },
            mode: RunMode::Sandbox(mode),
            agent: self.agent.follower(given),
            review,
            ..TaskInput::default()
        }
    }

    fn widest_mode(&self) -> Mode {
        let modes = self.followers().into_iter().map(|follower| follower.input.mode.sandbox());
        modes.fold(self.mode.sandbox(), Mode::max)
    }

    pub fn writes(&self) -> bool {
        self.widest_mode().writes()
    }

    /// On the command line the mode is consent enough, except for the one without a sandbox.
    pub fn command_line_confirmation(&self, confirm: Option<bool>, surface: Surface) -> Option<Problem> {
        match (surface, confirm) {
            (Surface::Server, _) | (_, Some(true)) => None,
            (_, Some(false)) if self.writes() => Some(
                Problem::new(
                    ErrorCode::ConfirmationRequired,
                    "confirm",
                    "is false, so a task that writes is refused",
                )
                .suggest(Some("Remove --confirm=false, or use --mode read-only.")),
            ),
            _ => unconfirmed_problem(self.widest_mode()),
        }
    }

    pub fn problems(&self) -> Vec<Problem> {
        let agent = &self.agent;
        let mut problems: Vec<Problem> = blank_task_problem(&self.submission.task).into_iter().collect();
        problems.extend(self.label_problems());
        if !agent.env_allow_list.is_empty() && agent.env_policy != Some(EnvPolicyName::AllowList) {
            let message = "has no effect without {input:env_policy} allow-list";
            problems.push(
                Problem::new(ErrorCode::InvalidValue, "env_allow_list", message)
                    .suggest(Some("Pass {input:env_policy} allow-list.")),
            );
        }
        if !self.submission.allow_destructive_git {
            problems.extend(self.history_rewrite_problem());
            problems.extend(self.followers().into_iter().filter_map(|follower| {
                let part = if matches!(follower.given, FollowerInput::Text(_)) { "" } else { ".task" };
                let problem = follower.input.history_rewrite_problem()?;
                Some(Problem { field: format!("{}{part}", follower.field), ..problem })
            }));
        }
        problems.extend(self.output_schema_problem());
        if let Some(path) = agent.working_dir.as_ref().filter(|path| path.is_relative()) {
            problems.push(
                Problem::new(ErrorCode::InvalidValue, "working_dir", "must be an absolute path")
                    .value(path.display().to_string().into())
                    .suggest(Some("Give an absolute path such as /home/me/project.")),
            );
        }
        problems
    }

    /// Labels are printed and used as command line filters, so their characters are restricted.
    fn label_problems(&self) -> Vec<Problem> {
        let problems = self.submission.labels.iter().filter_map(|(key, value)| {
            let has_control = |text: &str| text.chars().any(char::is_control);
            let problem = if key.is_empty() || key.starts_with('-') {
                "has an empty name or a name that begins with -"
            } else if key.contains('=') {
                "has a name that contains =, which separates name and value in filters"
            } else if has_control(key) || has_control(value) {
                "contains a control character"
            } else {
                return None;
            };
            let field = format!("labels.{}", truncate_text(&key.escape_debug().to_string()));
            let problem = Problem::new(ErrorCode::InvalidValue, field, problem).value(value.as_str().into());
            Some(problem.suggest(Some(
                "Use a name without = that does not begin with -, and text without control characters.",
            )))
        });
        problems.collect()
    }

    pub fn history_rewrite_problem(&self) -> Option<Problem> {
        let found =
            history_rewriting::find(&self.submission.task).filter(|_| self.mode.sandbox().writes())?;
        let problem = format!(
            "asks for {} (\"{}\", at character {})",
            found.description,
            truncate_text(&found.phrase),
            found.position
        );
        let mut problem = Problem::new(ErrorCode::PolicyBlocked, "task", problem)
            .suggest(Some(format!("Instead, {}.", found.alternative)));
        problem.permitted_by = Some("allow_destructive_git");
        problem.context.insert("found".into(), truncate_text(&found.phrase).into());
        problem.context.insert("position".into(), found.position.into());
        Some(problem)
    }

    fn output_schema_problem(&self) -> Option<Problem> {
        let schema = Value::Object(self.agent.output_schema.clone()?);
        let message =
            format!("is not a JSON Schema: {}", truncate_text(&structured_output::schema_problem(&schema)?));
        let suggestion = "Give a JSON Schema without external references.";
        Some(Problem::new(ErrorCode::InvalidValue, "output_schema", message).suggest(Some(suggestion)))
    }
}

pub fn unconfirmed_problem(mode: Mode) -> Option<Problem> {
    let reason = "the agent's commands run without a sandbox";
    (mode == Mode::DangerFullAccess).then(|| {
        let message = format!("must be given for mode danger-full-access: {reason}");
        let problem = Problem::new(ErrorCode::ConfirmationRequired, "confirm", message)
            .suggest(Some("Add --confirm, or use --mode workspace-write."));
        Problem { consent: Some(reason), ..problem }
    })
}

/// The stored input of a task, with this text. Inputs of other commands are ignored.
pub fn stored_input<I: DeserializeOwned>(task: &Task, text: String) -> Result<I, AppError> {
    let mut stored = task.input.as_object().cloned().unwrap_or_default();
    stored.insert("task".to_owned(), text.into());
    serde_json::from_value(Value::Object(stored)).map_err(|error| {
        AppError::new(
            ErrorCode::Internal,
            format!("The stored inputs of {} could not be read: {error}.", task.id),
        )
        .context("input", json!(task.input))
    })
}

fn direct_followers(
    links: [Option<&FollowerInput>; 2],
    predecessor_input: &TaskInput,
    predecessor: Option<(usize, &Follower)>,
) -> Vec<Follower> {
    let (prefix, depth) = match predecessor {
        Some((_, follower)) => (format!("{}.", follower.field), follower.depth + 1),
        None => (String::new(), 1),
    };
    let names = [("on_success", ChainOutcome::Success), ("on_failure", ChainOutcome::Failure)];
    let follower = |((name, on), given): ((&str, ChainOutcome), Option<&FollowerInput>)| {
        let given = given?;
        Some(Follower {
            field: format!("{prefix}{name}"),
            on,
            input: predecessor_input.follower(&given.to_task()),
            given: given.clone(),
            predecessor: predecessor.map(|(at, _)| at),
            depth,
        })
    };
    names.into_iter().zip(links).filter_map(follower).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn input(value: Value) -> TaskInput {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_follower_has_the_inputs_of_its_predecessor_unless_they_belong_to_one_task() {
        let first = input(json!({
            "task": "change it", "mode": "workspace-write", "model": "m", "profile": "p", "verify": "cargo test",
            "labels": {"a": "b"}, "idempotency_key": "k", "hard_timeout_sec": 5, "images": ["/i"], "thread_id": "t",
            "on_success": {"review": true, "agent": "claude"},
            "on_failure": "fix it",
        }));
        let found = first.followers();
        let inputs: Vec<_> =
            found.iter().map(|follower| (follower.field.as_str(), &follower.input)).collect();
        let review = input(json!({
            "task": "", "mode": "read-only", "labels": {"a": "b"}, "hard_timeout_sec": 5, "review": true,
            "agent": "claude"
        }));
        let fix = input(json!({
            "mode": "workspace-write", "model": "m", "profile": "p", "labels": {"a": "b"}, "hard_timeout_sec": 5,
            "task": "fix it"
        }));
        assert_eq!(inputs, [("on_success", &review), ("on_failure", &fix)]);
    }

    #[test]
    fn followers_of_followers_are_found_in_order_and_inherit_step_by_step() {
        let first = input(json!({"task": "1", "mode": "preview", "on_success": {
            "task": "2", "mode": "workspace-write", "on_failure": {"task": "4"},
            "on_success": {"task": "3", "mode": "read-only", "on_success": "5"}
        }}));
        let found = first.followers();
        let summary: Vec<_> = found
            .iter()
            .map(|one| (one.field.as_str(), one.predecessor, one.depth, one.input.mode.sandbox()))
            .collect();
        assert_eq!(
            summary,
            [
                ("on_success", None, 1, Mode::WorkspaceWrite),
                ("on_success.on_success", Some(0), 2, Mode::ReadOnly),
                ("on_success.on_failure", Some(0), 2, Mode::WorkspaceWrite),
                ("on_success.on_success.on_success", Some(1), 3, Mode::ReadOnly),
            ]
        );
        assert_eq!(first.widest_mode(), Mode::WorkspaceWrite);
        assert_eq!(input(json!({"task": "1"})).widest_mode(), Mode::ReadOnly);
    }
}
