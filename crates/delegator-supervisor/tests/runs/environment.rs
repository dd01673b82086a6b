//! The environment of an agent: variables, directory, umask, niceness and stdin.

use std::os::unix::fs::PermissionsExt;

use crate::world::World;

#[test]
fn agent_sees_exactly_the_given_environment() {
    let world = World::new();
    let mut case = world.case("");
    // No shell: it would add variables of its own.
    case.program = "/usr/bin/env".into();
    case.args = Vec::new();
    world.run(&case);
    let output = world.read("events.jsonl");
    let mut variables: Vec<&str> = output.lines().collect();
    variables.sort_unstable();
    let folder = format!("FOLDER={}", world.path("").display());
    let marker = format!("DELEGATOR_TASK={}:0", world.task);
    assert_eq!(
        variables,
        [marker.as_str(), folder.trim_end_matches('/'), "PATH=/usr/local/bin:/usr/bin:/bin"]
    );
}

#[test]
fn agent_starts_in_the_checked_directory_even_if_renamed() {
    let world = World::new();
    let mut case = world.case("pwd > $FOLDER/pwd; touch made; begin; end");
    // Replaced by another directory after validation.
    case.rename_workdir = Some("moved".to_owned());
    assert_eq!(world.run(&case)["state"], "completed");
    assert!(world.path("moved/made").exists() && !world.path("work/made").exists());
    assert_eq!(world.read("pwd").trim(), world.path("moved").canonicalize().unwrap().to_str().unwrap());
}

#[test]
fn agent_gets_the_submitters_umask_and_our_files_stay_private() {
    let world = World::new();
    let mut case = world.case("touch $FOLDER/made; begin; end");
    case.umask = 0o002;
    assert_eq!(world.run(&case)["state"], "completed");
    let mode = |name: &str| std::fs::metadata(world.path(name)).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode("made"), 0o664);
    assert_eq!((mode("events.jsonl"), mode("stderr.log")), (0o600, 0o600));
}

#[test]
fn agent_niceness_is_applied_and_never_below_ours() {
    let ours = rustix::process::getpriority_process(None).unwrap();
    for (niceness, expected) in [(0, ours), (19, 19)] {
        let world = World::new();
        let mut case = world.case("nice > $FOLDER/nice; begin; end");
        case.niceness = niceness;
        assert_eq!(world.run(&case)["state"], "completed");
        assert_eq!(world.read("nice").trim(), expected.to_string());
    }
}

#[test]
fn the_supervisor_of_a_nice_agent_has_normal_priority() {
    let ours = rustix::process::getpriority_process(None).unwrap();
    let world = World::new();
    // The shell is the agent, and its parent the supervisor.
    let mut case = world.case("cut -d' ' -f19 /proc/$PPID/stat > $FOLDER/nice; begin; end");
    case.niceness = 19;
    assert_eq!(world.run(&case)["state"], "completed");
    assert_eq!(world.read("nice").trim(), ours.to_string());
}

#[test]
fn long_task_text_arrives_unchanged() {
    let world = World::new();
    let mut case = world.case("cat > $FOLDER/received; begin; end");
    case.stdin = "😀".repeat(100_000);
    let end = world.run(&case);
    assert_eq!(end["state"], "completed", "{end}");
    assert_eq!(world.read("received"), case.stdin);
}

#[test]
fn agents_may_ignore_stdin() {
    let world = World::new();
    let text = "x".repeat(400_000);
    let scripts = [
        "begin; item 0 unread; end",
        "dd bs=1 count=1 >/dev/null 2>&1; exec <&-; begin; item 0 closed; sleep 0.2; end",
        // It writes more than a pipe holds before it reads: neither side may block on the other.
        "begin; head -c 300000 /dev/zero | tr '\\0' ' '; echo; cat > /dev/null; end",
    ];
    let mut cases: Vec<_> = scripts.iter().map(|script| world.case(script)).collect();
    for case in &mut cases {
        case.stdin.clone_from(&text);
    }
    let all = world.start(&cases).wait_for_results();
    for end in all["ends"].as_array().unwrap() {
        assert_eq!(end["state"], "completed", "{end}");
    }
}
