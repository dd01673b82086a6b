//! Builds the submission of a task, with those of the tasks that follow it.

use delegator_engine::{Follower, Reviewed, Submission};

use crate::commands::local::review_prompt::{add_output_schema, review_text};
use crate::commands::local::task_input;
use crate::commands::local::tasks::build_task;
use crate::commands::prelude::*;

pub fn build_submission(
    context: &Context<'_>,
    engine: &Engine,
    request: TaskRequest,
) -> Result<Submission, AppError> {
    let input = request.input.clone();
    let mut submission = build_task(context, engine, request)?;
    add_followers(context, engine, &mut submission, input)?;
    Ok(submission)
}

fn add_followers(
    context: &Context<'_>,
    engine: &Engine,
    first: &mut Submission,
    mut input: TaskInput,
) -> Result<(), AppError> {
    // Also the values that were not given: the directory and the agent of a resumed thread.
    input.agent.working_dir = Some(first.settings.run.working_dir.clone());
    input.agent.agent.get_or_insert_with(|| AgentNames::One(first.agent.name.clone()));
    let mut built = Vec::new();
    for follower in input.followers() {
        let (predecessor, on) = (follower.predecessor, follower.on);
        built.push((predecessor, Follower { on, submission: build_follower(context, engine, follower)? }));
    }
    // Each comes after its predecessor, so from the end on every one has all of its own followers.
    while let Some((predecessor, follower)) = built.pop() {
        let followers = match predecessor {
            Some(at) => &mut built[at].1.submission.followers,
            None => &mut first.followers,
        };
        followers.insert(0, follower);
    }
    Ok(())
}

fn build_follower(
    context: &Context<'_>,
    engine: &Engine,
    follower: task_input::Follower,
) -> Result<Submission, AppError> {
    let (mut input, given) = (follower.input, follower.given.to_task());
    if input.review {
        input.submission.task = review_text(given.task.as_deref());
        add_output_schema(context, &mut input.agent)?;
    }
    // Stored with the task, so that a retry starts its followers again.
    input.agent.on_success = given.on_success;
    input.agent.on_failure = given.on_failure;
    let reviews = input.review.then_some(Reviewed::Predecessor);
    build_task(context, engine, TaskRequest { reviews, ..TaskRequest::new(input) })
}
