//! The supervisor process: runs the agent of one task and records how it ended. The run itself is in the
//! `delegator-supervisor` crate and calls back through [`run_ports`]. The record of the run is written here
//! and read by `results`. Problems with recording never fail a task.

mod chain_prompt;
pub(crate) mod check_record;
mod create_restore_points;
pub(crate) mod diff_evidence;
mod enclosure;
mod error_locations;
pub(crate) mod evidence;
pub(crate) mod lost_run;
pub(crate) mod niceness;
mod prepare_run;
mod quotation;
pub(crate) mod received_signals;
mod retry_write;
mod run_ports;
pub(crate) mod salvage;
pub(crate) mod summary;
mod supervisor_log;
pub(crate) mod supervisor_process;
pub(crate) mod task_diff;
pub(crate) mod task_report;
pub(crate) mod wake_socket;
mod worktree;
