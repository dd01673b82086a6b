//! The fleet: its workers, its queue and how long the oldest task has been waiting.

use maud::{Markup, html};

use crate::commands::fleet::status::{FleetOverview, FleetStatusInput, FleetWorker, read};
use crate::commands::prelude::*;
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::view::View;
use crate::output::data::task_line::short_age;

pub(super) fn page(view: &View<'_>, input: FleetStatusInput) -> Result<Page, AppError> {
    let main = match read(view.context, input) {
        Ok(fleet) => overview(view, &fleet),
        // Most machines have no fleet.
        Err(error) if error.code == ErrorCode::ConfigInvalid => html! {
            h1 { "Fleet" }
            p class="empty" { "No fleet is configured on this machine. " code { "fleet.database_url" } " names its database." }
        },
        Err(error) => return Err(error),
    };
    Ok(Page { title: "Fleet".to_owned(), live: Live::Poll, main })
}

fn overview(view: &View<'_>, fleet: &FleetOverview) -> Markup {
    let wait = fleet.oldest_wait_ms.map_or_else(|| "–".to_owned(), |ms| short_age(ms.unsigned_abs() / 1000));
    html! {
        h1 { "Fleet" }
        @if fleet.is_paused { p class="note" { "The fleet is paused." } }
        dl class="totals" {
            div { dt { "Workers" } dd { (fleet.worker_count) } }
            div { dt { "Slots busy" } dd { (fleet.busy_count) " of " (fleet.slot_count) } }
            div { dt { "Queued" } dd { (fleet.queued_count) } }
            div { dt { "Running" } dd { (fleet.running_count) } }
            div { dt { "Oldest wait" } dd { (wait) } }
            div { dt { "Ended in 24 h" } dd { (fleet.ended_last_day_count) } }
            div { dt { "Lost in 24 h" } dd { (fleet.lost_last_day_count) } }
        }
        @if fleet.unmatched_count > 0 {
            p class="problem" { (plural(fleet.unmatched_count, "queued task")) " with a label that no worker has." }
        }
        @if fleet.workers.is_empty() { p class="empty" { "No worker runs. " code { "mcp-delegator worker" } " starts one." } }
        @if !fleet.workers.is_empty() {
            div class="wide" { table {
                thead { tr { @for name in ["Worker", "State", "Slots", "Labels", "Heartbeat", "Version"] { th scope="col" { (name) } } } }
                tbody { @for worker in &fleet.workers { (row(view, worker)) } }
            } }
        }
    }
}

fn row(view: &View<'_>, worker: &FleetWorker) -> Markup {
    html! {
        tr {
            th scope="row" { (view.text(&worker.name)) }
            td { (worker.state) }
            td { (worker.busy_count) " of " (worker.slot_count) }
            td { @for (name, value) in &worker.labels { span class="label" { (view.text(name)) "=" (view.text(value)) } " " } }
            td { (short_age(worker.heartbeat_age_ms.unsigned_abs() / 1000)) " ago" }
            td { (view.text(&worker.version)) }
        }
    }
}
