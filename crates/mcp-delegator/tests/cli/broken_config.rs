//! A configuration that is not valid blocks no command that looks at tasks, ends them or repairs the file.

use delegator_testkit::program::World;
use delegator_testkit::stage::{Stage, successful_turn};
use serde_json::json;

use crate::PROGRAM;

const BROKEN: [&str; 3] = ["max_concurrent = 'zero'\n", "no_such_key = 1\n", "max_depth = [\n"];
const FILE: &str = "home/.config/mcp-delegator/config.toml";

#[test]
fn tasks_are_shown_awaited_and_cancelled_with_a_warning() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let id = stage.exec(&[]);
    stage.wait(&id);
    for broken in BROKEN {
        stage.world.write(FILE, broken);
        for args in [
            &["status"][..],
            &["local", "status"],
            &["cloud", "status"],
            &["wait", &id],
            &["cloud", "wait", &id],
            &["results", &id],
            &["cloud", "results", &id],
            &["cancel", "--all"],
            &["config", "get", "max_mode"],
            &["config", "path"],
            &["agents"],
        ] {
            let run = stage.world.run(args);
            assert_eq!(run.exit, Some(0), "{broken}{args:?}: {run:?}");
            let warnings = run.json()["warnings"].to_string();
            assert!(
                warnings.contains("W_CONFIG_006") && warnings.contains("config.toml:1:"),
                "{args:?} {warnings}"
            );
        }
        // They report the problem as their result.
        for args in [&["config", "show"][..], &["doctor"]] {
            assert_eq!(stage.world.run(args).exit, Some(4), "{args:?}");
        }
        // No task starts.
        let run = stage.world.run(["exec", "x"]);
        assert_eq!(run.json()["error"]["code"], "CONFIG_INVALID", "{run:?}");
    }
}

#[test]
fn a_running_task_is_awaited_and_cancelled_by_its_id() {
    let stage = Stage::with_script(PROGRAM, json!([{"wait_for_file": "never"}]));
    let id = stage.exec(&[]);
    stage.world.write(FILE, BROKEN[0]);
    let planned = stage.world.run(["cancel", &id, "--dry-run"]);
    assert_eq!(planned.exit, Some(0), "{planned:?}");
    let run = stage.world.run(["cloud", "cancel", &id]);
    assert!(run.exit == Some(0) && run.json()["warnings"].to_string().contains("W_CONFIG_006"), "{run:?}");
    assert_eq!(stage.world.run(["wait", &id]).json()["data"]["state"], "cancelled");
}

#[test]
fn an_invalid_variable_is_no_obstacle_either() {
    let world = World::new(PROGRAM).variable("MCP_DELEGATOR_MAX_DEPTH", "deep");
    let run = world.run(["status"]);
    assert!(run.exit == Some(0) && run.json()["warnings"].to_string().contains("MAX_DEPTH"), "{run:?}");
}
