//! The decoder on recordings of real agents and on invented streams: dialects, reports, test results and error locations.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "a test may panic")]

mod acp;
mod acp_schema;
mod activity;
mod app_server;
mod bad_input;
mod claude;
mod documented_types;
mod error_locations;
mod hostile_test_output;
mod idle_dialect;
mod logs;
mod mapping;
mod mixed_dialects;
mod over_long;
mod plain_text;
mod recorded;
mod recordings;
mod repeats;
mod reports;
mod test_folding;
mod test_runs;
