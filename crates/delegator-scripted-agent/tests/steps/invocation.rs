//! Which script is run, and the errors when there is none.

use std::process::{Output, Stdio};

use serde_json::json;

use crate::agent::{PROGRAM, Stage, json_lines, program, stderr_text};

fn without_variable(args: &[&str]) -> Output {
    program(PROGRAM).args(args).env_remove("SCRIPTED_AGENT_SCRIPT").stdin(Stdio::null()).output().unwrap()
}

#[test]
fn the_version_is_that_of_codex() {
    for word in ["--version", "-V"] {
        let output = without_variable(&[word]);
        assert_eq!(
            (output.stdout.as_slice(), output.status.code()),
            (b"codex-cli 0.166.0\n".as_slice(), Some(0))
        );
    }
    let newer = Stage::with_script(&json!({"version": "codex-cli 9.0.0", "steps": []}).to_string());
    assert_eq!(newer.run_with(&["--version"], b"").stdout, b"codex-cli 9.0.0\n");
}

#[test]
fn a_script_can_be_named_by_argument() {
    let stage = Stage::with(json!([{"record": {"file": "r"}}, {"exit": 7}]));
    let path = stage.path("script.json");
    let path = path.to_str().unwrap();
    let mut command = stage.command(&["--script", path, "exec", "--json", "-"]);
    let output = command.env("SCRIPTED_AGENT_SCRIPT", "/no/such/file").output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", stderr_text(&output));
    assert_eq!(stage.json("r")["argv"], json!([PROGRAM, "exec", "--json", "-"]));
}

#[test]
fn hello_is_built_in() {
    let output = without_variable(&["--script", "hello", "exec", "--json", "-"]);
    assert_eq!(json_lines(&output).len(), 4);
    assert_eq!(json_lines(&output)[2]["item"]["text"], "Hello.");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_script_beside_the_program_is_found() {
    let stage = Stage::with(json!([{"exit": 7}]));
    std::fs::copy(stage.path("script.json"), stage.path("codex.json")).unwrap();
    std::os::unix::fs::symlink(PROGRAM, stage.path("codex")).unwrap();
    let link = program(stage.path("codex")).env_clear().arg("exec").status().unwrap();
    assert_eq!(link.code(), Some(7));
    std::fs::remove_file(stage.path("codex")).unwrap();
    // Not by this process: a test that forks meanwhile would hold the copy open for writing, and it could not be
    // executed.
    assert!(program("cp").arg(PROGRAM).arg(stage.path("codex")).status().unwrap().success());
    let command = "PATH=$0; export PATH; codex exec";
    let found_on_path = program("/bin/sh").args(["-c", command]).arg(stage.path("")).status().unwrap();
    assert_eq!(found_on_path.code(), Some(7));
}

#[test]
fn invalid_scripts_and_arguments_are_reported() {
    let assert_rejected = |script: &str, about: &[&str]| {
        let output = Stage::with_script(script).run();
        assert_eq!((output.stdout.len(), output.status.code()), (0, Some(2)), "{script}");
        for word in about {
            assert!(stderr_text(&output).contains(word), "{script}: {}", stderr_text(&output));
        }
    };
    assert_rejected("{\"steps\": [\n{\"dance\": 1}]}", &["script.json", "unknown variant `dance`", "line 2"]);
    assert_rejected(r#"{"steps": [{"flood": {"byte": 1}}]}"#, &["unknown field `byte`"]);
    assert_rejected(r#"{"steps": [{"turn_completed": {"tokens": 1}}]}"#, &["unknown field `tokens`"]);
    assert_rejected(r#"{"step": []}"#, &["unknown field `step`"]);
    assert_rejected(r#"{"steps": [{"exit": 256}]}"#, &["256"]);
    assert_rejected(r#"{"steps": [{"raise": "FOO"}]}"#, &["`FOO` is not the name of a signal"]);
    assert_rejected(r#"{"steps": [{"raw": {"hex": "f"}}]}"#, &["not bytes in hex"]);
    assert_rejected(r#"{"steps": [{"touch_file": "no/such/folder/x"}]}"#, &["no/such/folder/x"]);
    assert_rejected("steps", &["is not a script"]);
    let output = without_variable(&["--script", "/no/such/file"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr_text(&output).contains("cannot read the script /no/such/file"));
    let output = without_variable(&["exec"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr_text(&output).contains("no script: name one"), "{}", stderr_text(&output));
    assert_eq!(without_variable(&["--script"]).status.code(), Some(2));
}

#[test]
fn the_examples_are_scripts() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let mut read = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let script = delegator_scripted_agent::Script::load(&entry.unwrap().path()).unwrap();
        assert!(!script.about.is_empty() && !script.steps.is_empty());
        read += 1;
    }
    assert!(read >= 3, "{read}");
}
