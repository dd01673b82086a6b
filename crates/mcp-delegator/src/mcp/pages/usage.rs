//! What tasks used: by day, agent and repository.

use maud::{Markup, html};

use crate::commands::prelude::*;
use crate::commands::usage::{By, UsageInputs, UsageLine, grouped, report};
use crate::mcp::pages::chart;
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::view::View;

const KINDS: [(By, &str); 3] = [(By::Day, "Day (UTC)"), (By::Agent, "Agent"), (By::Repo, "Repository")];

pub(super) fn page(view: &View<'_>, input: &UsageInputs) -> Result<Page, AppError> {
    let mut tables = Vec::new();
    for (by, name) in KINDS {
        tables.push((name, report(view.context, UsageInputs { by, ..input.clone() })?));
    }
    let tokens = |line: &UsageLine| line.sums.input_tokens.saturating_add(line.sums.output_tokens);
    let days: Vec<(String, i64)> =
        tables[0].1.groups.iter().rev().map(|line| (line.name.clone(), tokens(line))).collect();
    let total = &tables[0].1.total;
    let main = html! {
        h1 { "Usage" }
        form class="filters" data-filter {
            label { "Since" select name="since" {
                @for since in ["1d", "7d", "30d", "90d"] { option value=(since) selected[input.since == since] { (since) } }
            } }
            button { "Show" }
        }
        dl class="totals" {
            div { dt { "Tasks" } dd { (total.sums.task_count.unwrap_or(0)) } }
            div { dt { "Tokens" } dd { (grouped(tokens(total))) } }
            div { dt { "Cost" } dd { (cost(total)) } }
            div { dt { "Verified" } dd { (share(total)) } }
        }
        (chart::bars("Tokens by day", &days))
        @for (name, table) in &tables { (rows(view, name, &table.groups)) }
        p class="note" { "The cost is what agents report; nothing is estimated. Tasks are counted as long as they are retained." }
    };
    Ok(Page { title: "Usage".to_owned(), live: Live::Nothing, main })
}

fn cost(line: &UsageLine) -> String {
    match line.sums.cost_usd {
        None => "not reported".to_owned(),
        Some(cost) if line.tasks_without_cost_count > 0 => {
            format!("${cost:.2} and {} without", plural(line.tasks_without_cost_count, "task"))
        }
        Some(cost) => format!("${cost:.2}"),
    }
}

fn share(line: &UsageLine) -> String {
    match line.verified_share {
        None => "no verify command".to_owned(),
        Some(share) => format!("{:.0} % of {}", share * 100.0, line.tasks_with_verify_count),
    }
}

fn rows(view: &View<'_>, name: &str, lines: &[UsageLine]) -> Markup {
    html! {
        @if !lines.is_empty() {
            div class="wide" { table {
                thead { tr { @for column in [name, "Tasks", "Input", "Cached", "Output", "Cost", "Verified"] { th scope="col" class=[(column != name).then_some("number")] { (column) } } } }
                tbody { @for line in lines {
                    tr {
                        th scope="row" { (view.text(&line.name)) }
                        td class="number" { (line.sums.task_count.unwrap_or(0)) }
                        @for tokens in [line.sums.input_tokens, line.sums.cached_input_tokens, line.sums.output_tokens] {
                            td class="number" { (grouped(tokens)) }
                        }
                        td class="number" { (cost(line)) }
                        td class="number" { (share(line)) }
                    }
                } }
            } }
        }
    }
}
