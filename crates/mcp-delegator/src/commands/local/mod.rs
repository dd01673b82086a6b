//! Commands for tasks on this machine.

pub mod agent_candidates;
pub mod attach;
pub mod attempts;
pub mod cancel;
pub mod exec;
pub mod followers;
pub mod last_task;
pub mod preflight;
pub mod question_prompt;
pub mod results;
pub mod resume;
pub mod review_prompt;
pub mod run;
pub mod status;
pub mod status_watch;
pub mod task_input;
pub mod tasks;
pub mod wait;
pub mod wait_progress;

pub fn output_budget() -> u32 {
    65_536
}
