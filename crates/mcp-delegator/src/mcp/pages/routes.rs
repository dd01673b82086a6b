//! Which page a path is, what it reads, and what it shows if that fails.

use delegator_engine::LiveFeed;
use http::StatusCode;
use jiff::Timestamp;
use maud::html;

use crate::commands::diff::{self, notes, requested_diff};
use crate::commands::local::attempts::compare;
use crate::commands::prelude::*;
use crate::commands::{fleet, history, usage};
use crate::mcp::api::queries::log;
use crate::mcp::api::queries::tasks;
use crate::mcp::pages::layout::{self, Live, Page};
use crate::mcp::pages::request::PageRequest;
use crate::mcp::pages::view::View;
use crate::mcp::pages::{
    attempts, change_check, comparison, diff as diff_page, fleet as fleet_page, history as history_page,
    log as log_page, new_task, task, task_list, usage as usage_page,
};
use crate::mcp::tools::server_state::ServerState;
use crate::output::call_syntax::CallSyntax;

/// The page and its status. An error is a page, too.
pub(super) fn write(state: &ServerState, live: &LiveFeed, request: &PageRequest) -> (StatusCode, String) {
    let now_ms = Timestamp::now().as_millisecond();
    let written = state.with_context(|context| {
        let view = View { context, live, request, now_ms };
        let (status, page) = match page(state, &view) {
            Ok(page) => (StatusCode::OK, page),
            Err(error) => (status_of(&error), failure(&view, error)),
        };
        Ok((status, context.screen.printer.redact(&layout::write(&page, &view))))
    });
    // Only a panic leads here.
    written.unwrap_or_else(|error| {
        let text =
            html! { h1 { "This page could not be made" } p { (state.printer.redact(&error.message)) } };
        (StatusCode::INTERNAL_SERVER_ERROR, text.into_string())
    })
}

fn page(state: &ServerState, view: &View<'_>) -> Result<Page, AppError> {
    let request = view.request;
    let segments: Vec<&str> = request.path.trim_matches('/').split('/').collect();
    match segments.as_slice() {
        [""] | ["ui"] | ["ui", "tasks"] => {
            let input: tasks::Tasks = request.input(state, &tasks::SPEC, None, &["page"])?;
            let tasks = view.live.state()?;
            Ok(task_list::page(view, &input, &tasks, request.number("page").unwrap_or(1)))
        }
        ["ui", "tasks", "new"] => new_task::page(view),
        ["ui", "tasks", id] => task::page(view, &reference(id)?),
        ["ui", "tasks", id, "log"] => {
            let input: log::LogInput = request.input(state, &log::SPEC, Some(("task_id", id)), &[])?;
            log_page::page(view, &input)
        }
        ["ui", "tasks", id, "diff"] => {
            let input: diff::Diff =
                request.input(state, &diff::SPEC, Some(("task_id", id)), &diff_page::OWN_QUERY)?;
            let (task, diff) = requested_diff(view.context, &input)?;
            let notes = notes(&diff, !task.state.is_terminal());
            diff_page::page(view, &task, &input, &diff, &notes)
        }
        ["ui", "tasks" | "groups", id, "check", action] => change_check::page(state, view, id, action),
        ["ui", "groups", id] => {
            let engine = engine(view.context)?;
            let group = attempts::group_id(&engine, id)?;
            attempts::page(view, &engine, &group)
        }
        ["ui", "groups", id, "diffs"] => {
            let engine = engine(view.context)?;
            let group = attempts::group_id(&engine, id)?;
            let compared = compare(view.context, &engine, &group)?;
            Ok(comparison::page(view, &group, &compared))
        }
        ["ui", "history"] => {
            let input: history::History = request.input(state, &history::SPEC, None, &[])?;
            let (list, found) = history::find(view.context, input.clone())?;
            Ok(history_page::page(view, &input, &list, &found))
        }
        ["ui", "usage"] => {
            let input: usage::UsageInputs = request.input(state, &usage::SPEC, None, &[])?;
            usage_page::page(view, &input)
        }
        ["ui", "fleet"] => {
            let input: fleet::status::FleetStatusInput =
                request.input(state, &fleet::status::SPEC, None, &[])?;
            fleet_page::page(view, input)
        }
        _ => Err(AppError::new(ErrorCode::NotFound, format!("There is no page {}.", request.path))),
    }
}

fn reference(id: &str) -> Result<TaskRef, AppError> {
    TaskRef::from_text(id)
        .ok_or_else(|| AppError::new(ErrorCode::InvalidId, format!("{id} is not the id of a task.")))
}

fn status_of(error: &AppError) -> StatusCode {
    match error.code {
        ErrorCode::NotFound | ErrorCode::TaskNotFound => StatusCode::NOT_FOUND,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

fn failure(view: &View<'_>, mut error: AppError) -> Page {
    CallSyntax::Commands.name_inputs_of(&mut error);
    let main = html! {
        h1 { "This page cannot be shown" }
        (view.problem(&error))
        p { a href="/" { "All tasks" } }
    };
    Page { title: "Error".to_owned(), live: Live::Nothing, main }
}
