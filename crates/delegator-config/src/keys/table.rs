//! The table of all configuration keys: the only place where a key, its bounds or its default is written.

use super::DefaultValue::{self, Cores, EmptyTable, Integer, List, Required, Text, Unset};
use super::{Key, ProjectRight, Scope, TextFormat, ValueKind};

const SECONDS: &str = "seconds";
const BYTES: &str = "bytes";
const DAY_SEC: u64 = 86_400;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
/// Above any real limit, and still exact in every JSON reader.
const MAX_BYTES: u64 = 1 << 50;
const MAX_TOKENS: u64 = 1_000_000_000_000;

/// Every configuration key, in the order in which they are shown.
pub static KEYS: &[Key] = &[
    key(
        "codex_bin",
        ValueKind::Program,
        Text("codex"),
        "The Codex program; a bare name is looked up on PATH.",
    ),
    Key {
        scope: Scope::Call,
        ..limit("max_concurrent", count(1, 10_000), Cores, "Tasks running at once in one state directory.")
    },
    limit("idle_timeout_sec", seconds(1), Integer(300), "A task without activity for this long is ended."),
    limit("hard_timeout_sec", seconds(1), Integer(1200), "A task running for this long is ended."),
    key("interrupt_grace_sec", grace(), Integer(5), "Time between SIGINT and SIGTERM when a task is ended."),
    key("terminate_grace_sec", grace(), Integer(5), "Time between SIGTERM and SIGKILL when a task is ended."),
    key(
        "idle_counts",
        ValueKind::Choice(&["activity", "output"]),
        Text("activity"),
        "What keeps a task from being idle: any activity of its processes, or only output.",
    ),
    Key {
        scope: Scope::Call,
        ..limit(
            "call_budget_sec",
            ValueKind::Integer { min: 1, max: 3600, unit: SECONDS },
            Integer(50),
            "How long an MCP call stays with a running task before it answers with what it has.",
        )
    },
    limit(
        "max_mode",
        ValueKind::Choice(&["read-only", "workspace-write", "danger-full-access"]),
        Text("workspace-write"),
        "The widest sandbox mode any caller may ask for.",
    ),
    limit(
        "max_stream_bytes",
        ValueKind::Integer { min: 4096, max: MAX_BYTES, unit: BYTES },
        Integer(64 * MIB),
        "Stored size of each output stream of a task; beyond it only head and tail are kept.",
    ),
    limit("max_processes", count(1, 4_194_304), Integer(4096), "A task with more processes is ended."),
    key(
        "containment",
        ValueKind::Choice(&["auto", "subreaper"]),
        Text("auto"),
        "What holds a task's processes together: a control group where one can be had, or the supervisor alone.",
    ),
    key(
        "niceness",
        count(0, 19),
        Integer(10),
        "How far agents and all they run give way to everything else on the machine, as `nice` counts it, where `max_concurrent` is at most 8 for each processor; the more above that, the further. 0: not at all.",
    ),
    key(
        "sweep_exempt",
        ValueKind::Texts(TextFormat::ProgramName),
        List(&[]),
        "Programs left running when a task's leftovers are ended.",
    ),
    key("allowed_roots", ValueKind::Paths, List(&[]), "The directories tasks may work in; empty: any."),
    key(
        "hide_state_dir",
        ValueKind::Choice(&["never", "read-only", "always"]),
        Text("read-only"),
        "In which modes the agent's commands are kept from reading the state directory, where the HTTP token and the records of all tasks are (Codex 0.166 and newer). `always` includes workspace-write; `[sandbox_workspace_write]` of Codex's own configuration is not used then.",
    ),
    key(
        "redact_names",
        ValueKind::Texts(TextFormat::VariableName),
        List(&[]),
        "Further variables whose values are secrets: redacted wherever they occur and whatever they look like, from 4 characters on.",
    ),
    key(
        "agents",
        ValueKind::Agents,
        EmptyTable,
        "Agents beside the built-in `codex`, by name; as JSON in the variable.",
    ),
    key(
        "agents.<name>.command",
        ValueKind::Program,
        Required,
        "The agent's program; `codex` itself has `codex_bin`.",
    ),
    key("agents.<name>.args", ValueKind::Texts(TextFormat::Argument), List(&[]), "Arguments of every start."),
    key(
        "agents.<name>.dialect",
        ValueKind::Choice(&["codex-exec", "idle-jsonl", "codex-app-server", "claude-stream", "plain"]),
        Text("plain"),
        "What the agent speaks on its streams; for `codex` itself it is `codex-exec` by default.",
    ),
    key(
        "agents.<name>.env",
        ValueKind::Texts(TextFormat::PassedVariable),
        List(&[]),
        "Names of further variables the agent is given; their values stay out of the file. Only this key adds variables: callers choose among them. Variables that make programs run code (`LD_PRELOAD`, `NODE_OPTIONS`, `BASH_ENV`, …) are refused.",
    ),
    key(
        "agents.<name>.resume",
        ValueKind::ResumeArguments,
        Unset("the dialect's own, if it has one"),
        "Arguments that continue a thread, in place of `args`.",
    ),
    key(
        "agents.<name>.ending",
        ValueKind::Choice(&["interrupt", "terminate"]),
        Unset("`terminate` for `codex-app-server`, else `interrupt`"),
        "How the agent is ended: SIGINT, SIGTERM, SIGKILL, or without the SIGINT; the graces lie between.",
    ),
    key(
        "agents.<name>.linger_sec",
        seconds(0),
        Integer(0),
        "How long an `idle-jsonl` agent with an empty queue is kept before its stdin is closed.",
    ),
    key(
        "retention_hours",
        ValueKind::Integer { min: 1, max: 87_600, unit: "hours" },
        Integer(720),
        "Finished tasks older than this are removed.",
    ),
    key(
        "restore_point_retention_hours",
        ValueKind::Integer { min: 1, max: 87_600, unit: "hours" },
        Integer(720),
        "Restore points that hold content no branch has outlive their task, until this long after its end.",
    ),
    key(
        "worktree_quota_bytes",
        ValueKind::Integer { min: MIB, max: MAX_BYTES, unit: BYTES },
        Integer(10 * GIB),
        "Space that all worktrees of isolated tasks may take together.",
    ),
    key(
        "verify_unsandboxed",
        ValueKind::Bool,
        DefaultValue::Bool(false),
        "Let the `verify` command of a task run without a sandbox where none can be had.",
    ),
    key("budget.task_tokens", tokens(), Unset("no limit"), "Tokens one task may use."),
    key(
        "budget.day_tokens",
        tokens(),
        Unset("no limit"),
        "Tokens all tasks of one day (UTC) may use together.",
    ),
    limit(
        "max_depth",
        count(0, 16),
        Integer(3),
        "How deep tasks may start tasks; 0 allows none inside a task.",
    ),
    limit("max_children", count(0, 1024), Integer(16), "Tasks of one task that may run or wait at once."),
    key("notify.command", ValueKind::Command, Unset("no notice"), "Run when a task ends, without a shell."),
    key(
        "notify.on",
        ValueKind::Choices(&["completed", "failed", "cancelled", "timeout"]),
        List(&["completed", "failed", "timeout"]),
        "The ends of a task for which `notify.command` is run.",
    ),
    Key {
        secret: true,
        ..key(
            "database_url",
            ValueKind::Text(TextFormat::DatabaseUrl),
            Unset("no fleet"),
            "The fleet's PostgreSQL.",
        )
    },
    key("fleet_lease_sec", seconds(3), Integer(180), "A worker silent for this long has lost its tasks."),
    key("fleet_beat_sec", seconds(1), Integer(15), "Time between two signs of life of a worker."),
    key(
        "fleet_cutoff_sec",
        seconds(2),
        Integer(150),
        "A worker cut off for this long ends its agents; more than the beat, less than the lease.",
    ),
    key(
        "toolsets",
        ValueKind::Choices(&["local", "cloud", "registry", "extra", "codex-compat"]),
        List(&["local", "cloud", "registry"]),
        "Groups of tools the server offers.",
    ),
    key(
        "tools",
        ValueKind::Texts(TextFormat::ToolName),
        List(&[]),
        "The only tools the server offers; empty: all of the toolsets.",
    ),
    key(
        "exclude_tools",
        ValueKind::Texts(TextFormat::ToolName),
        List(&[]),
        "Tools the server does not offer.",
    ),
    key(
        "read_only",
        ValueKind::Bool,
        DefaultValue::Bool(false),
        "Offer no tool that starts or changes anything.",
    ),
    key(
        "output_schemas",
        ValueKind::Bool,
        DefaultValue::Bool(false),
        "Declare an output schema for every tool; with `default_format` json.",
    ),
    Key {
        project: ProjectRight::Set,
        scope: Scope::Call,
        ..key(
            "default_format",
            ValueKind::Choice(&["markdown", "json"]),
            Text("markdown"),
            "The form of a tool's answer when the call does not say.",
        )
    },
    key(
        "tool_prefix",
        ValueKind::Text(TextFormat::ToolPrefix),
        Text("_codex_"),
        "The beginning of every tool's name.",
    ),
    key(
        "envelope",
        ValueKind::Choice(&["agent", "standard", "tool", "raw"]),
        Unset("the surface decides"),
        "The wrapper of JSON answers.",
    ),
    key(
        "log_level",
        ValueKind::Choice(&["error", "warn", "info", "debug", "trace"]),
        Text("warn"),
        "What is logged to stderr; `MCP_DELEGATOR_LOG` filters finer.",
    ),
    Key {
        project: ProjectRight::Set,
        ..key("labels", ValueKind::Labels, EmptyTable, "Labels of every task submitted.")
    },
];

const fn key(name: &'static str, kind: ValueKind, default: DefaultValue, description: &'static str) -> Key {
    Key { name, kind, default, project: ProjectRight::None, scope: Scope::Task, secret: false, description }
}

/// A limit: a project may make it tighter, never wider.
const fn limit(name: &'static str, kind: ValueKind, default: DefaultValue, description: &'static str) -> Key {
    Key { name, kind, default, project: ProjectRight::Lower, scope: Scope::Task, secret: false, description }
}

const fn seconds(min: u64) -> ValueKind {
    ValueKind::Integer { min, max: DAY_SEC, unit: SECONDS }
}

const fn grace() -> ValueKind {
    ValueKind::Integer { min: 0, max: 300, unit: SECONDS }
}

const fn count(min: u64, max: u64) -> ValueKind {
    ValueKind::Integer { min, max, unit: "" }
}

const fn tokens() -> ValueKind {
    ValueKind::Integer { min: 1, max: MAX_TOKENS, unit: "tokens" }
}
