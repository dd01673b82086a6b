//! The program around the commands: reads the process, selects a command or an internal mode, handles signals
//! and logging.

pub mod command_list;
pub mod completion;
#[cfg(debug_assertions)]
pub mod crash;
pub mod internal_modes;
pub mod logging;
pub mod process;
pub mod run;
pub mod signals;
