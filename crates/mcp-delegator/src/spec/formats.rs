//! Output formats, envelopes, and the format of log lines.

pub use delegator_config::Envelope;
use delegator_domain::named_enum;

named_enum! {
    /// Output format.
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

/// When text for people is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ColorChoice {
    /// On a terminal, unless `NO_COLOR` is set.
    #[default]
    Auto,
    Always,
    Never,
}

impl ColorChoice {
    pub const NAMES: [&'static str; 3] = ["auto", "always", "never"];

    pub fn named(name: &str) -> Option<ColorChoice> {
        match name {
            "auto" => Some(ColorChoice::Auto),
            "always" => Some(ColorChoice::Always),
            "never" => Some(ColorChoice::Never),
            _ => None,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogFormat {
    #[default]
    Text,
    Json,
}
