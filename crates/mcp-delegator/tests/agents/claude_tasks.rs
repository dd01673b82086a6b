//! The real Claude Code.

use delegator_testkit::generated::workspace;
use delegator_testkit::program::World;
use delegator_testkit::scripted_model::ScriptedModel;

/// A PATH that begins with the programs of a folder of npm packages.
fn path_with(folder: &str) -> String {
    let programs = workspace().join(folder).join("node_modules/.bin");
    assert!(programs.exists(), "{} is missing: run scripts/test, which installs it", programs.display());
    format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display())
}

/// The world with Claude Code, which uses this model.
pub(crate) fn with_claude(world: World, model: &ScriptedModel) -> World {
    world
        .variable("PATH", &path_with(".tools/claude-code-2.1.325"))
        .variable("ANTHROPIC_BASE_URL", &model.url())
        .variable("ANTHROPIC_API_KEY", "fake-key")
}
