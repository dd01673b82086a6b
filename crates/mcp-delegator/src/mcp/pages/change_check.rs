//! What an action would do, shown before it happens: the check of the command, and the form that runs it.

use delegator_engine::{DiffSize, Target};
use maud::{Markup, html};
use serde_json::Map;

use crate::commands::diff::{find_diff, notes};
use crate::commands::prelude::*;
use crate::commands::{Started, apply, prepare, restore};
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::view::{View, lines};
use crate::mcp::tools::server_state::ServerState;

/// An action that is checked first.
struct Checked {
    title: &'static str,
    /// The last part of its path in the API.
    action: &'static str,
    /// The command that reports what would happen, and its input.
    check: Option<(&'static CommandSpec, crate::commands::Prepare, &'static str)>,
}

fn checked(action: &str) -> Option<Checked> {
    let apply_check =
        Some((&apply::SPEC, (|input| prepare(input, apply::run)) as crate::commands::Prepare, "check"));
    let undo_check = Some((
        &restore::undo::SPEC,
        (|input| prepare(input, restore::undo::run)) as crate::commands::Prepare,
        "dry_run",
    ));
    Some(match action {
        "apply" => Checked { title: "Apply the changes", action: "apply", check: apply_check },
        "adopt" => Checked { title: "Adopt this attempt", action: "apply", check: apply_check },
        "branch" => Checked { title: "Create a branch with the changes", action: "apply", check: None },
        "discard" => Checked { title: "Discard the changes", action: "discard", check: None },
        "undo" => Checked { title: "Undo what the task changed", action: "undo", check: undo_check },
        _ => return None,
    })
}

pub(super) fn page(state: &ServerState, view: &View<'_>, id: &str, action: &str) -> Result<Page, AppError> {
    let unknown = || AppError::new(ErrorCode::NotFound, format!("There is no page {}.", view.request.path));
    let known = checked(action).filter(|_| view.may_write()).ok_or_else(unknown)?;
    let outcome = known.check.map(|(spec, prepare, flag)| {
        let mut object = Map::new();
        object.insert("task_id".to_owned(), id.into());
        object.insert(flag.to_owned(), true.into());
        object.extend(view.request.number("attempt").map(|number| ("attempt".to_owned(), number.into())));
        let call = state.admit_with(spec, prepare, object).map_err(|refused| *refused.error)?;
        match call.prepared.run(view.context)? {
            Started::Finished(output) => Ok(*output),
            Started::Waiting(..) => Err(AppError::new(ErrorCode::Internal, "A check does not wait.")),
        }
    });
    let kind = if view.request.path.starts_with("/ui/groups/") { "groups" } else { "tasks" };
    let engine = engine(view.context)?;
    let target = engine.results().resolve_target(id)?;
    let main = html! {
        h1 id="dialog-title" { (known.title) }
        @match &outcome {
            None => { (description(action)) (content(view, &engine, &target)) },
            Some(Ok(output)) => (report(view, output)),
            Some(Err(error)) => {
                p { "This cannot be done as it is:" }
                (view.problem(error))
            },
        }
        @if outcome.as_ref().is_none_or(Result::is_ok) { (form(view, &format!("/api/v1/{kind}/{id}/{}", known.action), action)) }
        p { a href=(format!("/ui/{kind}/{id}")) data-close { "Do nothing" } }
    };
    Ok(Page { title: known.title.to_owned(), live: Live::Nothing, main })
}

fn description(action: &str) -> Markup {
    html! {
        @if action == "branch" {
            p { "Your files stay as they are. The branch gets the changes and the commits of the agent." }
        } @else {
            p { "The directory and the commits of the agent are removed. The diff stays with the task: it can still be shown and applied." }
        }
    }
}

/// What is removed or gets a branch.
fn content(view: &View<'_>, engine: &Engine, target: &Target) -> Markup {
    let Target::Task(id) = target else { return html! {} };
    let found = engine.results().task(id).map_err(AppError::from);
    let found = found.and_then(|task| find_diff(view.context, engine, &task, 1));
    html! {
        @match &found {
            Err(error) => (view.problem(error)),
            Ok(diff) => {
                @let size = DiffSize::of(&diff.text);
                p { (plural(size.files, "changed file")) " " (lines(Some(size.lines_added), Some(size.lines_deleted))) }
                @for note in notes(diff, false) { p class="problem" { (view.text(&note.message)) } }
            },
        }
    }
}

fn report(view: &View<'_>, output: &CommandOutput) -> Markup {
    let document = output.data.as_ref().map(|data| output.document(data)).unwrap_or_default();
    html! {
        @if let Some(title) = &document.title { p { (view.text(title)) } }
        (document.to_html())
        @for warning in &output.warnings { p class="problem" { (view.text(&warning.message)) } }
    }
}

fn form(view: &View<'_>, path: &str, action: &str) -> Markup {
    html! {
        form data-action=(path) data-done="reload" {
            @match action {
                "branch" => label { "Name of the branch" input name="branch" required maxlength="250" autofocus; },
                "apply" | "adopt" => {
                    label class="check" { input type="checkbox" name="commit" value="true" data-kind="flag"; "Also commit them" }
                    label class="check" { input type="checkbox" name="force" value="true" data-kind="flag"; "Even if they are not verified or not recommended" }
                    @if let Some(attempt) = view.request.number("attempt") {
                        input type="hidden" name="attempt" value=(attempt) data-kind="number";
                        p class="note" { "The worktrees of the other attempts are discarded." }
                    }
                },
                "discard" => input type="hidden" name="confirm_destructive" value="true" data-kind="flag";,
                _ => {},
            }
            button class=[(action == "discard").then_some("careful")] autofocus[action != "branch"] { (verb(action)) }
        }
    }
}

fn verb(action: &str) -> &'static str {
    match action {
        "branch" => "Create the branch",
        "adopt" => "Adopt",
        "apply" => "Apply",
        "undo" => "Undo",
        _ => "Discard",
    }
}
