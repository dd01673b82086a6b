//! The table of all configuration keys: the only place that defines a key, its bounds and its default.

use delegator_domain::agents::{AgentProtocol, DEFAULT_AGENT};
use delegator_domain::notification::{NotifyEvent, WebhookFormat};
use delegator_domain::task::{EnclosureChoice, Mode};

use super::key::DefaultValue::{self, Cores, EmptyTable, Integer, List, Required, Text, Unset};
use super::key::{Key, ProjectRight, Scope, ValueKind};
use super::text_format::TextFormat;
use crate::settings::{Envelope, Format};

const SECONDS: &str = "seconds";
const DAY_SEC: i64 = 86_400;
const MIB: i64 = 1 << 20;
const GIB: i64 = 1 << 30;
/// Above any real limit, and still exact as a JSON number.
const MAX_BYTES: i64 = 1 << 50;

const GRACE: ValueKind = ValueKind::Integer { min: 0, max: 300, unit: SECONDS };
const HOURS: ValueKind = ValueKind::Integer { min: 1, max: 87_600, unit: "hours" };
const TURNS: ValueKind = ValueKind::Integer { min: 1, max: 1_000_000, unit: "turns" };
const CENTS: ValueKind = ValueKind::Integer { min: 1, max: 100_000_000, unit: "US cents" };
const TOKENS: ValueKind = ValueKind::Integer { min: 1, max: 1_000_000_000_000, unit: "tokens" };
/// The sum over several tasks.
const TOTAL_SECONDS: ValueKind = ValueKind::Integer { min: 1, max: 1_000_000_000, unit: SECONDS };

/// Every configuration key, in display order.
pub static KEYS: &[Key] = &[
    key("codex_bin", ValueKind::Program, Text(DEFAULT_AGENT))
        .about("Codex program; a bare name is looked up on PATH."),
    limit("max_concurrent", count(1, 10_000), Cores)
        .of_calls()
        .about("Maximum number of running tasks per state directory."),
    limit("idle_timeout_sec", seconds(1), Integer(300))
        .about("A task without activity for this long is stopped."),
    limit("hard_timeout_sec", seconds(1), Integer(1200)).about("Hard time limit of a task."),
    key("interrupt_grace_sec", GRACE, Integer(5))
        .about("Time between SIGINT and SIGTERM when a task is stopped."),
    key("terminate_grace_sec", GRACE, Integer(5))
        .about("Time between SIGTERM and SIGKILL when a task is stopped."),
    key("idle_counts", ValueKind::Choice(&["activity", "output"]), Text("activity"))
        .about("What resets the idle timeout: any activity of the processes of a task, or only output."),
    key("answer_timeout_sec", seconds(1), Integer(300))
        .about("How long a question of an agent waits for an answer. After that the agent gets none; a permission is not given."),
    key("notified_answer_timeout_sec", seconds(1), Integer(1800))
        .about("How long a question waits for an answer from the moment on at which a notification about it was delivered, if that is later than `answer_timeout_sec`. The time limits of the task apply all the same."),
    limit("call_budget_sec", ValueKind::Integer { min: 1, max: 3600, unit: SECONDS }, Integer(50))
        .of_calls()
        .about("How long an MCP call waits for a running task before it returns the progress so far."),
    limit("max_mode", ValueKind::Choice(&Mode::NAMES), Text("workspace-write"))
        .about("Most permissive sandbox mode that a caller may request."),
    key(
        "default_agent",
        ValueKind::Text(TextFormat::AgentName),
        Unset("codex, or else the first other agent that is installed"),
    )
    .about("Agent of tasks that name none."),
    limit("default_mode", ValueKind::Choice(&Mode::NAMES), Text("read-only"))
        .about("Sandbox mode of tasks that name none; at most `max_mode`. Where a project lowers `max_mode` further, that applies."),
    limit("max_stream_bytes", bytes(4096), Integer(64 * MIB))
        .about("Maximum stored size of each output stream of a task; of a longer stream only head and tail are stored."),
    limit("max_processes", count(1, 4_194_304), Integer(4096))
        .about("Maximum number of processes of a task; a task with more is stopped."),
    key("containment", ValueKind::Choice(&["auto", "subreaper"]), Text("auto"))
        .about("How the processes of a task are tracked: in a control group where one is available (`auto`), or by the supervisor alone (`subreaper`)."),
    key("enclosure", ValueKind::Choice(&EnclosureChoice::NAMES), Text("auto"))
        .about("What encloses agents that have no sandbox of their own: Landlock, or else bubblewrap (`auto`), or only one of them."),
    key("niceness", count(0, 19), Integer(10))
        .about("Niceness of agents and their processes if `max_concurrent` is at most 8 per processor; above that it increases. 0: normal priority."),
    key("sweep_exempt", ValueKind::Texts(TextFormat::ProgramName), List(&[]))
        .about("Programs that are not killed when the remaining processes of a task are."),
    key("allowed_roots", ValueKind::Paths, List(&[]))
        .about("Directories in which tasks may work; empty: any."),
    key("hide_state_dir", ValueKind::Choice(&["never", "read-only", "always"]), Text("read-only"))
        .about("Sandbox modes in which the agent's commands cannot read the state directory, which contains the HTTP token and the records of all tasks (Codex 0.166 and newer). `always` includes workspace-write; `[sandbox_workspace_write]` in Codex's own configuration is then ignored."),
    key("redact_names", ValueKind::Texts(TextFormat::VariableName), List(&[]))
        .about("Additional variables whose values are secrets: redacted wherever they occur and whatever they look like, from 4 characters on."),
    key("agents", ValueKind::Agents, EmptyTable)
        .about("Agents in addition to the built-in `codex`, by name; as JSON in the variable."),
    key("agents.<name>.protocol", ValueKind::Choice(&AgentProtocol::NAMES), Required)
        .about("What the agent reads and prints: `plain` is any program (text on stdin, lines on stdout, the exit code decides), `codex-exec` another installation of Codex. The built-in `codex` is configured by `codex_bin` and has only `env`."),
    key("agents.<name>.command", ValueKind::Command, Required)
        .about("Program of the agent and its arguments, run without a shell."),
    key("agents.<name>.env", ValueKind::Texts(TextFormat::PassedVariable), List(&[]))
        .about("Names of additional variables passed to the agent; their values stay out of the file. Only this key adds variables: callers choose among them. Variables that make programs run code (`LD_PRELOAD`, `NODE_OPTIONS`, `BASH_ENV`, …) are rejected."),
    key("agents.<name>.unsandboxed", ValueKind::Bool, DefaultValue::Bool(false))
        .about("Run tasks of this agent without an enclosure, so that nothing enforces their mode. Codex, which has a sandbox of its own, ignores it."),
    key("agents.<name>.state_dirs", ValueKind::Paths, List(&[]))
        .about("Directories besides the task's own in which the enclosed agent may write in every mode: its settings, its threads, caches. Missing ones are created."),
    key("agents.<name>.linger_sec", seconds(0), Integer(0))
        .about("How long an agent that takes messages (`idle-jsonl`) waits for another one after its last turn before its task ends."),
    key("agents.<name>.tool_command", ValueKind::Command, Unset("the user answers"))
        .about("Command that answers the tool calls of an agent (`idle-jsonl`), without a shell and outside the agent's sandbox: it gets the call as JSON on standard input, its standard output is the output of the tool, and its standard error is the error unless it exits with 0. At most 1 MiB, and `answer_timeout_sec`."),
    key("retention_hours", HOURS, Integer(720)).about("Finished tasks older than this are deleted."),
    key("restore_point_retention_hours", HOURS, Integer(720))
        .about("How long after the end of its task a restore point is retained if it contains content that is on no branch."),
    key("worktree_quota_bytes", bytes(MIB), Integer(10 * GIB))
        .about("Maximum total size of the worktrees of isolated tasks. When it is exceeded, worktrees without changes of ended tasks are removed, the oldest first; if that is not enough, new isolated tasks are refused."),
    key("repositories", ValueKind::Repositories, EmptyTable)
        .about("Settings of single repositories, by the path of their work tree; as JSON in the variable."),
    key(
        "repositories.<path>.worktree_setup",
        ValueKind::Text(TextFormat::Prose(100_000)),
        Unset("nothing is run"),
    )
    .about("Script for bash that prepares a new worktree before the agent starts, such as `npm ci`. It runs without a sandbox in the top directory of the worktree, for at most 30 minutes; `$SOURCE_TREE` is your own work tree. If it fails, the task fails."),
    key("repositories.<path>.worktree_copy", ValueKind::Texts(TextFormat::Argument), List(&[]))
        .about("Patterns of untracked files to copy from your work tree to a new worktree, such as `.env` or `config/*.local`."),
    key("verify_unsandboxed", ValueKind::Bool, DefaultValue::Bool(false))
        .about("Run the `verify` command of a task without a sandbox if none is available."),
    key("budget.task_tokens", TOKENS, Unset("no limit"))
        .about("Maximum tokens of a task, input and output together."),
    key("budget.task_turns", TURNS, Unset("no limit"))
        .about("Maximum turns of a task, for agents that take messages."),
    key("budget.task_cost_cents", CENTS, Unset("no limit"))
        .about("Maximum cost of a task in US cents, for agents that report it."),
    key("budget.day_tokens", TOKENS, Unset("no limit")).about("Maximum tokens of all tasks per day (UTC)."),
    key("budget.day_turns", TURNS, Unset("no limit")).about("Maximum turns of all tasks per day (UTC)."),
    key("budget.day_cost_cents", CENTS, Unset("no limit"))
        .about("Maximum cost of all tasks per day (UTC), in US cents."),
    key("budget.day_running_sec", TOTAL_SECONDS, Unset("no limit"))
        .about("Maximum running time of all tasks per day (UTC), added up."),
    key("budget.label", ValueKind::Text(TextFormat::LabelName), Unset("no limit by label"))
        .about("The label whose values have budgets of their own: the tasks with the same value share the `budget.label_…` limits."),
    key("budget.label_tokens", TOKENS, Unset("no limit"))
        .about("Maximum tokens of the recorded tasks with one value of `budget.label`."),
    key("budget.label_turns", TURNS, Unset("no limit"))
        .about("Maximum turns of the recorded tasks with one value of `budget.label`."),
    key("budget.label_cost_cents", CENTS, Unset("no limit"))
        .about("Maximum cost of the recorded tasks with one value of `budget.label`, in US cents."),
    key("budget.label_running_sec", TOTAL_SECONDS, Unset("no limit"))
        .about("Maximum running time of the recorded tasks with one value of `budget.label`, added up."),
    limit("max_depth", count(0, 16), Integer(3))
        .about("Maximum nesting depth of tasks that start tasks; 0: a task cannot start tasks."),
    limit("max_children", count(0, 1024), Integer(16))
        .about("Maximum number of queued and running tasks started by one task."),
    key("notify.command", ValueKind::Command, Unset("no command"))
        .about("Command to run when a task needs you, or a task, a group or a chain ends, without a shell; it gets the notification as JSON on standard input. Applies to tasks submitted from then on, like all of `notify`."),
    key("notify.webhook", ValueKind::Text(TextFormat::WebhookUrl), Unset("no webhook"))
        .secret()
        .about("URL to which a notification is sent when a task needs you, or a task, a group or a chain ends."),
    key("notify.webhook_format", ValueKind::Choice(&WebhookFormat::NAMES), Text("json"))
        .about("What is sent to `notify.webhook`: our own JSON, or a message that Slack (also Mattermost, and Discord with `/slack`), ntfy or Telegram shows."),
    key("notify.webhook_secret_file", ValueKind::Path, Unset("not signed"))
        .about("File with the secret that signs the requests to `notify.webhook` (HMAC-SHA256); read when a notification is sent."),
    key("notify.desktop", ValueKind::Bool, DefaultValue::Bool(false))
        .about("Show a desktop notification when a task needs you, or a task, a group or a chain ends, with `notify-send`."),
    key("notify.each_task", ValueKind::Bool, DefaultValue::Bool(false))
        .about("Send a notification also for each task of a group or a chain, not only one at the end of all."),
    key(
        "notify.on",
        ValueKind::Choices(&NotifyEvent::NAMES),
        List(&["question", "budget", "stuck", "completed", "failed", "cancelled", "timeout"]),
    )
    .about("What notifications are sent for: a question or a request for permission, a budget that is used to 80 %, no activity for half of the idle limit (`stuck`), and ends of a task, a group or a chain; `completed` includes `verify_failed`, a failed check, and `failed` includes `usage_limit`."),
    key(
        "notify.template",
        ValueKind::Text(TextFormat::NotificationTemplate),
        Unset("state and title; then summary, id, duration and directory"),
    )
    .about("Text of a notification about an end: the first line is its title."),
    key("database_url", ValueKind::Text(TextFormat::DatabaseUrl), Unset("no fleet"))
        .secret()
        .about("PostgreSQL URL of the fleet. On the command line without a password."),
    key("database_url_file", ValueKind::Path, Unset("no file"))
        .about("File whose first line is the PostgreSQL URL of the fleet, instead of `database_url`."),
    key("fleet_lease_sec", seconds(3), Integer(180))
        .about("A worker without a heartbeat for this long loses its tasks."),
    key("fleet_heartbeat_sec", seconds(1), Integer(15)).about("Time between two heartbeats of a worker."),
    key("fleet_cutoff_sec", seconds(2), Integer(150))
        .about("A worker without a database connection for this long stops its agents; more than `fleet_heartbeat_sec`. Of a worker, `fleet_lease_sec` must be at least this, `interrupt_grace_sec`, `terminate_grace_sec` and 10 s together."),
    key("fleet_retention_hours", HOURS, Integer(720))
        .about("Workers delete finished tasks older than this from the database of the fleet."),
    key("fleet_max_bytes", bytes(MIB), Integer(10 * GIB))
        .about("Maximum stored size of the events, diffs and results in the database of the fleet; above it, workers delete the oldest finished tasks."),
    key(
        "toolsets",
        ValueKind::Choices(&["local", "cloud", "registry", "worktree", "extra", "codex-compat"]),
        List(&["local", "cloud", "registry"]),
    )
    .about("Groups of tools that the server offers."),
    key("tools", ValueKind::Texts(TextFormat::ToolName), List(&[]))
        .about("The only tools that the server offers; empty: all tools of the toolsets."),
    key("exclude_tools", ValueKind::Texts(TextFormat::ToolName), List(&[]))
        .about("Tools that the server does not offer."),
    key("read_only", ValueKind::Bool, DefaultValue::Bool(false))
        .about("Offer only tools that start and change nothing."),
    key("output_schemas", ValueKind::Bool, DefaultValue::Bool(false))
        .about("Declare an output schema for every tool; requires `default_format` json."),
    key("default_format", ValueKind::Choice(&["markdown", "json"]), Text("markdown"))
        .set_by_projects()
        .of_calls()
        .about("Format of a tool response if the call does not specify one."),
    key("tool_prefix", ValueKind::Text(TextFormat::ToolPrefix), Text("_codex_"))
        .about("Prefix of every tool name."),
    key("format", ValueKind::Choice(&Format::NAMES), Unset("human on a terminal, else json or jsonl"))
        .about("Output format of the command line."),
    key("envelope", ValueKind::Choice(&Envelope::NAMES), Unset("depends on the surface"))
        .about("Envelope of JSON responses."),
    key("log_level", ValueKind::Choice(&["error", "warn", "info", "debug", "trace"]), Text("warn"))
        .about("Log level on stderr; `MCP_DELEGATOR_LOG` sets finer filters."),
    key("labels", ValueKind::Labels, EmptyTable)
        .set_by_projects()
        .about("Labels added to every submitted task."),
];

const fn key(name: &'static str, kind: ValueKind, default: DefaultValue) -> Key {
    let (project, scope) = (ProjectRight::None, Scope::Task);
    Key { name, kind, default, project, scope, secret: false, description: "" }
}

/// A limit: a project may lower it, never raise it.
const fn limit(name: &'static str, kind: ValueKind, default: DefaultValue) -> Key {
    Key { project: ProjectRight::Lower, ..key(name, kind, default) }
}

impl Key {
    const fn about(self, description: &'static str) -> Key {
        Key { description, ..self }
    }

    const fn set_by_projects(self) -> Key {
        Key { project: ProjectRight::Set, ..self }
    }

    const fn of_calls(self) -> Key {
        Key { scope: Scope::Call, ..self }
    }

    const fn secret(self) -> Key {
        Key { secret: true, ..self }
    }
}

const fn bytes(min: i64) -> ValueKind {
    ValueKind::Integer { min, max: MAX_BYTES, unit: "bytes" }
}

const fn seconds(min: i64) -> ValueKind {
    ValueKind::Integer { min, max: DAY_SEC, unit: SECONDS }
}

const fn count(min: i64, max: i64) -> ValueKind {
    ValueKind::Integer { min, max, unit: "" }
}
