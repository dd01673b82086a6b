//! The peers: programs of package registries that give an MCP client a tool which delegates a task to a coding agent.
//!
//! Versions are exact, so that two runs of the race measure the same programs. Python libraries that a peer does not
//! pin are pinned here, to the newest version it works with.

use super::results::Origin;

/// A value of a tool's arguments.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Argument {
    Prompt,
    Directory,
    /// The id of a task that was started in the background.
    TaskId,
    Text(&'static str),
    Flag(bool),
    Object(&'static [(&'static str, Argument)]),
}

/// A tool, and how it is called.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ToolCall {
    pub(crate) tool: &'static str,
    pub(crate) arguments: &'static [(&'static str, Argument)],
}

/// How a task is started with one call and awaited with another.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Background {
    pub(crate) start: ToolCall,
    /// The text before the task's id in the response to `start`.
    pub(crate) id_after: &'static str,
    pub(crate) wait: ToolCall,
    /// For a `wait` that does not block: the text of its response while the task runs.
    pub(crate) running: Option<&'static str>,
    /// Without it, the cancel notification of MCP is sent for a request that runs a task.
    pub(crate) cancel: Option<ToolCall>,
}

/// The tools of a participant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tools {
    /// Shows the state of the server.
    pub(crate) status: Option<ToolCall>,
    /// Runs a task and returns its result.
    pub(crate) run: ToolCall,
    pub(crate) background: Option<Background>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Registry {
    Npm,
    PyPi,
}

impl Registry {
    pub(crate) fn origin(self) -> Origin {
        match self {
            Registry::Npm => Origin::Npm,
            Registry::PyPi => Origin::PyPi,
        }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Peer {
    pub(crate) name: &'static str,
    pub(crate) version: &'static str,
    pub(crate) registry: Registry,
    /// Further packages with their exact versions, in the syntax of the registry's client.
    pub(crate) with: &'static [&'static str],
    /// The command that the package installs.
    pub(crate) command: &'static str,
    pub(crate) environment: &'static [(&'static str, &'static str)],
    /// The command it runs as the agent.
    pub(crate) agent: &'static str,
    pub(crate) tools: Tools,
    /// Paths outside of its home directory that it writes to.
    pub(crate) writes_to: &'static [&'static str],
}

const PROMPT: (&str, Argument) = ("prompt", Argument::Prompt);

/// What most peers have: one tool that returns when the agent ends.
const fn one_tool(tool: &'static str, arguments: &'static [(&'static str, Argument)]) -> Tools {
    let run = ToolCall { tool, arguments };
    Tools { status: None, run, background: None }
}

const fn with_ping(tools: Tools) -> Tools {
    Tools { status: Some(ToolCall { tool: "ping", arguments: &[] }), ..tools }
}

const NPM: Peer = Peer {
    name: "",
    version: "",
    registry: Registry::Npm,
    with: &[],
    command: "",
    environment: &[],
    agent: "codex",
    tools: one_tool("", &[]),
    writes_to: &[],
};

const PYPI: Peer = Peer { registry: Registry::PyPi, ..NPM };

pub(crate) const PEERS: [Peer; 10] = [
    Peer {
        name: "codex-mcp-server",
        version: "1.4.10",
        command: "codex-mcp-server",
        tools: with_ping(one_tool("codex", &[PROMPT, ("workingDirectory", Argument::Directory)])),
        ..NPM
    },
    Peer {
        name: "@trishchuk/codex-mcp-tool",
        version: "2.5.0",
        command: "codex-mcp",
        tools: with_ping(one_tool(
            "ask-codex",
            &[PROMPT, ("workingDir", Argument::Directory), ("skipGitRepoCheck", Argument::Flag(true))],
        )),
        ..NPM
    },
    Peer {
        name: "@steipete/claude-code-mcp",
        version: "1.10.12",
        command: "claude-code-mcp",
        agent: "claude",
        tools: one_tool("claude_code", &[PROMPT, ("workFolder", Argument::Directory)]),
        ..NPM
    },
    Peer {
        name: "consult-llm-mcp",
        version: "2.13.4",
        command: "consult-llm-mcp",
        environment: &[
            ("CONSULT_LLM_OPENAI_BACKEND", "codex-cli"),
            ("OPENAI_BACKEND", "codex-cli"),
            ("CONSULT_LLM_ALLOWED_MODELS", "gpt-5.2"),
        ],
        tools: one_tool("consult_llm", &[PROMPT, ("model", Argument::Text("openai"))]),
        ..NPM
    },
    Peer {
        name: "codex-as-mcp",
        version: "2026.6.29.1",
        with: &["mcp[cli]==1.30.0"],
        command: "codex-as-mcp",
        tools: one_tool("spawn_agent", &[PROMPT]),
        ..PYPI
    },
    Peer {
        name: "codex-bridge",
        version: "1.2.4",
        with: &["mcp==2.3.0"],
        command: "codex-bridge",
        environment: &[("CODEX_SKIP_GIT_CHECK", "true")],
        tools: one_tool(
            "consult_codex",
            &[
                ("query", Argument::Prompt),
                ("directory", Argument::Directory),
                ("format", Argument::Text("text")),
            ],
        ),
        ..PYPI
    },
    Peer {
        name: "codex-mcp-bridge",
        version: "0.2.0",
        with: &["mcp==1.30.0"],
        command: "codex-mcp-bridge",
        tools: one_tool(
            "consult_codex",
            &[(
                "params",
                Argument::Object(&[
                    ("query", Argument::Prompt),
                    ("directory", Argument::Directory),
                    ("format", Argument::Text("text")),
                ]),
            )],
        ),
        ..PYPI
    },
    Peer {
        name: "codex-mcp-async",
        version: "0.2.1",
        command: "codex-mcp-async",
        tools: Tools {
            background: Some(Background {
                start: ToolCall { tool: "codex_execute_async", arguments: &[PROMPT] },
                id_after: "Task ID: ",
                wait: ToolCall { tool: "codex_check_result", arguments: &[("task_id", Argument::TaskId)] },
                running: Some("is still running"),
                cancel: None,
            }),
            ..one_tool("codex_execute", &[PROMPT])
        },
        writes_to: &["/tmp/codex_mcp_debug.log", "/tmp/codex_tasks"],
        ..PYPI
    },
    Peer {
        name: "pal-mcp-server",
        version: "11.8.2",
        command: "pal-mcp-server",
        // It does not start without a key, and does not use it for this tool.
        environment: &[("OPENAI_API_KEY", "not-a-key")],
        tools: one_tool("clink", &[PROMPT, ("cli_name", Argument::Text("codex"))]),
        ..PYPI
    },
    Peer {
        name: "codexmcp",
        version: "0.1.6",
        with: &["fastmcp==4.1.2"],
        command: "codexmcp",
        tools: one_tool("code_generate", &[("description", Argument::Prompt)]),
        ..PYPI
    },
];

/// The tools of this program.
pub(crate) const OUR_TOOLS: Tools = Tools {
    status: Some(ToolCall { tool: "_codex_local_status", arguments: &[] }),
    run: ToolCall { tool: "_codex_local_run", arguments: OUR_TASK },
    background: Some(Background {
        start: ToolCall { tool: "_codex_local_exec", arguments: OUR_TASK },
        id_after: "# Task ",
        wait: ToolCall { tool: "_codex_local_wait", arguments: &[("task_id", Argument::TaskId)] },
        running: None,
        cancel: Some(ToolCall { tool: "_codex_local_cancel", arguments: &[("task_id", Argument::TaskId)] }),
    }),
};

const OUR_TASK: &[(&str, Argument)] = &[
    ("task", Argument::Prompt),
    ("working_dir", Argument::Directory),
    ("options", Argument::Object(&[("skip_git_repo_check", Argument::Flag(true))])),
];

/// The values that a call inserts into its arguments.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Inserted<'a> {
    pub(crate) prompt: &'a str,
    pub(crate) directory: &'a str,
    pub(crate) task_id: &'a str,
}

/// The arguments of a call as MCP sends them.
pub(crate) fn to_json(arguments: &[(&str, Argument)], inserted: Inserted<'_>) -> serde_json::Value {
    let value = |argument: &Argument| match argument {
        Argument::Prompt => inserted.prompt.into(),
        Argument::Directory => inserted.directory.into(),
        Argument::TaskId => inserted.task_id.into(),
        Argument::Text(text) => (*text).into(),
        Argument::Flag(flag) => (*flag).into(),
        Argument::Object(fields) => to_json(fields, inserted),
    };
    arguments.iter().map(|(name, argument)| ((*name).to_owned(), value(argument))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_peer_is_pinned_and_named_once() {
        let names: BTreeSet<&str> = PEERS.iter().map(|peer| peer.name).collect();
        assert_eq!(names.len(), PEERS.len());
        for peer in &PEERS {
            assert!(peer.version.starts_with(|digit: char| digit.is_ascii_digit()), "{}", peer.name);
            assert!(peer.with.iter().all(|package| package.contains("==")), "{}", peer.name);
            assert!(!peer.command.is_empty() && !peer.tools.run.tool.is_empty(), "{}", peer.name);
        }
    }

    #[test]
    fn every_run_call_passes_the_prompt() {
        let inserted = Inserted { prompt: "do it", directory: "/work", task_id: "" };
        for tools in PEERS.iter().map(|peer| peer.tools).chain([OUR_TOOLS]) {
            let arguments = to_json(tools.run.arguments, inserted).to_string();
            assert!(arguments.contains("do it"), "{arguments}");
        }
    }

    #[test]
    fn nested_arguments_become_objects() {
        let arguments = to_json(OUR_TASK, Inserted { prompt: "p", directory: "/d", task_id: "" });
        let expected =
            serde_json::json!({"task": "p", "working_dir": "/d", "options": {"skip_git_repo_check": true}});
        assert_eq!(arguments, expected);
    }
}
