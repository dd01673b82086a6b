//! `doctor` tells the truth: what is missing is a problem with the command that fixes it, and a failure.

use std::path::Path;

use delegator_testkit::codex::{codex_program, world_with_codex};
use delegator_testkit::program::{RunOutput, World, durable_dir, output_of};
use delegator_testkit::stage::Stage;
use serde_json::{Value, json};

use crate::PROGRAM;
const FAKE_PROVIDER: &str =
    "model_provider = 'fake'\n[model_providers.fake]\nname = 'fake'\nbase_url = 'http://127.0.0.1:1/v1'\n";

fn world() -> World {
    World::new(PROGRAM)
}

fn data(run: &RunOutput) -> Value {
    let answer = run.json();
    let data = if answer["ok"] == true { &answer["data"] } else { &answer["meta"]["failure_data"] };
    data.clone()
}

/// The check of this name.
fn check(run: &RunOutput, name: &str) -> Value {
    let data = data(run);
    let found = data["checks"].as_array().into_iter().flatten().find(|check| check["name"] == name);
    found.unwrap_or_else(|| panic!("no check {name}: {data:#}")).clone()
}

#[test]
fn a_missing_codex_is_a_problem_with_the_commands_that_install_it() {
    let run = world().run(["doctor"]);
    assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(4), &json!("DEPENDENCY_MISSING")), "{run:?}");
    let agent = check(&run, "agent");
    assert_eq!(agent["status"], "problem");
    let suggestion = agent["suggestion"].as_str().unwrap();
    assert!(
        suggestion.contains("npm install -g @openai/codex") && suggestion.contains("codex login"),
        "{agent}"
    );
}

#[test]
fn codex_that_is_not_signed_in_is_a_problem_unless_its_provider_needs_no_sign_in() {
    let sign_in = |config: &str, variables: &[(&str, &str)]| {
        let world = world_with_codex(PROGRAM, config);
        let run = output_of(world.command(["doctor"]).envs(variables.iter().copied()));
        (run.exit, check(&run, "sign_in"))
    };
    let (exit, missing) = sign_in("", &[]);
    assert_eq!((exit, &missing["suggestion"]), (Some(8), &json!("Run: codex login")), "{missing}");
    let (exit, fake) = sign_in(FAKE_PROVIDER, &[]);
    assert_eq!((exit, &fake["status"]), (Some(0), &json!("ok")), "{fake}");
    assert_eq!(sign_in("", &[("CODEX_API_KEY", "sk-planted-secret")]).0, Some(0));
    let (exit, unused) = sign_in("", &[("OPENAI_API_KEY", "sk-planted-secret")]);
    assert_eq!(exit, Some(8), "{unused}");
    assert!(unused["suggestion"].as_str().unwrap().contains("--with-api-key"), "{unused}");
    let (exit, needed) = sign_in(&format!("{FAKE_PROVIDER}env_key = 'FAKE_KEY'\n"), &[]);
    assert_eq!((exit, &needed["status"]), (Some(8), &json!("problem")), "{needed}");
}

/// Codex starts no command then, which is no problem of the sandbox or of the sign-in.
#[test]
fn a_broken_codex_configuration_is_named_with_its_file_and_the_message_of_codex() {
    for (config, message) in [
        ("x = = 1", "config.toml:1:5: extra `=`"),
        ("model = 5", "config.toml:1:9: invalid type"),
        ("model_provider = 'nowhere'", "config.toml is invalid: Model provider `nowhere` not found"),
    ] {
        let run = world_with_codex(PROGRAM, config).run(["doctor"]);
        assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(4), &json!("CONFIG_INVALID")), "{run:?}");
        let broken = check(&run, "codex_config");
        assert!(broken["message"].as_str().unwrap().contains(message), "{broken}");
        assert!(broken["suggestion"].as_str().unwrap().contains("/home/.codex/config.toml"), "{broken}");
        let problems = run.json()["error"]["message"].to_string();
        assert!(!problems.contains("sandbox") && !problems.contains("sign_in"), "{problems}");
    }
}

#[test]
fn everything_that_a_task_needs_is_tried() {
    let world = world_with_codex(PROGRAM, FAKE_PROVIDER);
    let run = world.run(["doctor"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    assert_eq!(data(&run)["is_healthy"], true);
    let message = |name: &str| {
        let check = check(&run, name);
        assert_eq!(check["status"], "ok", "{check}");
        check["message"].as_str().unwrap().to_owned()
    };
    assert!(message("agent").contains("version 0.166.0 (tested: 0.40.0 to 0.166.0)"));
    assert!(message("sandbox").contains("could not write"));
    assert!(message("git").starts_with("git version "));
    assert!(message("version").contains(env!("CARGO_PKG_VERSION")) && message("version").contains("Linux"));
    assert!(message("disk").contains(" free at "));
    assert!(message("server").contains("with 8 tools"), "{}", message("server"));
    message("state_dir");
    message("configuration");
}

#[test]
fn a_broken_configuration_is_a_problem_with_its_place_and_fix() {
    let world = world().config("max_concurrent = 'zero'\n");
    let run = world.run(["doctor"]);
    assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(4), &json!("CONFIG_INVALID")), "{run:?}");
    let broken = check(&run, "configuration");
    assert!(broken["message"].as_str().unwrap().contains("config.toml:1:18: max_concurrent"), "{broken}");
    assert!(broken["suggestion"].as_str().unwrap().contains("a whole number from 1 to"), "{broken}");
    assert_eq!(check(&run, "server")["status"], "ok", "it starts, and refuses only new tasks");
}

#[test]
fn clients_that_start_something_else_are_named_with_the_fix() {
    let world = world();
    world.write(
        "home/.cursor/mcp.json",
        "{\"mcpServers\": {\"mcp-delegator\": {\"command\": \"/gone/mcp-delegator\"}}}",
    );
    world.write("home/.claude.json", "{\"mcpServers\": {\"mcp-delegator\": {\"command\": \"/bin/sh\"}}}");
    world.write("home/.config/Code/User/mcp.json", "{");
    world.write("home/.codex/config.toml", "");
    let run = world.run(["doctor"]);
    for (client, message) in [
        ("cursor", "/gone/mcp-delegator in "),
        ("claude-code", "starts another program: /bin/sh"),
        ("vscode", "mcp.json"),
        ("codex", "does not know this server"),
    ] {
        let check = check(&run, &format!("clients.{client}"));
        assert_eq!(check["status"], "warning", "{check}");
        assert!(check["message"].as_str().unwrap().contains(message), "{check}");
    }
    let vscode = check(&run, "clients.vscode");
    assert!(vscode["suggestion"].as_str().unwrap().contains("setup vscode --print"), "{vscode}");
    assert_eq!(world.run(["setup", "cursor"]).exit, Some(0));
    assert_eq!(check(&world.run(["doctor"]), "clients.cursor")["status"], "ok");
}

/// A client does not start a bare name in the current directory of `doctor`.
#[test]
fn a_bare_command_of_a_client_is_found_on_path() {
    let world = world();
    world.write("project/local-tool", "");
    world.write("home/.cursor/mcp.json", "{\"mcpServers\": {\"mcp-delegator\": {\"command\": \"sh\"}}}");
    world.write("home/.claude.json", "{\"mcpServers\": {\"mcp-delegator\": {\"command\": \"local-tool\"}}}");
    let url = "[mcp_servers.mcp-delegator]\nurl = 'http://127.0.0.1:7777/mcp'\n";
    world.write("home/.codex/config.toml", url);
    let run = output_of(world.command(["doctor"]).env("PATH", "/bin"));
    for (client, message) in [
        ("cursor", "starts another program: sh"),
        ("claude-code", "does not exist"),
        ("codex", "connects by URL"),
    ] {
        let check = check(&run, &format!("clients.{client}"));
        assert!(check["message"].as_str().unwrap().contains(message), "{check}");
    }
}

#[test]
fn an_unwritable_state_directory_is_a_problem() {
    // The superuser may write everywhere, but no file can be created in /proc, below a file or in a missing place.
    let place = world();
    place.write("project/file", "");
    let link = place.project().join("link");
    std::os::unix::fs::symlink("/nowhere/at/all", &link).unwrap();
    let below = |name: &str| place.project().join(name).display().to_string();
    for path in ["/proc/x", "/proc/1/mcp-delegator", "/sys/x", &below("file/x"), &below("link/x")] {
        let run = world().variable("MCP_DELEGATOR_HOME", path).run(["doctor"]);
        let state = check(&run, "state_dir");
        assert_eq!(state["status"], "problem", "{path}: {state}");
        assert!(
            state["message"].as_str().unwrap().starts_with(&format!("{path} cannot be created")),
            "{state}"
        );
        assert!(state["suggestion"].as_str().unwrap().contains("MCP_DELEGATOR_HOME"), "{state}");
    }
}

#[test]
fn trying_the_state_directory_leaves_nothing_behind() {
    let world = world();
    let entries = |path: &Path| {
        let names = std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().file_name());
        names.collect::<std::collections::BTreeSet<_>>()
    };
    let before = entries(&world.home());
    assert_eq!(check(&world.run(["doctor"]), "state_dir")["status"], "ok");
    assert_eq!(entries(&world.home()), before);
}

#[test]
fn a_relative_state_directory_is_no_problem_of_git() {
    let run = world().variable("MCP_DELEGATOR_HOME", "relative").run(["doctor"]);
    assert_eq!((run.exit, &run.json()["error"]["code"]), (Some(4), &json!("CONFIG_INVALID")), "{run:?}");
    let configuration = check(&run, "configuration");
    assert!(configuration["message"].as_str().unwrap().contains("MCP_DELEGATOR_HOME"), "{configuration}");
    let status = |name: &str| check(&run, name)["status"].clone();
    assert_eq!(
        (status("git"), status("state_dir"), status("agent")),
        (json!("ok"), json!("problem"), json!("warning"))
    );
}

#[test]
fn a_paused_queue_is_mentioned_with_the_command_that_resumes_it() {
    let world = world_with_codex(PROGRAM, FAKE_PROVIDER);
    let has_queue_check = |run: &RunOutput| data(run)["checks"].to_string().contains("\"queue\"");
    assert!(!has_queue_check(&world.run(["doctor"])));
    assert_eq!(world.run(["queue", "pause"]).exit, Some(0));
    let run = world.run(["doctor"]);
    assert_eq!(run.exit, Some(0), "{run:?}");
    let queue = check(&run, "queue");
    assert_eq!(
        (&queue["status"], &queue["suggestion"]),
        (&json!("warning"), &json!("Run: mcp-delegator queue resume")),
        "{queue}"
    );
    assert_eq!(world.run(["queue", "resume"]).exit, Some(0));
    assert!(!has_queue_check(&world.run(["doctor"])));
}

#[test]
fn the_bundle_contains_no_secret_and_no_task_text_and_is_never_overwritten() {
    let secret = "hunter2-hunter2-hunter2";
    let world = world_with_codex(PROGRAM, FAKE_PROVIDER)
        .variable("MY_PIN", "planted-pin-4711")
        .variable("GITHUB_TOKEN", "ghp_abcdefghijklmnopqrstuvwxyz0123456789")
        .config(&format!(
            "redact_names = ['MY_PIN']\nlabels = {{ pin = 'planted-pin-4711' }}\ndatabase_url = 'postgres://me:{secret}@db/x'\n\
             [agents.codex]\nenv = ['MY_PIN']\n"
        ));
    let task = ["run", "the text of a task", "--skip-git-repo-check", "--hard-timeout-sec", "60"];
    let failed = world.run(task);
    assert_ne!(failed.exit, Some(0), "its model cannot be reached: {failed:?}");
    let kind = failed.json()["meta"]["error_context"]["failure_kind"].as_str().unwrap().to_owned();
    world.write("project/.mcp-delegator.toml", "max_depth =\n");
    let run = world.run(["doctor", "--bundle", "report.txt"]);
    let file = world.project().join("report.txt");
    assert_eq!(data(&run)["bundle"], file.to_str().unwrap(), "{run:?}");
    let report = std::fs::read_to_string(&file).unwrap();
    for planted in
        [secret, "planted-pin-4711", "ghp_abcdefghijklmnopqrstuvwxyz0123456789", "the text of a task"]
    {
        assert!(!report.contains(planted), "{planted} is in {report}");
    }
    for path in [world.project(), world.home()] {
        assert!(!report.contains(path.to_str().unwrap()), "{} is in {report}", path.display());
    }
    for wanted in [
        "PROJECT/.mcp-delegator.toml:1:",
        "~/",
        "\"database_url\"",
        "== checks ==",
        "T-local-",
        "\"sandbox\"",
        "== failures by kind ==",
        &format!("\"{kind}\": 1"),
        &format!("\"failure_kind\": \"{kind}\""),
        env!("CARGO_PKG_VERSION"),
    ] {
        assert!(report.contains(wanted), "{wanted} is not in {report}");
    }
    let again = world.run(["doctor", "--bundle", "report.txt"]);
    assert_eq!(
        (again.exit, &again.json()["error"]["code"]),
        (Some(6), &json!("ALREADY_EXISTS")),
        "{again:?}"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), report);
}

#[test]
fn the_program_on_path_is_compared_with_this_one() {
    let world = world();
    let on_path = |directory: &Path| {
        let path = format!("{}:/usr/bin:/bin", directory.display());
        check(&output_of(world.command(["doctor"]).env("PATH", path)), "path")
    };
    let folder = durable_dir();
    assert!(on_path(folder.path())["message"].as_str().unwrap().contains("is not on PATH"));
    let link = folder.path().join("mcp-delegator");
    std::os::unix::fs::symlink(PROGRAM, &link).unwrap();
    assert_eq!(on_path(folder.path())["status"], "ok");
    std::fs::remove_file(&link).unwrap();
    std::os::unix::fs::symlink(codex_program(), &link).unwrap();
    assert!(on_path(folder.path())["message"].as_str().unwrap().contains("another program"));
}

#[test]
fn agents_that_are_not_installed_are_listed_and_no_problem() {
    let stage = Stage::with_shell_agent(PROGRAM, "echo codex-cli 0.166.0");
    let data = data(&stage.world.run(["doctor"]));
    let agents = data["agents"].as_array().unwrap();
    let agent =
        |name: &str| agents.iter().find(|agent| agent["name"] == name).unwrap_or_else(|| panic!("{name}"));
    assert_eq!(
        (&agent("codex")["is_installed"], &agent("codex")["sandbox"]),
        (&json!(true), &json!("agent"))
    );
    assert_eq!(
        (&agent("gemini")["is_installed"], &agent("gemini")["sandbox"]),
        (&json!(false), &json!("enforced"))
    );
    let checks = data["checks"].to_string();
    assert!(!checks.contains("agents.gemini"), "{checks}");
}

/// npm installs programs below the home directory of a user who is not root.
#[test]
fn a_program_below_the_current_directory_is_used_unless_it_is_in_a_repository() {
    let stage = Stage::with_shell_agent(PROGRAM, "");
    let program = stage.write_program("home/.npm-global/bin/codex", "#!/bin/sh\necho codex-cli 0.166.0\n");
    let (home, bin) = (stage.world.home(), program.parent().unwrap());
    let agent = |args: &[&str]| {
        let mut command = stage.world.command(args);
        command.current_dir(&home).env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
        output_of(command.env("MCP_DELEGATOR_CODEX_BIN", "codex"))
    };
    let found = check(&agent(&["doctor"]), "agent");
    assert!(found["message"].as_str().unwrap().contains(program.to_str().unwrap()), "{found}");
    stage.world.write("home/.git/HEAD", "ref: refs/heads/main\n");
    let reason = format!(
        "{} was skipped, because programs in the task's own work tree {} are not trusted",
        program.display(),
        home.canonicalize().unwrap().display()
    );
    let skipped = check(&agent(&["doctor"]), "agent");
    assert!(skipped["message"].as_str().unwrap().contains(&reason), "{skipped}");
    let refused = agent(&["run", "x"]).json();
    assert!(refused["error"]["message"].as_str().unwrap().contains(&reason), "{refused}");
}
