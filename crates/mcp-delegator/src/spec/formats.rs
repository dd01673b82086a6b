//! Output formats, envelopes, the format of log lines, and the values of the flags that every command takes.

use std::path::PathBuf;

pub use delegator_config::{Envelope, Format};
use delegator_domain::named_enum;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelpLength {
    /// Without details, examples and rarely needed inputs.
    Short,
    Long,
}

named_enum! {
    /// When text for people is coloured.
    #[derive(Default)]
    pub enum ColorChoice {
        /// On a terminal, unless `NO_COLOR` is set.
        #[default]
        Auto = "auto",
        Always = "always",
        Never = "never",
    }
}

named_enum! {
    #[derive(Default)]
    pub enum LogFormat {
        #[default]
        Text = "text",
        Json = "json",
    }
}

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
    pub help: Option<HelpLength>,
    pub version: bool,
    pub schema: bool,
}
