//! Values of the flags that every command takes: how to render the output, not what to do.

use std::path::PathBuf;

use crate::spec::formats::{ColorChoice, Envelope, Format, LogFormat};

/// Values of the global flags; `None` if a flag is not given.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Globals {
    pub format: Option<Format>,
    pub envelope: Option<Envelope>,
    pub fields: Vec<String>,
    pub output: Option<PathBuf>,
    pub input_json: Option<String>,
    pub max_bytes: Option<usize>,
    pub quiet: bool,
    pub no_stream: bool,
    pub strict_warnings: bool,
    pub log_format: LogFormat,
    pub color: ColorChoice,
    pub help: bool,
    pub version: bool,
    pub schema: bool,
}
