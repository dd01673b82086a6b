//! One last, read-only turn for an agent whose work a time limit has ended: it reports what it has done. The
//! task stays ended by its limit. The turn has its own, short limits and files.

use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;

use delegator_domain::task::{Mode, RunSettings, TaskEnd};
use delegator_registry::TaskFile;
use delegator_supervisor::process::Owner;
use delegator_supervisor::run::{CancelRequest, Ports, RunResult, Stream};

use super::prepare_run::prepare;
use super::run_ports::{TaskPorts, create_stream, part_path};
use super::task_report::Salvage;
use crate::error::Result;
use crate::submit::launch_file::{Launch, Limits, Settings};

const REQUEST: &str = "Your last turn was ended by a time limit. Do not continue the work, run no commands and \
                       change nothing. Reply with a short report: what is done, what is not, and what to do next.";
const LIMITS: Limits = Limits { idle_sec: 60, hard_sec: 120, only_output_counts: true };

/// Lets the agent report, if the task wants that and a limit ended it. Adds the report to the result.
pub(super) fn salvage(launch: &Launch, result: &mut RunResult, ports: &TaskPorts) -> Option<Salvage> {
    if !launch.settings.salvage {
        return None;
    }
    if result.reported_before_limit {
        return Some(Salvage::BeforeLimit);
    }
    if !matches!(result.end, TaskEnd::Timeout(_)) || ports.cancel_requested().is_some() {
        return None;
    }
    // What changes from now on is not the work of the task.
    ports.observe_changes(result);
    let failed =
        |reason: &str| Some(Salvage::Failed { reason: ports.redactor.redact_str(reason).into_owned() });
    let Some(thread) = result.report.thread_id.clone().filter(|_| launch.agent.capabilities().threads) else {
        return failed("the agent has no thread that could be resumed");
    };
    match run_turn(launch, thread, result, ports) {
        Ok(turn) => {
            result.report.add_final_turn(&turn.report);
            result.redacted_report.add_final_turn(&turn.redacted_report);
            result.sweep.survivors.extend(turn.sweep.survivors);
            match (&turn.end, &turn.report.final_message) {
                (TaskEnd::Completed, Some(_)) => Some(Salvage::AfterLimit),
                (TaskEnd::Completed, None) => failed("the agent said nothing"),
                (TaskEnd::Timeout(_), _) => failed("the agent did not report in time"),
                (TaskEnd::Failed { message, .. }, _) => failed(message),
                (TaskEnd::Cancelled { .. }, _) => failed("the task was cancelled meanwhile"),
            }
        }
        Err(error) => failed(&error.to_string()),
    }
}

fn run_turn(launch: &Launch, thread: String, result: &RunResult, ports: &TaskPorts) -> Result<RunResult> {
    let mut turn = Launch {
        task: REQUEST.to_owned(),
        settings: settings_of_turn(&launch.settings, thread, result),
        fallbacks: Vec::new(),
        ..launch.clone()
    };
    turn.renew_enclosure()?;
    let spec = prepare(&turn, turn.create_group(&ports.id), ports)?;
    Ok(ports.engine.system.run_agent(spec, &TurnPorts { task: ports }))
}

fn settings_of_turn(settings: &Settings, thread: String, result: &RunResult) -> Settings {
    let used = result.report.usage.map(|usage| usage.thread_total);
    Settings {
        run: RunSettings {
            mode: Mode::ReadOnly,
            preview: false,
            images: Vec::new(),
            add_dirs: Vec::new(),
            ask: false,
            resume: Some(thread),
            ..settings.run.clone()
        },
        output_schema: None,
        budgets: Vec::new(),
        salvage: false,
        usage_before: used.or(settings.usage_before),
        limits: LIMITS,
        verify: None,
        ..settings.clone()
    }
}

/// The turn has its own files, can be cancelled, and changes nothing in the registry.
struct TurnPorts<'a> {
    task: &'a TaskPorts,
}

fn file_of(stream: Stream) -> TaskFile {
    match stream {
        Stream::Events => TaskFile::Salvage,
        Stream::Stderr | Stream::Verify => TaskFile::SalvageStderr,
    }
}

impl Ports for TurnPorts<'_> {
    fn now_ms(&self) -> i64 {
        self.task.now_ms()
    }

    fn create(&self, stream: Stream, part: u32) -> io::Result<File> {
        create_stream(&part_path(&self.task.dir, file_of(stream), part))
    }

    fn remove(&self, stream: Stream, part: u32) -> io::Result<()> {
        std::fs::remove_file(part_path(&self.task.dir, file_of(stream), part))
    }

    fn cancel_requested(&self) -> Option<CancelRequest> {
        self.task.cancel_requested()
    }

    fn wake_fd(&self) -> Option<BorrowedFd<'_>> {
        self.task.wake_fd()
    }

    fn owner_of(&self, pid: i32) -> Owner {
        self.task.owner_of(pid)
    }
}
