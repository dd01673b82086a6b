//! Restore points, and refusal of destructive git instructions, with a scripted agent in place of Codex.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod creation;
mod diff;
mod restore_reports;
mod settings;

use std::path::PathBuf;

use delegator_engine::clean;
use delegator_testkit::program::{World, read_text};
use delegator_testkit::terminal::TerminalSession;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A git work tree, and an agent that runs these steps in it.
struct Stage {
    world: World,
}

impl Stage {
    fn with_script(steps: &[Value]) -> Stage {
        let world = World::new(env!("CARGO_BIN_EXE_mcp-delegator"));
        let mut all =
            vec![json!({"read_stdin": "all"}), json!({"thread_started": {}}), json!("turn_started")];
        all.extend_from_slice(steps);
        all.extend([json!({"message": "All done."}), json!({"turn_completed": {}})]);
        world.write("script.json", &json!({"steps": all}).to_string());
        let root = world.home().parent().unwrap().to_owned();
        let program = env!("CARGO_BIN_EXE_mcp-delegator");
        let script = root.join("script.json");
        let wrapper =
            format!("#!/bin/sh\nexec '{program}' scripted-agent --script '{}' \"$@\"\n", script.display());
        world.write("bin/codex", &wrapper);
        let codex = root.join("bin/codex");
        std::fs::set_permissions(&codex, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let state = world.home().join("state").display().to_string();
        let world = world
            .variable("MCP_DELEGATOR_CODEX_BIN", codex.to_str().unwrap())
            .variable("MCP_DELEGATOR_HOME", &state)
            .variable("MCP_DELEGATOR_INTERRUPT_GRACE_SEC", "1")
            .variable("MCP_DELEGATOR_TERMINATE_GRACE_SEC", "1");
        Stage { world }
    }

    /// A repository with one commit, staged, modified and untracked changes.
    fn in_a_repository(steps: &[Value]) -> Stage {
        let stage = Stage::with_script(steps);
        stage.world.write("project/code.txt", "committed\n");
        stage.world.write("project/.gitignore", "*.log\n");
        stage.git(&["init", "--quiet", "--initial-branch=main"]);
        stage.git(&["add", "."]);
        stage.git(&["commit", "--quiet", "-m", "first"]);
        stage.world.write("project/code.txt", "staged\n");
        stage.git(&["add", "."]);
        stage.world.write("project/code.txt", "mine\n");
        stage.world.write("project/notes.txt", "mine\n");
        stage
    }

    #[track_caller]
    fn git(&self, args: &[&str]) -> String {
        let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
        let run = self.world.run_as(&PathBuf::from("/usr/bin/git"), [&identity, args].concat());
        assert_eq!(run.exit, Some(0), "{run:?}");
        run.stdout
    }

    fn run_json(&self, args: &[&str]) -> Value {
        let run = self.world.run(args);
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
    }

    fn exec(&self, more: &[&str]) -> String {
        let response = self.run_json(&[&["local", "exec", "do it"], more].concat());
        response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned()
    }

    /// Runs a writing task to its end and returns its id.
    fn run_writing_task(&self) -> String {
        let id = self.exec(&["--mode", "workspace-write"]);
        self.run_json(&["local", "wait", &id]);
        id
    }

    fn read(&self, path: &str) -> String {
        read_text(&self.world.project().join(path))
    }

    fn exists(&self, path: &str) -> bool {
        self.world.project().join(path).exists()
    }

    fn wait_for_file(&self, path: &str) {
        while !self.exists(path) {
            std::thread::yield_now();
        }
    }
}

/// Steps of an agent that overwrites, adds and deletes files.
fn careless_steps() -> Vec<Value> {
    vec![
        json!({"write_file": {"path": "code.txt", "text": "agent\n"}}),
        json!({"write_file": {"path": "added/file.txt", "text": "agent\n"}}),
        json!({"delete_file": "notes.txt"}),
        json!({"write_file": {"path": "run.log", "text": "agent\n"}}),
    ]
}

#[test]
fn a_writing_task_can_be_restored_and_the_restore_undone() {
    let stage = Stage::in_a_repository(&careless_steps());
    let (status, head) = (stage.git(&["status", "--porcelain"]), stage.git(&["rev-parse", "HEAD"]));
    let id = stage.run_writing_task();
    assert_eq!(stage.read("code.txt"), "agent\n");
    let results = stage.run_json(&["local", "results", &id]);
    let point = &results["data"]["restore_point"];
    assert_eq!(point["ref"], format!("refs/mcp-delegator/{id}"), "{results}");
    assert_eq!(
        (&point["head"], &point["branch"], &point["is_dirty"], &point["left_out"]),
        (&json!(head.trim()), &json!("refs/heads/main"), &json!(true), &json!([]))
    );
    let command = format!("mcp-delegator restore {id} --dry-run");
    assert_eq!(point["restore_command"], command);
    for (format, command) in [("markdown", &command), ("human", &format!("mcp-delegator undo {id}"))] {
        let shown = stage.world.run(["local", "results", &id, "--format", format]).stdout;
        assert!(shown.contains(command) && !shown.contains("--confirm-destructive"), "{shown}");
    }
    let dry = stage.run_json(&["restore", &id, "--dry-run"]);
    assert_eq!(dry["data"]["written"], json!(["code.txt", "notes.txt"]), "{dry}");
    assert_eq!(
        (&dry["data"]["removed"], &dry["data"]["is_restored"]),
        (&json!(["added/file.txt"]), &json!(false))
    );
    assert_eq!(stage.read("code.txt"), "agent\n");
    let done = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!((&done["ok"], &done["data"]["is_restored"]), (&json!(true), &json!(true)), "{done}");
    assert_eq!(stage.git(&["status", "--porcelain"]), status);
    assert_eq!((stage.read("code.txt"), stage.read("notes.txt")), ("mine\n".into(), "mine\n".into()));
    assert!(!stage.exists("added") && stage.exists("run.log"));
    let again = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(
        (&again["data"]["is_restored"], &again["data"]["undo_point"]),
        (&json!(false), &json!(null)),
        "{again}"
    );
    let undone = stage.run_json(&["restore", &id, "--confirm-destructive", "--undo"]);
    assert_eq!(undone["ok"], true, "{undone}");
    assert_eq!((stage.read("code.txt"), stage.exists("notes.txt")), ("agent\n".into(), false));
}

#[test]
fn undo_shows_its_plan_asks_and_reverts_itself() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    let code = || stage.read("code.txt");
    let piped = stage.world.run(["undo", &id]);
    assert_eq!(piped.json()["error"]["code"], "CONFIRMATION_REQUIRED", "{piped:?}");
    let answered = |answer: &str| {
        let mut session = TerminalSession::start_interactive(stage.world.command(["undo", &id]));
        session.wait_for_text("[y/N]");
        session.type_text(answer);
        session.wait()
    };
    let refused = answered("n\n");
    assert_eq!((refused.exit, code().as_str()), (Some(2), "agent\n"), "{refused:?}");
    for change in ["restore code.txt", "restore notes.txt", "remove added/file.txt"] {
        assert!(refused.stdout.contains(change), "{refused:?}");
    }
    let agreed = answered("y\n");
    assert_eq!((agreed.exit, code().as_str()), (Some(0), "mine\n"), "{agreed:?}");
    assert!(!stage.exists("added"), "{agreed:?}");
    let planned = stage.run_json(&["undo", &id, "--dry-run"]);
    assert_eq!(planned["data"]["written"], json!(["added/file.txt", "code.txt"]), "{planned}");
    for expected in ["agent\n", "mine\n", "agent\n"] {
        let undone = stage.run_json(&["undo", &id, "-y"]);
        assert_eq!((&undone["data"]["is_restored"], code().as_str()), (&json!(true), expected), "{undone}");
    }
}

#[test]
fn a_missing_consent_is_asked_for_on_a_terminal() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    let mut session = TerminalSession::start_interactive(stage.world.command(["restore", &id]));
    session.wait_for_text("files in the work tree are overwritten and removed. Go on? [y/N]");
    session.type_text("y\n");
    let restored = session.wait();
    assert_eq!((restored.exit, stage.read("code.txt").as_str()), (Some(0), "mine\n"), "{restored:?}");
    let other_problem =
        TerminalSession::start_interactive(stage.world.command(["restore", &id, "--undo", "--drop"]));
    let other_problem = other_problem.wait();
    assert!(!other_problem.stdout.contains("Go on?"), "it is wrong in another way, too: {other_problem:?}");
}

#[test]
fn later_work_of_the_user_survives_a_restore() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    stage.world.write("project/later.txt", "the user's\n");
    stage.world.write("project/.gitignore", "*.log\n*.tmp\n");
    let dry = stage.world.run(["restore", &id, "--dry-run", "--format", "human"]);
    assert!(dry.stdout.contains("later.txt") && dry.stdout.contains("changed after the task"), "{dry:?}");
    assert!(dry.stdout.contains("give --confirm-destructive"), "{dry:?}");
    let done = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(done["data"]["written"], json!(["code.txt", "notes.txt"]), "{done}");
    assert_eq!(done["warnings"], json!([]), "{done}");
    let later = |path: &str| json!({"path": path, "reason": "changed after the task"});
    assert_eq!(done["data"]["kept"], json!([later(".gitignore"), later("later.txt")]), "{done}");
    assert_eq!((stage.read("code.txt"), stage.read("later.txt")), ("mine\n".into(), "the user's\n".into()));
    let undo = format!("mcp-delegator restore {id} --dry-run --undo");
    assert_eq!(done["data"]["undo_command"], undo, "{done}");
    stage.world.write("project/after.txt", "the user's\n");
    let undone = stage.run_json(&["restore", &id, "--undo", "--confirm-destructive"]);
    let after = json!([{"path": "after.txt", "reason": "changed after the restore"}]);
    assert_eq!(undone["data"]["kept"], after, "{undone}");
    assert_eq!((stage.read("code.txt"), stage.read("later.txt")), ("agent\n".into(), "the user's\n".into()));
    stage.run_json(&["restore", &id, "--undo", "--all", "--confirm-destructive"]);
    assert_eq!((stage.read("code.txt"), stage.exists("after.txt")), ("mine\n".into(), true));
    stage.run_json(&["restore", &id, "--all", "--confirm-destructive"]);
    assert_eq!((stage.read("code.txt"), stage.exists("later.txt")), ("mine\n".into(), false));
}

#[test]
fn overlapping_edits_refuse_a_restore_and_are_named() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    stage.world.write("project/code.txt", "edited later\n");
    stage.world.write("project/added/file.txt", "edited later\n");
    for args in [["restore", &id, "--dry-run"], ["restore", &id, "--confirm-destructive"]] {
        let refused = stage.world.run(args);
        assert_eq!(refused.exit, Some(4), "{refused:?}");
        let (error, meta) = (refused.json()["error"].clone(), refused.json()["meta"].clone());
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("project/code.txt") && message.contains("added/file.txt"), "{error}");
        assert!(!message.contains("notes.txt"), "{error}");
        let overlap = |path: &str| json!({"path": stage.world.project().join(path), "part": "file"});
        let overlaps = json!([overlap("added/file.txt"), overlap("code.txt")]);
        assert_eq!(meta["error_context"]["overlaps"], overlaps, "{meta}");
        assert!(error["suggestion"].as_str().unwrap().contains("--all"), "{error}");
    }
    assert!(!stage.exists("notes.txt"), "nothing was restored");
    assert_eq!(stage.read("code.txt"), "edited later\n");
}

#[test]
fn flags_of_restore_that_contradict_each_other_are_refused() {
    let stage = Stage::in_a_repository(&[]);
    let id = stage.run_writing_task();
    for flags in [["--undo", "--drop"], ["--all", "--drop"]] {
        let refused = stage.world.run([&["restore", &id, "--dry-run"], &flags[..]].concat());
        assert_eq!(refused.json()["error"]["code"], "INVALID_VALUE", "{refused:?}");
    }
}

#[test]
fn a_restore_removes_commits_only_with_force() {
    let commit = "git -c user.name=a -c user.email=a@localhost commit --quiet -am agent";
    let stage = Stage::in_a_repository(&[
        json!({"write_file": {"path": "code.txt", "text": "agent\n"}}),
        json!({"command": {"run": commit}}),
    ]);
    let before = stage.git(&["rev-parse", "HEAD"]);
    let id = stage.run_writing_task();
    let agents = stage.git(&["rev-parse", "HEAD"]);
    assert_ne!(before, agents);
    let restored = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(
        (&restored["data"]["has_head_moved"], &restored["data"]["is_head_restored"]),
        (&json!(true), &json!(false))
    );
    assert!(restored["warnings"].to_string().contains("--force"), "{restored}");
    assert_eq!(
        (stage.read("code.txt"), stage.git(&["rev-parse", "HEAD"])),
        ("mine\n".into(), agents.clone())
    );
    let forced = stage.run_json(&["restore", &id, "--confirm-destructive", "--force"]);
    assert_eq!(forced["data"]["is_head_restored"], true, "{forced}");
    assert_eq!(stage.git(&["rev-parse", "HEAD"]), before);
    let undo = forced["data"]["undo_point"].as_str().unwrap();
    assert_eq!(stage.git(&["rev-parse", undo]), agents);
}

#[test]
fn a_restore_needs_confirmation_and_no_running_writer() {
    let stage = Stage::in_a_repository(&[
        json!({"write_file": {"path": "code.txt", "text": "agent\n"}}),
        json!({"wait_for_file": "go.log"}),
    ]);
    stage.world.write("project/go.log", "");
    let id = stage.run_writing_task();
    let unconfirmed = stage.world.run(["restore", &id]);
    assert_eq!(
        (unconfirmed.exit, &unconfirmed.json()["error"]["code"]),
        (Some(2), &json!("CONFIRMATION_REQUIRED"))
    );
    std::fs::remove_file(stage.world.project().join("go.log")).unwrap();
    stage.world.write("project/code.txt", "later\n");
    let running = stage.exec(&["--mode", "workspace-write"]);
    let refused = stage.world.run(["restore", &id, "--confirm-destructive"]);
    assert_eq!(
        (refused.exit, &refused.json()["error"]["code"]),
        (Some(4), &json!("WRONG_STATE")),
        "{refused:?}"
    );
    assert!(refused.json()["error"]["message"].as_str().unwrap().contains(&running), "{refused:?}");
    stage.world.write("project/go.log", "");
    stage.run_json(&["local", "wait", &running]);
    assert_eq!(stage.world.run(["restore", &id, "--confirm-destructive"]).exit, Some(0));
    assert_eq!(stage.read("code.txt"), "mine\n");
}

#[test]
fn read_only_tasks_and_directories_outside_git_have_no_restore_point() {
    let stage = Stage::in_a_repository(&[]);
    let id = stage.exec(&[]);
    assert!(stage.run_json(&["local", "wait", &id])["data"].get("restore_point").is_none());
    let none = stage.world.run(["restore", &id, "--dry-run"]);
    assert_eq!((none.exit, &none.json()["error"]["code"]), (Some(5), &json!("NOT_FOUND")), "{none:?}");
    assert_eq!(stage.git(&["for-each-ref", "refs/mcp-delegator"]), "");
    let stage = Stage::with_script(&careless_steps()[..2]);
    let id = stage.run_writing_task();
    let results = stage.run_json(&["local", "results", &id]);
    assert_eq!(results["data"]["state"], "completed", "{results}");
    let warnings = results["warnings"].as_array().unwrap();
    assert!(!warnings.iter().any(|warning| warning.as_str().unwrap().starts_with("W_GIT")), "{results}");
}

#[test]
fn a_lost_supervisor_leaves_a_usable_restore_point() {
    let mut steps = careless_steps();
    steps.extend([json!({"touch_file": "ready.log"}), json!("silent")]);
    let stage = Stage::in_a_repository(&steps);
    let id = stage.exec(&["--mode", "workspace-write"]);
    stage.wait_for_file("ready.log");
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let mut pids = processes.filter_map(|entry| entry.file_name().to_string_lossy().parse::<i32>().ok());
    let supervisor = pids.find(|pid| {
        let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).contains(&format!("supervise\0{id}"))
    });
    kill_process(Pid::from_raw(supervisor.unwrap()).unwrap(), Signal::KILL).unwrap();
    let data = stage.run_json(&["local", "wait", &id])["data"].clone();
    assert_eq!(data["metadata"]["error_context"]["failure_kind"], "supervisor_lost", "{data}");
    assert_eq!(data["restore_point"]["ref"], format!("refs/mcp-delegator/{id}"), "{data}");
    // Without the state after the task, its changes cannot be distinguished from later ones.
    let refused = stage.world.run(["restore", &id, "--confirm-destructive"]);
    let error = refused.json()["error"].clone();
    assert_eq!(error["code"], "WRONG_STATE", "{refused:?}");
    assert!(error["suggestion"].as_str().unwrap().contains("--all"), "{error}");
    assert_eq!(stage.read("code.txt"), "agent\n");
    assert_eq!(stage.run_json(&["restore", &id, "--all", "--confirm-destructive"])["ok"], true);
    assert_eq!(stage.read("code.txt"), "mine\n");
}

/// An engine on the stage's state directory.
fn engine(stage: &Stage) -> delegator_engine::Engine {
    delegator_engine::Engine::new(stage.world.home().join("state"), "/nowhere")
}

#[test]
fn dropping_restore_points_removes_their_refs() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(stage.git(&["for-each-ref", "refs/mcp-delegator"]).lines().count(), 2);
    let drop = ["restore", &id, "--drop", "--confirm-destructive"];
    let dropped = stage.run_json(&drop);
    assert_eq!(dropped["data"]["dropped"].as_array().unwrap().len(), 2, "{dropped}");
    assert_eq!(stage.git(&["for-each-ref", "refs/mcp-delegator"]), "");
    let nothing = stage.run_json(&drop);
    assert_eq!((&nothing["ok"], &nothing["data"]), (&json!(false), &Value::Null), "{nothing}");
}

/// Removes a task and its directory from the registry, as cleanup does.
fn remove_from_registry(stage: &Stage, id: &str) {
    use delegator_registry::{OpenOptions, Registry, StateDir};
    let dir = StateDir::open(&stage.world.home().join("state"), &OpenOptions::default()).unwrap();
    let mut registry = Registry::open(&dir).unwrap();
    registry.prune(&[id.parse().unwrap()]).unwrap();
    registry.finish_pruning().unwrap();
}

#[test]
fn a_restore_works_after_the_task_left_the_registry() {
    let stage = Stage::in_a_repository(&careless_steps());
    let status = stage.git(&["status", "--porcelain"]);
    let id = stage.run_writing_task();
    remove_from_registry(&stage, &id);
    assert_eq!(stage.world.run(["local", "results", &id]).exit, Some(5), "the task is still in the registry");
    let listed = stage.run_json(&["restore", "--list"]);
    let points = listed["data"]["restore_points"].as_array().unwrap();
    assert_eq!((points.len(), &points[0]["task_id"]), (1, &json!(id)), "{listed}");
    assert!(points[0]["bytes"].as_u64().unwrap() > 0 && points[0]["created_at"].is_string(), "{listed}");
    let done = stage.run_json(&["restore", &id, "--confirm-destructive"]);
    assert_eq!(done["data"]["is_restored"], true, "{done}");
    assert_eq!((stage.git(&["status", "--porcelain"]), stage.read("code.txt")), (status, "mine\n".into()));
    let undone = stage.run_json(&["restore", &id, "--confirm-destructive", "--undo"]);
    assert_eq!(undone["data"]["is_restored"], true, "{undone}");
    assert_eq!(stage.read("code.txt"), "agent\n");
    // From another directory the repository must be named.
    let project = stage.world.project().display().to_string();
    let home = stage.world.home().display().to_string();
    let elsewhere = stage.world.run(["restore", &id, "--dry-run", "--working-dir", &home]);
    assert_eq!(elsewhere.json()["error"]["code"], "NOT_FOUND", "{elsewhere:?}");
    assert!(elsewhere.json()["error"]["suggestion"].as_str().unwrap().contains("--working-dir"));
    let named = stage.run_json(&["restore", &id, "--confirm-destructive", "--working-dir", &project]);
    assert_eq!(named["data"]["is_restored"], true, "{named}");
}

#[test]
fn a_restore_of_a_cleaned_task_works_from_any_directory() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    let cleaning = delegator_engine::CleanRequest {
        stuck_after_ms: 1 << 40,
        old_after_ms: -1000,
        dry_run: false,
        include_restore_points: false,
        trust_clock: true,
        environment: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
    };
    assert_eq!(clean(&engine(&stage), &cleaning).unwrap().old.len(), 1);
    assert_eq!(stage.world.run(["local", "results", &id]).exit, Some(5), "the task is still in the registry");
    let home = stage.world.home().display().to_string();
    let elsewhere = ["--confirm-destructive", "--working-dir", &home];
    let done = stage.run_json(&[&["restore", &id], &elsewhere[..]].concat());
    assert_eq!(
        (&done["data"]["is_restored"], stage.read("code.txt")),
        (&json!(true), "mine\n".into()),
        "{done}"
    );
    let dropped = stage.run_json(&[&["restore", &id, "--drop"], &elsewhere[..]].concat());
    assert_eq!(dropped["data"]["dropped"].as_array().unwrap().len(), 2, "{dropped}");
    assert_eq!(stage.git(&["for-each-ref", "refs/mcp-delegator"]), "");
    assert_eq!(stage.world.run(["restore", &id, "--dry-run"]).exit, Some(5));
}

#[test]
fn dropping_a_restore_point_needs_confirmation_and_deletes_its_objects() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    assert_eq!(stage.world.run(["restore", &id, "--drop"]).exit, Some(2));
    let dry = stage.run_json(&["restore", &id, "--drop", "--dry-run"]);
    let points = dry["data"]["dropped"].as_array().unwrap();
    assert_eq!((points.len(), &points[0]["is_only_copy"]), (1, &json!(true)), "{dry}");
    let dropped = stage.run_json(&["restore", &id, "--drop", "--confirm-destructive"]);
    assert_eq!(dropped["data"]["dropped"].as_array().unwrap().len(), 1, "{dropped}");
    assert_eq!(stage.git(&["for-each-ref", "refs/mcp-delegator"]), "");
    let store = stage.world.project().join(".git/mcp-delegator/objects/pack");
    assert_eq!(std::fs::read_dir(store).unwrap().count(), 0, "objects of the restore point are left");
    let none = stage.world.run(["restore", &id, "--dry-run"]);
    assert_eq!((none.exit, &none.json()["error"]["code"]), (Some(5), &json!("NOT_FOUND")), "{none:?}");
    assert_eq!(stage.run_json(&["local", "results", &id])["ok"], true);
}

#[test]
fn every_work_tree_of_a_task_is_restored() {
    let stage = Stage::in_a_repository(&[]);
    stage.git(&["worktree", "add", "--quiet", "-b", "side", "../side"]);
    let (main, side) = (stage.world.project(), stage.world.project().with_file_name("side"));
    std::fs::write(side.join("code.txt"), "mine, too\n").unwrap();
    // A task with two work trees of which only the refs are left.
    let id = "T-local-0123456789".to_owned();
    let git = delegator_git::Git::new("/usr/bin/git".into(), [], std::time::Duration::from_secs(60));
    let scratch_dir = stage.world.home().to_owned();
    for (dir, name) in [(&main, id.clone()), (&side, format!("{id}.2"))] {
        let (reference, limits) = (format!("refs/mcp-delegator/{name}"), delegator_git::Limits::default());
        delegator_git::create_restore_point(&git, dir, &scratch_dir, &reference, limits).unwrap().unwrap();
        std::fs::write(dir.join("code.txt"), "agent\n").unwrap();
    }
    let side_text = || read_text(&side.join("code.txt"));
    // Everything is checked before anything is changed.
    let lock = main.join(".git/worktrees/side/index.lock");
    std::fs::write(&lock, "").unwrap();
    let refused = stage.world.run(["restore", &id, "--all", "--confirm-destructive"]);
    assert_eq!(refused.json()["error"]["code"], "LOCK_HELD", "{refused:?}");
    assert_eq!((stage.read("code.txt"), side_text()), ("agent\n".into(), "agent\n".into()));
    std::fs::remove_file(&lock).unwrap();
    let done = stage.run_json(&["restore", &id, "--all", "--confirm-destructive"]);
    let data = &done["data"];
    assert_eq!((&data["written"], &data["is_restored"]), (&json!(["code.txt"]), &json!(true)), "{done}");
    assert_eq!(data["other_work_trees"][0]["written"], json!(["code.txt"]), "{done}");
    assert_eq!((stage.read("code.txt"), side_text()), ("mine\n".into(), "mine, too\n".into()));
    stage.run_json(&["restore", &id, "--confirm-destructive", "--undo"]);
    assert_eq!((stage.read("code.txt"), side_text()), ("agent\n".into(), "agent\n".into()));
    // A missing work tree does not prevent the restore of the others.
    stage.git(&["worktree", "remove", "--force", "../side"]);
    let plan = stage.world.run(["restore", &id, "--all", "--dry-run", "--format", "human"]);
    for text in ["Files that would be restored:\n\n", "index would be restored", "head would be restored"] {
        assert!(plan.stdout.contains(text), "{text}: {plan:?}");
    }
    assert_eq!((plan.exit, stage.read("code.txt")), (Some(3), "agent\n".into()), "{plan:?}");
    let run = stage.world.run(["restore", &id, "--all", "--confirm-destructive"]);
    assert_eq!(run.exit, Some(3), "{run:?}");
    let rest = run.json();
    let data = &rest["meta"]["failure_data"];
    assert_eq!((data["is_restored"].as_bool(), stage.read("code.txt")), (Some(true), "mine\n".into()));
    let unavailable = &data["unavailable_work_trees"][0]["work_tree"];
    assert_eq!(unavailable, &json!(side.display().to_string()), "{rest}");
    assert_eq!((&data["successful"], &data["failed"]), (&json!(1), &json!(1)), "{rest}");
    let failed = &data["results"][1];
    assert_eq!((&failed["target"], &failed["error"]["code"]), (unavailable, &json!("NOT_FOUND")), "{rest}");
    assert!(rest["warnings"].to_string().contains("W_RESTORE_007"), "{rest}");
}

#[test]
fn every_restore_response_matches_its_schema() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    for envelope in ["tool", "standard", "agent"] {
        for args in [
            vec!["local", "wait", &id],
            vec!["local", "results", &id],
            vec!["restore", &id, "--dry-run"],
            vec!["restore", &id, "--all", "--dry-run"],
            vec!["restore", &id, "--confirm-destructive"],
            vec!["restore", &id, "--confirm-destructive", "--undo"],
            vec!["restore", &id, "--drop", "--dry-run"],
            vec!["restore", "--list"],
        ] {
            // A debug build panics on an envelope that violates its schema.
            let run = stage.world.run([args.as_slice(), &["--envelope", envelope]].concat());
            assert_eq!(run.exit, Some(0), "{args:?}: {run:?}");
        }
    }
}

#[test]
fn the_action_of_the_standard_envelope_states_what_restore_did() {
    let stage = Stage::in_a_repository(&careless_steps());
    let id = stage.run_writing_task();
    let confirm = "--confirm-destructive";
    let data = |args: &[&str]| {
        let run = stage.world.run([args, &["--envelope", "standard"]].concat());
        let envelope: Value = serde_json::from_str(&run.stdout).unwrap();
        envelope["data"].clone()
    };
    for (more, action) in [
        (&["--dry-run"][..], "restore_planned"),
        (&[confirm], "tree_restored"),
        (&[confirm], "nothing_to_restore"),
        (&["--undo", "--dry-run"], "restore_planned"),
        (&["--drop", "--dry-run"], "deletion_planned"),
    ] {
        assert_eq!(data(&[&["restore", id.as_str()], more].concat())["action"], action, "{more:?}");
    }
    let listed = data(&["restore", "--list"]);
    let points = listed["restore_points"].as_array().unwrap();
    assert_eq!(
        (listed["total_count"].as_u64(), &listed["action"]),
        (Some(points.len() as u64), &Value::Null)
    );
    assert_eq!(data(&["restore", &id, "--drop", confirm])["action"], "restore_points_deleted");
}

#[test]
fn a_task_that_rewrites_history_is_refused() {
    let stage = Stage::in_a_repository(&[]);
    let exec = |task: &str, more: &[&str]| {
        let run = stage.world.run([&["local", "exec", task], more].concat());
        (run.exit.unwrap(), run.json())
    };
    let writing = ["--mode", "workspace-write"];
    let (exit, envelope) = exec("Fix it, then run `git push --force`.", &writing);
    assert_eq!((exit, &envelope["error"]["code"]), (7, &json!("POLICY_BLOCKED")), "{envelope}");
    let message = envelope["error"]["message"].as_str().unwrap();
    assert!(message.contains("git push --force") && message.contains("at character 18"), "{message}");
    assert!(
        envelope["error"]["suggestion"].as_str().unwrap().contains("--allow-destructive-git"),
        "{envelope}"
    );
    let problem = &envelope["meta"]["error_context"]["problems"][0];
    assert_eq!(
        (&problem["found"], &problem["position"]),
        (&json!("git push --force"), &json!(18)),
        "{envelope}"
    );
    assert_eq!(stage.run_json(&["local", "status"])["data"]["summary"]["running"], 0);
    assert!(!stage.world.home().join("state/tasks").exists(), "a task was submitted");
    let run = stage.world.run(["local", "run", "hard reset to v1", "--mode", "workspace-write", "--confirm"]);
    assert_eq!(run.exit, Some(7), "{run:?}");
    let resume =
        ["local", "resume", "git reset --hard", "--thread-id", "0199a213-81c0-7800-8aa1-bbab2a035a53"];
    assert_eq!(stage.world.run([resume.as_slice(), &writing].concat()).exit, Some(7));
    assert_eq!(exec("git push --force", &[]).0, 0, "a read-only task is not refused");
    assert_eq!(stage.world.run(["local", "run", "git push --force", "--mode", "preview"]).exit, Some(0));
    assert_eq!(exec("Fix it, but do not force-push", &writing).0, 0);
    assert_eq!(exec("git push --force", &["--mode", "workspace-write", "--allow-destructive-git"]).0, 0);
}
