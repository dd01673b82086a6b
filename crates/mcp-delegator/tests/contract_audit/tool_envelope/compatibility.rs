//! What callers of earlier versions rely on, and the checks that precede an answer.

use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::PROGRAM;
use crate::assertions::{at, contains, equals, text};
use crate::client::{self, result};
use crate::recorded::{Session, done, stage_with_agent};
use crate::row::{Section, differs, works};

/// An agent without a protocol: it prints text.
const TEXT_AGENT: &str = "#!/bin/sh
cat > /dev/null
printf 'one\\ntwo\\n' > added.txt
echo changed > known.txt
echo 'I added a file.'
echo 'All done.'
";

/// The results of a task of the agent that prints text, in a git repository.
fn results_of_text_agent() -> Value {
    let stage = Stage::with_shell_agent(PROGRAM, "exit 99");
    let agent = stage.write_program("bin/text", TEXT_AGENT);
    let config = format!(
        "[agents.text]\nprotocol = \"plain\"\ncommand = [\"{}\"]\nunsandboxed = true\n",
        agent.display()
    );
    stage.world.write("home/.config/mcp-delegator/config.toml", &config);
    stage.world.write("project/known.txt", "known\n");
    let session = Session::start(stage);
    session
        .shell("git init -q && git add . && git -c user.name=T -c user.email=t@localhost commit -q -m First");
    let id = session.stage.exec(&["--agent", "text", "--mode", "workspace-write"]);
    session.stage.wait(&id);
    session.stage.run_json(&["local", "results", &id])
}

/// How a process that renders this data as the answer of `version` ends: its exit code or its signal.
#[expect(clippy::disallowed_methods, reason = "it runs this test program")]
fn rendering(data: &Value) -> (Option<i32>, Option<i32>) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", "renders_the_answer_in_its_environment"]).env(crate::ANSWER, data.to_string());
    let output = child.output().unwrap();
    (output.status.code(), output.status.signal())
}

pub(crate) const SECTIONS: &[Section] = &[Section {
    heading: "Compatibility and checks",
    rows: &[
        differs(
            213,
            "`_codex_local_run` returns the task id at once, and no result",
            "A caller that waits for a short task saves two calls; a longer task does not block the call",
            "It returns when the task has ended, with its result, or after `call_budget_sec` (50 s) with the id of the \
             running task; with `async` at once",
            || {
                let mut session = Session::with_agent(&done());
                let ended = session.json("_codex_local_run", json!({"task": "x"}));
                equals(&ended, "/data/state", "completed");
                equals(&ended, "/data/final_message", "All done.");
                session.set_agent(&[&[json!({"wait_for_file": "go"})], &done()[..]].concat());
                for more in [json!({"async": true}), json!({"call_budget_sec": 1})] {
                    let mut arguments = more.clone();
                    arguments["task"] = json!("x");
                    let running = session.json("_codex_local_run", arguments);
                    equals(&running, "/data/state", "working");
                    contains(&running, "/data/task_id", "T-local-");
                    assert!(running["data"].get("final_message").is_none(), "{running}");
                }
                session.finish();
            },
        ),
        differs(
            214,
            "The metadata is extracted from the raw text of the agent",
            "A work tree tells what changed more reliably than the words of an agent",
            "Of an agent that prints only text: the files and the lines are those in git, and the text is the final message",
            || {
                let results = results_of_text_agent();
                equals(&results, "/data/state", "completed");
                equals(&results, "/data/final_message", "I added a file.\nAll done.");
                let files = at(&results, "/data/metadata/file_operations");
                equals(files, "/added_files", json!(["added.txt"]));
                equals(files, "/modified_files", json!(["known.txt"]));
                equals(files, "/lines_changed", 4);
                equals(files, "/source", "git");
            },
        ),
        differs(
            215,
            "Markdown stays the default, so that nothing changes for callers of 3.5",
            "The text of 3.5 is not a part of the document, except one heading",
            "A caller that takes the first id in the text of `exec` waits for the right task; headings and labels differ",
            || {
                let mut session = Session::with_agent(&done());
                let markdown = session.client.call("_codex_local_exec", json!({"task": "x"}));
                let markdown = client::text(&markdown);
                let is_id = |word: &&str| word.starts_with("T-local-");
                let id = markdown.split_whitespace().find(is_id).unwrap_or_else(|| panic!("{markdown}"));
                let wait = session.client.call("_codex_local_wait", json!({ "task_id": id }));
                let wait = client::text(&wait);
                assert!(wait.starts_with("# ") && wait.contains(id) && wait.contains("completed"), "{wait}");
                assert!(wait.contains("All done."), "{wait}");
                session.finish();
            },
        ),
        differs(
            216,
            "Every answer is validated against its JSON Schema at run time",
            "The caller needs the data more than its form, so a release build logs the violation and sends the answer",
            "A debug build, such as this one, renders a valid answer and aborts before it writes one without a required key",
            || {
                let valid = stage_with_agent(&[]).run_json(&["version", "--json"])["data"].take();
                assert_eq!(rendering(&valid), (Some(0), None));
                assert_eq!(rendering(&json!({})), (None, Some(6)));
            },
        ),
        works(
            217,
            "The version history: 3.6.0 is the first version with the five schemas",
            "The server is version 3.6.0; the manifest and the addresses of all five schemas have the version 3.6 of the \
             envelope",
            || {
                let mut session = Session::with_agent(&[]);
                let manifest = session.stage.run_json(&["manifest", "--limit", "1"]);
                equals(&manifest, "/data/version", "3.6.0");
                equals(&manifest, "/data/envelope_version", "3.6");
                let resources = result(session.client.request("resources/list", json!({})));
                let listed = resources["resources"].as_array().unwrap();
                for category in crate::recorded::CATEGORIES {
                    let uri = format!("codex://schema/v3.6/{category}/v1");
                    assert!(listed.iter().any(|resource| text(resource, "/uri") == uri), "{uri}: {listed:?}");
                }
            },
        ),
    ],
}];
