//! From a command's outcome to text.
//!
//! `data` builds the JSON of tasks, `envelopes` wraps it, `documents` describes it for readers as text or
//! Markdown, `truncation` makes it fit a size limit, `presentation` selects the format of a call, and
//! `printer` writes it. Only this module knows the keys of our JSON, and only `printer` writes to stdout.

pub mod awaited_task;
pub mod batch;
pub mod call_syntax;
pub mod command_data;
pub mod data;
pub mod documents;
pub mod envelopes;
pub mod fields;
pub mod full_screen;
pub mod outcome;
pub mod pager;
pub mod prelude;
pub mod presentation;
pub mod printer;
pub mod screen;
pub mod truncation;
pub mod values;
