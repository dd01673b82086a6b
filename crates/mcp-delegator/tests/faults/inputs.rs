//! Input validation and the agent's environment: option-like values, hostile variables, guessed ids.

use std::collections::BTreeSet;
use std::process::Stdio;

use delegator_testkit::program::{read_text, wait_for_output};
use delegator_testkit::stage::successful_turn;
use serde_json::{Value, json};

use crate::agent_exit::{UnprivilegedProgram, program_as_unprivileged_user};
use crate::scripted_stage;

#[test]
fn f51_option_like_values_are_refused_before_anything_is_written() {
    let stage = scripted_stage(successful_turn(&[]));
    let refused = |args: &[&str]| {
        let run = stage.world.run([&["local"], args].concat());
        let response = run.json();
        assert_eq!(response["error"]["phase"], "validation", "{args:?}: {response}");
        (run.exit.unwrap(), response["error"]["code"].as_str().unwrap().to_owned())
    };
    let input = |args: &[&str]| assert_eq!(refused(args).0, 2, "{args:?}");
    for thread in ["--last", "-", "", "a b", "../x", "x\ny", "a;b", "ü"] {
        input(&["resume", "x", &format!("--thread-id={thread}")]);
    }
    for model in ["x --foo", "--foo", "-m", "", "a\nb", "a=b c", "$(x)"] {
        input(&["exec", "x", &format!("--model={model}")]);
        input(&["exec", "x", &format!("--profile={model}")]);
        input(&["exec", "x", &format!("--reasoning-effort={model}")]);
    }
    for task in ["../../x", "T-local-../x", "T-local-", "T-other-1", "--all", "T-local-a/b", "T-local-a b"] {
        input(&["results", &format!("--task-id={task}")]);
        input(&["cancel", &format!("--task-id={task}")]);
    }
    for mode in ["danger", "DANGER-FULL-ACCESS", "", "workspace-write --x"] {
        input(&["exec", "x", &format!("--mode={mode}")]);
    }
    input(&["exec", "x", "--env-policy=allow-list", "--env-allow-list=A=B"]);
    input(&["exec", "x", "--idle-timeout-sec=0"]);
    // A valid mode above `max_mode` needs the user's configuration; the caller and the project cannot allow it.
    let wide = ["exec", "x", "--mode", "danger-full-access"];
    assert_eq!(refused(&wide), (7, "POLICY_BLOCKED".to_owned()));
    stage.world.write("project/.mcp-delegator.toml", "max_mode = \"danger-full-access\"\n");
    assert_ne!(stage.world.run([&["local"], wide.as_slice()].concat()).exit, Some(0));
    std::fs::remove_file(stage.world.project().join(".mcp-delegator.toml")).unwrap();
    assert_eq!(stage.run_json(&["local", "status"])["data"]["summary"]["recently_completed"], 0);
    let allowed = stage.variable("MCP_DELEGATOR_MAX_MODE", "danger-full-access");
    assert_eq!(allowed.run_json(&[&["local"], &wide[..], &["--confirm"]].concat())["ok"], true);
}

#[test]
fn f53_a_hostile_environment_does_not_reach_the_agent() {
    let stage =
        scripted_stage(json!([{"read_stdin": "all"}, {"record": {"file": "record.json"}}, {"exit": 0}]));
    // A planted program that a search by relative path would find.
    let planted = stage.write_program("project/codex", "#!/bin/sh\ntouch planted\n");
    let bin = stage.root().join("bin");
    let mut command = stage.world.command(["local", "run", "x"]);
    command
        .env("MCP_DELEGATOR_CODEX_BIN", "codex")
        .env("PATH", format!(".::{}:{}:/usr/bin:/bin", planted.parent().unwrap().display(), bin.display()))
        .envs([
            ("LD_LIBRARY_PATH", "/tmp/evil"),
            ("NODE_OPTIONS", "--require /tmp/evil.js"),
            ("GIT_DIR", "/tmp/evil"),
            ("GIT_SSH_COMMAND", "/tmp/evil"),
            ("BASH_ENV", "/tmp/evil"),
            ("ENV", "/tmp/evil"),
            ("PYTHONSTARTUP", "/tmp/evil"),
            ("MY_SECRET", "correct-horse-battery"),
            ("RUST_BACKTRACE", "1"),
            ("DELEGATOR_TASK", "T-local-0000000000:0"),
            ("LANG", "C"),
            ("LC_TIME", "C"),
            ("TERM", "xterm"),
            ("OPENAI_API_KEY", "sk-not-a-real-key"),
        ]);
    let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    assert_eq!(wait_for_output(child).exit, Some(80));
    assert!(!stage.world.project().join("planted").exists(), "the planted program was run");
    let record: Value = serde_json::from_str(&read_text(&stage.world.project().join("record.json"))).unwrap();
    let names: Vec<&str> = record["env"].as_object().unwrap().keys().map(String::as_str).collect();
    // The shell in front of the scripted agent adds PWD, and possibly OLDPWD, SHLVL and _.
    let of_the_shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    let names: BTreeSet<&str> = names.into_iter().filter(|name| !of_the_shell.contains(name)).collect();
    let expected = ["DELEGATOR_TASK", "HOME", "LANG", "LC_TIME", "OPENAI_API_KEY", "PATH", "TERM"];
    assert_eq!(names, BTreeSet::from(expected));
    let marker = record["env"]["DELEGATOR_TASK"].as_str().unwrap();
    assert!(marker.ends_with(":1"), "the depth is not one below the submitting task: {marker}");
    assert_eq!(record["env"]["TERM"], "dumb");
}

#[test]
fn f59_a_guessed_task_id_reveals_nothing() {
    let stage = scripted_stage(successful_turn(&[]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    let (prefix, random) = id.rsplit_once('-').unwrap();
    assert!(random.len() == 10 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    let near = |at: usize| {
        let mut digits: Vec<u8> = random.bytes().collect();
        digits[at] = if digits[at] == b'0' { b'1' } else { b'0' };
        format!("{prefix}-{}", String::from_utf8(digits).unwrap())
    };
    let run_normalized = |command: &str, id: &str| {
        let run = stage.world.run(["local", command, id]);
        let mut response = run.json();
        for volatile in ["request_id", "timestamp", "duration_ms"] {
            response["meta"].as_object_mut().unwrap().remove(volatile);
        }
        (run.exit, response.to_string().replace(id, "ID"))
    };
    for command in ["results", "cancel", "wait", "status"] {
        let never = run_normalized(command, &format!("{prefix}-{}", "0".repeat(random.len())));
        assert_eq!(never.0, Some(5), "{never:?}");
        assert!(never.1.contains("TASK_NOT_FOUND"), "{}", never.1);
        for guess in [near(0), near(random.len() - 1), near(random.len() / 2)] {
            assert_eq!(run_normalized(command, &guess), never, "{command} {guess}");
        }
    }
    let ids: BTreeSet<String> = (0..8).map(|_| stage.exec(&[])).collect();
    assert_eq!(ids.len(), 8);
}

#[test]
fn files_of_another_user_are_permission_denied() {
    let stage = scripted_stage(successful_turn(&[]));
    let Some(UnprivilegedProgram { wrapper: program, .. }) = program_as_unprivileged_user(&stage) else {
        return;
    };
    stage.world.write("private", "{}");
    let private = stage.root().join("private");
    std::fs::set_permissions(&private, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let locked = stage.root().join("locked");
    std::fs::create_dir(&locked).unwrap();
    std::fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (private, locked) = (private.to_str().unwrap(), locked.join("out.json"));
    for args in
        [["events", "summarize", private].as_slice(), &["version", "--output", locked.to_str().unwrap()]]
    {
        let run = stage.world.run_as(&program, args);
        let expected = (Some(7), &json!("PERMISSION_DENIED"));
        assert_eq!((run.exit, &run.document()["error"]["code"]), expected, "{run:?}");
    }
}
