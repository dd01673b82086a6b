//! Crashes the program after every durable step, one at a time, and checks the recovery.
//!
//! Each crash point has a scenario that reaches it. There the process kills itself with SIGKILL; then ordinary commands
//! run. In every case: acknowledged tasks exist and end once, no agent starts twice, no process is left, the queue
//! continues, the registry is consistent, and cleanup removes everything.

#![cfg(debug_assertions)]

mod chains;
mod conversations;
mod notifications;
mod user_files;
mod worktrees;

use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use delegator_domain::crash::CrashPoint;
use delegator_domain::task::{Mode, State, TaskEnd, TaskId, TaskLocation};
use delegator_registry::{
    Filter, Finish, ImportedSession, LockAttempt, NewTask, OpenOptions, Registry, StateDir, Task, TaskFile,
};
use delegator_testkit::answers;
use delegator_testkit::cloud_script::{DIFF, ENVIRONMENTS, answer_cloud_commands};
use delegator_testkit::program::{World, read_text};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use self::conversations::{crash_with_a_message, crash_with_a_question};
use self::notifications::crash_while_delivering;
use self::user_files::{crash_during_restore, crash_enclosing_supervisor, crash_writing_supervisor};
use self::worktrees::crash_while_applying;
use crate::scripted::{self, agent_starts, processes_with_environment, supervisors, wait_until};

/// How a crash point is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Scenario {
    /// The submitting process crashes.
    Submit,
    /// The supervisor crashes.
    Supervise,
    /// The supervisor crashes when its task ends and another one waits.
    FinishWithQueuedTask,
    /// The process that delivers notifications crashes.
    Notify,
    /// The process that sends a message, or the supervisor that delivers it, crashes.
    Message,
    /// The process that answers a question, or the supervisor that asks it, crashes.
    Question,
    /// The process that cancels a running task crashes.
    Cancel,
    /// The process that ends a task of a lost supervisor crashes.
    Rescue,
    /// The process that releases the claim of a task that never started crashes.
    ReleaseClaim,
    /// The process that removes old tasks crashes.
    CleanOldTasks,
    /// The process that removes the leftovers of a crash crashes.
    CleanLeftovers,
    PauseQueue,
    Import,
    SetAside,
    /// A restore crashes before its first change.
    Restore,
    /// The process that applies the changes of a worktree crashes.
    ApplyWorktree,
    /// The process that submits a cloud task, or queries its provider, crashes.
    Cloud,
    /// The supervisor of a task that may write crashes before it starts the agent, or after the agent ended.
    SuperviseWriter,
    /// The supervisor of an enclosed agent crashes.
    SuperviseEnclosed,
}

/// Exhaustive: a crash point without a scenario does not compile.
fn scenario_of(point: CrashPoint) -> Scenario {
    use CrashPoint as At;
    match point {
        At::RegistryBuilt | At::RegistryNamed => Scenario::Submit,
        At::SubmitEntered | At::DirectoryMade | At::TextWritten | At::LaunchWritten => Scenario::Submit,
        At::DirectorySynced | At::RowCommitted | At::SubmitLeft | At::BeforeResponse => Scenario::Submit,
        At::ClaimCommitted | At::StartLocked | At::SupervisorSpawned => Scenario::Submit,
        At::LockAdopted | At::SocketBound | At::WorkBegun | At::LaunchRead => Scenario::Supervise,
        At::BaselineTaken | At::AgentSpawned | At::StdinDelivered => Scenario::Supervise,
        At::LaunchRemoved => Scenario::Supervise,
        At::ThreadNoted | At::SnapshotWritten => Scenario::Supervise,
        At::AgentReaped | At::AgentSwept | At::ChangesObserved => Scenario::FinishWithQueuedTask,
        At::ReportWritten | At::EndCommitted => Scenario::FinishWithQueuedTask,
        At::LaunchDropped | At::SuccessorsStarted | At::SocketRemoved => Scenario::FinishWithQueuedTask,
        At::RetentionTurnTaken | At::RetentionClockNoted => Scenario::FinishWithQueuedTask,
        At::NotificationBegun | At::NotificationSettled => Scenario::Notify,
        At::MessageWritten | At::MessageQueued => Scenario::Message,
        At::MessageDelivered | At::MessageSettled => Scenario::Message,
        At::AnswerWritten | At::AnswerRecorded => Scenario::Question,
        At::QuestionAsked | At::QuestionClosed => Scenario::Question,
        At::CancelCommitted | At::SupervisorWoken => Scenario::Cancel,
        At::RescueLocked | At::RescueSwept | At::RescueCommitted => Scenario::Rescue,
        At::AttemptGivenBack => Scenario::ReleaseClaim,
        At::RowsForgotten | At::DirectoryHalfRemoved | At::DirectoryRemoved | At::ForgettingDone => {
            Scenario::CleanOldTasks
        }
        At::RestorePointDropped | At::RestorePointForgotten => Scenario::CleanOldTasks,
        At::LeftoverRemoved => Scenario::CleanLeftovers,
        At::QueueHeld => Scenario::PauseQueue,
        At::ImportFilled | At::ImportCommitted => Scenario::Import,
        At::DatabaseAside | At::DatabaseReplaced => Scenario::SetAside,
        At::UndoNoted => Scenario::Restore,
        At::WorktreeDiffStored | At::WorktreeFilesRemoved | At::WorktreeRecorded => Scenario::ApplyWorktree,
        At::RemoteAccepted | At::RemoteReported => Scenario::Cloud,
        At::TemporaryDirCreated => Scenario::SuperviseEnclosed,
        At::RestorePointCreated | At::RestorePointsNoted | At::EndStateStored => Scenario::SuperviseWriter,
    }
}

/// A world with one slot, and an agent that waits for the file `go`.
struct Stage {
    world: World,
    root: PathBuf,
    /// Tasks whose id was returned to a caller.
    acknowledged: Vec<String>,
}

impl Stage {
    fn new() -> Stage {
        let (world, root) = scripted::world(&json!([
            {"read_stdin": "all"}, {"thread_started": {}}, "turn_started", {"wait_for_file": "go"},
            {"message": "done"}, {"turn_completed": {}}
        ]));
        let world = world
            .variable("MCP_DELEGATOR_MAX_CONCURRENT", "1")
            // The imported session ended long ago.
            .variable("MCP_DELEGATOR_RETENTION_HOURS", "87600")
            .variable("MCP_DELEGATOR_INTERRUPT_GRACE_SEC", "1")
            .variable("MCP_DELEGATOR_TERMINATE_GRACE_SEC", "1");
        Stage { world, root, acknowledged: Vec::new() }
    }

    fn release_agent(&self) {
        std::fs::write(self.world.project().join("go"), "").unwrap();
    }

    fn run_json(&self, args: &[&str]) -> Value {
        let run = self.world.run(args);
        serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{args:?}: {error}: {run:?}"))
    }

    fn exec(&mut self) -> String {
        let response = self.run_json(&["local", "exec", "do it"]);
        self.acknowledge(&response)
    }

    fn acknowledge(&mut self, response: &Value) -> String {
        let id = response["data"]["task_id"].as_str().unwrap_or_else(|| panic!("{response}")).to_owned();
        self.acknowledged.push(id.clone());
        id
    }

    /// Runs a command that crashes at a crash point, or starts a supervisor that does.
    fn run_with_crash_point(&self, point: &str, args: &[&str]) -> Output {
        self.command_with_crash_point(point, args).output().unwrap()
    }

    fn command_with_crash_point(&self, point: &str, args: &[&str]) -> Command {
        let mut command = self.world.command(args);
        command
            .env("MCP_DELEGATOR_CRASH_AT", point)
            .env("MCP_DELEGATOR_CRASH_NOTE", self.root.join("crashed"));
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    /// Runs a command that must crash itself.
    fn crash(&self, point: &str, args: &[&str]) {
        let output = self.run_with_crash_point(point, args);
        assert_eq!(output.status.signal(), Some(9), "{point}: {args:?} did not crash: {output:?}");
    }

    /// Submits a task whose supervisor crashes.
    fn exec_with_crash_point(&mut self, point: &str) -> String {
        let output = self.run_with_crash_point(point, &["local", "exec", "do it"]);
        let response =
            serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"));
        answers::check(&response);
        self.acknowledge(&response)
    }

    fn crashes(&self) -> usize {
        std::fs::read_to_string(self.root.join("crashed")).unwrap_or_default().lines().count()
    }

    fn state_dir(&self) -> StateDir {
        StateDir::open(&self.root.join("home/state"), &OpenOptions::default()).unwrap()
    }

    fn registry(&self) -> Registry {
        Registry::open(&self.state_dir()).unwrap()
    }

    fn tasks(&self) -> Vec<Task> {
        self.registry().list(&Filter::default(), 1000, None).unwrap().tasks
    }
}

/// Runs the scenario of a crash point up to the crash.
fn run_until_crash(stage: &mut Stage, point: CrashPoint, time: u32) {
    let name = format!("{}*{time}", point.name());
    match scenario_of(point) {
        Scenario::Submit => stage.crash(&name, &["local", "exec", "do it"]),
        Scenario::Supervise => drop(stage.exec_with_crash_point(&name)),
        Scenario::FinishWithQueuedTask => {
            stage.exec_with_crash_point(&name);
            stage.exec();
            stage.release_agent();
        }
        Scenario::Cancel => {
            let id = stage.exec();
            stage.crash(&name, &["local", "cancel", &id]);
        }
        Scenario::Notify => crash_while_delivering(stage, &name, point),
        Scenario::Message => crash_with_a_message(stage, &name, point),
        Scenario::Question => crash_with_a_question(stage, &name, point),
        Scenario::Rescue => crash_during_rescue(stage, &name),
        Scenario::ReleaseClaim => crash_while_releasing_a_claim(stage, &name),
        Scenario::CleanOldTasks => crash_while_cleaning_old_tasks(stage, &name),
        Scenario::CleanLeftovers => crash_while_cleaning_leftovers(stage, &name),
        Scenario::PauseQueue => crash_while_pausing_the_queue(stage, &name),
        Scenario::Import => crash_during_import(stage, &name),
        Scenario::SetAside => {
            stage.release_agent();
            stage.run_json(&["local", "run", "before"]);
            crash_while_setting_aside(stage, &name, point);
        }
        Scenario::Restore => crash_during_restore(stage, &name),
        Scenario::ApplyWorktree => crash_while_applying(stage, &name),
        Scenario::Cloud => crash_with_a_cloud_task(stage, &name, point),
        Scenario::SuperviseWriter => crash_writing_supervisor(stage, &name, point),
        Scenario::SuperviseEnclosed => crash_enclosing_supervisor(stage, &name),
    }
}

fn crash_during_rescue(stage: &mut Stage, name: &str) {
    let id: TaskId = stage.exec().parse().unwrap();
    for pid in supervisors(&stage.root) {
        kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL).unwrap();
    }
    // A process that the supervisor was just starting holds its lock until it executes its program.
    let task = stage.state_dir().task(&id);
    wait_until("the task lock is free", || matches!(task.try_lock(), Ok(LockAttempt::Locked(_))));
    stage.crash(name, &["local", "status"]);
}

fn crash_while_releasing_a_claim(stage: &mut Stage, name: &str) {
    stage.exec_with_crash_point(CrashPoint::LockAdopted.name());
    let start = std::time::Instant::now();
    // The claim is released after the grace period of the process that claimed it.
    while stage.run_with_crash_point(name, &["local", "status"]).status.signal() != Some(9) {
        assert!(start.elapsed().as_secs() < 60, "the claim was never released");
    }
}

fn crash_while_cleaning_old_tasks(stage: &Stage, name: &str) {
    import_old_task_with_restore_point(stage);
    stage.crash(name, &["cleanup-registry", "--old-task-max-age-hours", "24"]);
    let cleaned = stage.run_json(&["cleanup-registry", "--old-task-max-age-hours", "24"]);
    assert_eq!(cleaned["data"]["restore_points"]["retained_count"], 0, "{name}: {cleaned}");
    assert_eq!(stage.registry().count_restore_points().unwrap(), 0, "{name}");
    assert_eq!(git(stage, &["for-each-ref", "refs/mcp-delegator"]), "", "{name}");
}

fn crash_while_cleaning_leftovers(stage: &Stage, name: &str) {
    stage.crash(CrashPoint::LaunchWritten.name(), &["local", "exec", "do it"]);
    for entry in std::fs::read_dir(stage.root.join("home/state/tasks")).unwrap().flatten() {
        let dir = std::fs::File::open(entry.path()).unwrap();
        dir.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    }
    stage.crash(name, &["cleanup-registry"]);
}

fn crash_while_pausing_the_queue(stage: &mut Stage, name: &str) {
    stage.crash(name, &["queue", "pause"]);
    let id = stage.exec();
    let task = stage.tasks().into_iter().find(|task| task.id.as_str() == id).unwrap();
    assert_eq!(task.state, State::Queued, "the committed pause was lost");
    stage.run_json(&["queue", "resume"]);
}

fn crash_during_import(stage: &mut Stage, name: &str) {
    stage.crash(name, &["import", &session_file(stage)]);
    let imported = stage.run_json(&["import", &session_file(stage)]);
    let id = stage.acknowledge(&imported);
    let results = stage.run_json(&["local", "results", &id, "--include-events"]);
    let events = results["data"]["events"]["items"].as_array().map_or(0, Vec::len);
    assert!(events > 1, "{name}: the imported session is incomplete: {results}");
}

/// A cloud task that its provider has accepted is known afterwards and ends once, with its diff.
fn crash_with_a_cloud_task(stage: &mut Stage, name: &str, point: CrashPoint) {
    let submissions = answer_cloud_commands(&stage.root);
    stage.world.write("home/.config/mcp-delegator/environments.json", ENVIRONMENTS);
    let submit = ["cloud", "submit", "grow", "--env-id", "env_site"];
    match point {
        CrashPoint::RemoteAccepted => stage.crash(name, &submit),
        _ => {
            let accepted = stage.run_json(&submit);
            stage.acknowledge(&accepted);
            stage.crash(name, &["cloud", "status"]);
        }
    }
    let id = stage.tasks()[0].id.to_string();
    let waited = stage.run_json(&["wait", &id]);
    assert_eq!(
        (&waited["data"]["state"], &waited["data"]["diff"]["bytes"]),
        (&json!("completed"), &json!(DIFF.len())),
        "{waited}"
    );
    assert_eq!(read_text(&submissions).lines().count(), 1, "{name}");
}

fn crash_while_setting_aside(stage: &Stage, name: &str, point: CrashPoint) {
    let state = stage.root.join("home/state");
    // An open connection keeps the write-ahead log in place.
    let mut open = stage.registry();
    open.set_queue_paused(false).unwrap();
    assert!(state.join("registry.db-wal").exists());
    std::fs::write(state.join("registry.db"), vec![7; 8192]).unwrap();
    stage.crash(name, &["doctor", "--set-aside-damaged"]);
    if point == CrashPoint::DatabaseAside {
        assert!(!state.join("registry.db").exists(), "a registry without its log may look healthy");
        let run = stage.world.run(["local", "status"]);
        assert_eq!(run.exit, Some(4), "a half set-aside registry must count as damaged: {run:?}");
        stage.run_json(&["doctor", "--set-aside-damaged"]);
    }
    drop(open);
    // The results of removed tasks are kept until the user deletes them.
    assert_eq!(stage.registry().orphans(i64::MAX).unwrap().len(), 1);
    for entry in std::fs::read_dir(state.join("tasks")).unwrap().flatten() {
        std::fs::remove_dir_all(entry.path()).unwrap();
    }
    let _ = std::fs::remove_file(stage.root.join("starts"));
}

fn git(stage: &Stage, args: &[&str]) -> String {
    let identity = ["-c", "user.name=t", "-c", "user.email=t@localhost"];
    let run = stage.world.run_as(&PathBuf::from("/usr/bin/git"), [&identity, args].concat());
    assert_eq!(run.exit, Some(0), "{run:?}");
    run.stdout.trim().to_owned()
}

/// A task that ended two days ago in a clean repository: its restore point has no content of its own.
fn import_old_task_with_restore_point(stage: &Stage) {
    stage.world.write("project/code.txt", "committed\n");
    git(stage, &["init", "--quiet", "--initial-branch=main"]);
    git(stage, &["add", "code.txt"]);
    git(stage, &["commit", "--quiet", "-m", "first"]);
    let id = TaskId::from_random(TaskLocation::Local, [7; 16]);
    let project = stage.world.project();
    let runner = delegator_git::Git::new("/usr/bin/git".into(), [], std::time::Duration::from_secs(60));
    let (reference, limits) = (format!("refs/mcp-delegator/{id}"), delegator_git::Limits::default());
    let created =
        delegator_git::create_restore_point(&runner, &project, &stage.root, &reference, limits).unwrap();
    let point = json!({"version": 1, "points": [created.unwrap().point], "problems": [], "undo": []});
    let days_ago_ms = jiff::Timestamp::now().as_millisecond() - 48 * 60 * 60 * 1000;
    let task = NewTask {
        allow_parallel_writes: true,
        mode: Mode::WorkspaceWrite,
        ..NewTask::reading(id, project.display().to_string(), "before")
    };
    let past = ImportedSession {
        thread_id: "a thread".to_owned(),
        started_at_ms: days_ago_ms,
        ended_at_ms: days_ago_ms,
        imported_at_ms: days_ago_ms,
    };
    let files = [(TaskFile::RestorePoint, point.to_string())];
    let files = files.each_ref().map(|(file, text)| (*file, text.as_bytes()));
    stage.registry().import(&task, &past, &Finish::bare(TaskEnd::Completed), &files).unwrap();
}

fn session_file(stage: &Stage) -> String {
    let name = "crates/delegator-transcript/tests/transcripts/rollouts/0.166.0.patch.rollout.jsonl";
    let recorded = read_text(&delegator_testkit::generated::workspace().join(name));
    stage.world.write("session.jsonl", &recorded.replace("\"2026-", "\"2025-"));
    stage.root.join("session.jsonl").display().to_string()
}

/// Runs ordinary commands after the crash and checks what they find.
fn assert_recovered(stage: &mut Stage, point: CrashPoint) {
    let name = point.name();
    stage.release_agent();
    let next = stage.run_json(&["local", "run", "and then"]);
    assert_eq!(next["ok"], true, "{name}: {next}");
    for task in stage.tasks() {
        let waited = stage.run_json(&["local", "wait", task.id.as_str(), "--timeout-sec", "60"]);
        assert_eq!(waited["ok"], true, "{name}: {waited}");
    }
    wait_until("every supervisor has exited", || supervisors(&stage.root).is_empty());
    // A supervisor may exit while its upkeep thread removes what a killed submit left: the next pass does the rest.
    stage.run_json(&["local", "status"]);
    let (tasks, starts) = (stage.tasks(), agent_starts(&stage.root));
    for id in &stage.acknowledged {
        assert!(tasks.iter().any(|task| task.id.as_str() == id), "{name}: {id} is lost");
    }
    for task in &tasks {
        let history = stage.registry().history_of(&task.id).unwrap();
        let ends = history.iter().filter(|entry| entry.to.is_terminal()).count();
        assert_eq!((ends, task.state.is_terminal()), (1, true), "{name}: {history:?}");
        let started = starts.get(task.id.as_str()).copied().unwrap_or(0);
        let ran_elsewhere = task.labels.contains_key("imported") || task.remote.is_some();
        assert!(started <= 1, "{name}: started {started} times");
        let is_visible = started == 1 || task.state != State::Completed || ran_elsewhere;
        assert!(is_visible, "{name}: completed without a start: {history:?}");
        let left = processes_with_environment(&format!("DELEGATOR_TASK={}:", task.id));
        assert_eq!(left, Vec::<i32>::new(), "{name}: the agent is still alive");
    }
    assert_no_leftovers_of_killed_submit(stage, name);
    assert_cleanup_removes_everything(stage, name);
}

/// Ordinary commands have removed everything a killed submit or import left: no task directory and no `submitting` entry
/// without a registry row.
fn assert_no_leftovers_of_killed_submit(stage: &Stage, name: &str) {
    let names = |folder: &str| -> Vec<String> {
        let entries = std::fs::read_dir(stage.root.join("home/state").join(folder)).into_iter().flatten();
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
    };
    let known: Vec<String> = stage.tasks().into_iter().map(|task| task.id.to_string()).collect();
    let unknown: Vec<String> = names("tasks").into_iter().filter(|name| !known.contains(name)).collect();
    assert_eq!((unknown, names("submitting")), (Vec::new(), Vec::new()), "{name}");
}

fn assert_cleanup_removes_everything(stage: &Stage, name: &str) {
    let mut registry = stage.registry();
    registry.check().unwrap();
    let ids: Vec<_> = stage.tasks().into_iter().map(|task| task.id).collect();
    registry.prune(&ids).unwrap();
    registry.finish_pruning().unwrap();
    let left = registry.orphans(i64::MAX).unwrap();
    registry.remove_orphans(&left).unwrap();
    let tasks = std::fs::read_dir(stage.root.join("home/state/tasks")).unwrap().flatten();
    let left: Vec<PathBuf> = tasks.map(|entry| entry.path()).collect();
    assert_eq!(left, Vec::<PathBuf>::new(), "{name}: left behind");
}

fn crash_and_recover(point: CrashPoint, time: u32) {
    let mut stage = Stage::new();
    run_until_crash(&mut stage, point, time);
    if matches!(scenario_of(point), Scenario::Supervise | Scenario::FinishWithQueuedTask) {
        wait_until(point.name(), || stage.crashes() > 0);
    }
    assert!(stage.crashes() > 0, "{}: the crash point was not reached", point.name());
    assert_recovered(&mut stage, point);
}

/// Runs all crash points of these scenarios, three at a time because each spends some time waiting.
fn run_scenarios(scenarios: &[Scenario]) {
    let points = CrashPoint::ALL.iter().filter(|point| scenarios.contains(&scenario_of(**point)));
    let points: Vec<CrashPoint> = points.copied().collect();
    assert!(!points.is_empty());
    for chunk in points.chunks(3) {
        std::thread::scope(|scope| {
            let threads: Vec<_> =
                chunk.iter().map(|point| scope.spawn(|| crash_and_recover(*point, 1))).collect();
            for handle in threads {
                handle.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked));
            }
        });
    }
}

#[test]
fn a_crash_of_the_submitting_process_loses_nothing() {
    run_scenarios(&[Scenario::Submit]);
}

#[test]
fn a_crash_of_the_supervisor_before_the_end_is_recovered() {
    run_scenarios(&[Scenario::Supervise, Scenario::SuperviseEnclosed]);
}

#[test]
fn a_crash_of_the_supervisor_at_the_end_is_recovered_and_the_queue_continues() {
    run_scenarios(&[Scenario::FinishWithQueuedTask]);
}

#[test]
fn a_crash_during_cancel_rescue_or_release_is_recovered() {
    run_scenarios(&[Scenario::Cancel, Scenario::Rescue, Scenario::ReleaseClaim]);
}

#[test]
fn a_crash_neither_loses_nor_repeats_a_message_or_an_answer() {
    run_scenarios(&[Scenario::Message, Scenario::Question]);
}

#[test]
fn a_crash_loses_no_notification_and_repeats_none_that_was_delivered() {
    run_scenarios(&[Scenario::Notify]);
}

#[test]
fn a_crash_during_cleanup_pause_or_import_is_recovered() {
    run_scenarios(&[
        Scenario::CleanOldTasks,
        Scenario::CleanLeftovers,
        Scenario::PauseQueue,
        Scenario::Import,
    ]);
}

#[test]
fn a_crash_neither_loses_nor_repeats_a_cloud_task() {
    run_scenarios(&[Scenario::Cloud]);
}

#[test]
fn a_crash_around_restore_points_loses_neither_files_nor_points() {
    run_scenarios(&[Scenario::SuperviseWriter, Scenario::Restore, Scenario::ApplyWorktree]);
}

#[test]
fn a_crash_while_setting_a_damaged_registry_aside_is_recovered() {
    run_scenarios(&[Scenario::SetAside]);
    crash_and_recover(CrashPoint::DatabaseAside, 2);
}

/// No command runs after the crash: an idle server removes the launch file.
#[test]
fn a_server_removes_the_launch_file_of_a_killed_submit() {
    let stage = Stage::new();
    stage.run_json(&["queue", "pause"]);
    let mut command = stage.world.command(["serve"]);
    let mut server =
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    stage.crash(CrashPoint::LaunchWritten.name(), &["local", "exec", "a prompt"]);
    let tasks = stage.root.join("home/state/tasks");
    wait_until("the directory is gone", || std::fs::read_dir(&tasks).unwrap().next().is_none());
    drop(server.stdin.take());
    server.wait().unwrap();
}
