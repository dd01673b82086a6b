//! What a review gets in addition to its task: the prompt and the schema of its findings.

use delegator_engine::{AgentInput, Capabilities};

use crate::commands::prelude::*;
use crate::input::agent_selection::{running_agent, select_agent};
use crate::output::data::findings;

/// The prompt of a review. The supervisor adds report and changes of the other task.
pub fn review_text(instructions: Option<&str>) -> String {
    let mut text = "Review the changes of another task, which are quoted below. Change nothing. Look for mistakes: wrong \
        behaviour, missing cases, broken callers, security problems, missing tests. Read the files where the diff is not \
        enough. Report only what you are sure of.\n\nAnswer with JSON only, in this form: {\"findings\": [{\"file\": \
        \"path or null\", \"line\": 1, \"severity\": \"error, warning or note\", \"title\": \"one line\", \"detail\": \
        \"why, and what to do\"}]}. Without findings: {\"findings\": []}."
        .to_owned();
    if let Some(instructions) = instructions {
        text.push_str("\n\nIn particular: ");
        text.push_str(instructions);
    }
    text
}

pub fn add_output_schema(context: &Context<'_>, agent: &mut AgentInputs) -> Result<(), AppError> {
    let names = agent.agent.as_ref().map(AgentNames::names).unwrap_or_default();
    for name in names {
        let agent = select_agent(context.config, running_agent(name, agent.live))?;
        if Capabilities::of(agent.kind()).unsupported_inputs.contains(&AgentInput::OutputSchema) {
            return Ok(());
        }
    }
    agent.output_schema = findings::message_schema().as_object().cloned();
    Ok(())
}
