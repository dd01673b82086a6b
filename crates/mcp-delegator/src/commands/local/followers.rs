//! Builds the submissions of the tasks that follow another one.

use delegator_domain::task::Mode;
use delegator_engine::{Engine, Follower, Reviewed, Submission};
use serde::Deserialize;
use serde_json::Value;

use crate::commands::context::Context;
use crate::commands::inputs::{AgentInputs, SubmissionInputs};
use crate::commands::local::tasks::{TaskRequest, build_task};
use crate::commands::review;
use crate::error::{AppError, ErrorCode};
use crate::input::chain::{self, LINKS, followers};

/// The inputs of a follower, complete.
#[derive(Debug, Deserialize)]
struct FollowerInputs {
    /// What a reviewer should look at, or the task text.
    task: Option<String>,
    #[serde(default)]
    mode: Mode,
    #[serde(flatten)]
    agent: AgentInputs,
}

/// Adds the followers in the input of a task to its submission.
pub fn add_followers(
    context: &Context<'_>,
    engine: &Engine,
    first: &mut Submission,
    input: &Value,
) -> Result<(), AppError> {
    // Also the values that were not given: the directory and the agent of a resumed thread.
    let mut complete = input.clone();
    complete["working_dir"] = first.settings.working_dir.display().to_string().into();
    if complete.get("agent").is_none_or(Value::is_null) {
        complete["agent"] = first.agent.name.as_str().into();
    }
    let found = followers(&complete);
    let mut built = Vec::new();
    for follower in &found {
        let submission = build_follower(context, engine, follower, &complete)?;
        built.push((follower.predecessor, Follower { on: follower.on, submission }));
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
    follower: &chain::Follower<'_>,
    first_input: &Value,
) -> Result<Submission, AppError> {
    let unusable = |error: serde_json::Error| {
        AppError::new(ErrorCode::InvalidValue, format!("The input {} is not valid: {error}.", follower.field))
    };
    let mut inputs: FollowerInputs = serde_json::from_value(follower.input.clone()).map_err(unusable)?;
    let mut input = follower.input.clone();
    let is_review = chain::is_review(follower.given);
    let text = match is_review {
        true => review::review_text(inputs.task.as_deref()),
        false => inputs.task.take().unwrap_or_default(),
    };
    if is_review {
        review::add_output_schema(context, &mut inputs.agent, &mut input)?;
    }
    // Stored with the task, so that a retry starts its followers again.
    for (name, given) in LINKS.iter().filter_map(|(name, _)| Some((*name, follower.given.get(name)?))) {
        input[name] = given.clone();
    }
    let shared = |name: &str| first_input.get(name).cloned().unwrap_or_default();
    let submission = SubmissionInputs {
        task: text,
        labels: serde_json::from_value(shared("labels")).unwrap_or_default(),
        allow_destructive_git: shared("allow_destructive_git") == Value::Bool(true),
        ..SubmissionInputs::default()
    };
    let request = TaskRequest {
        reviews: is_review.then_some(Reviewed::Predecessor),
        ..TaskRequest::new(&submission, &inputs.agent, inputs.mode, input)
    };
    build_task(context, engine, request)
}
