//! Generates `docs/reports/contract.md` from the rows.

use std::fmt::Write;

use crate::row::{Document, Row, Verdict};

const INTRODUCTION: &str = "\
# The contract, statement by statement

<!-- Written by tests/contract_audit from its rows: `just update-generated`. -->

Five documents define what this program promises: the JSON of its tools and commands, and the events of agents. Each statement of theirs is a
row here, and a test: it runs the program and asserts what the row states. Where the program differs on purpose, the row
asserts what it does instead and gives the reason.

- **works**: as the document states it.
- **differs**: on purpose, for the reason given.
- **not testable**: no test of ours can show it.

Run the tests with `cargo nextest run -p mcp-delegator --test contract_audit`.
";

pub(crate) fn page(documents: &[&Document]) -> String {
    let mut page = format!("{INTRODUCTION}\n{}", counts(documents));
    for document in documents {
        let _ = write!(page, "\n## {} {}\n\n{}\n", document.id, document.title, document.about);
        let mut heading = "";
        for (section, row) in numbered(document) {
            if section != heading {
                heading = section;
                let _ = write!(
                    page,
                    "\n### {heading}\n\n| # | statement | verdict | asserted |\n|---|---|---|---|\n"
                );
            }
            page.push_str(&line(document, row));
        }
    }
    page
}

/// The rows with their headings, by number: a section may be spread over several files.
fn numbered(document: &Document) -> Vec<(&'static str, &'static Row)> {
    let rows = document.sections().flat_map(|section| section.rows.iter().map(|row| (section.heading, row)));
    let mut rows: Vec<_> = rows.collect();
    rows.sort_by_key(|(_, row)| row.number);
    rows
}

fn counts(documents: &[&Document]) -> String {
    let names = ["works", "differs", "not testable"];
    let mut table = format!("| document | statements | {} |\n|---|---|---|---|---|\n", names.join(" | "));
    let mut sums = [0; 3];
    let count_line = |title: &str, counts: &[usize; 3]| {
        let counted = counts.map(|count| count.to_string()).join(" | ");
        format!("| {title} | {} | {counted} |\n", counts.iter().sum::<usize>())
    };
    for document in documents {
        let counts = names.map(|name| document.rows().filter(|row| verdict_name(row) == name).count());
        for (sum, count) in sums.iter_mut().zip(counts) {
            *sum += count;
        }
        table += &count_line(&format!("{} {}", document.id, document.title), &counts);
    }
    table + &count_line("all", &sums)
}

fn verdict_name(row: &Row) -> &'static str {
    match row.verdict {
        Verdict::Works => "works",
        Verdict::Differs(_) => "differs",
        Verdict::NotTestable(_) => "not testable",
    }
}

fn line(document: &Document, row: &Row) -> String {
    let asserted = row.assertion.map(|assertion| assertion.asserted);
    let text = match (row.verdict, asserted) {
        (Verdict::Differs(reason), Some(asserted)) => format!("{asserted}. Reason: {reason}"),
        (Verdict::NotTestable(reason), _) => format!("Reason: {reason}"),
        (_, asserted) => asserted.unwrap_or_default().to_owned(),
    };
    let cell = |text: &str| text.replace('|', "\\|");
    format!(
        "| {}-{} | {} | {} | {} |\n",
        document.id,
        row.number,
        cell(row.statement),
        verdict_name(row),
        cell(&text)
    )
}
