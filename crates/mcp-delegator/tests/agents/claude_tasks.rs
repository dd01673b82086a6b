//! The real Claude Code.

use delegator_testkit::generated::workspace;
use delegator_testkit::program::World;
use delegator_testkit::scripted_model::ScriptedModel;
use serde_json::json;

/// The world with Claude Code, which uses this model.
pub(crate) fn with_claude(world: World, model: &ScriptedModel) -> World {
    let program = workspace().join(".tools/claude-code-2.1.325/node_modules/.bin/claude");
    assert!(program.exists(), "{} is missing: run scripts/install-hosts", program.display());
    let agents = json!({"claude": {"command": [program], "unsandboxed": true}});
    world
        .variable("MCP_DELEGATOR_AGENTS", &agents.to_string())
        .variable("ANTHROPIC_BASE_URL", &model.url())
        .variable("ANTHROPIC_API_KEY", "test-key")
}
