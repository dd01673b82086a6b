//! `codex` and `codex-reply`: the two tools of the MCP server Codex itself had until 0.153, for hosts that were set up for it.
//!
//! Names, inputs and answers are those of that server. What happens is what happens to every task here: a call of `codex`
//! is an `exec`, one of `codex-reply` a `resume`, with the same registry, supervisor, limits and policy, and then the
//! call stays until the task has ended, as theirs did. What cannot be honoured is refused, not ignored.

mod call;
mod translation;

use std::sync::Arc;

use rmcp::model::{Tool, ToolAnnotations, object};
use serde_json::{Value, json};

use crate::commands::local::{exec, resume};
use crate::spec::CommandSpec;

/// What the toolset is called.
pub const TOOLSET: &str = "codex-compat";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompatTool {
    Codex,
    Reply,
}

impl CompatTool {
    pub const ALL: [CompatTool; 2] = [CompatTool::Codex, CompatTool::Reply];

    pub fn name(self) -> &'static str {
        match self {
            CompatTool::Codex => "codex",
            CompatTool::Reply => "codex-reply",
        }
    }

    /// What it does, in a few words.
    pub fn about(self) -> &'static str {
        self.spec().about
    }

    /// The command that does it here.
    fn spec(self) -> &'static CommandSpec {
        match self {
            CompatTool::Codex => &exec::SPEC,
            CompatTool::Reply => &resume::SPEC,
        }
    }

    /// As `tools/list` shows it.
    pub fn definition(self) -> Tool {
        let (title, about) = match self {
            CompatTool::Codex => (
                "Codex",
                "Run a Codex session on a coding task and stay with it until it ends. Nobody is asked for approval: what \
                 the sandbox does not allow fails.",
            ),
            CompatTool::Reply => (
                "Codex Reply",
                "Go on with a Codex session: the next prompt for its thread, with the sandbox the thread had.",
            ),
        };
        let annotations = ToolAnnotations::new().destructive(false).open_world(true);
        Tool::new(self.name(), about, Arc::new(object(self.input_schema())))
            .with_title(title)
            .with_annotations(annotations)
            .with_raw_output_schema(Arc::new(object(output_schema())))
    }

    fn input_schema(self) -> Value {
        let text = |about: &str| json!({"type": "string", "description": about});
        match self {
            CompatTool::Codex => json!({
                "type": "object",
                "properties": {
                    "prompt": text("What to do (1..100000 chars)"),
                    "cwd": text("Working directory (default: the server's; a relative one is taken from there)"),
                    "sandbox": {
                        "type": "string",
                        "enum": ["read-only", "workspace-write", "danger-full-access"],
                        "description": "What it may do (default read-only)",
                    },
                    "model": text("Model, 1..128 chars (default: Codex's)"),
                    "approval-policy": {
                        "type": "string",
                        "enum": translation::APPROVAL_POLICIES,
                        "description": "Never asks, whichever is chosen (default never)",
                    },
                    "developer-instructions": text("Put before the prompt"),
                    "config": {
                        "type": "object",
                        "description": format!("Settings of Codex: {}", translation::config_setting_names().join(", ")),
                    },
                },
                "required": ["prompt"],
            }),
            CompatTool::Reply => json!({
                "type": "object",
                "properties": {
                    "threadId": text("The thread, from an earlier answer"),
                    "prompt": text("What to do next (1..100000 chars)"),
                    "conversationId": text("Former name of threadId"),
                },
                "required": ["prompt"],
            }),
        }
    }
}

fn output_schema() -> Value {
    json!({
        "type": "object",
        "properties": {"threadId": {"type": "string"}, "content": {"type": "string"}},
        "required": ["threadId", "content"],
    })
}
