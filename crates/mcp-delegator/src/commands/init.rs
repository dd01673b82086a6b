//! `init`: from a fresh installation to a first result.
//!
//! The steps: check what a task needs (as `doctor` does), choose the agent of tasks if several are ready (as
//! `agents use` does), register with the MCP clients of this machine (as `setup` does), run a first read-only
//! task here. At most three questions come before anything is changed; flags answer them where no person can.
//! Without an agent that is installed and signed in, nothing is registered. A failed step says what to do, and
//! a second call repeats only what is missing.

mod agent_choice;
mod first_task;

use delegator_domain::agents::DEFAULT_AGENT;
use delegator_domain::named_enum;

use crate::commands::doctor::check::{Check, CheckStatus};
use crate::commands::doctor::{agents, configuration, first_problem, machine};
use crate::commands::init::agent_choice::AgentChoice;
use crate::commands::prelude::*;
use crate::commands::setup::clients::{self, Client, ClientState};
use crate::commands::setup::hosts::{Host, Registration};
use crate::commands::setup::plan::plan;
use crate::commands::setup::{Registered, approval_question, path_warning, registration};
use crate::commands::terminal_prompt;
use crate::output::call_syntax::CallSyntax;
use crate::output::data::warnings;
use crate::output::outcome::Completion;

#[derive(Debug, Clone, Default, PartialEq, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Init {
    /// Do not ask: register with the clients found here and run the first task
    pub yes: bool,
    /// Show what would be done; change nothing
    pub dry_run: bool,
    /// Agent of tasks that name none (default: asks if several are ready)
    #[schemars(length(min = 1, max = 64))]
    pub agent: Option<String>,
    /// Register only with these clients (default: those found here)
    #[schemars(extend("default" = null))]
    pub clients: Vec<Host>,
    /// Let Codex and Claude Code call the tools without asking; `codex exec` and `claude -p` need this
    pub approve_tools: bool,
    /// Do not register with any client
    pub skip_clients: bool,
    /// Do not run a first task
    pub skip_task: bool,
}

named_enum! {
    #[derive(Serialize, JsonSchema)]
    #[serde(rename_all = "lowercase")]
    pub enum StepStatus {
        Done = "done",
        /// Nothing was to do, or the user did not want it.
        Skipped = "skipped",
        /// Would be done without `dry_run`.
        Planned = "planned",
        Failed = "failed",
    }
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct Step {
    pub name: String,
    pub status: StepStatus,
    pub message: String,
    /// What to do next.
    pub next: Option<String>,
}

#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct InitOutput {
    pub dry_run: bool,
    pub steps: Vec<Step>,
    /// Data of the first task, if it was run.
    #[schemars(with = "Option<Value>")]
    pub task: Option<ExecutionAck>,
}

const PLANNED: &str = "init_planned";
const TASK_STEP: &str = "task";
const NOT_READY: &str =
    "not run, because of the problems above; correct them and run `mcp-delegator init` again";
const NO_AGENT_READY: &str = "not registered, because no agent is installed and signed in";
const QUEUE_PAUSED: &str =
    "not run, because the queue is paused; resume it and run `mcp-delegator init` again";

pub const SPEC: CommandSpec = CommandSpec {
    details: "Checks the agents, lets you choose one if several are ready, registers this server with the MCP clients found here, and \
              runs a first read-only task in the current directory. Asks at most three questions. Running it again repeats only what is missing.",
    shape: Shape::Action("initialized"),
    other_actions: &[PLANNED],
    network: true,
    open_ended: true,
    toolset: Toolset::Hidden,
    config: ConfigUse::Reported,
    failures: &[
        ErrorCode::DependencyMissing,
        ErrorCode::Unauthenticated,
        ErrorCode::NotFound,
        ErrorCode::Incomplete,
        ErrorCode::TimeoutIdle,
        ErrorCode::TimeoutHard,
        ErrorCode::AgentFailed,
        ErrorCode::AgentExited,
        ErrorCode::AgentProtocolError,
        ErrorCode::QuotaExhausted,
        ErrorCode::RateLimited,
        ErrorCode::NetworkError,
        ErrorCode::SupervisorUnavailable,
        ErrorCode::ConfirmationRequired,
    ],
    examples: &[
        example("mcp-delegator init", "each step, and what to do next"),
        example("mcp-delegator init --dry-run", "what would be done"),
    ],
    input: InputType::with_rules::<Init>(),
    ..CommandSpec::new::<Init, InitOutput>(&["init"], "Set up everything and run a first task")
};

struct Choices {
    registers: bool,
    approves_tools: bool,
    runs_task: bool,
}

#[derive(Default)]
struct InitSteps {
    steps: Vec<Step>,
    error: Option<AppError>,
    task: Option<ExecutionAck>,
}

impl InitSteps {
    fn add(&mut self, name: &str, status: StepStatus, message: impl Into<String>, next: Option<String>) {
        self.steps.push(Step { name: name.to_owned(), status, message: message.into(), next });
    }

    fn fail(&mut self, name: &str, error: AppError) {
        let next = error.suggestion.as_ref().map(|suggestion| CallSyntax::Commands.sentence(suggestion));
        self.add(name, StepStatus::Failed, error.message.clone(), next);
        self.error.get_or_insert(error);
    }
}

impl InputRules for Init {
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.skip_clients && !self.clients.is_empty() {
            let problem = "cannot be given together with clients";
            problems.push(Problem::invalid("skip_clients", problem));
        }
        let can_approve = |host: &Host| host.unattended_command().is_some();
        let has_setting = self.clients.is_empty() || self.clients.iter().any(can_approve);
        if self.approve_tools && (self.skip_clients || !has_setting) {
            let problem = "is a setting of Codex and Claude Code, which would not be registered";
            let problem = Problem::invalid("approve_tools", problem);
            problems.push(problem.suggest(Some("Name the client codex or claude-code, or leave it out.")));
        }
        problems
    }
}

pub fn run(context: &Context<'_>, input: Init) -> Result<CommandOutput, AppError> {
    let mut progress = InitSteps::default();
    let found = clients_to_register(context, &input)?;
    require_answers(context, &input)?;
    context.screen.announce("Checking the agent, git and the state directory…");
    let found_agents = agents::examine(context);
    let choice = AgentChoice::of(context, &input, &found_agents.agents)?;
    let agent = choice.name.clone();
    let is_ready = check_step(&mut progress, &checks(context, found_agents.checks), agent.as_deref());
    let earlier = if is_ready {
        engine(context).and_then(|engine| first_task::completed(&engine, &context.process.current_dir))
    } else {
        Ok(None)
    };
    let has_earlier = matches!(earlier, Ok(Some(_)));
    // The task would wait in the queue without an end.
    let is_paused = is_ready && !has_earlier && is_queue_paused(context);
    let asks_for_task = is_ready && !is_paused && !has_earlier;
    let choices = choices(context, &input, &found, asks_for_task, &choice);
    agent_choice::step(context, &mut progress, &choice, input.dry_run);
    let new = registration(context, &[], choices.approves_tools);
    for client in found.iter().filter(|_| choices.registers) {
        register_step(context, &mut progress, client, &new, &input);
    }
    let missing = match (&agent, choices.registers, found.is_empty()) {
        (None, ..) if !input.skip_clients => Some(NO_AGENT_READY),
        (_, false, _) => Some("no client was registered"),
        (_, true, true) => Some("no MCP client was found here"),
        (_, true, false) => None,
    };
    if let Some(message) = missing {
        progress.add("clients", StepStatus::Skipped, message, Some("mcp-delegator setup".to_owned()));
    }
    let mut skip = |message: &str, next| progress.add(TASK_STEP, StepStatus::Skipped, message, next);
    match earlier {
        _ if !choices.runs_task => skip("not wanted", None),
        _ if !is_ready => skip(NOT_READY, None),
        _ if is_paused => skip(QUEUE_PAUSED, Some("mcp-delegator queue resume".to_owned())),
        Ok(earlier) => task_step(context, &mut progress, earlier, agent.as_deref(), input.dry_run),
        Err(error) => progress.fail(TASK_STEP, error),
    }
    let is_registered = choices.registers && found.iter().any(Client::is_editable);
    let warning = path_warning(context, &new).filter(|_| is_registered);
    let paused = (is_paused && choices.runs_task).then(warnings::queue_paused);
    Ok(output(progress, input.dry_run).warn(warning).warn(paused))
}

fn is_queue_paused(context: &Context<'_>) -> bool {
    // An error here is one of the task, too, which reports it.
    engine(context).is_ok_and(|engine| engine.queue().is_paused().unwrap_or(false))
}

fn output(progress: InitSteps, dry_run: bool) -> CommandOutput {
    let data = InitOutput { dry_run, steps: progress.steps, task: progress.task };
    let shape = dry_run.then_some(Shape::Action(PLANNED));
    CommandOutput { shape, dry_run, ..CommandOutput::of(data, progress.error) }.fact("dry_run", dry_run)
}

fn clients_to_register(context: &Context<'_>, input: &Init) -> Result<Vec<Client>, AppError> {
    if input.skip_clients {
        return Ok(Vec::new());
    }
    let all = clients::all(context.process)?.into_iter();
    Ok(match input.clients.as_slice() {
        [] => all.filter(|client| client.state != ClientState::NotFound).collect(),
        named => all.filter(|client| named.contains(&client.host)).collect(),
    })
}

/// Without flags that answer them, the questions need a person.
fn require_answers(context: &Context<'_>, input: &Init) -> Result<(), AppError> {
    if input.yes || input.dry_run || terminal_prompt::can_answer(context) {
        return Ok(());
    }
    let message = "init asks questions, but there is no terminal to answer them.";
    Err(AppError::new(ErrorCode::ConfirmationRequired, message)
        .suggest("Give --yes to accept the defaults, or --dry-run to see what would be done."))
}

/// Asks what flags leave open. Nothing has been changed yet.
fn choices(
    context: &Context<'_>,
    input: &Init,
    found: &[Client],
    asks_for_task: bool,
    agent: &AgentChoice,
) -> Choices {
    let can_register = !input.skip_clients && agent.name.is_some();
    if input.yes || input.dry_run {
        let (approves_tools, runs_task) = (input.approve_tools, !input.skip_task);
        return Choices { registers: can_register, approves_tools, runs_task };
    }
    let new = registration(context, &[], false);
    let is_new =
        |client: &&Client| client.is_editable() && client.command.as_deref() != Some(new.command.as_str());
    let titles: Vec<&str> = found.iter().filter(is_new).map(|client| client.title).collect();
    let question = format!("Register this server with {}?", titles.join(", "));
    let registers = can_register && (titles.is_empty() || terminal_prompt::confirm(context, &question, true));
    let unapproved: Vec<Host> =
        found.iter().filter(|client| client.lacks_approval()).map(|client| client.host).collect();
    // The first question was the one about the agent; `setup` asks this one.
    let may_approve = registers && !agent.was_asked && !unapproved.is_empty();
    let approves_tools = input.approve_tools
        || (may_approve && terminal_prompt::confirm(context, &approval_question(&unapproved), false));
    let question = format!(
        "Run a first task in {}? An agent reads this directory and describes the project; it cannot change anything.",
        context.process.current_dir.display()
    );
    let runs_task =
        !input.skip_task && (!asks_for_task || terminal_prompt::confirm(context, &question, true));
    Choices { registers, approves_tools, runs_task }
}

fn checks(context: &Context<'_>, of_agents: Vec<Check>) -> Vec<Check> {
    let mut checks = configuration::checks(context);
    checks.extend(of_agents);
    checks.extend(machine::checks(context));
    checks
}

fn check_step(progress: &mut InitSteps, checks: &[Check], agent: Option<&str>) -> bool {
    let Some(error) = first_problem(checks) else {
        let name = agents::check_name(agent.unwrap_or(DEFAULT_AGENT), "agent");
        let agent = checks.iter().find(|check| check.name == name).map(|check| check.message.as_str());
        progress.add("check", StepStatus::Done, agent.unwrap_or("nothing is missing"), None);
        return true;
    };
    for check in checks.iter().filter(|check| check.status == CheckStatus::Problem) {
        let message = format!("{}: {}", check.name, check.message);
        progress.add("check", StepStatus::Failed, message, check.suggestion.clone());
    }
    progress.error.get_or_insert(error);
    false
}

fn register_step(
    context: &Context<'_>,
    progress: &mut InitSteps,
    client: &Client,
    new: &Registration,
    input: &Init,
) {
    let name = format!("clients.{}", client.host.name());
    if client.state == ClientState::RegisteredByUrl {
        progress.add(&name, StepStatus::Skipped, "already registered by URL", None);
        return;
    }
    // One answer holds for all clients that have the setting.
    let approves_tools = new.approves_tools && client.host.unattended_command().is_some();
    let plan = match plan(context, client.host, &Registration { approves_tools, ..new.clone() }) {
        Ok(plan) => plan,
        // The user did not name this client, so its file is not a reason to fail.
        Err(error) if error.code == ErrorCode::ConfigInvalid && input.clients.is_empty() => {
            let next = format!("mcp-delegator setup {} --print", client.host.name());
            progress.add(&name, StepStatus::Skipped, error.message, Some(next));
            return;
        }
        Err(error) => return progress.fail(&name, error),
    };
    let registered = match plan.write(context, input.dry_run) {
        Ok(registered) => registered,
        Err(error) => return progress.fail(&name, error),
    };
    let verbs = if input.dry_run { ["would add", "would update"] } else { ["added", "updated"] };
    let next = Some(registered.next.join(" ")).filter(|next| !next.is_empty());
    match (changes(client, &registered, verbs), input.dry_run) {
        (None, _) => progress.add(&name, StepStatus::Skipped, "already registered", next),
        (Some(changes), true) => progress.add(&name, StepStatus::Planned, changes, None),
        (Some(changes), false) => progress.add(&name, StepStatus::Done, changes, next),
    }
}

/// What was changed in the files of a client, or would be; `None` if nothing.
fn changes(client: &Client, registered: &Registered, [adds, updates]: [&str; 2]) -> Option<String> {
    let entry = registered.edited.is_changed.then(|| match client.state {
        ClientState::Registered => format!("{updates} the entry in {}", client.file),
        _ => format!("{adds} an entry in {}", client.file),
    });
    let permission = registered.permission.iter().filter(|permission| permission.edited.is_changed);
    let permission = permission.map(|it| format!("{adds} a permission in {}", it.edited.file));
    let changes: Vec<String> = entry.into_iter().chain(permission).collect();
    (!changes.is_empty()).then(|| changes.join(" and "))
}

fn task_step(
    context: &Context<'_>,
    progress: &mut InitSteps,
    earlier: Option<Task>,
    agent: Option<&str>,
    dry_run: bool,
) {
    let directory = &context.process.current_dir;
    if let Some(earlier) = earlier {
        let next = format!("mcp-delegator results {}", earlier.id);
        progress.add(TASK_STEP, StepStatus::Skipped, "a first task completed here before", Some(next));
        return;
    }
    if dry_run {
        let message = format!("would describe the project in {}", directory.display());
        progress.add(TASK_STEP, StepStatus::Planned, message, None);
        return;
    }
    context.screen.announce("Running a first read-only task. Ctrl-C detaches; the task continues.");
    match engine(context).and_then(|engine| first_task::run(context, &engine, directory, agent)) {
        Err(error) => progress.fail(TASK_STEP, error),
        Ok((completion, task)) => {
            let summary = task.as_ref().and_then(|task| task.summary.clone());
            progress.task = task;
            match completion {
                Completion::Failed(error) => progress.fail(TASK_STEP, *error),
                _ => {
                    let summary = summary.unwrap_or_else(|| "completed".to_owned());
                    progress.add(TASK_STEP, StepStatus::Done, summary, Some(next_task(directory, agent)));
                }
            }
        }
    }
}

/// The command of a first task that changes files. Outside of a repository Codex refuses it without a flag.
/// An empty `.git` is none: sandboxes create it in directories that they protect.
fn next_task(directory: &Path, agent: Option<&str>) -> String {
    let is_git = |path: PathBuf| path.is_file() || path.join("HEAD").exists();
    let is_in_repository = directory.ancestors().any(|above| is_git(above.join(".git")));
    let flag = if is_in_repository { "" } else { " --skip-git-repo-check" };
    let agent = agent.filter(|agent| *agent != DEFAULT_AGENT);
    let agent = agent.map(|agent| format!(" --agent {agent}")).unwrap_or_default();
    format!("mcp-delegator run 'your task' --mode workspace-write{agent}{flag}")
}

impl CommandData for InitOutput {
    fn document(&self) -> Document {
        let row = |step: &Step| vec![step.name.clone(), step.status.name().to_owned(), step.message.clone()];
        let mut document =
            Document::default().table(&["step", "status", "message"], self.steps.iter().map(row).collect());
        let report = self.task.as_ref().and_then(|task| task.report.as_ref());
        if let Some(message) = report.and_then(|report| report.final_message.as_ref()) {
            document = document.quote("The agent's final message:", message.as_str());
        }
        let next = self.steps.iter().filter_map(|step| Some((step.name.clone(), step.next.clone()?)));
        let next: Vec<(String, String)> = next.collect();
        if next.is_empty() { document } else { document.text("Next:").block(Block::Facts(next)) }
    }
}
