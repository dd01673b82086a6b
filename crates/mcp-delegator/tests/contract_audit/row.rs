//! A row: a statement of a document, our verdict on it, and the check that proves the verdict.
//!
//! Rows are constants, grouped by the section of the document. [`check_rows`] runs the checks of one file and reports
//! all rows that do not hold; a check fails by panicking.

use std::panic::{catch_unwind, set_hook, take_hook};
use std::sync::{Arc, Mutex};

/// One of the five documents.
pub(crate) struct Document {
    /// Number of the document, the first part of a row's id.
    pub(crate) id: &'static str,
    pub(crate) title: &'static str,
    /// What the document defines, in one sentence.
    pub(crate) about: &'static str,
    pub(crate) statement_count: usize,
    /// The sections of each file of rows.
    pub(crate) files: &'static [&'static [Section]],
}

/// A section of a document, by its heading.
pub(crate) struct Section {
    pub(crate) heading: &'static str,
    pub(crate) rows: &'static [Row],
}

#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub(crate) number: usize,
    pub(crate) statement: &'static str,
    pub(crate) verdict: Verdict,
    pub(crate) assertion: Option<Assertion>,
}

/// How the program relates to a statement. All but the first state a reason.
#[derive(Clone, Copy)]
pub(crate) enum Verdict {
    Works,
    /// On purpose; the row asserts what the program does instead.
    Differs(&'static str),
    NotTestable(&'static str),
}

#[derive(Clone, Copy)]
pub(crate) struct Assertion {
    pub(crate) asserted: &'static str,
    check: fn(),
}

pub(crate) const fn works(
    number: usize,
    statement: &'static str,
    asserted: &'static str,
    check: fn(),
) -> Row {
    Row { number, statement, verdict: Verdict::Works, assertion: Some(Assertion { asserted, check }) }
}

pub(crate) const fn differs(
    number: usize,
    statement: &'static str,
    reason: &'static str,
    asserted: &'static str,
    check: fn(),
) -> Row {
    Row { verdict: Verdict::Differs(reason), ..works(number, statement, asserted, check) }
}

pub(crate) const fn not_testable(number: usize, statement: &'static str, reason: &'static str) -> Row {
    Row { number, statement, verdict: Verdict::NotTestable(reason), assertion: None }
}

impl Document {
    pub(crate) fn sections(&self) -> impl Iterator<Item = &'static Section> {
        self.files.iter().copied().flatten()
    }

    pub(crate) fn rows(&self) -> impl Iterator<Item = &'static Row> {
        self.sections().flat_map(|section| section.rows)
    }
}

/// Declares a [`Document`] from its files of rows, and one test per file.
macro_rules! document {
    ($id:literal, $title:literal, $about:literal, $count:literal statements in $($file:ident)*) => {
        pub(crate) const DOCUMENT: $crate::row::Document = $crate::row::Document {
            id: $id,
            title: $title,
            about: $about,
            statement_count: $count,
            files: &[$($file::SECTIONS),*],
        };

        $(#[test]
        fn $file() {
            $crate::row::check_rows($id, $file::SECTIONS);
        })*
    };
}
pub(crate) use document;

/// Runs the checks of one file; panics with all rows that do not hold.
pub(crate) fn check_rows(document: &str, sections: &[Section]) {
    let rows = sections.iter().flat_map(|section| section.rows);
    let failed: Vec<String> = rows
        .filter_map(|row| {
            let found = panic_of(row.assertion?.check)?;
            Some(format!("{document}-{} {}\n    {found}", row.number, row.statement))
        })
        .collect();
    assert!(failed.is_empty(), "{} rows do not hold:\n{}", failed.len(), failed.join("\n"));
}

/// Where and why a check panicked. The message is not printed on its own.
fn panic_of(check: fn()) -> Option<String> {
    let message = Arc::new(Mutex::new(String::new()));
    let (sender, before) = (Arc::clone(&message), take_hook());
    set_hook(Box::new(move |panic| *sender.lock().unwrap() = panic.to_string()));
    let outcome = catch_unwind(check);
    set_hook(before);
    outcome.err().map(|_| message.lock().unwrap().clone())
}
