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
