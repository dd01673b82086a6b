//! Command lines for every kind of request, and properties that hold for all of them.

use std::ffi::OsStr;

use delegator_domain::task::{EnvPolicy, Mode, RunSettings};
use proptest::prelude::*;

use super::*;
use crate::agent::launch::PREVIEW_INSTRUCTION;
use crate::agent::launch::tests::{request, request_with};

const NEWEST: Version = features::NEWEST_MEASURED;
const THREAD: &str = "01a1dc9f-8855-72c2-8e67-f1efc63e6b3b";

fn full_request() -> LaunchRequest {
    let request = request_with(|run| {
        run.mode = Mode::WorkspaceWrite;
        run.model = Some("gpt-5.5".to_owned());
        run.profile = Some("fast".to_owned());
        run.reasoning_effort = Some("high".to_owned());
        run.images = vec!["/tmp/a.png".into(), "/tmp/b c.png".into()];
        run.add_dirs = vec!["/srv/shared".into()];
        run.skip_git_repo_check = true;
        run.env_policy = EnvPolicy::AllowList(vec!["CARGO_HOME".to_owned(), "A*".to_owned()]);
        run.resume = Some(THREAD.to_owned());
    });
    LaunchRequest { output_schema: Some("/state/schema.json".into()), ..request }
}

fn plan(request: &LaunchRequest, version: Version) -> Result<Vec<OsString>, PlanError> {
    args(request, version, ProjectTrust::Untrusted)
}

/// One argument per line, for review in the snapshot.
fn args_of(request: &LaunchRequest, version: Version) -> String {
    let args = plan(request, version).expect("arguments");
    let args: Vec<String> = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
    args.join("\n")
}

#[test]
fn args_for_every_mode() {
    for mode in [Mode::ReadOnly, Mode::WorkspaceWrite, Mode::DangerFullAccess] {
        let request = request_with(|run| run.mode = mode);
        insta::assert_snapshot!(format!("mode_{}", mode.name()), args_of(&request, NEWEST));
    }
}

#[test]
fn preview_is_read_only_with_an_instruction() {
    let request = request_with(|run| (run.mode, run.preview) = (Mode::WorkspaceWrite, true));
    insta::assert_snapshot!(args_of(&request, NEWEST));
    let stdin = request.prompt();
    assert_eq!(stdin, format!("{PREVIEW_INSTRUCTION}fix the tests"));
}

#[test]
fn args_for_every_env_policy() {
    let named = EnvPolicy::AllowList(vec!["CARGO_HOME".to_owned()]);
    for (name, env_policy) in
        [("none", EnvPolicy::InheritNone), ("all", EnvPolicy::InheritAll), ("list", named)]
    {
        insta::assert_snapshot!(
            format!("policy_{name}"),
            args_of(&request_with(|run| run.env_policy = env_policy), NEWEST)
        );
    }
}

#[test]
fn args_for_a_full_request() {
    insta::assert_snapshot!(args_of(&full_request(), NEWEST));
}

#[test]
fn args_for_every_codex_version() {
    let plain = request_with(|run| run.mode = Mode::WorkspaceWrite);
    for minor in [40, 50, 66, 98, 146, 147, 148, 166, 999] {
        insta::assert_snapshot!(format!("codex_0_{minor}"), args_of(&plain, (0, minor, 0)));
    }
}

#[test]
fn flags_precede_resume_and_the_prompt_is_last() {
    let args = args_of(&full_request(), NEWEST);
    assert!(args.ends_with(&format!("resume\n{THREAD}\n-")), "{args}");
}

#[test]
fn unsupported_inputs_are_errors_on_old_versions() {
    let old = (0, 40, 0);
    for (request, feature, since) in [
        (request_with(|run| run.add_dirs = vec!["/x".into()]), "add_dirs", features::ADD_DIR),
        (
            LaunchRequest { output_schema: Some("/x".into()), ..request() },
            "output_schema",
            features::OUTPUT_SCHEMA,
        ),
    ] {
        assert_eq!(plan(&request, old), Err(PlanError::TooOld { version: old, feature, since }));
    }
}

#[test]
fn values_that_cannot_be_passed_safely_are_errors() {
    let refused = [
        request_with(|run| run.resume = Some("--last".to_owned())),
        request_with(|run| run.resume = Some(String::new())),
        request_with(|run| run.images = vec!["/tmp/a,b.png".into()]),
        request_with(|run| run.model = Some("a\0b".to_owned())),
        request_with(|run| run.working_dir = OsStr::from_bytes(b"/caf\xe9").into()),
    ];
    for request in refused {
        assert!(matches!(plan(&request, NEWEST), Err(PlanError::Value { .. })), "{request:?}");
    }
}

#[test]
fn every_run_sets_project_trust_once() {
    let modes = [Mode::ReadOnly, Mode::WorkspaceWrite, Mode::DangerFullAccess].map(|mode| (mode, false));
    let threads = [None, Some(THREAD.to_owned())];
    for (mode, preview) in modes.into_iter().chain([(Mode::WorkspaceWrite, true)]) {
        for (project_trust, resume) in
            [ProjectTrust::Trusted, ProjectTrust::Untrusted].into_iter().zip(threads.clone())
        {
            let request = request_with(|run| (run.mode, run.preview, run.resume) = (mode, preview, resume));
            let setting = format!("projects={}", projects_setting(&request.run.working_dir, project_trust));
            let args = args(&request, NEWEST, project_trust).unwrap();
            assert_eq!(args.iter().filter(|arg| **arg == *setting).count(), 1, "{request:?}");
        }
    }
}

fn hostile_text() -> impl Strategy<Value = String> {
    prop_oneof!["-{1,2}[a-z=-]{0,12}", "[^\0]{1,20}", "[\"\\\\'={}\\[\\]\n, -]{1,10}"]
}

proptest! {
    #[test]
    fn the_task_is_never_an_argument(task in "[a-zäß\"\\\\ -]{12,60}", preview: bool) {
        let mut request = full_request();
        (request.task, request.run.preview) = (task.clone(), preview);
        let args = plan(&request, NEWEST).unwrap();
        // No part of it either: a prefix, an infix or a suffix would leak as well.
        let chars: Vec<char> = task.chars().collect();
        for window in chars.windows(12) {
            let part: String = window.iter().collect();
            for arg in &args {
                prop_assert!(!arg.to_string_lossy().contains(&part), "{arg:?}");
            }
        }
        prop_assert!(request.prompt().ends_with(&task));
    }

    #[test]
    fn no_value_becomes_a_flag(
        model in hostile_text(), profile in hostile_text(), effort in hostile_text(), path in hostile_text(),
        name in hostile_text(), workdir in hostile_text(),
    ) {
        prop_assume!(!path.contains(','));
        let plain = full_request();
        let run = RunSettings {
            model: Some(model.clone()),
            profile: Some(profile),
            reasoning_effort: Some(effort.clone()),
            images: vec![path.clone().into()],
            add_dirs: vec![path.into()],
            env_policy: EnvPolicy::AllowList(vec![name]),
            working_dir: workdir.into(),
            ..plain.run.clone()
        };
        let args = plan(&LaunchRequest { run, ..plain.clone() }, NEWEST).unwrap();
        let plain = plan(&plain, NEWEST).unwrap();
        let flag = |arg: &OsString| arg.to_string_lossy().split('=').next().unwrap_or_default().to_owned();
        // The same flags and keys in the same order, less one image.
        let flags: Vec<String> = args.iter().map(flag).collect();
        let mut expected: Vec<String> = plain.iter().map(flag).collect();
        let image = expected.iter().position(|flag| flag == "--image").unwrap();
        expected.remove(image);
        prop_assert_eq!(flags, expected);
        let model_arg = format!("--model={model}");
        prop_assert!(args.contains(&OsString::from(model_arg)));
        for arg in args.iter().filter(|arg| arg.to_string_lossy().starts_with("model_reasoning")) {
            let text = arg.to_string_lossy();
            let value = text.split_once('=').unwrap().1;
            // A TOML basic string is a JSON string as long as nothing else is escaped.
            let decoded: String = serde_json::from_str(value).unwrap();
            prop_assert_eq!(&decoded, &effort);
        }
    }
}
