//! The tasks of a submission: the submitted one and those that follow it, each with its launch file. All are
//! checked and stored together, with environment and umask of the same submitter.

use delegator_domain::redact::{is_listed, is_secret_name};
use delegator_domain::task::{Follows, GroupMember, TaskId, TaskLocation};
use delegator_registry::NewTask;
use delegator_supervisor::agent::{agent_environment, task_marker};
use serde_json::Value;

use super::enclosure::find_enclosure;
use super::launch_file::{Fallback, Launch};
use super::submission::{Follower, Reviewed, Submission};
use crate::Engine;
use crate::error::Result;
use crate::shared::format_version::FormatVersion;

#[derive(Debug)]
pub(super) struct ChainTask<'a> {
    pub(super) id: TaskId,
    pub(super) submission: &'a Submission,
    pub(super) follows: Option<Follows>,
    /// Set of an attempt, but not of the tasks that follow it.
    pub(super) group: Option<GroupMember>,
}

impl ChainTask<'_> {
    fn reviewed(&self) -> Option<&TaskId> {
        match self.submission.reviews.as_ref()? {
            Reviewed::Task(id) => Some(id),
            Reviewed::Predecessor => self.follows.as_ref().map(|follows| &follows.task),
        }
    }

    pub(super) fn new_task(&self, launch: &Launch) -> Result<NewTask> {
        let ChainTask { id, submission, follows, group } = self;
        let settings = &submission.settings;
        let plan = settings.worktree.as_ref();
        Ok(NewTask {
            id: id.clone(),
            working_dir: plan.map_or(&settings.run.working_dir, |plan| &plan.user_dir).display().to_string(),
            work_trees: settings
                .work_trees(submission.per_agent().any(|it| it.agent.may_write(settings.run.mode))),
            allow_parallel_writes: submission.allow_parallel_writes,
            mode: settings.run.mode,
            sandbox: Some(submission.agent.sandbox(settings.run.effective_mode())),
            agent: submission.agent.name.clone(),
            fallbacks: submission.fallbacks.len(),
            model: settings.run.model.clone(),
            title: submission.title.clone(),
            text: launch.task.clone(),
            labels: submission.labels.clone(),
            input: submission.nesting.add_parent_to(without_key(submission.input.clone())),
            resumed_thread: settings.run.resume.clone(),
            idempotency: submission.idempotency.clone(),
            environment: None,
            follows: follows.clone(),
            group: group.clone(),
            worktree: plan.map(|plan| plan.used_by(id)).transpose()?,
            notify: None,
        })
    }
}

/// A task and those that follow it, each after the one it follows.
pub(super) fn chain_of<'a>(engine: &Engine, first: ChainTask<'a>) -> Result<Vec<ChainTask<'a>>> {
    let mut chain = vec![first];
    let mut next = 0;
    while let Some(ChainTask { id, submission, .. }) = chain.get(next) {
        let (predecessor, followers) = (id.clone(), &submission.followers);
        for Follower { on, submission } in followers {
            let id = TaskId::from_random(TaskLocation::Local, engine.system.random_bytes()?);
            let follows = Some(Follows { task: predecessor.clone(), on: *on });
            chain.push(ChainTask { id, submission, follows, group: None });
        }
        next += 1;
    }
    Ok(chain)
}

pub(super) fn launch_of(engine: &Engine, task: &ChainTask<'_>) -> Result<Launch> {
    let id = &task.id;
    let mut launches = Vec::new();
    for submission in task.submission.per_agent() {
        let mut launch = build_launch(&submission, id)?;
        launch.refuse_reserved_state_dirs(&engine.state_dir)?;
        launch.agent.validate(&launch.request(id, &engine.state_dir))?;
        launch.decide_sandbox(id, &engine.state_dir)?;
        launches.push(launch);
    }
    let mut preferred = launches.remove(0);
    preferred.fallbacks = launches.into_iter().map(Fallback::of).collect();
    preferred.reviews = task.reviewed().map(TaskId::to_string);
    Ok(preferred)
}

fn build_launch(submission: &Submission, id: &TaskId) -> Result<Launch> {
    let marker = task_marker(id, submission.settings.depth);
    let Submission { environment, secret_names, .. } = submission;
    let texts = environment.iter().filter_map(|(name, value)| Some((name.to_str()?, value.to_str()?)));
    let (mut secrets, mut named_secrets) = (Vec::new(), Vec::new());
    for (name, value) in texts {
        if is_listed(name, secret_names) {
            named_secrets.push(value.to_owned());
        } else if is_secret_name(name, secret_names) {
            secrets.push(value.to_owned());
        }
    }
    Ok(Launch {
        version: FormatVersion,
        task: submission.text.clone(),
        settings: submission.settings.clone(),
        agent: submission.agent.clone(),
        enclosure: find_enclosure(&submission.agent, &submission.settings, environment)?,
        fallbacks: Vec::new(),
        skipped: submission.skipped.clone(),
        reviews: None,
        report_of: submission.report_of.as_ref().map(TaskId::to_string),
        umask: submission.umask,
        variables: agent_environment(
            submission.agent.kind(),
            environment,
            &submission.passed_variables,
            &marker,
        ),
        secrets,
        named_secrets,
    })
}

/// The input without its idempotency key, which is stored as a digest only.
pub(crate) fn without_key(mut input: Value) -> Value {
    if let Some(object) = input.as_object_mut() {
        object.shift_remove("idempotency_key");
    }
    input
}
