//! Rules between the defaults of tasks and other keys: the agent exists, and the mode is permitted.

use delegator_domain::agents::BUILT_IN_AGENTS;
use delegator_domain::similar_names;
use serde_json::Value;

use crate::problem::{Origin, Problem};
use crate::resolve::SourcedSetting;

/// The problems with the defaults, which are reset.
pub(crate) fn reject_unusable(sourced: &mut [SourcedSetting]) -> Vec<Problem> {
    let problems: Vec<Problem> =
        [unknown_agent(sourced), mode_too_wide(sourced)].into_iter().flatten().collect();
    for setting in sourced.iter_mut().filter(|setting| problems.iter().any(|it| it.key == setting.key.name)) {
        (setting.value, setting.origin) = (setting.default.clone(), Origin::Default);
    }
    problems
}

fn unknown_agent(sourced: &[SourcedSetting]) -> Option<Problem> {
    let setting = find(sourced, "default_agent")?;
    let given = setting.value.as_str()?;
    let configured = find(sourced, "agents")?.value.as_object()?.keys().map(String::as_str);
    let mut known: Vec<&str> = BUILT_IN_AGENTS.iter().map(|agent| agent.name).collect();
    known.extend(configured.filter(|name| !BUILT_IN_AGENTS.iter().any(|agent| agent.name == *name)));
    if known.contains(&given) {
        return None;
    }
    let nearest = similar_names::nearest(given, known.iter().copied()).map(str::to_owned);
    // The name is not repeated, because it may be a secret in the wrong place.
    let problem = format!("this is not the name of an agent; there are {}", known.join(", "));
    Some(Problem { suggestion: nearest, ..setting.problem(problem) })
}

fn mode_too_wide(sourced: &[SourcedSetting]) -> Option<Problem> {
    let (mode, max) = (find(sourced, "default_mode")?, find(sourced, "max_mode")?);
    if mode.key.rank(&mode.value) <= max.key.rank(&max.value) {
        return None;
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let problem =
        format!("{} exceeds `max_mode`, which is {} ({})", text(&mode.value), text(&max.value), max.origin);
    Some(mode.problem(problem))
}

fn find<'a>(sourced: &'a [SourcedSetting], key: &str) -> Option<&'a SourcedSetting> {
    sourced.iter().find(|setting| setting.key.name == key)
}
