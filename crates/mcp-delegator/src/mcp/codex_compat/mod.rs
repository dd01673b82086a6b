//! `codex` and `codex-reply`: the two tools of Codex's own MCP server until 0.153, for clients that were
//! configured for it.
//!
//! Names, inputs and results are those of that server. A call of `codex` is an `exec`, a call of
//! `codex-reply` a `resume`, with the same registry, supervisor, limits and policy as any task; then the call
//! waits until the task has ended, as it did there. An input that cannot be honoured is refused, never
//! ignored.

mod call;
mod translation;

use std::sync::Arc;

use delegator_domain::named_enum;
use rmcp::model::{Tool, ToolAnnotations, object};
use serde_json::{Value, json};

use crate::commands::local::{exec, resume};
use crate::spec::CommandSpec;

pub const TOOLSET: &str = "codex-compat";

/// The settings that `config` may contain, by their names in Codex's configuration.
const CONFIG_SETTINGS: [(&str, &str); 4] = [
    ("model", "model"),
    ("model_reasoning_effort", "reasoning_effort"),
    ("profile", "profile"),
    ("sandbox_mode", "mode"),
];

/// Policies that never allow an agent more than ours: where they would ask for approval, ours refuses.
const APPROVAL_POLICIES: [&str; 3] = ["never", "on-request", "on-failure"];

named_enum! {
    pub enum CompatTool {
        Codex = "codex",
        Reply = "codex-reply",
    }
}

impl CompatTool {
    pub fn about(self) -> &'static str {
        self.spec().about
    }

    fn spec(self) -> &'static CommandSpec {
        match self {
            CompatTool::Codex => &exec::SPEC,
            CompatTool::Reply => &resume::SPEC,
        }
    }

    pub fn definition(self) -> Tool {
        let (title, about) = match self {
            CompatTool::Codex => (
                "Codex",
                "Run a Codex session on a coding task and wait until it ends. There are no approval prompts: \
                 whatever the sandbox does not allow fails.",
            ),
            CompatTool::Reply => (
                "Codex Reply",
                "Continue a Codex session: send the next prompt to its thread, with the thread's sandbox.",
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
                    "prompt": text("The task (1..100000 chars)"),
                    "cwd": text("Working directory (default: the server's; a relative path starts there)"),
                    "sandbox": {
                        "type": "string",
                        "enum": ["read-only", "workspace-write", "danger-full-access"],
                        "description": "Sandbox mode (default read-only)",
                    },
                    "model": text("Model, 1..128 chars (default: Codex's)"),
                    "approval-policy": {
                        "type": "string",
                        "enum": APPROVAL_POLICIES,
                        "description": "Accepted for compatibility; approval is never requested (default never)",
                    },
                    "developer-instructions": text("Prepended to the prompt"),
                    "config": {
                        "type": "object",
                        "description": format!("Codex settings: {}", CONFIG_SETTINGS.map(|(codex_name, _)| codex_name).join(", ")),
                    },
                },
                "required": ["prompt"],
            }),
            CompatTool::Reply => json!({
                "type": "object",
                "properties": {
                    "threadId": text("The thread id from an earlier result"),
                    "prompt": text("The next task (1..100000 chars)"),
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
