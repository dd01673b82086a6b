//! The Python wheel, installed by pip into an environment of its own, without network.

use std::path::Path;

use delegator_testkit::program::World;

use crate::{PROGRAM, VERSION, assert_runs, packages, succeed, tool};

#[test]
fn pip_installs_the_program_and_removes_it() {
    let world = World::new(PROGRAM);
    let python = tool("schemas-1/python/bin/python", "install-schemas");
    succeed(&mut world.command_as(&python, ["-m", "venv", "environment"]));
    let python = world.project().join("environment/bin/python");
    let machine = std::env::consts::ARCH;
    let wheel = packages().join(format!("mcp_delegator-{VERSION}-py3-none-manylinux_2_28_{machine}.whl"));
    let pip = |args: &[&str]| {
        let mut command = world.command_as(&python, ["-m", "pip", "--disable-pip-version-check"]);
        command.args(args);
        command
    };
    succeed(pip(&["install", "--no-index"]).arg(&wheel));
    let program = world.project().join("environment/bin/mcp-delegator");
    assert_runs(&world, &program);
    let shown = succeed(&mut pip(&["show", "--files", "mcp-delegator"])).stdout;
    assert!(
        shown.contains(&format!("Version: {VERSION}\n")) && shown.contains("THIRD-PARTY-NOTICES"),
        "{shown}"
    );
    // pip removes exactly the files that RECORD lists.
    succeed(&mut pip(&["uninstall", "--yes", "mcp-delegator"]));
    assert!(!Path::new(&program).exists());
}
