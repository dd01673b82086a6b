//! Output formats, envelopes, the format of log lines, and the values of the flags that every command takes.

use std::path::PathBuf;

pub use delegator_config::{Envelope, Format};
use delegator_domain::named_enum;

named_enum! {
    pub enum Format {
        Human = "human",
        Markdown = "markdown",
        Json = "json",
        Jsonl = "jsonl",
    }
}

impl Format {
    /// The format with this name, or with the name that other programs use.
    pub fn named(name: &str) -> Option<Format> {
        match name {
            "human" | "text" | "plain" | "table" => Some(Format::Human),
            "markdown" | "md" => Some(Format::Markdown),
            "json" => Some(Format::Json),
            "jsonl" | "ndjson" => Some(Format::Jsonl),
            _ => None,
        }
    }
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
    pub help: bool,
    pub version: bool,
    pub schema: bool,
}
