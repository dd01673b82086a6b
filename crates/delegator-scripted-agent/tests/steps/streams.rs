//! Input, raw output, synchronisation files and control flow.

use std::io::Write;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::agent::{Stage, json_lines, run_steps, stderr_text, wait_until};

#[test]
fn bytes_are_written_unchanged() {
    let output = run_steps(json!([
        {"event": {"type": "future", "b": 1, "a": null}},
        {"line": "not json [[["},
        {"raw": {"text": "né", "hex": "ff 00 fe0d0A"}},
        {"raw": {"hex": "c3"}},
        {"raw": {"text": "warned", "stream": "stderr"}},
        {"stderr_line": "!"},
    ]));
    let expected = [
        b"{\"type\":\"future\",\"b\":1,\"a\":null}\nnot json [[[\n".as_slice(),
        "né".as_bytes(),
        b"\xff\0\xfe\r\n\xc3",
    ];
    assert_eq!(output.stdout, expected.concat());
    assert_eq!(stderr_text(&output), "warned!\n");
}

#[test]
fn stdin_is_read_whole_and_recorded_byte_for_byte() {
    let steps = json!([{"read_stdin": "all"}, {"record": {"file": "r.json", "stdin_file": "stdin"}}]);
    let stage = Stage::with(steps);
    let prompt = "\u{1f680}".repeat(100_000);
    let output = stage.run_with(&["exec", "--json", "-"], prompt.as_bytes());
    assert_eq!(output.status.code(), Some(0), "{}", stderr_text(&output));
    assert_eq!(stage.read("stdin"), prompt);
    let record = stage.json("r.json");
    assert_eq!(record["stdin"], prompt);
    assert_eq!((&record["stdin_bytes"], &record["stdin_ended"]), (&json!(400_000), &json!(true)));
}

#[test]
fn a_record_contains_how_the_agent_was_started() {
    let stage = Stage::with(json!([{"record": {"file": "{pid}.json"}}]));
    let mut command = crate::agent::program("/bin/sh");
    let program = crate::agent::PROGRAM;
    let args = ["-c", "umask 027; exec 7</dev/zero; ulimit -Sn 200; exec \"$@\"", "sh", program];
    command.args(args).args(["exec", "--json", "resume", "T", "-"]).current_dir(stage.path("."));
    command.env_clear().env("SCRIPTED_AGENT_SCRIPT", stage.path("script.json")).env("ODD", "a=b\nc");
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let pid = child.id();
    assert!(child.wait().unwrap().success());
    let record = stage.json(&format!("{pid}.json"));
    assert_eq!(record["argv"], json!([program, "exec", "--json", "resume", "T", "-"]));
    assert_eq!(record["resumed_thread"], "T");
    assert_eq!(record["cwd"], json!(stage.path("").canonicalize().unwrap()));
    assert_eq!(record["env"]["ODD"], "a=b\nc");
    let names: Vec<&String> = record["env"].as_object().unwrap().keys().filter(|key| *key != "PWD").collect();
    assert_eq!(names.len(), 2, "{names:?}");
    assert_eq!(record["umask"], "0027");
    assert_eq!(record["pid"], pid);
    assert_eq!(record["parent_pid"], std::process::id());
    assert_eq!(record["open_files_limit"]["soft"], 200);
    // The test runner may have left other descriptors open; the agent's own are not among them.
    let inherited = record["inherited_descriptors"].as_object().unwrap();
    assert_eq!(inherited["7"], "/dev/zero");
    assert!(inherited.keys().all(|number| number.parse::<i32>().unwrap() > 6), "{inherited:?}");
    assert_eq!(record["blocked_signals"].as_str().unwrap().len(), 16);
}

#[test]
fn one_byte_is_read_and_the_pipe_is_closed() {
    for (read_mode, expected) in [("one_byte", "a"), ("close", "")] {
        let stage = Stage::with(json!([
            {"read_stdin": read_mode}, {"record": {"file": "r"}}, {"wait_for_file": "go"},
        ]));
        let mut child = stage.command(&[]).stdin(Stdio::piped()).spawn().unwrap();
        let mut pipe = child.stdin.take().unwrap();
        let _ = pipe.write_all(b"abc");
        wait_until("the record", || stage.path("r").exists());
        let broken = pipe.write_all(b"more").unwrap_err();
        assert_eq!(broken.kind(), std::io::ErrorKind::BrokenPipe);
        std::fs::write(stage.path("go"), "").unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
        assert_eq!(stage.json("r")["stdin"], expected);
    }
}

#[test]
fn stdin_that_is_never_read_does_not_block() {
    let output = Stage::with(json!([{"read_stdin": "never"}, {"line": "x"}])).run_with(&[], &[b'p'; 400_000]);
    assert_eq!((output.stdout.as_slice(), output.status.code()), (b"x\n".as_slice(), Some(0)));
}

#[test]
fn stdin_can_be_read_line_by_line() {
    let stage = Stage::with(json!([
        {"line": "ready"}, {"read_stdin": "line"}, {"record": {"file": "first"}},
        {"read_stdin": "line"}, {"record": {"file": "second"}}, {"read_stdin": "line"}, {"record": {"file": "end"}},
    ]));
    stage.run_with(&[], b"one\ntwo\n");
    assert_eq!(stage.json("first")["stdin"], "one\n");
    assert_eq!(stage.json("second")["stdin"], "one\ntwo\n");
    assert_eq!(stage.json("second")["stdin_ended"], false);
    assert_eq!(stage.json("end")["stdin_ended"], true);
}

#[test]
fn stdout_is_closed_for_real() {
    let stage = Stage::with(json!([{"line": "last"}, "close_stdout", {"wait_for_file": "go"}, {"exit": 4}]));
    let mut child = stage.start();
    let mut output = String::new();
    // Returns only when the other end is closed.
    std::io::Read::read_to_string(child.stdout.as_mut().unwrap(), &mut output).unwrap();
    assert_eq!(output, "last\n");
    assert!(child.try_wait().unwrap().is_none());
    std::fs::write(stage.path("go"), "").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(4));
    assert_eq!(run_steps(json!(["close_stdout", {"line": "x"}])).status.code(), Some(101));
}

#[test]
fn an_agent_whose_output_is_closed_exits_like_codex() {
    let stage = Stage::with(json!([{"flood": {}}]));
    let mut child = stage.start();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(101));
}

#[test]
fn every_exit_code_is_exact() {
    for code in [0, 1, 2, 101, 127, 128, 255] {
        assert_eq!(run_steps(json!([{"exit": code}, {"line": "never"}])).status.code(), Some(code));
    }
}

#[test]
fn steps_are_repeated_and_chosen() {
    let choice =
        json!({"choose": {"among": [[{"line": "\"a\""}], [{"line": "\"b\""}], [{"line": "\"c\""}]]}});
    let script = json!({"seed": 7, "steps": [{"repeat": {"times": 60, "steps": [choice]}}]}).to_string();
    let chosen = json_lines(&Stage::with_script(&script).run());
    assert_eq!(chosen.len(), 60);
    for word in ["a", "b", "c"] {
        assert!(chosen.contains(&json!(word)), "{word} was never chosen");
    }
    assert_eq!(chosen, json_lines(&Stage::with_script(&script).run()), "the seed decides");
    let fixed = json!([{"repeat": {"times": 20, "steps": [
        {"choose": {"seed": 1, "among": [[{"line": "1"}], [{"line": "2"}]]}}]}}]);
    let fixed_choices = json_lines(&run_steps(fixed));
    assert!(fixed_choices.iter().all(|line| *line == fixed_choices[0]));
}

#[test]
fn files_are_touched_and_waited_for() {
    let stage =
        Stage::with(json!([{"touch_file": "here"}, {"wait_for_file": "go"}, {"line": "\"gone on\""}]));
    let child = stage.start();
    wait_until("the file", || stage.path("here").exists());
    std::fs::write(stage.path("go"), "").unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(json_lines(&output), [Value::from("gone on")]);
}
