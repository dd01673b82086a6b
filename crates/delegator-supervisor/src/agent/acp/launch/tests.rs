//! Plans for every kind of request.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use super::*;
use crate::agent::launch::tests::{request, request_with};
use crate::conversation::SettingValue;

fn in_mode(mode: Mode) -> LaunchRequest {
    request_with(|run| run.mode = mode)
}

fn planned(name: &str, request: &LaunchRequest, sandbox: SandboxKind) -> AcpPlan {
    match conversation(name, request, sandbox).unwrap() {
        ConversationPlan::Acp(plan) => plan,
        other => panic!("{other:?}"),
    }
}

/// The ids of the modes and options that are set.
fn settings_of(name: &str, request: &LaunchRequest, sandbox: SandboxKind) -> Vec<String> {
    let describe = |setting: &AcpSetting| match setting {
        AcpSetting::Mode { id, .. } => (*id).rsplit('#').next().unwrap().to_owned(),
        AcpSetting::Option { id, value: SettingValue::Choice(value) } => format!("{id}={value}"),
        AcpSetting::Option { id, value: SettingValue::Switch(value) } => format!("{id}={value}"),
        AcpSetting::Model(model) => format!("model={model}"),
        AcpSetting::ReasoningEffort(effort) => format!("effort={effort}"),
    };
    planned(name, request, sandbox).settings.iter().map(describe).collect()
}

#[test]
fn each_agent_is_set_to_the_mode_of_the_task() {
    use SandboxKind::{Agent, Enforced, None};
    for (name, enclosed, own, read_only, writing, full) in [
        ("gemini", Enforced, None, "plan", "default", "yolo"),
        ("qwen", Enforced, None, "plan", "default", "yolo"),
        ("kimi", Enforced, None, "plan", "default", "auto"),
        ("goose", Enforced, None, "approve", "approve", "auto"),
        ("opencode", Enforced, None, "mode=plan", "", ""),
        ("copilot", Enforced, None, "plan allow_all=off", "allow_all=off", "allow_all=on"),
        (
            "cline",
            Enforced,
            None,
            "plan auto_approve=false",
            "act auto_approve=false",
            "act auto_approve=true",
        ),
        ("claude-acp", Enforced, None, "default", "default", "default"),
        ("codex-acp", Agent, Agent, "read-only", "workspace-write", "agent-full-access"),
        ("my-own", Enforced, None, "", "", ""),
    ] {
        let set = |mode, sandbox| settings_of(name, &in_mode(mode), sandbox).join(" ");
        assert_eq!(set(Mode::ReadOnly, own), read_only, "{name}: nothing encloses it");
        assert_eq!(set(Mode::WorkspaceWrite, enclosed), writing, "{name}");
        assert_eq!(set(Mode::DangerFullAccess, None), full, "{name}");
        let expected = if acp_profile(name).profile.capabilities.sandbox { read_only } else { writing };
        assert_eq!(set(Mode::ReadOnly, enclosed), expected, "{name}: enclosed");
        let asking = request_with(|run| (run.mode, run.ask) = (Mode::DangerFullAccess, true));
        assert_eq!(settings_of(name, &asking, None).join(" "), writing, "{name}: the user is asked");
        let preview = request_with(|run| (run.mode, run.preview) = (Mode::DangerFullAccess, true));
        assert_eq!(settings_of(name, &preview, None).join(" "), read_only, "{name}: a preview");
    }
}

#[test]
fn model_and_effort_are_passed_as_the_agent_takes_them() {
    let with_model = request_with(|run| {
        run.mode = Mode::WorkspaceWrite;
        run.model = Some("m".to_owned());
        run.reasoning_effort = Some("high".to_owned());
    });
    let settings = |name| settings_of(name, &with_model, SandboxKind::Enforced);
    assert_eq!(settings("claude-acp"), ["default", "model=m", "effort=high"]);
    let copilot = set_variables("copilot", &with_model.run, SandboxKind::Enforced);
    assert!(copilot.contains(&("COPILOT_MODEL".to_owned(), "m".to_owned())), "{copilot:?}");
    assert!(!settings("copilot").contains(&"model=m".to_owned()));
}

#[test]
fn opencode_is_made_to_ask_only_if_an_answer_is_needed() {
    let is_asking = |request: &LaunchRequest, sandbox| {
        let variables = set_variables("opencode", &request.run, sandbox);
        variables.iter().any(|(name, _)| name == "OPENCODE_PERMISSION")
    };
    let mut writing = in_mode(Mode::WorkspaceWrite);
    assert!(!is_asking(&writing, SandboxKind::Enforced));
    assert!(is_asking(&writing, SandboxKind::None));
    writing.run.ask = true;
    assert!(is_asking(&writing, SandboxKind::Enforced));
    assert!(!is_asking(&in_mode(Mode::DangerFullAccess), SandboxKind::None));
}

#[test]
fn an_agent_with_its_own_sandbox_may_not_leave_it() {
    let policy = |mode, sandbox| planned("codex-acp", &in_mode(mode), sandbox).permissions;
    let agent = policy(Mode::WorkspaceWrite, SandboxKind::Agent);
    assert_eq!((agent.mode, agent.is_enforced), (Mode::ReadOnly, false), "edits and commands are refused");
    let enforced = policy(Mode::WorkspaceWrite, SandboxKind::Enforced);
    assert_eq!((enforced.mode, enforced.is_enforced), (Mode::WorkspaceWrite, true));
    assert_eq!(policy(Mode::DangerFullAccess, SandboxKind::None).mode, Mode::DangerFullAccess);
}

#[test]
fn an_enclosed_agent_that_would_end_its_turn_is_refused_nothing() {
    let policy = |name, sandbox| planned(name, &in_mode(Mode::ReadOnly), sandbox).permissions.mode;
    assert_eq!(policy("qwen", SandboxKind::Enforced), Mode::DangerFullAccess);
    assert_eq!(policy("qwen", SandboxKind::None), Mode::ReadOnly);
    assert_eq!(policy("gemini", SandboxKind::Enforced), Mode::ReadOnly);
}

#[test]
fn directories_have_to_be_unicode() {
    let add_dirs = vec![OsString::from_vec(b"/work/\xff".to_vec()).into()];
    let error = validate(&request_with(|run| run.add_dirs = add_dirs).run).unwrap_err();
    assert_eq!(error.input(), Some("add_dirs"));
    let plan = planned("goose", &request_with(|run| run.add_dirs = vec!["/more".into()]), SandboxKind::None);
    assert_eq!((plan.cwd.as_str(), plan.directories), ("/home/dev/project", vec!["/more".to_owned()]));
}

#[test]
fn agents_that_ignore_the_end_of_their_input_are_terminated_at_once() {
    let request = request();
    let close = EndingRecipe::close(request.terminate_grace);
    assert_eq!(finish("gemini", &request), close);
    assert_eq!(finish("goose", &request), EndingRecipe::terminate(request.terminate_grace));
}
