//! Which script is played, and what is said when there is none.

use std::process::{Output, Stdio};

use serde_json::json;

use crate::agent::{PROGRAM, Stage, complaint, lines, program};

fn without_variable(words: &[&str]) -> Output {
    program(PROGRAM).args(words).env_remove("SCRIPTED_AGENT_SCRIPT").stdin(Stdio::null()).output().unwrap()
}

#[test]
fn the_version_is_codex_s() {
    for word in ["--version", "-V"] {
        let output = without_variable(&[word]);
        assert_eq!(
            (output.stdout.as_slice(), output.status.code()),
            (b"codex-cli 0.166.0\n".as_slice(), Some(0))
        );
    }
    let newer = Stage::with_script(&json!({"version": "codex-cli 9.0.0", "steps": []}).to_string());
    assert_eq!(newer.play_with(&["--version"], b"").stdout, b"codex-cli 9.0.0\n");
}

#[test]
fn a_script_is_named_by_argument() {
    let stage = Stage::with(json!([{"record": {"file": "r"}}, {"exit": 7}]));
    let path = stage.path("script.json");
    let path = path.to_str().unwrap();
    let mut command = stage.command(&["--script", path, "exec", "--json", "-"]);
    let output = command.env("SCRIPTED_AGENT_SCRIPT", "/no/such/file").output().unwrap();
    assert_eq!(output.status.code(), Some(7), "{}", complaint(&output));
    assert_eq!(stage.json("r")["argv"], json!([PROGRAM, "exec", "--json", "-"]));
}

#[test]
fn hello_is_built_in() {
    let output = without_variable(&["--script", "hello", "exec", "--json", "-"]);
    assert_eq!(lines(&output).len(), 4);
    assert_eq!(lines(&output)[2]["item"]["text"], "Hello.");
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_script_lies_beside_the_program() {
    let stage = Stage::with(json!([{"exit": 7}]));
    std::fs::copy(stage.path("script.json"), stage.path("codex.json")).unwrap();
    std::os::unix::fs::symlink(PROGRAM, stage.path("codex")).unwrap();
    let link = program(stage.path("codex")).env_clear().arg("exec").status().unwrap();
    assert_eq!(link.code(), Some(7));
    std::fs::remove_file(stage.path("codex")).unwrap();
    // Not by this process: a test that forks meanwhile would hold the copy open for writing, and it could not be run.
    assert!(program("cp").arg(PROGRAM).arg(stage.path("codex")).status().unwrap().success());
    let command = "PATH=$0; export PATH; codex exec";
    let found_on_path = program("/bin/sh").args(["-c", command]).arg(stage.path("")).status().unwrap();
    assert_eq!(found_on_path.code(), Some(7));
}

#[test]
fn what_is_wrong_is_said() {
    let complains = |script: &str, about: &[&str]| {
        let output = Stage::with_script(script).play();
        assert_eq!((output.stdout.len(), output.status.code()), (0, Some(2)), "{script}");
        for word in about {
            assert!(complaint(&output).contains(word), "{script}: {}", complaint(&output));
        }
    };
    complains("{\"steps\": [\n{\"dance\": 1}]}", &["script.json", "unknown variant `dance`", "line 2"]);
    complains(r#"{"steps": [{"flood": {"byte": 1}}]}"#, &["unknown field `byte`"]);
    complains(r#"{"steps": [{"turn_completed": {"tokens": 1}}]}"#, &["unknown field `tokens`"]);
    complains(r#"{"step": []}"#, &["unknown field `step`"]);
    complains(r#"{"steps": [{"exit": 256}]}"#, &["256"]);
    complains(r#"{"steps": [{"raise": "FOO"}]}"#, &["`FOO` is not the name of a signal"]);
    complains(r#"{"steps": [{"raw": {"hex": "f"}}]}"#, &["not bytes in hex"]);
    complains(r#"{"steps": [{"touch_file": "no/such/folder/x"}]}"#, &["no/such/folder/x"]);
    complains("steps", &["is not a script"]);
    let output = without_variable(&["--script", "/no/such/file"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("cannot read the script /no/such/file"));
    let output = without_variable(&["exec"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(complaint(&output).contains("no script: name one"), "{}", complaint(&output));
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
