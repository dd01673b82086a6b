//! `demo`: the whole way, offline, with a built-in agent.
//!
//! A small repository with a bug and a failing test is made in a temporary directory; a scripted agent really runs the
//! test, edits the file, runs the test again and reports. Everything in between (registry, supervisor, events, results)
//! is what a real agent gets.

#![expect(
    clippy::disallowed_methods,
    reason = "the demo makes its repository with git, and shows what git says"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use delegator_domain::task::Mode;
use delegator_engine::{AgentProgram, Engine};
use delegator_scripted_agent::demo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::inputs::{AgentInputs, SubmissionInputs};
use super::local::attach::attach;
use super::local::run::foreground_outcome;
use super::local::tasks::{TaskRequest, build_submission};
use crate::error::{AppError, ErrorCode, io_error};
use crate::internal_modes::SCRIPTED_AGENT;
use crate::outcome::{CommandOutput, Completion, WaitHint};
use crate::run::Context;
use crate::spec::{CommandSpec, Example, OutputSchema, Shape, Toolset, run_typed};
use crate::views::document::{Block, Document, scalar};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Demo {
    /// Keep the repository and the state directory to look around in
    #[serde(default)]
    pub keep: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct DemoOutput {
    pub repository: String,
    pub kept: bool,
    pub task: String,
    /// What the task's own answer said.
    pub result: Value,
    /// What git says was changed.
    pub diff: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Makes a small git repository with a failing test, lets a scripted agent fix it, and shows what happened. Needs git and sh, no account and no network.",
    shape: Shape::Show("demo"),
    toolset: Toolset::Hidden,
    failures: &[ErrorCode::DependencyMissing, ErrorCode::AgentFailed],
    examples: &[Example {
        command: "mcp-delegator demo --keep",
        shows: "the same, with the repository left to look at",
    }],
    output: OutputSchema::Type(crate::spec::input_schema::schema_of::<DemoOutput>),
    describe,
    run: Some(|context, input| run_typed(context, input, run)),
    ..CommandSpec::declare::<Demo>(
        &["demo"],
        "Delegate a task to a built-in agent, offline, to see the whole way",
    )
};

fn run(context: &Context<'_>, input: Demo) -> Result<CommandOutput, AppError> {
    let demo_dir = tempfile::Builder::new()
        .prefix("mcp-delegator-demo-")
        .tempdir()
        .map_err(|error| io_error("Making a directory for the demo", &error))?;
    let repository = demo_dir.path().join("repository");
    make_repository(&repository).map_err(|error| io_error("Making the demo's repository", &error))?;
    let engine = Engine {
        state_dir: demo_dir.path().join("state"),
        max_concurrent: 2,
        retention_ms: None,
        restore_point_retention_ms: None,
        program: PathBuf::from("/proc/self/exe"),
        connections: context.connections.clone(),
    };
    let request = inputs(&repository);
    let program = AgentProgram {
        program: PathBuf::from("/proc/self/exe"),
        leading_args: [SCRIPTED_AGENT, "--script", "demo"].map(Into::into).to_vec(),
        version: Some((0, 166, 0)),
    };
    let (task, agent) = &request;
    let submitted = engine.submit(build_submission(
        context,
        &engine,
        TaskRequest {
            submission: task,
            agent,
            mode: Mode::WorkspaceWrite,
            preview: false,
            resume: None,
            thread: None,
            input: json!({}),
            program: Some(program),
            call_budget: None,
        },
    )?)?;
    // Whoever lets go of it ends this process at once, and so leaves the place as it is.
    let reattach = WaitHint::in_state_dir(&submitted.task.id, &engine.state_dir);
    let waited = attach(context, &engine, reattach, None)?;
    let answer = foreground_outcome(&engine, waited)?;
    let diff =
        git(&repository, &["diff"]).map_err(|error| io_error("Asking git for the difference", &error))?;
    let kept = input.keep;
    let demo_path = if kept { demo_dir.keep() } else { demo_dir.path().to_owned() };
    let wrap = |result: Value| {
        json!(DemoOutput {
            repository: demo_path.join("repository").display().to_string(),
            kept,
            task: demo::task().to_owned(),
            result,
            diff: diff.clone(),
        })
    };
    Ok(match answer.completion {
        Completion::Done(data) => CommandOutput { completion: Completion::Done(wrap(data)), ..answer },
        other => CommandOutput { completion: other, ..answer },
    })
}

fn inputs(repository: &Path) -> (SubmissionInputs, AgentInputs) {
    let task = json!({"task": demo::task()});
    let agent = json!({"working_dir": repository.display().to_string(), "idle_timeout_sec": 30, "hard_timeout_sec": 60});
    // Both are literals of ours that fit their types; a test runs this very path.
    (
        serde_json::from_value(task).unwrap_or_else(|_| unreachable!()),
        serde_json::from_value(agent).unwrap_or_else(|_| unreachable!()),
    )
}

fn make_repository(repository: &Path) -> std::io::Result<()> {
    std::fs::create_dir_all(repository)?;
    for file in demo::files() {
        std::fs::write(repository.join(file.path), file.text)?;
    }
    git(repository, &["init", "--quiet", "--initial-branch=main"])?;
    git(repository, &["add", "."])?;
    git(repository, &["commit", "--quiet", "-m", "A calendar with a bug"]).map(drop)
}

/// git without anything the user or a template has configured.
fn git(repository: &Path, args: &[&str]) -> std::io::Result<String> {
    let output = Command::new("git")
        .args([
            "-c",
            "user.name=demo",
            "-c",
            "user.email=demo@localhost",
            "-c",
            "commit.gpgsign=false",
            "-c",
            "core.hooksPath=/dev/null",
        ])
        .args(args)
        .current_dir(repository)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(std::io::Error::other(format!(
            "git {}: {stderr}",
            args.first().copied().unwrap_or_default()
        )));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn describe(data: &Value) -> Document {
    let Some(result) = data.get("result") else { return Document::from_value(data) };
    let facts = vec![
        ("task".to_owned(), scalar(&data["task"])),
        ("state".to_owned(), scalar(&result["state"])),
        ("summary".to_owned(), scalar(&result["summary"])),
        ("task id".to_owned(), scalar(&result["task_id"])),
    ];
    let next = if data["kept"] == true {
        format!("Look around in {}", scalar(&data["repository"]))
    } else {
        "Now with a real agent: mcp-delegator local run 'your task'".to_owned()
    };
    Document::titled("A task, delegated")
        .block(Block::Facts(facts))
        .block(Block::Text("The agent said:".to_owned()))
        .block(Block::Verbatim(scalar(&result["final_message"])))
        .block(Block::Text("What git says:".to_owned()))
        .block(Block::Verbatim(scalar(&data["diff"])))
        .block(Block::Text(next))
}
