//! Answers of commands in the standard envelope: each shape, an error of each common kind, and a partial success.

use std::path::Path;
use std::sync::LazyLock;

use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::Value;

use crate::PROGRAM;
use crate::assertions::text;

pub(crate) const UNKNOWN_TASK: &str = "T-local-0000000000";

pub(crate) static STANDARD_ANSWERS: LazyLock<StandardAnswers> = LazyLock::new(record);

pub(crate) struct StandardAnswers {
    /// The wait for one task that completed.
    pub(crate) wait: Value,
    /// The wait for two tasks.
    pub(crate) several: Value,
    /// A list of settings, in pages of seven.
    pub(crate) settings: Value,
    pub(crate) environment_added: Value,
    pub(crate) no_environments: Value,
    pub(crate) dry_run: Value,
    /// A cancel when no task runs.
    pub(crate) cancelled_nothing: Value,
    /// A cancel of an ended, a running and an unknown task.
    pub(crate) partial: Value,
    pub(crate) bad_mode: Value,
    pub(crate) bad_flag: Value,
    pub(crate) bad_config: Value,
    pub(crate) unknown_task: Value,
    pub(crate) unknown_schema: Value,
    pub(crate) unknown_command: Value,
    pub(crate) environment_exists: Value,
    /// Errors about an input of each kind.
    pub(crate) bad_inputs: Vec<Value>,
    /// The log of the first task, its retry, and the notifications.
    pub(crate) log: Value,
    pub(crate) notifications: Value,
    /// A run that completed.
    pub(crate) run: Value,
    /// Two calls of `queue pause`.
    pub(crate) queue_paused: [Value; 2],
    /// The results of a group of two attempts, of its second attempt, and a retry of that.
    pub(crate) group: Value,
    pub(crate) attempt: Value,
    pub(crate) retry: Value,
}

const BAD_INPUTS: [&[&str]; 8] = [
    &["local", "exec"],
    &["local", "exec", ""],
    &["local", "exec", "x", "--hard-timeout-sec", "0"],
    &["local", "exec", "x", "--idle-timeout-sec", "soon"],
    &["local", "exec", "x", "--labels", "a"],
    &["local", "exec", "x", "--input-json", "/nowhere"],
    &["local", "exec", "x", "--working-dir", "/nowhere"],
    &["config", "show", "--cursor", "x"],
];

impl StandardAnswers {
    pub(crate) fn successes(&self) -> [&Value; 8] {
        [
            &self.wait,
            &self.several,
            &self.settings,
            &self.environment_added,
            &self.no_environments,
            &self.dry_run,
            &self.cancelled_nothing,
            &self.partial,
        ]
    }

    pub(crate) fn failures(&self) -> [&Value; 7] {
        [
            &self.bad_mode,
            &self.bad_flag,
            &self.bad_config,
            &self.unknown_task,
            &self.unknown_schema,
            &self.unknown_command,
            &self.environment_exists,
        ]
    }
}

fn record() -> StandardAnswers {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let answer = |args: &[&str]| standard(&stage, args);
    let (one, two) = (stage.exec(&[]), stage.exec(&[]));
    stage.wait(&one);
    stage.wait(&two);
    let environment =
        ["env", "add", "site", "--name", "Site", "--repo-url", "https://h/o/n", "--stack", "go"];
    stage.world.write("home/.config/mcp-delegator/environments.json", "{}");
    let no_environments = answer(&["cloud", "list-environments"]);
    let cancelled_nothing = answer(&["cancel", "--all"]);
    stage.set_script(successful_turn(&[serde_json::json!({"wait_for_file": "go"})]));
    let running = stage.exec(&[]);
    let log = answer(&["logs", &one]);
    let [group, attempt, retry] = group();
    let quick = Stage::with_script(PROGRAM, successful_turn(&[]));
    let quick = |args: &[&str]| standard(&quick, args);
    let bad_config = Stage::with_shell_agent(PROGRAM, "").variable("MCP_DELEGATOR_MAX_CONCURRENT", "zero");
    StandardAnswers {
        wait: answer(&["local", "wait", &one]),
        several: answer(&["local", "wait", "--task-ids", &one, "--task-ids", &two]),
        settings: answer(&["config", "show", "--limit", "7"]),
        environment_added: answer(&environment),
        no_environments,
        dry_run: answer(&["cleanup-registry", "--dry-run"]),
        cancelled_nothing,
        partial: answer(&["cancel", &one, &running, UNKNOWN_TASK]),
        bad_mode: answer(&["local", "exec", "x", "--mode", "wild"]),
        bad_flag: answer(&["local", "status", "--brightness"]),
        bad_config: bad_config.world.run(["config", "show", "--envelope", "standard"]).document(),
        unknown_task: answer(&["local", "results", UNKNOWN_TASK]),
        unknown_schema: answer(&["schema", "nope"]),
        unknown_command: answer(&["frobnicate"]),
        environment_exists: answer(&environment),
        bad_inputs: BAD_INPUTS.into_iter().map(answer).collect(),
        log,
        notifications: answer(&["notify"]),
        run: quick(&["local", "run", "x"]),
        queue_paused: [quick(&["queue", "pause"]), quick(&["queue", "pause"])],
        group,
        attempt,
        retry,
    }
}

/// The results of a group and of its second attempt, and the retry of that.
fn group() -> [Value; 3] {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let commit =
        "git init -q && git -c user.name=T -c user.email=t@localhost commit -q --allow-empty -m First";
    assert_eq!(stage.world.run_as(Path::new("/bin/sh"), ["-c", commit]).exit, Some(0));
    let submitted =
        stage.run_json(&["local", "exec", "x", "--isolation", "worktree", "--attempts", "2"])["data"].take();
    let (group, attempt) = (&submitted["group_id"], &submitted["attempts"][1]["task_id"]);
    let (group, attempt) = (group.as_str().unwrap(), attempt.as_str().unwrap());
    stage.wait(group);
    let answers = [["local", "results", group], ["local", "results", attempt]];
    let [group, attempt] = answers.map(|args| standard(&stage, &args));
    let retry = standard(&stage, &["retry", text(&attempt, "/data/task/task_id")]);
    stage.wait(text(&retry, "/data/result/task_id"));
    [group, attempt, retry]
}

fn standard(stage: &Stage, args: &[&str]) -> Value {
    stage.world.run([args, &["--envelope", "standard"]].concat()).document()
}
