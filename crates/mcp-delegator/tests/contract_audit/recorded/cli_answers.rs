//! What commands print on a pipe: successes and failures of all kinds.

use std::sync::LazyLock;
use std::time::{Duration, SystemTime};

use delegator_testkit::program::RunOutput;
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::{Value, json};

use crate::PROGRAM;

pub(crate) static CLI_ANSWERS: LazyLock<CliAnswers> = LazyLock::new(record);

/// The answer of one call.
#[derive(Debug)]
pub(crate) struct CliAnswer {
    pub(crate) exit: i32,
    pub(crate) json: Value,
}

pub(crate) struct CliAnswers {
    /// A run that changes a file and runs no tests.
    pub(crate) completed_run: CliAnswer,
    /// The status when nothing runs.
    pub(crate) status: CliAnswer,
    pub(crate) manifest: CliAnswer,
    /// The manifest, called with its own etag.
    pub(crate) manifest_again: CliAnswer,
    pub(crate) first_page: CliAnswer,
    pub(crate) second_page: CliAnswer,
    pub(crate) truncated_manifest: CliAnswer,
    pub(crate) failed_run: CliAnswer,
    /// Two flags with an invalid value.
    pub(crate) invalid_call: CliAnswer,
    pub(crate) unknown_task: CliAnswer,
    /// The results of a task that still runs.
    pub(crate) early_results: CliAnswer,
    pub(crate) environments_missing: CliAnswer,
    pub(crate) renamed: CliAnswer,
    pub(crate) typo: CliAnswer,
    /// A call with too few file descriptors.
    pub(crate) resource_shortage: CliAnswer,
    /// A cleanup that cannot delete a leftover.
    pub(crate) failed_cleanup: CliAnswer,
}

impl CliAnswers {
    pub(crate) fn all(&self) -> [&CliAnswer; 16] {
        [
            &self.completed_run,
            &self.status,
            &self.manifest,
            &self.manifest_again,
            &self.first_page,
            &self.second_page,
            &self.truncated_manifest,
            &self.failed_run,
            &self.invalid_call,
            &self.unknown_task,
            &self.early_results,
            &self.environments_missing,
            &self.renamed,
            &self.typo,
            &self.resource_shortage,
            &self.failed_cleanup,
        ]
    }

    pub(crate) fn failures(&self) -> impl Iterator<Item = &CliAnswer> {
        self.all().into_iter().filter(|answer| answer.exit != 0)
    }

    pub(crate) fn successes(&self) -> impl Iterator<Item = &CliAnswer> {
        self.all().into_iter().filter(|answer| answer.exit == 0)
    }
}

fn answer(run: &RunOutput) -> CliAnswer {
    CliAnswer { exit: run.exit.unwrap(), json: run.json() }
}

fn record() -> CliAnswers {
    let write = json!({"write_file": {"path": "new.txt", "text": "x"}});
    let stage = Stage::with_script(PROGRAM, successful_turn(&[write]));
    let call = |args: &[&str]| answer(&stage.world.run(args));
    let manifest = call(&["manifest"]);
    let etag = manifest.json["meta"]["etag"].as_str().unwrap().to_owned();
    let first_page = call(&["schema", "--json", "--limit", "2"]);
    let cursor = first_page.json["meta"]["cursor"].as_str().unwrap().to_owned();
    let completed_run = call(&["local", "run", "x", "--mode", "workspace-write", "--confirm"]);
    let truncated_manifest = call(&["manifest", "--max-bytes", "4096"]);
    let status = call(&["local", "status"]);
    stage.set_script(json!([{"read_stdin": "all"}, {"exit": 3}]));
    let failed_run = call(&["local", "run", "x"]);
    CliAnswers {
        manifest_again: call(&["manifest", "--etag", &etag]),
        second_page: call(&["schema", "--json", "--limit", "2", "--cursor", &cursor]),
        invalid_call: call(&["local", "run", "x", "--mode", "sudo", "--hard-timeout-sec", "0"]),
        unknown_task: call(&["local", "results", "T-local-0000000000"]),
        early_results: early_results(&stage),
        environments_missing: call(&["cloud", "list-environments"]),
        renamed: call(&["schemas", "error"]),
        typo: call(&["manifst"]),
        resource_shortage: resource_shortage(&stage),
        failed_cleanup: failed_cleanup(&stage),
        completed_run,
        status,
        manifest,
        first_page,
        truncated_manifest,
        failed_run,
    }
}

fn early_results(stage: &Stage) -> CliAnswer {
    stage.set_script(json!([{"read_stdin": "all"}, {"thread_started": {}}, "silent"]));
    let id = stage.exec(&[]);
    let early = answer(&stage.world.run(["local", "results", &id]));
    stage.run_json(&["local", "cancel", &id]);
    early
}

fn resource_shortage(stage: &Stage) -> CliAnswer {
    let limited = stage
        .write_program("bin/limited", &format!("#!/bin/sh\nexec prlimit --nofile=6 '{PROGRAM}' \"$@\"\n"));
    answer(&stage.world.run_as(&limited, ["local", "run", "x"]))
}

/// A directory in place of the lock file cannot be locked.
fn failed_cleanup(stage: &Stage) -> CliAnswer {
    let leftover = stage.task_dir("T-local-00000000aa");
    std::fs::create_dir_all(leftover.join("lock")).unwrap();
    std::fs::write(leftover.join("launch"), "x").unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    std::fs::File::open(&leftover).unwrap().set_modified(long_ago).unwrap();
    let failed = answer(&stage.world.run(["cleanup-registry"]));
    std::fs::remove_dir_all(leftover).unwrap();
    failed
}
