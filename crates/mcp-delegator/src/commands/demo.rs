//! `demo`: run a complete task offline with a built-in agent.
//!
//! The demo creates a small repository with a bug and a failing test in a temporary directory. A scripted agent runs the
//! test, edits the file, runs the test again and reports. Registry, supervisor, events and results are the same as for
//! a real agent.

#![expect(
    clippy::disallowed_methods,
    reason = "the demo creates its repository with git and prints git's diff"
)]

use std::path::Path;
use std::process::Command as Process;

use delegator_domain::task::Mode;
use delegator_engine::{Agent, Engine};
use delegator_scripted_agent::demo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::commands::context::Context;
use crate::commands::inputs::{AgentInputs, SubmissionInputs};
use crate::commands::local::attach::attach;
use crate::commands::local::run::foreground_output;
use crate::commands::local::tasks::{TaskRequest, build_submission};
use crate::commands::{Command, prepare};
use crate::error::{AppError, ErrorCode, io_error};
use crate::output::command_data::Data;
use crate::output::documents::document::{Block, Document, scalar};
use crate::output::outcome::{CommandOutput, WaitHint};
use crate::spec::shell::shell_word;
use crate::spec::{CommandSpec, Example, Shape, Toolset};

/// First argument of the scripted agent mode.
pub const SCRIPTED_AGENT: &str = "scripted-agent";

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Demo {
    /// Keep the repository and the state directory for inspection
    #[serde(default)]
    pub keep: bool,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct DemoOutput {
    pub repository: String,
    /// The state directory of its task. Both are deleted unless they are retained.
    pub state_dir: String,
    pub is_retained: bool,
    pub task: String,
    /// Data of the task itself.
    pub result: Value,
    /// Output of `git diff`.
    pub diff: String,
}

pub const SPEC: CommandSpec = CommandSpec {
    details: "Creates a small git repository with a failing test, lets a scripted agent fix it, and shows the result. Requires git and sh, but no account and no network.",
    shape: Shape::Show("demo"),
    toolset: Toolset::Hidden,
    failures: &[
        ErrorCode::DependencyMissing,
        ErrorCode::Incomplete,
        ErrorCode::TimeoutIdle,
        ErrorCode::TimeoutHard,
        ErrorCode::AgentFailed,
    ],
    examples: &[Example {
        command: "mcp-delegator demo --keep",
        shows: "the same, and keeps the repository",
    }],
    ..CommandSpec::new::<Demo, DemoOutput>(&["demo"], "Run an example task offline with a built-in agent")
};

pub const COMMAND: Command = Command::new(&SPEC, |input| prepare(input, run)).described_by(describe);

fn run(context: &Context<'_>, input: Demo) -> Result<CommandOutput, AppError> {
    let demo_dir = tempfile::Builder::new()
        .prefix("mcp-delegator-demo-")
        .tempdir()
        .map_err(|error| io_error("Creating a directory for the demo", &error))?;
    let repository = demo_dir.path().join("repository");
    make_repository(&repository).map_err(|error| io_error("Creating the demo repository", &error))?;
    let engine = Engine::new(demo_dir.path().join("state"), "/proc/self/exe")
        .with_max_concurrent(2)
        .with_connections(context.connections.clone());
    let request = inputs(&repository);
    let program = Agent {
        args: [SCRIPTED_AGENT, "--script", "demo"].map(Into::into).to_vec(),
        ..Agent::built_in("/proc/self/exe", Some((0, 166, 0)))
    };
    let (task, agent) = &request;
    let submitted = engine.submit(build_submission(
        context,
        &engine,
        TaskRequest {
            program: Some(program),
            ..TaskRequest::new(task, agent, Mode::WorkspaceWrite, json!({}))
        },
    )?)?;
    // Detaching ends this process without running destructors, so the directory remains.
    let reattach =
        WaitHint { state_dir: Some(engine.state_dir.clone()), ..WaitHint::for_task(&submitted.task.id) };
    let waited = attach(context, &engine, &submitted.task.id, reattach)?;
    let mut output = foreground_output(context, &engine, waited)?;
    let diff = git(&repository, &["diff"]).map_err(|error| io_error("Running git diff", &error))?;
    let keep = input.keep;
    let demo_path = if keep { demo_dir.keep() } else { demo_dir.path().to_owned() };
    // Only the result of the task has an exit code of an agent, not the demo.
    output.child = None;
    if let (Some(data), _) = output.completion.parts_mut() {
        *data = Data::json(DemoOutput {
            repository: demo_path.join("repository").display().to_string(),
            state_dir: demo_path.join("state").display().to_string(),
            is_retained: keep,
            task: demo::task().to_owned(),
            result: data.to_json(),
            diff,
        });
    }
    Ok(output)
}

fn inputs(repository: &Path) -> (SubmissionInputs, AgentInputs) {
    let agent = AgentInputs {
        working_dir: Some(repository.to_owned()),
        idle_timeout_sec: Some(30),
        hard_timeout_sec: Some(60),
        ..AgentInputs::default()
    };
    (SubmissionInputs { task: demo::task().to_owned(), ..SubmissionInputs::default() }, agent)
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

/// Runs git without user, system or template configuration.
fn git(repository: &Path, args: &[&str]) -> std::io::Result<String> {
    let output = Process::new("git")
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
    let next = if data["is_retained"] == true {
        let (repository, state_dir) = (scalar(&data["repository"]), scalar(&data["state_dir"]));
        let variable = format!("MCP_DELEGATOR_HOME={}", shell_word(&state_dir));
        let id = scalar(&result["task_id"]);
        format!("The repository is {repository}. The task: {variable} mcp-delegator results {id}")
    } else {
        "The task and its repository are deleted again; --keep keeps them. Next, use a real agent: mcp-delegator run 'your task'"
            .to_owned()
    };
    Document::titled("Demo task")
        .block(Block::Facts(facts))
        .block(Block::Text("Final message of the agent:".to_owned()))
        .block(Block::Verbatim(scalar(&result["final_message"])))
        .block(Block::Text("Output of git diff:".to_owned()))
        .block(Block::Verbatim(scalar(&data["diff"])))
        .block(Block::Text(next))
}
