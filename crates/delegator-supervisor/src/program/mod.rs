//! Programs: how one is found, what it is behind a wrapper of npm, and what it prints when it is run for a
//! moment.

mod locate;
mod npm;
mod probe;

pub use locate::{LocateError, UntrustedTrees, locate};
pub(crate) use npm::{ProgramBehind, resolve};
pub use probe::ProbeError;
pub(crate) use probe::{Version, exit_and_output, probe_version, version_text};
