//! What an agent claims beside what was observed: files, lines, tests and the verify command.

use delegator_transcript::Report;
use maud::{Markup, html};

use crate::mcp::pages::view::{View, lines};
use crate::output::data::task::TaskResult;
use crate::output::data::verification::{TestResults, VerificationData};

/// Files that a cell names.
const MAX_FILES: usize = 30;

fn file_list(view: &View<'_>, files: &[(char, &str)]) -> Markup {
    html! {
        @if files.is_empty() { span class="note" { "none" } }
        ul class="files" {
            @for (sign, path) in files.iter().take(MAX_FILES) { li { code { (sign) " " (view.name(path)) } } }
            @if files.len() > MAX_FILES { li { "and " (files.len() - MAX_FILES) " more" } }
        }
    }
}

fn signed<'a>(added: &'a [String], modified: &'a [String], deleted: &'a [String]) -> Vec<(char, &'a str)> {
    let of = |sign, paths: &'a [String]| paths.iter().map(move |path| (sign, path.as_str()));
    of('+', added).chain(of('~', modified)).chain(of('−', deleted)).collect()
}

fn tests(view: &View<'_>, results: Option<&TestResults>) -> Markup {
    html! {
        @match results {
            None => span class="note" { "none were counted" },
            Some(results) => {
                span class=(if results.failed > 0 { "bad" } else { "good" }) { (results.passed) " passed, " (results.failed) " failed" }
                @if results.skipped > 0 { ", " (results.skipped) " skipped" }
                @if !results.failed_tests.is_empty() {
                    ul class="files" { @for name in results.failed_tests.iter().take(MAX_FILES) { li { code { (view.name(name)) } } } }
                }
            },
        }
    }
}

/// What the agent reports beside what we observed.
pub(super) fn evidence(view: &View<'_>, result: &TaskResult, report: &Report) -> Markup {
    let operations = &result.report.metadata.file_operations;
    let is_observed = operations.source != "agent";
    let claimed = signed(&report.files.added, &report.files.modified, &report.files.deleted);
    let observed = signed(&operations.added_files, &operations.modified_files, &operations.deleted_files);
    let verification = result.report.verification.as_ref();
    let check = verification.and_then(|found| found.run.as_ref()).and_then(|run| run.test_results.as_ref());
    html! {
        section aria-labelledby="evidence" {
            h2 id="evidence" { "Claimed and observed" }
            div class="wide" { table class="evidence" {
                thead { tr { td {} th scope="col" { "The agent claims" } th scope="col" { "Observed" } } }
                tbody {
                    tr {
                        th scope="row" { "Files" }
                        td { (file_list(view, &claimed)) }
                        td { @if is_observed { (file_list(view, &observed)) } @else { span class="note" { "not examined" } } }
                    }
                    tr {
                        th scope="row" { "Lines" }
                        td { span class="note" { "–" } }
                        td { (lines(operations.lines_added, operations.lines_deleted)) }
                    }
                    tr {
                        th scope="row" { "Tests" }
                        td { (tests(view, result.report.metadata.test_results.as_ref())) }
                        td { (tests(view, check)) }
                    }
                    tr {
                        th scope="row" { "Check" }
                        td { span class="note" { "–" } }
                        td { (verdict(view, verification)) }
                    }
                }
            } }
            (check_output(view, verification))
        }
    }
}

fn verdict(view: &View<'_>, verification: Option<&VerificationData>) -> Markup {
    let Some(found) = verification else { return html! { span class="note" { "no verify command" } } };
    let look = match found.status.as_ref() {
        "verified" => "good",
        "verify_failed" => "bad",
        _ => "other",
    };
    html! {
        span class=(look) { (found.status.replace('_', " ")) }
        @if let Some(reason) = &found.reason { ": " (view.text(reason)) }
        @if let Some(detail) = &found.detail { ", " (view.text(detail)) }
    }
}

fn check_output(view: &View<'_>, verification: Option<&VerificationData>) -> Markup {
    let Some(found) = verification else { return html! {} };
    html! {
        @if let Some(run) = &found.run {
            details data-key="check" open[found.has_failed()] {
                summary { "Output of the verify command" @if let Some(code) = run.exit_code { ", exit code " (code) } }
                pre { (view.text(&run.output_tail)) }
            }
        }
    }
}
