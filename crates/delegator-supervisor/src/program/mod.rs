//! Programs: how one is found, what it is behind a wrapper of npm, and what it prints when it is run for a
//! moment.

mod locate;
mod npm;
mod probe;
mod version;

pub use locate::{LocateError, UntrustedTrees, locate};
pub(crate) use npm::{ProgramBehind, resolve};
pub use probe::ProbeError;
pub(crate) use probe::{exit_and_output, probe_version};
pub(crate) use version::{Version, text as version_text};
