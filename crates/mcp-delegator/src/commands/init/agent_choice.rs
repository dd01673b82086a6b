//! The agent of tasks that name none: asked only if several are installed and signed in, and none is chosen.

use delegator_config::user_edit::{self, EditError, UserEdit};

use crate::commands::doctor::agent_table::AgentRow;
use crate::commands::init::{Init, InitSteps, StepStatus};
use crate::commands::prelude::*;
use crate::commands::terminal_prompt;

#[derive(Debug, Default)]
pub(super) struct AgentChoice {
    /// `None` if no agent is ready.
    pub name: Option<String>,
    /// It was chosen in this call, and is not in the configuration yet.
    is_new: bool,
    pub was_asked: bool,
}

impl AgentChoice {
    pub(super) fn of(
        context: &Context<'_>,
        input: &Init,
        agents: &[AgentRow],
    ) -> Result<AgentChoice, AppError> {
        let ready: Vec<&str> =
            agents.iter().filter(|agent| agent.is_usable).map(|agent| agent.name.as_str()).collect();
        let configured = context.config.settings.default_agent.as_deref();
        let with_name = |name: &str| AgentChoice { name: Some(name.to_owned()), ..AgentChoice::default() };
        if let Some(given) = &input.agent {
            if !ready.contains(&given.as_str()) {
                let problem =
                    Problem::invalid("agent", "is not the name of an agent that is installed and signed in");
                let problem = problem.value(given.as_str().into()).choose_from(given, ready.into_iter());
                return Err(problem.into());
            }
            return Ok(AgentChoice { is_new: configured != Some(given), ..with_name(given) });
        }
        Ok(match (configured, ready.as_slice()) {
            (Some(name), ready) if ready.contains(&name) => with_name(name),
            (Some(_), _) | (None, []) => AgentChoice::default(),
            (None, [first, _, ..]) if !input.yes && !input.dry_run => {
                let question = "Several agents are ready. Which of them runs tasks that name none?";
                let chosen = terminal_prompt::choose(context, question, &ready);
                AgentChoice {
                    is_new: chosen.is_some(),
                    was_asked: true,
                    ..with_name(chosen.unwrap_or(first))
                }
            }
            (None, [first, ..]) => with_name(first),
        })
    }
}

pub(super) fn step(context: &Context<'_>, progress: &mut InitSteps, choice: &AgentChoice, dry_run: bool) {
    const NAME: &str = "agent";
    let Some(name) = choice.name.as_ref().filter(|_| choice.is_new) else { return };
    if dry_run {
        let message = format!("would make {name} the agent of tasks that name none");
        return progress.add(NAME, StepStatus::Planned, message, None);
    }
    let written: Result<(), EditError> =
        user_edit::set(&sources(context.process), "default_agent", name).and_then(UserEdit::write);
    match written {
        Ok(()) => progress.add(NAME, StepStatus::Done, format!("{name} runs tasks that name no agent"), None),
        Err(error) => progress.fail(NAME, error.into()),
    }
}
