//! The first task of `init`: an agent describes the project in the current directory, read-only.
//!
//! It runs once per directory: a completed first task is not repeated.

use delegator_domain::task::State;
use delegator_registry::Filter;

use crate::commands::local::attach::attach;
use crate::commands::local::followers::build_submission;
use crate::commands::local::run::foreground_output;
use crate::commands::prelude::*;
use crate::output::outcome::{Completion, WaitHint};

const TASK: &str = "Describe this project in at most five sentences: what it does, how it is built and how it is tested. \
                    Do not change anything.";
const LABEL: (&str, &str) = ("created-by", "init");

pub(super) fn completed(engine: &Engine, directory: &Path) -> Result<Option<Task>, AppError> {
    let filter = Filter {
        states: vec![State::Completed],
        working_dir: Some(directory.display().to_string()),
        labels: labels(),
        ..Filter::default()
    };
    // The filter also finds the first tasks of directories below this one.
    let found = engine.results().newest(&filter, u32::MAX)?;
    Ok(found.into_iter().find(|task| Path::new(&task.working_dir) == directory))
}

/// Runs the task on this agent, or on the default one, and waits for it. Returns how that ended, and what is
/// known about the task.
pub(super) fn run(
    context: &Context<'_>,
    engine: &Engine,
    directory: &Path,
    agent: Option<&str>,
) -> Result<(Completion, Option<ExecutionAck>), AppError> {
    let input = TaskInput {
        submission: SubmissionInputs {
            task: TASK.to_owned(),
            labels: labels(),
            ..SubmissionInputs::default()
        },
        mode: RunMode::Sandbox(Mode::ReadOnly),
        // Outside of a repository Codex would refuse; a read-only task changes nothing that git would have to
        // protect.
        agent: AgentInputs {
            working_dir: Some(directory.to_owned()),
            skip_git_repo_check: true,
            agent: agent.map(|name| AgentNames::One(name.to_owned())),
            ..AgentInputs::default()
        },
        ..TaskInput::default()
    };
    let submitted =
        engine.submissions().submit(build_submission(context, engine, TaskRequest::new(input))?)?;
    let id = submitted.task.id;
    let waited = attach(context, engine, &id, WaitHint::for_task(&id))?;
    let mut task = None;
    let output = foreground_output(context, engine, waited, |data| task.insert(data).clone().into())?;
    Ok((output.completion, task))
}

fn labels() -> BTreeMap<String, String> {
    BTreeMap::from([(LABEL.0.to_owned(), LABEL.1.to_owned())])
}
