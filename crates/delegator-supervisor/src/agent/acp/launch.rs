//! How an agent is started, what is said to it, and how it is ended. Pure.

use delegator_domain::task::{Mode, RunSettings, SandboxKind};

use super::profile::{AcpProfile, ModelInput};
use super::profiles::acp_profile;
use crate::agent::launch::{LaunchRequest, PlanError, permission_policy};
use crate::conversation::{AcpPlan, AcpSetting, ConversationPlan, PermissionPolicy};
use crate::ending::EndingRecipe;

/// An error if a value cannot be passed to an agent: its messages are Unicode.
pub(in crate::agent) fn validate(run: &RunSettings) -> Result<(), PlanError> {
    texts(run).map(drop)
}

fn texts(run: &RunSettings) -> Result<(String, Vec<String>), PlanError> {
    let problem = "it is not valid Unicode";
    let text = |path: &std::path::PathBuf, field| {
        path.to_str().map(str::to_owned).ok_or(PlanError::value(field, problem))
    };
    let directories = run.add_dirs.iter().map(|path| text(path, "add_dirs")).collect::<Result<_, _>>()?;
    Ok((text(&run.working_dir, "working_dir")?, directories))
}

/// What is said to it. `sandbox` is what enforces the mode of the task.
pub(in crate::agent) fn conversation(
    name: &str,
    request: &LaunchRequest,
    sandbox: SandboxKind,
) -> Result<ConversationPlan, PlanError> {
    let (profile, run) = (acp_profile(name), &request.run);
    let (cwd, directories) = texts(run)?;
    Ok(ConversationPlan::Acp(AcpPlan {
        prompt: request.prompt(),
        cwd,
        directories,
        resume: run.resume.clone(),
        settings: settings(profile, run, sandbox),
        permissions: permissions(profile, run, sandbox),
        replays_late: profile.replays_late,
    }))
}

/// An agent with a sandbox of its own requests permission to leave it, which nothing but full access permits.
/// An agent that ends its turn when it is refused something is refused nothing where we enclose it: what it
/// may not do fails, and its turn continues.
fn permissions(profile: &AcpProfile, run: &RunSettings, sandbox: SandboxKind) -> PermissionPolicy {
    let mode = match (run.effective_mode(), sandbox) {
        (Mode::WorkspaceWrite, SandboxKind::Agent) => Mode::ReadOnly,
        (_, SandboxKind::Enforced) if profile.refusal_ends_turn => Mode::DangerFullAccess,
        (mode, _) => mode,
    };
    permission_policy(run, mode, sandbox == SandboxKind::Enforced)
}

/// The mode, model and reasoning effort of the session.
///
/// A read-only task runs in the agent's mode for that only where we do not enclose it. Such modes make an
/// agent plan instead of answering, and some take its tools away; enclosed, it can use commands that only
/// read.
fn settings(profile: &AcpProfile, run: &RunSettings, sandbox: SandboxKind) -> Vec<AcpSetting> {
    let modes = match run.effective_mode() {
        Mode::DangerFullAccess if !run.ask => profile.modes.full_access,
        Mode::ReadOnly if sandbox != SandboxKind::Enforced => profile.modes.read_only,
        _ => profile.modes.asking,
    };
    let model = match profile.model {
        ModelInput::Session => run.model.clone().map(AcpSetting::Model),
        ModelInput::Variable(_) => None,
    };
    let effort = run.reasoning_effort.clone().map(AcpSetting::ReasoningEffort);
    modes.iter().cloned().chain(model).chain(effort).collect()
}

pub(in crate::agent) fn set_variables(
    name: &str,
    run: &RunSettings,
    sandbox: SandboxKind,
) -> Vec<(String, String)> {
    let profile = acp_profile(name);
    let requests_permissions =
        run.ask || (sandbox == SandboxKind::None && run.mode != Mode::DangerFullAccess);
    let asking = if requests_permissions { profile.asking_variables } else { &[] };
    let model = match (&profile.model, &run.model) {
        (ModelInput::Variable(variable), Some(model)) => Some((*variable, model.as_str())),
        _ => None,
    };
    let variables = profile.profile.set_variables.iter().chain(asking).copied().chain(model);
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
}

pub(in crate::agent) fn finish(name: &str, request: &LaunchRequest) -> EndingRecipe {
    if acp_profile(name).ignores_end_of_input {
        EndingRecipe::terminate(request.terminate_grace)
    } else {
        EndingRecipe::close(request.terminate_grace)
    }
}

#[cfg(test)]
mod tests;
