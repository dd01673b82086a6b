//! Outcomes for readers: a document of headings, facts and tables, rendered as plain text or Markdown.

mod agent_output;
pub mod conversation;
pub mod diff_text;
pub mod document;
pub mod error;
pub mod github_guide;
pub mod html;
pub mod human;
pub mod local_time;
pub mod markdown;
pub mod meta_facts;
pub mod status;
pub mod status_screen;
pub mod task;
pub mod text;
