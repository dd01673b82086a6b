//! `demo`: run a complete task offline with a built-in agent.
//!
//! The demo creates a small repository with a bug and a failing test in a temporary directory. A scripted
//! agent runs the test, edits the file, runs the test again and reports. Registry, supervisor, events and
//! results are the same as for a real agent.

#![expect(
    clippy::disallowed_methods,
    reason = "the demo creates its repository with git and prints git's diff"
)]

use std::io::{Error, ErrorKind};
use std::process::Command as Process;

use delegator_domain::agents::DEFAULT_AGENT;
use delegator_engine::Agent;
use delegator_scripted_agent::demo;

use crate::commands::local::attach::attach;
use crate::commands::local::followers::build_submission;
use crate::commands::local::run::foreground_output;
use crate::commands::prelude::*;
use crate::output::outcome::WaitHint;
use crate::spec::shell::shell_word;

pub const SCRIPTED_AGENT: &str = "scripted-agent";

#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
pub struct Demo {
    /// Keep the repository and the state directory for inspection
    #[serde(default)]
    pub keep: bool,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DemoOutput {
    pub repository: String,
    /// The state directory of its task. Both are deleted unless they are retained.
    pub state_dir: String,
    pub is_retained: bool,
    pub task: String,
    /// Data of the task itself.
    #[schemars(with = "Value")]
    pub result: ExecutionAck,
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
    examples: &[example("mcp-delegator demo --keep", "the same, and keeps the repository")],
    ..CommandSpec::new::<Demo, DemoOutput>(&["demo"], "Run an example task offline with a built-in agent")
};

pub fn run(context: &Context<'_>, input: Demo) -> Result<CommandOutput, AppError> {
    let mut demo_dir = tempfile::Builder::new()
        .prefix("mcp-delegator-demo-")
        .tempdir()
        .map_err(|error| io_error("Creating a directory for the demo", &error))?;
    let repository = demo_dir.path().join("repository");
    make_repository(&repository).map_err(|error| io_error("Creating the demo repository", &error))?;
    let engine = Engine::new(demo_dir.path().join("state"), "/proc/self/exe")
        .with_max_concurrent(2)
        .with_connections(context.connections.clone());
    let program = Agent {
        args: [SCRIPTED_AGENT, "--script", "demo"].map(Into::into).to_vec(),
        ..Agent::built_in("/proc/self/exe", Some((0, 166, 0)))
    };
    let request = TaskRequest { program: Some(program), ..TaskRequest::new(task_input(&repository)) };
    let submitted = engine.submissions().submit(build_submission(context, &engine, request)?)?;
    // Detaching ends this process without running destructors, so the directory remains.
    let reattach =
        WaitHint { state_dir: Some(engine.state_dir.clone()), ..WaitHint::for_task(&submitted.task.id) };
    let waited = attach(context, &engine, &submitted.task.id, reattach)?;
    let diff = git(&repository, &["diff"]).map_err(|error| io_error("Running git diff", &error))?;
    let make_data = |result| {
        let data = DemoOutput {
            repository: repository.display().to_string(),
            state_dir: engine.state_dir.display().to_string(),
            is_retained: input.keep,
            task: demo::task().to_owned(),
            result,
            diff,
        };
        data.into()
    };
    let output = foreground_output(context, &engine, waited, make_data)?;
    if input.keep {
        demo_dir.disable_cleanup(true);
    }
    // Only the result of the task has an exit code of an agent, not the demo.
    Ok(CommandOutput { child: None, ..output })
}

fn task_input(repository: &Path) -> TaskInput {
    TaskInput {
        submission: SubmissionInputs { task: demo::task().to_owned(), ..SubmissionInputs::default() },
        mode: RunMode::Sandbox(Mode::WorkspaceWrite),
        agent: AgentInputs {
            working_dir: Some(repository.to_owned()),
            agent: Some(AgentNames::One(DEFAULT_AGENT.to_owned())),
            idle_timeout_sec: Some(30),
            hard_timeout_sec: Some(60),
            ..AgentInputs::default()
        },
        ..TaskInput::default()
    }
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
        .args(["-c", "user.name=demo", "-c", "user.email=demo@localhost"])
        .args(["-c", "commit.gpgsign=false", "-c", "core.hooksPath=/dev/null"])
        .args(args)
        .current_dir(repository)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .output()
        .map_err(|error| match error.kind() {
            ErrorKind::NotFound => Error::other("git was not found. Install git, then run the demo again."),
            _ => error,
        })?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        let command = args.first().copied().unwrap_or_default();
        return Err(Error::other(format!("git {command}: {stderr}")));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

impl CommandData for DemoOutput {
    fn document(&self) -> Document {
        let result = &self.result;
        let next = if self.is_retained {
            let variable = format!("MCP_DELEGATOR_HOME={}", shell_word(&self.state_dir));
            let (repository, id) = (&self.repository, &result.task_id);
            format!("The repository is {repository}. The task: {variable} mcp-delegator results {id}")
        } else {
            "The task and its repository are deleted again; --keep keeps them. Next, use a real agent: mcp-delegator run 'your task'"
                .to_owned()
        };
        let message = result.report.as_ref().and_then(|report| report.final_message.as_ref());
        Document::titled("Demo task")
            .block(Block::facts([
                ("task", Some(self.task.clone())),
                ("state", Some(result.state.to_owned())),
                ("summary", Some(cell(result.summary.as_ref()))),
                ("task id", Some(result.task_id.clone())),
            ]))
            .quote("Final message of the agent:", cell(message))
            .quote("Output of git diff:", self.diff.as_str())
            .text(next)
    }
}
