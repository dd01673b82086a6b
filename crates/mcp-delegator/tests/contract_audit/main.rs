//! The contract as a test: one row per statement of the five documents this program implements.
//!
//! ```text
//! recorded/ (answers of the real program) ─▶ DOCUMENT/*.rs (rows) ─ row ─▶ one test per file
//!                                                        └─ page ─▶ docs/reports/contract.md
//! ```
//!
//! # How to add or change a row
//!
//! - A row is one call in the `SECTIONS` of a file in the directory of its document: `works`, `differs` or `not_testable`
//!   ([`row`]). Its number is that of the statement; a document's numbers have no gaps.
//! - The statement must be understandable without the document. "Asserted" says what the check asserts, in one sentence.
//! - The check is a closure without arguments that panics when the answer is not as stated; `assertions` has the usual
//!   ones. It reads a recorded answer (`COMPLETED.wait`), or runs the program itself if no other row needs the answer.
//!   It must be able to fail: assert a value, a type or a relation, never only that a call returned.
//! - Answers that several rows need are recorded once per process, in a `LazyLock` in `recorded/`.
//! - A new file of rows is listed in the `mod.rs` of its document; each file is a test, so keep the worlds it needs few.
//! - `just update-generated` writes `docs/reports/contract.md`.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod assertions;
mod cli_envelope;
#[path = "../mcp/client.rs"]
#[expect(dead_code, reason = "the rows need only a part of the client")]
mod client;
mod exec_events;
#[path = "../mcp/http_client.rs"]
#[expect(dead_code, reason = "the types need only a part of the client")]
mod http_client;
mod idle_dialect;
#[path = "../store_faults/old_tasks.rs"]
#[expect(dead_code, reason = "the rows need only a part of it")]
mod old_tasks;
mod page;
mod recorded;
mod row;
mod standard_envelope;
mod tool_envelope;
mod transcripts;
mod typescript;

use std::collections::BTreeSet;
use std::sync::Arc;

use delegator_testkit::generated::assert_up_to_date;
use mcp_delegator::commands::version;
use mcp_delegator::output::command_data::CommandData;
use mcp_delegator::output::outcome::{CallClock, CommandOutput};
use mcp_delegator::output::presentation::Presentation;
use mcp_delegator::spec::ServedTools;
use mcp_delegator::spec::formats::Format;
use serde::Serialize;
use serde_json::Value;

use row::{Document, Verdict};

const PROGRAM: &str = env!("CARGO_BIN_EXE_mcp-delegator");

const DOCUMENTS: [&Document; 5] = [
    &tool_envelope::DOCUMENT,
    &exec_events::DOCUMENT,
    &cli_envelope::DOCUMENT,
    &idle_dialect::DOCUMENT,
    &standard_envelope::DOCUMENT,
];

#[test]
fn every_statement_has_one_row() {
    for document in DOCUMENTS {
        let mut missing: BTreeSet<usize> = (1..=document.statement_count).collect();
        for row in document.rows() {
            assert!(missing.remove(&row.number), "{}-{} is no statement, or twice", document.id, row.number);
        }
        assert!(missing.is_empty(), "{}: no row for {missing:?}", document.id);
    }
}

#[test]
fn every_row_states_what_it_asserts_or_why_not() {
    for document in DOCUMENTS {
        for row in document.rows() {
            let id = format!("{}-{}", document.id, row.number);
            assert!(!row.statement.is_empty(), "{id} has no statement");
            let reason = match row.verdict {
                Verdict::Works => None,
                Verdict::Differs(reason) | Verdict::NotTestable(reason) => Some(reason),
            };
            assert!(reason.is_none_or(|reason| !reason.is_empty()), "{id} has no reason");
            let is_checked = row.assertion.is_some_and(|assertion| !assertion.asserted.is_empty());
            assert_eq!(is_checked, !matches!(row.verdict, Verdict::NotTestable(_)), "{id}");
        }
    }
}

/// Data of any form.
#[derive(Debug, Clone, Serialize)]
#[serde(transparent)]
struct AnyJson(Value);

impl CommandData for AnyJson {}

/// The variable with the data that [`renders_the_answer_in_its_environment`] renders.
const ANSWER: &str = "CONTRACT_AUDIT_ANSWER";

/// Renders an answer of the command `version`, in the process that the row about validation starts. Without the variable
/// there is nothing to render.
#[test]
#[expect(clippy::disallowed_methods, reason = "a variable has the data")]
fn renders_the_answer_in_its_environment() {
    let Ok(data) = std::env::var(ANSWER) else { return };
    let output = CommandOutput::done(AnyJson(serde_json::from_str(&data).unwrap()));
    let outcome = CallClock::begin().end(&version::SPEC, output);
    let served = ServedTools { prefix: "_codex_".to_owned(), names: Vec::new() };
    let rendered = Presentation::for_tool(Format::Json, &Arc::new(served)).render(&outcome);
    assert!(rendered.body.contains(&data), "{}", rendered.body);
}

#[test]
fn the_contract_page_is_up_to_date() {
    assert_up_to_date("docs/reports/contract.md", &page::page(&DOCUMENTS));
}
