//! The limits in a project file apply to tasks in its work tree, wherever the call is made. A broken project file refuses
//! new tasks in its tree and affects nothing else.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use delegator_testkit::program::{output_of, wait_for_output};
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;

/// A git work tree below the root of the stage, with a project file and a subdirectory.
fn tree(stage: &Stage, name: &str, project_file: Option<&str>) -> PathBuf {
    let tree = stage.root().join(name);
    std::fs::create_dir_all(tree.join("deep/er")).unwrap();
    let init = stage.world.run_as(Path::new("git"), ["init", "--quiet", tree.to_str().unwrap()]);
    assert_eq!(init.exit, Some(0), "{init:?}");
    if let Some(text) = project_file {
        std::fs::write(tree.join(".mcp-delegator.toml"), text).unwrap();
    }
    tree
}

fn quick() -> Stage {
    Stage::with_script(PROGRAM, successful_turn(&[]))
}

/// The JSON output of a command run in a directory.
fn run_in(stage: &Stage, directory: &Path, args: &[&str]) -> Value {
    let text = output_of(stage.world.command(args).current_dir(directory).stdin(Stdio::null())).stdout;
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {args:?}: {text}"))
}

/// The envelope of one tool call to a server started in a directory.
fn tool_in(stage: &Stage, directory: &Path, tool: &str, arguments: &Value) -> Value {
    let mut command = stage.world.command(["serve", "--toolsets", "local,registry,extra"]);
    let command = command.current_dir(directory).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut server = command.stderr(Stdio::null()).spawn().unwrap();
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}});
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": tool, "arguments": arguments}});
    let mut input = server.stdin.take().unwrap();
    write!(input, "{initialize}\n{ready}\n{call}\n").unwrap();
    drop(input);
    let text = wait_for_output(server).stdout;
    let lines = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let reply =
        lines.into_iter().find(|line| line["id"] == 2).unwrap_or_else(|| panic!("no response: {text}"));
    reply["result"]["structuredContent"].clone()
}

fn code(response: &Value) -> String {
    let code = response.pointer("/error/details/code").or_else(|| response.pointer("/error/code"));
    code.and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn id_of(response: &Value) -> String {
    response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
}

#[test]
fn limits_come_from_the_work_tree_of_the_task() {
    let stage = quick();
    let guarded = tree(&stage, "guarded", Some("max_mode = 'read-only'\n[labels]\nteam = 'core'\n"));
    let free = tree(&stage, "free", None);
    let deep = guarded.join("deep/er");
    let link = stage.root().join("link");
    std::os::unix::fs::symlink(&deep, &link).unwrap();
    for path in [&guarded, &deep, &link] {
        let path = path.to_str().unwrap();
        let call = ["local", "exec", "x", "--mode", "workspace-write", "--working-dir", path];
        let refused = run_in(&stage, &free, &call);
        assert_eq!(code(&refused), "POLICY_BLOCKED", "{refused}");
        let call = json!({"task": "x", "mode": "workspace-write", "working_dir": path, "format": "json"});
        let refused = tool_in(&stage, &free, "_codex_local_exec", &call);
        assert_eq!(code(&refused), "POLICY_BLOCKED", "{refused}");
    }
    let call = ["local", "exec", "x", "--mode", "workspace-write", "--working-dir", free.to_str().unwrap()];
    let elsewhere = run_in(&stage, &guarded, &call);
    assert_eq!(elsewhere["ok"], true, "the limits of the caller's directory were applied: {elsewhere}");
    let id = id_of(&run_in(&stage, &free, &["local", "exec", "x", "--working-dir", deep.to_str().unwrap()]));
    let ended = stage.wait(&id);
    assert_eq!(ended["data"]["labels"], json!({"team": "core"}), "{ended}");
}

#[test]
fn retry_and_resume_obey_the_limits_of_the_work_tree() {
    let stage = quick();
    let (tree, free) = (tree(&stage, "tree", None), tree(&stage, "free", None));
    let path = tree.to_str().unwrap();
    let call = ["local", "exec", "x", "--mode", "workspace-write", "--working-dir", path];
    let id = id_of(&run_in(&stage, &free, &call));
    let thread = stage.wait(&id)["data"]["metadata"]["thread_id"].clone();
    std::fs::write(tree.join(".mcp-delegator.toml"), "max_mode = 'read-only'\n").unwrap();
    let refused = run_in(&stage, &free, &["retry", &id]);
    assert_eq!(code(&refused), "POLICY_BLOCKED", "{refused}");
    let resume = ["local", "resume", "x", "--mode", "workspace-write", "--task-id", &id];
    let refused = run_in(&stage, &free, &resume);
    assert_eq!(code(&refused), "POLICY_BLOCKED", "{thread}: {refused}");
}

#[test]
fn a_timeout_in_the_project_file_ends_the_task() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[json!({"wait_for_file": "never"})]));
    let tree = tree(&stage, "tree", Some("hard_timeout_sec = 1\n"));
    let id = id_of(&stage.run_json(&["local", "exec", "x", "--working-dir", tree.to_str().unwrap()]));
    assert_eq!(stage.wait(&id)["data"]["state"], "timeout");
}

#[test]
fn a_broken_project_file_refuses_only_new_tasks_in_its_tree() {
    let stage = quick();
    let broken = tree(&stage, "broken", None);
    let free = tree(&stage, "free", None);
    let path = broken.to_str().unwrap();
    let id = id_of(&run_in(&stage, &broken, &["local", "exec", "x"]));
    stage.wait(&id);
    std::fs::write(broken.join(".mcp-delegator.toml"), "# limits\nhard_timeout_sec = 'soon'\n").unwrap();
    let names_the_line = |response: &Value| {
        assert_eq!(code(response), "CONFIG_INVALID", "{response}");
        assert!(response.to_string().contains(".mcp-delegator.toml:2:"), "{response}");
    };
    names_the_line(&run_in(&stage, &broken, &["local", "exec", "x"]));
    names_the_line(&run_in(&stage, &broken.join("deep"), &["local", "run", "x"]));
    names_the_line(&run_in(&stage, &free, &["local", "exec", "x", "--working-dir", path]));
    names_the_line(&run_in(&stage, &free, &["retry", &id]));
    names_the_line(&run_in(&stage, &free, &["local", "resume", "x", "--task-id", &id]));
    let call = json!({"task": "x", "working_dir": path, "format": "json"});
    names_the_line(&tool_in(&stage, &free, "_codex_local_exec", &call));
    // Commands that query, cancel and clean work there, with a warning.
    for args in [
        &["local", "status"][..],
        &["local", "wait", &id],
        &["local", "results", &id],
        &["logs", &id],
        &["doctor"],
        &["cleanup-registry", "--dry-run"],
        &["events", "summarize", &id],
        &["cancel", "--all", "--yes"],
    ] {
        let text = output_of(stage.world.command(args).current_dir(&broken).stdin(Stdio::null())).stdout;
        assert!(!text.contains("CONFIG_INVALID"), "{args:?}: {text}");
    }
    let status = run_in(&stage, &broken, &["local", "status"]);
    assert_eq!(status["ok"], true, "{status}");
    assert!(status["warnings"].to_string().contains("W_CONFIG_004"), "{status}");
    let elsewhere = run_in(&stage, &broken, &["local", "exec", "x", "--working-dir", free.to_str().unwrap()]);
    assert_eq!(elsewhere["ok"], true, "{elsewhere}");
    let id = id_of(&elsewhere);
    assert_eq!(
        tool_in(&stage, &broken, "_codex_local_wait", &json!({"task_id": id, "format": "json"}))["status"],
        "ok"
    );
}
