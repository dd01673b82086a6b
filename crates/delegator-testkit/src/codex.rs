//! A test world with the real Codex, which `scripts/install-codex` installs into `.tools/`. Without it a test
//! fails; it is not skipped.

use std::path::PathBuf;

use crate::generated::workspace;
use crate::program::World;

/// Path of the installed Codex.
pub fn codex_program() -> PathBuf {
    let codex = workspace().join(".tools/codex-0.166.0/node_modules/.bin/codex");
    assert!(codex.exists(), "{} is missing: run scripts/install-codex", codex.display());
    codex
}

/// A world with the program and a Codex with this configuration.
pub fn world_with_codex(program: &str, config: &str) -> World {
    let world = World::new(program);
    world.write("home/.codex/config.toml", config);
    // Codex rejects its sandbox helper if its home directory is below the temporary directory.
    world.write("scratch/.keep", "");
    let root = world.home().parent().expect("a home in a folder").to_owned();
    let variables = [
        ("MCP_DELEGATOR_CODEX_BIN", codex_program()),
        ("MCP_DELEGATOR_HOME", root.join("home/state")),
        ("CODEX_HOME", root.join("home/.codex")),
        ("TMPDIR", root.join("scratch")),
    ];
    variables.iter().fold(world, |world, (name, value)| world.variable(name, &value.display().to_string()))
}
