//! What a task may do through this program: no more than it may do itself, also with a cleared environment.

use delegator_testkit::asking_agent::{self, permission_request};
use delegator_testkit::program::read_text;
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::PROGRAM;

/// Runs a task whose agent calls the program with these arguments, in an environment without the marker. Returns the
/// response to the inner call.
fn call_inside(outer: &[&str], orphan: bool, inner: &str) -> Value {
    let stage = Stage::with_shell_agent(PROGRAM, "");
    let root = stage.root();
    std::fs::create_dir_all(root.join("elsewhere")).unwrap();
    std::fs::create_dir_all(stage.world.project().join("inside")).unwrap();
    let inner = inner.replace("$ROOT", &root.display().to_string());
    let environment = format!(
        "env -i PATH=\"$PATH\" HOME={home} XDG_CONFIG_HOME={home}/.config MCP_DELEGATOR_HOME={home}/state \
         MCP_DELEGATOR_MAX_MODE=danger-full-access MCP_DELEGATOR_CODEX_BIN={bin}",
        home = root.join("home").display(),
        bin = root.join("bin/codex").display(),
    );
    // Variables may stand before the arguments.
    let (variables, args) = inner.split_at(inner.find("local ").unwrap());
    let call = format!(
        "{environment} {variables} \"{PROGRAM}\" {args} > {root}/inner.new < /dev/null; mv {root}/inner.new {root}/inner.json",
        root = root.display()
    );
    let call = match orphan {
        // Its parent ends at once.
        true => format!("(setsid sh -c '{call}' &)"),
        false => call,
    };
    let events = r#"echo '{"type":"thread.started","thread_id":"t"}'; echo '{"type":"turn.started"}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'"#;
    let script = format!(
        "cat > /dev/null\nif [ ! -e {root}/started ]; then touch {root}/started\n{call}\n\
         while [ ! -e {root}/inner.json ]; do sleep 0.02; done\nfi\n{events}",
        root = root.display()
    );
    let version = "if [ \"$1\" = --version ]; then echo codex-cli 0.166.0; exit 0; fi";
    stage.write_program("bin/codex", &format!("#!/bin/sh\n{version}\n{script}\n"));
    let stage = stage.variable("MCP_DELEGATOR_MAX_MODE", "danger-full-access");
    let id = stage.exec(&[outer, &["--skip-git-repo-check", "--confirm"]].concat());
    let waited = stage.wait(&id);
    assert_eq!(waited["data"]["state"], "completed", "{waited}");
    let response: Value = serde_json::from_str(&read_text(&root.join("inner.json"))).unwrap();
    if let Some(inner) = response["data"]["task_id"].as_str() {
        assert_eq!(stage.wait(inner)["data"]["state"], "completed");
    }
    response
}

#[test]
fn a_nested_task_has_at_most_the_rights_of_its_parent() {
    let (reader, writer) = (&["--mode", "read-only"][..], &["--mode", "workspace-write"][..]);
    let free = &["--mode", "danger-full-access"][..];
    let exec = "local exec x --skip-git-repo-check --confirm --allow-parallel-writes --mode";
    for (outer, inner, refused) in [
        (reader, "read-only --working-dir $ROOT/elsewhere", None),
        (reader, "workspace-write", Some("mode workspace-write")),
        (reader, "danger-full-access", Some("mode danger-full-access")),
        (writer, "workspace-write --working-dir inside", None),
        (writer, "workspace-write --working-dir $ROOT/elsewhere", Some("to write in")),
        (writer, "workspace-write --add-dirs $ROOT/elsewhere", Some("to write in")),
        (writer, "danger-full-access", Some("mode danger-full-access")),
        (free, "workspace-write --working-dir $ROOT/elsewhere", None),
    ] {
        let response = call_inside(outer, false, &format!("{exec} {inner}"));
        match refused {
            None => assert_eq!(response["ok"], true, "{outer:?} {inner}: {response}"),
            Some(right) => {
                assert_eq!(response["error"]["code"], "POLICY_BLOCKED", "{outer:?} {inner}: {response}");
                let message = response["error"]["message"].as_str().unwrap();
                assert!(message.contains(right), "{outer:?} {inner}: {message}");
            }
        }
    }
}

#[test]
fn a_process_that_left_its_parent_still_belongs_to_the_task() {
    let exec = "local exec x --skip-git-repo-check --confirm --mode workspace-write";
    let response = call_inside(&["--mode", "read-only"], true, exec);
    assert_eq!(response["error"]["code"], "POLICY_BLOCKED", "{response}");
}

#[test]
fn depth_and_children_are_counted_without_the_marker() {
    let exec = "local exec x --mode read-only --skip-git-repo-check";
    let limited = |limit: &str| call_inside(&["--mode", "read-only"], false, &format!("{limit} {exec}"));
    for (limit, name) in
        [("MCP_DELEGATOR_MAX_DEPTH=0", "max_depth"), ("MCP_DELEGATOR_MAX_CHILDREN=0", "max_children")]
    {
        let response = limited(limit);
        assert!(response["error"]["message"].as_str().unwrap().contains(name), "{response}");
    }
}

#[test]
fn an_agent_cannot_answer_its_own_question_without_the_marker() {
    let stage = asking_agent::stage(PROGRAM, &permission_request());
    let (script, home) = (stage.root().join("bin/asker"), stage.world.home());
    let answer = format!(
        "env -i PATH=\"$PATH\" HOME={home} MCP_DELEGATOR_HOME={home}/state \"{PROGRAM}\" answer \
         \"${{DELEGATOR_TASK%:*}}\" allow_once > own.json < /dev/null\n",
        home = home.display()
    );
    // The question is open when the program can show it.
    let shown = answer.replace(" allow_once > own.json", " > shown.json");
    let call = format!("until {shown} grep -q question_number shown.json; do sleep 0.02; done\n{answer}")
        .replace("< /dev/null\n grep", "< /dev/null; grep");
    let text = read_text(&script).replace("read -r answer\n", &format!("{call}read -r answer\n"));
    std::fs::write(&script, text).unwrap();
    let id = asking_agent::exec(&stage);
    stage.wait_for_project_file("own.json");
    delegator_testkit::stage::wait_until("the agent has an answer", || {
        serde_json::from_str::<Value>(&read_text(&stage.world.project().join("own.json"))).is_ok()
    });
    let own: Value = serde_json::from_str(&read_text(&stage.world.project().join("own.json"))).unwrap();
    assert_eq!(own["error"]["code"], "POLICY_BLOCKED", "{own}");
    assert!(own["error"]["message"].as_str().unwrap().contains("its own question"), "{own}");
    stage.run_json(&["answer", &id, "allow_once"]);
    assert_eq!(stage.wait(&id)["data"]["state"], json!("completed"));
}
