//! Cancellation: exit, timeout and cancel at the same moment, and cancel in every state.

#![expect(clippy::disallowed_methods, reason = "races need exact timing")]

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use delegator_domain::task::{Mode, RunSettings, State, TaskId};
use delegator_engine::{Agent, Ending, Engine, EngineError, Limits, Nesting, Settings, Submission};
use delegator_testkit::stage::{Stage, successful_turn, task_processes, wait_until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{PROGRAM, Rng, registry, scripted_stage, terminal_states};

/// The engine on the stage's state directory; faster than the command line.
fn engine(stage: &Stage, max_concurrent: usize) -> Engine {
    Engine::new(stage.world.home().join("state"), PROGRAM).with_max_concurrent(max_concurrent)
}

fn wait(engine: &Engine, id: &TaskId) -> String {
    let deadline = Instant::now() + Duration::from_secs(60);
    let waited = engine.waits().for_task(id, Some(deadline), |_| {}).unwrap();
    assert!(!waited.expired, "{id} never ended");
    waited.task.state.name().to_owned()
}

/// A task as the CLI would submit it, for an agent that reads its instructions from stdin.
fn submission(stage: &Stage, text: &str) -> Submission {
    let plain = Settings::plain(Mode::ReadOnly, stage.world.project());
    let settings = Settings {
        run: RunSettings { skip_git_repo_check: true, ..plain.run },
        limits: Limits { idle_sec: 60, hard_sec: 1, only_output_counts: false },
        ending: Ending { interrupt_grace_sec: 1, terminate_grace_sec: 1 },
        max_stream_bytes: 1 << 20,
        max_processes: 64,
        ..plain
    };
    let program = stage.root().join("bin/codex");
    Submission {
        text: text.to_owned(),
        settings,
        agent: Agent::built_in(program, Some((0, 166, 0))),
        fallbacks: Vec::new(),
        skipped: Vec::new(),
        max_mode: Mode::ReadOnly,
        environment: [("PATH".into(), "/usr/bin:/bin".into())].into(),
        passed_variables: Vec::new(),
        secret_names: Vec::new(),
        umask: 0o022,
        title: text.to_owned(),
        labels: Default::default(),
        input: json!({}),
        allow_parallel_writes: true,
        nesting: Nesting { parent: None, max_depth: 0, max_children: 0 },
        idempotency: None,
        isolation: delegator_engine::Isolation::None,
        reviews: None,
        report_of: None,
        followers: Vec::new(),
    }
}

/// Reads a file name and a duration, creates the file, sleeps, and completes.
const TIMED_AGENT: &str = r#"read -r name seconds
echo '{"type":"thread.started","thread_id":"t"}'; echo '{"type":"turn.started"}'; : > "$name"
sleep "$seconds"
echo '{"type":"turn.completed","usage":{}}'"#;

/// Runs one task that exits, times out and is cancelled within a few milliseconds; returns its terminal state.
fn run_race(stage: &Stage, engine: &Engine, number: u64, chance: u64) -> String {
    // Every fourth task ends at its time limit; the others only race with the cancel.
    let works_ms = if number.is_multiple_of(4) { 992 + chance % 9 } else { 10 + chance % 9 };
    let name = format!("begun-{number}");
    let text = format!("{name} {}.{:03}", works_ms / 1000, works_ms % 1000);
    let id = engine.submissions().submit(submission(stage, &text)).unwrap().task.id;
    let start_file = stage.world.project().join(name);
    std::thread::scope(|scope| {
        let waiters = [(); 2].map(|()| scope.spawn(|| wait(engine, &id)));
        wait_until("the agent has started", || start_file.exists());
        // The start is observed up to 2 ms late, so the cancel comes between 2 ms after the end and 6 ms before it.
        std::thread::sleep(Duration::from_millis(works_ms.saturating_sub(chance / 9)));
        match engine.cancellations().cancel(&id, None, Duration::from_secs(30)) {
            Ok(cancelled) => {
                assert_eq!((cancelled.still_ending, cancelled.task.state), (false, State::Cancelled), "{id}")
            }
            Err(EngineError::AlreadyEnded { state, .. }) => assert_ne!(state, State::Cancelled, "{id}"),
            Err(error) => panic!("{id}: {error}"),
        }
        let state = wait(engine, &id);
        let agreed = waiters.map(|waiter| waiter.join().unwrap());
        assert_eq!(agreed, [state.clone(), state.clone()], "{id}");
        assert_eq!(terminal_states(stage, id.as_str()), [state.as_str()], "{id}");
        state
    })
}

#[test]
fn f10_exit_timeout_and_cancel_at_once_give_one_terminal_state() {
    const RACES: u64 = 200;
    const AT_ONCE: u64 = 20;
    let stage = Stage::with_shell_agent(PROGRAM, TIMED_AGENT);
    let engine = engine(&stage, AT_ONCE as usize);
    let ends = Mutex::new(BTreeMap::<String, u64>::new());
    std::thread::scope(|scope| {
        for lane in 0..AT_ONCE {
            let (stage, engine, ends) = (&stage, &engine, &ends);
            scope.spawn(move || {
                let mut rng = Rng(lane);
                for number in (lane..RACES).step_by(AT_ONCE as usize) {
                    let end = run_race(stage, engine, number, rng.below(81));
                    *ends.lock().unwrap().entry(end).or_default() += 1;
                }
            });
        }
    });
    let ends = ends.into_inner().unwrap();
    assert_eq!(ends.values().sum::<u64>(), RACES);
    assert!(ends.len() > 1, "one side always won, so nothing raced: {ends:?}");
    eprintln!("{ends:?}");
}

#[test]
fn f13_cancel_works_in_every_state_and_is_idempotent() {
    let stage = scripted_stage(successful_turn(&[json!({"touch_file": "ready"}), json!("silent")]))
        .variable("MCP_DELEGATOR_MAX_CONCURRENT", "1");
    let running = stage.exec(&[]);
    let queued = stage.exec(&[]);
    let cancel = |id: &str| stage.world.run(["local", "cancel", id]);
    let state =
        |response: &Value| (response["data"]["previous_state"].clone(), response["data"]["state"].clone());
    let expected = |previous: &str| (json!(previous), json!("cancelled"));
    // A queued task never starts.
    assert_eq!(state(&cancel(&queued).json()), expected("queued"));
    stage.wait_for_project_file("ready");
    assert_eq!(state(&cancel(&running).json()), expected("working"));
    for (id, state_before) in [(&queued, "queued"), (&running, "working")] {
        assert_eq!(
            state(&cancel(id).json()),
            expected(state_before),
            "a second cancel repeats the first response"
        );
        assert_eq!(terminal_states(&stage, id), ["cancelled"]);
    }
    let task = registry(&stage).get(&queued.parse().unwrap()).unwrap().unwrap();
    assert_eq!((task.started_at_ms, task.supervisor), (None, None), "it never started");
    // Cancelling a finished task changes nothing and is reported.
    stage.set_script(successful_turn(&[]));
    let completed = stage.exec(&[]);
    assert_eq!(stage.wait(&completed)["data"]["state"], "completed");
    let late = cancel(&completed);
    assert_eq!((late.exit, &late.json()["meta"]["error_context"]["state"]), (Some(4), &json!("completed")));
    assert_eq!(terminal_states(&stage, &completed), ["completed"]);
    let unknown = cancel("T-local-0000000000");
    assert_eq!((unknown.exit, &unknown.json()["error"]["code"]), (Some(5), &json!("TASK_NOT_FOUND")));
}

/// A stopped supervisor holds its lock and ends nothing.
#[test]
fn a_cancel_that_exceeds_its_time_limit_is_a_timeout() {
    let stage = scripted_stage(json!([{"read_stdin": "all"}, {"thread_started": {}}, "silent"]));
    let id = stage.exec(&[]);
    let supervisor = Pid::from_raw(stage.supervisor_pid(&id)).unwrap();
    kill_process(supervisor, Signal::STOP).unwrap();
    let run = stage.world.run(["local", "cancel", &id]);
    kill_process(supervisor, Signal::CONT).unwrap();
    let (error, context) = (run.json()["error"].clone(), run.json()["meta"]["error_context"].clone());
    assert_eq!((run.exit, &error["code"], &error["phase"]), (Some(10), &json!("TIMEOUT"), &json!("cleanup")));
    assert_eq!((&error["retryable"], &context["timeout_type"]), (&json!(false), &json!("wall")), "{run:?}");
    assert_eq!(run.json()["meta"]["failure_data"]["state"], "working", "{run:?}");
    assert!(error["suggestion"].as_str().unwrap().contains("mcp-delegator wait"), "{error}");
    assert_eq!(stage.wait(&id)["data"]["state"], "cancelled");
}

#[test]
fn f13_random_cancels_start_no_cancelled_task() {
    const TASKS: u64 = 50;
    const CANCELS: u64 = 500;
    let stage = Stage::with_shell_agent(PROGRAM, TIMED_AGENT);
    let engine = engine(&stage, 3);
    let ids: Vec<TaskId> = (0..TASKS)
        .map(|number| {
            engine.submissions().submit(submission(&stage, &format!("begun-{number} 30"))).unwrap().task.id
        })
        .collect();
    // Tasks whose cancel found them queued.
    let unstarted = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for lane in 0..8 {
            let (ids, engine, unstarted) = (&ids, &engine, &unstarted);
            scope.spawn(move || {
                let mut rng = Rng(100 + lane);
                for _ in 0..CANCELS / 8 {
                    let number = rng.below(TASKS);
                    let result = engine.cancellations().cancel(
                        &ids[usize::try_from(number).unwrap()],
                        None,
                        Duration::ZERO,
                    );
                    match result {
                        Ok(cancelled) if cancelled.previous == State::Queued => {
                            unstarted.lock().unwrap().insert(number);
                        }
                        // The time limit may have come first.
                        Ok(_) | Err(EngineError::AlreadyEnded { .. }) => {}
                        Err(error) => panic!("{error}"),
                    }
                }
            });
        }
    });
    for id in &ids {
        let state = wait(&engine, id);
        assert_eq!(terminal_states(&stage, id.as_str()), [state]);
        assert_eq!(task_processes(id.as_str()), Vec::<i32>::new());
    }
    let unstarted = unstarted.into_inner().unwrap();
    assert!(unstarted.len() > 10, "hardly any task was queued: {unstarted:?}");
    for number in unstarted {
        assert!(!stage.world.project().join(format!("begun-{number}")).exists(), "{number} was started");
    }
}
