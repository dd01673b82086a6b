//! `codex app-server`: the same Codex, driven by messages. Its settings are those of `codex exec`, passed as
//! `-c` options; what has no option is said in the conversation.
//!
//! Measured with 0.166: there is no `--profile`. An approval runs a command outside of the sandbox, so
//! approvals are requested only if the user wants to be asked. Questions of the agent need a feature that is
//! off by default; it is enabled for the same tasks, without the warning that Codex prints about it.

use std::ffi::OsString;

use delegator_domain::task::Mode;
use delegator_transcript::wire::app_server::{ApprovalPolicy, SandboxMode, ThreadOptions, TurnOptions};

use super::command_line::{push_features, push_settings, validate};
use super::permissions::Confinement;
use super::project_trust::ProjectTrust;
use crate::agent::arg_list::{ArgList, toml_array};
use crate::agent::launch::{LaunchRequest, PlanError};
use crate::conversation::{AppServerPlan, ConversationPlan};
use crate::program::Version;

/// A schema that is longer is not one.
const MAX_SCHEMA_BYTES: u64 = 1 << 20;

pub(in crate::agent) fn args(
    request: &LaunchRequest,
    version: Version,
    trust: ProjectTrust,
) -> Result<Vec<OsString>, PlanError> {
    validate(request, version)?;
    let run = &request.run;
    let mut args = ArgList::default();
    args.push(&["app-server"]);
    let confinement = confinement(request, version);
    confinement.push_settings(&run.add_dirs, &mut args);
    let is_mode = matches!(confinement, Confinement::Mode(Mode::WorkspaceWrite));
    if is_mode && !run.add_dirs.is_empty() {
        let roots = run.add_dirs.iter().filter_map(|path| path.to_str());
        args.push_setting("sandbox_workspace_write.writable_roots", &toml_array(roots));
    }
    push_features(&mut args, version);
    if run.ask {
        args.push(&["--enable", "default_mode_request_user_input"]);
        args.push_setting("suppress_unstable_features_warning", "true");
    }
    push_settings(&mut args, request, version, trust);
    Ok(args.0)
}

fn confinement(request: &LaunchRequest, version: Version) -> Confinement {
    Confinement::of(request.run.effective_mode(), request.denied_dir.as_deref(), version)
}

pub(in crate::agent) fn conversation(
    request: &LaunchRequest,
    version: Version,
) -> Result<ConversationPlan, PlanError> {
    let run = &request.run;
    let sandbox = match confinement(request, version) {
        Confinement::Mode(Mode::ReadOnly) => Some(SandboxMode::ReadOnly),
        Confinement::Mode(Mode::WorkspaceWrite) => Some(SandboxMode::WorkspaceWrite),
        Confinement::Mode(Mode::DangerFullAccess) => Some(SandboxMode::DangerFullAccess),
        // A mode would override the profile in the settings.
        Confinement::DenyRead { .. } => None,
    };
    let approval_policy = if run.ask { ApprovalPolicy::OnRequest } else { ApprovalPolicy::Never };
    Ok(ConversationPlan::AppServer(AppServerPlan {
        prompt: request.prompt(),
        images: run.images.clone(),
        resume: run.resume.clone(),
        thread: ThreadOptions {
            cwd: run.working_dir.clone(),
            model: run.model.clone(),
            sandbox,
            approval_policy,
        },
        turn: TurnOptions { output_schema: output_schema(request)? },
        ask: run.ask,
    }))
}

fn output_schema(request: &LaunchRequest) -> Result<Option<serde_json::Value>, PlanError> {
    let text = request.read_output_schema(MAX_SCHEMA_BYTES, "it is longer than 1 MiB")?;
    let parse = |text: String| serde_json::from_str(&text);
    text.map(parse).transpose().map_err(|_| PlanError::value("output_schema", "it is not JSON"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::codex::features::NEWEST_MEASURED as NEWEST;
    use crate::agent::launch::tests::{request, request_with};

    fn plan(request: &LaunchRequest) -> AppServerPlan {
        match conversation(request, NEWEST) {
            Ok(ConversationPlan::AppServer(plan)) => plan,
            other => panic!("{other:?}"),
        }
    }

    fn args_of(request: &LaunchRequest) -> Vec<String> {
        let args = args(request, NEWEST, ProjectTrust::Trusted).unwrap();
        args.into_iter().map(|arg| arg.into_string().unwrap()).collect()
    }

    #[test]
    fn settings_are_those_of_exec_and_the_rest_is_sent() {
        let request = request_with(|run| {
            run.mode = Mode::WorkspaceWrite;
            run.model = Some("m".to_owned());
            run.reasoning_effort = Some("high".to_owned());
            run.images = vec!["/i.png".into()];
            run.add_dirs = vec!["/more \"x\"".into()];
            run.resume = Some("t".to_owned());
        });
        insta::assert_snapshot!(args_of(&request).join("\n"));
        let plan = plan(&request);
        assert_eq!((plan.resume.as_deref(), plan.thread.model.as_deref()), (Some("t"), Some("m")));
        assert_eq!(plan.thread.sandbox, Some(SandboxMode::WorkspaceWrite));
        assert_eq!((plan.thread.approval_policy, plan.images.len()), (ApprovalPolicy::Never, 1));
    }

    #[test]
    fn a_directory_that_must_not_be_read_is_denied_by_a_profile_without_a_mode() {
        let request = request_with(|run| {
            run.mode = Mode::WorkspaceWrite;
            run.add_dirs = vec!["/more".into()];
        });
        let request = LaunchRequest { denied_dir: Some("/state".into()), ..request };
        assert_eq!(plan(&request).thread.sandbox, None);
        let args = args_of(&request).join(" ");
        assert!(args.contains(r#"filesystem={"/more"="write","/state"="deny"}"#), "{args}");
        assert!(!args.contains("writable_roots"), "{args}");
    }

    #[test]
    fn a_user_who_wants_to_be_asked_gets_approvals_and_questions() {
        let request = request_with(|run| run.ask = true);
        assert_eq!(plan(&request).thread.approval_policy, ApprovalPolicy::OnRequest);
        assert!(args_of(&request).contains(&"default_mode_request_user_input".to_owned()));
    }

    #[test]
    fn a_preview_is_read_only() {
        let request = request_with(|run| (run.mode, run.preview) = (Mode::WorkspaceWrite, true));
        assert_eq!(plan(&request).thread.sandbox, Some(SandboxMode::ReadOnly));
    }

    #[test]
    fn the_output_schema_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("schema.json");
        std::fs::write(&path, r#"{"type":"object"}"#).unwrap();
        let request = LaunchRequest { output_schema: Some(path.clone()), ..request() };
        assert_eq!(plan(&request).turn.output_schema, Some(serde_json::json!({"type": "object"})));
        std::fs::write(&path, "{").unwrap();
        assert_eq!(conversation(&request, NEWEST).unwrap_err().input(), Some("output_schema"));
    }
}
