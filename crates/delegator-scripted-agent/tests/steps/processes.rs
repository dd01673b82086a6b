//! Signals and child processes.

use std::os::unix::process::ExitStatusExt;

use serde_json::{Value, json};

use crate::agent::{
    KillOnDrop, Stage, is_alive, json_lines, run_steps, signal, stat, stderr_text, wait_until,
};

#[test]
fn every_deadly_signal_kills() {
    let names = "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT - - - - - - - XCPU XFSZ \
                 VTALRM PROF - IO PWR SYS";
    for (number, name) in (1..).zip(names.split(' ')).filter(|(_, name)| *name != "-") {
        let output = run_steps(json!([{"line": "1"}, {"raise": name}, {"line": "2"}]));
        assert_eq!(
            (output.stdout.as_slice(), output.status.signal()),
            (b"1\n".as_slice(), Some(number)),
            "{name}"
        );
    }
}

#[test]
fn a_harmless_signal_does_not_kill() {
    for name in ["CHLD", "CONT", "URG", "SIGWINCH"] {
        assert_eq!(run_steps(json!([{"raise": name}, {"exit": 9}])).status.code(), Some(9), "{name}");
    }
}

#[test]
fn an_agent_can_stop_itself_and_go_on() {
    let stage = Stage::with(json!([{"raise": "STOP"}, {"exit": 9}]));
    let mut child = stage.start();
    wait_until("the stop", || stat(child.id(), 0).as_deref() == Some("T"));
    signal(child.id(), "CONT");
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

#[test]
fn trapped_signals_are_ignored_and_logged() {
    let stage = Stage::with(json!([
        {"trap": {"signals": ["INT", "SIGTERM"], "log": "log"}}, {"touch_file": "ready"}, "silent",
    ]));
    let mut child = stage.start();
    wait_until("the trap", || stage.path("ready").exists());
    let log = || std::fs::read_to_string(stage.path("log")).unwrap_or_default();
    for (count, name) in ["INT", "TERM", "INT"].into_iter().enumerate() {
        signal(child.id(), name);
        wait_until(name, || log().lines().count() == count + 1);
    }
    let log = log();
    let names: Vec<&str> = log.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!(names, ["INT", "TERM", "INT"]);
    assert!(child.try_wait().unwrap().is_none());
    signal(child.id(), "KILL");
    assert_eq!(child.wait().unwrap().signal(), Some(9));
}

#[test]
fn an_agent_can_end_on_a_signal() {
    let stage = Stage::with(json!([
        {"trap": {"signals": ["INT"], "exit": 1, "exit_after_ms": 20}}, {"touch_file": "ready"}, "silent",
    ]));
    let mut child = stage.start();
    wait_until("the trap", || stage.path("ready").exists());
    signal(child.id(), "INT");
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_signal_that_cannot_be_trapped_is_an_error() {
    let output = run_steps(json!([{"trap": {"signals": ["KILL"]}}]));
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr_text(&output).contains("SIGKILL cannot be caught"), "{}", stderr_text(&output));
}

#[test]
fn a_trapped_signal_can_still_kill() {
    let output = run_steps(json!([{"trap": {"signals": ["TERM"]}}, {"raise": "TERM"}]));
    assert_eq!(output.status.signal(), Some(15));
}

/// Runs a script that starts a child with these settings; the agent continues until `go` exists.
fn child_of(settings: &Value) -> (Stage, std::process::Child, KillOnDrop) {
    let mut settings = settings.clone();
    settings["pid_file"] = json!("pid");
    let stage = Stage::with(json!([{"child": settings}, {"touch_file": "ready"}, {"wait_for_file": "go"}]));
    let agent = stage.start();
    wait_until("the child", || stage.path("ready").exists());
    let pid = KillOnDrop(stage.pid_in("pid"));
    assert!(is_alive(pid.0), "{settings}");
    (stage, agent, pid)
}

#[test]
fn children_get_the_requested_parent_group_and_session() {
    for (session, orphan) in
        [("same", false), ("same", true), ("own_group", false), ("own", false), ("own", true)]
    {
        let (stage, mut agent, child) = child_of(&json!({"session": session, "orphan": orphan}));
        let of_agent = |field: usize| stat(agent.id(), field);
        let of_child = |field: usize| stat(child.0, field);
        assert_eq!(of_child(1) == Some(agent.id().to_string()), !orphan, "parent: {session} {orphan}");
        assert_eq!(of_child(2) == of_agent(2), session == "same", "group: {session} {orphan}");
        assert_eq!(of_child(3) == of_agent(3), session != "own", "session: {session} {orphan}");
        std::fs::write(stage.path("go"), "").unwrap();
        assert!(agent.wait().unwrap().success());
        assert!(is_alive(child.0), "it outlives the agent: {session} {orphan}");
    }
}

#[test]
fn a_child_can_hold_the_output_open() {
    for hold in [false, true] {
        let (stage, mut agent, child) =
            child_of(&json!({"hold_output": hold, "orphan": true, "session": "own"}));
        std::fs::write(stage.path("go"), "").unwrap();
        agent.wait().unwrap();
        let mut stdout = agent.stdout.take().unwrap();
        let reader = std::thread::spawn(move || std::io::copy(&mut stdout, &mut std::io::sink()).unwrap());
        if hold {
            let held = std::fs::read_link(format!("/proc/{}/fd/1", child.0)).unwrap();
            assert!(held.to_string_lossy().starts_with("pipe:"), "{}", held.display());
            assert!(!reader.is_finished());
            signal(child.0, "KILL");
        }
        reader.join().unwrap();
    }
}

#[test]
fn a_child_can_start_without_variables() {
    for clear in [false, true] {
        let (_stage, mut agent, child) = child_of(&json!({"clear_env": clear}));
        let read = |file: &str| std::fs::read_to_string(format!("/proc/{}/{file}", child.0)).unwrap();
        // Until its program is loaded, a process has neither arguments nor variables.
        wait_until("its program", || !read("cmdline").is_empty());
        wait_until("its variables", || read("environ").contains("SCRIPTED_AGENT_SCRIPT=") != clear);
        agent.kill().unwrap();
        agent.wait().unwrap();
    }
}

#[test]
fn a_child_can_ignore_signals() {
    let (_stage, mut agent, child) = child_of(&json!({"ignore": ["INT", "TERM"], "session": "own"}));
    signal(child.0, "INT");
    signal(child.0, "TERM");
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.0)).unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let ignored = u64::from_str_radix(ignored.trim(), 16).unwrap();
    assert_eq!(ignored & 0x4002, 0x4002);
    assert!(is_alive(child.0));
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn a_child_can_spin_and_chatter() {
    let (_stage, mut agent, child) = child_of(&json!({"work": "spin"}));
    let ticks = || stat(child.0, 11).unwrap().parse::<u64>().unwrap();
    wait_until("CPU time", || ticks() > 5);
    agent.kill().unwrap();
    agent.wait().unwrap();
    let (_stage, mut agent, _child) = child_of(&json!({"work": "chatter", "hold_output": true}));
    let mut output = [0; 11];
    std::io::Read::read_exact(agent.stdout.as_mut().unwrap(), &mut output).unwrap();
    assert_eq!(&output, b"still here\n");
    agent.kill().unwrap();
    agent.wait().unwrap();
}

#[test]
fn a_tree_has_the_requested_number_of_processes() {
    let stage = Stage::with(json!([
        {"fork_tree": {"processes": 40, "width": 3, "seconds": 4242}}, {"line": "1"}, {"wait_for_file": "go"},
    ]));
    let agent = stage.start();
    let marker = format!("SCRIPTED_AGENT_SCRIPT={}", stage.path("script.json").display());
    let sleepers = || -> Vec<KillOnDrop> {
        let all = std::fs::read_dir("/proc").unwrap().flatten();
        let pids = all.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
        let of = |pid: u32, name: &str| std::fs::read(format!("/proc/{pid}/{name}")).unwrap_or_default();
        let ours = |pid: &u32| {
            of(*pid, "cmdline") == b"sleep\x004242\0"
                && String::from_utf8_lossy(&of(*pid, "environ")).contains(&marker)
        };
        pids.filter(ours).map(KillOnDrop).collect()
    };
    let mut found = Vec::new();
    wait_until("forty processes", || {
        let now = sleepers();
        let complete = now.len() == 40;
        // Processes of an incomplete tree must not be killed.
        if complete {
            found = now
        } else {
            now.into_iter().for_each(std::mem::forget)
        }
        complete
    });
    let parents: Vec<String> = found.iter().filter_map(|process| stat(process.0, 1)).collect();
    assert_eq!(parents.iter().filter(|parent| **parent == agent.id().to_string()).count(), 1);
    std::fs::write(stage.path("go"), "").unwrap();
    assert_eq!(json_lines(&agent.wait_with_output().unwrap()), [json!(1)]);
}
