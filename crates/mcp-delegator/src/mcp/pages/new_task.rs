//! The form that starts a task.

use std::collections::BTreeSet;

use delegator_domain::task::Mode;
use maud::{Markup, html};

use crate::commands::local::agent_candidates::installed_agents;
use crate::commands::prelude::*;
use crate::mcp::pages::layout::{Live, Page};
use crate::mcp::pages::task_list::{directories, working_dir};
use crate::mcp::pages::view::View;

pub(super) fn page(view: &View<'_>) -> Result<Page, AppError> {
    if !view.may_write() {
        let message = "This session may not start tasks.";
        return Err(AppError::new(ErrorCode::PolicyBlocked, message));
    }
    let state = view.live.state()?;
    let last = state.in_order().first().map(|task| working_dir(task).to_owned());
    let directories = directories(&state);
    let main = html! {
        h1 { "New task" }
        form class="new" data-action="/api/v1/tasks" data-open {
            label { "What should the agent do?" textarea name="task" rows="6" required maxlength="100000" data-draft="new-task" {} }
            (place(view, last.as_deref(), &directories))
            (agent(view))
            (check_and_chain())
            button { "Start" }
        }
    };
    Ok(Page { title: "New task".to_owned(), live: Live::Nothing, main })
}

fn place(view: &View<'_>, last: Option<&str>, directories: &BTreeSet<String>) -> Markup {
    let given = view.request.value("dir").or(last).unwrap_or_default();
    html! {
        label {
            "Directory"
            input name="working_dir" data-draft="new-task-dir" list="directories" required maxlength="4096" placeholder="/home/me/project" value=(view.text(given));
        }
        datalist id="directories" { @for dir in directories { option value=(view.text(dir)); } }
        label {
            "Where the agent works"
            select name="isolation" data-draft="new-task-isolation" {
                option value="worktree" { "in a worktree of its own; you decide afterwards" }
                option value="none" { "in the directory itself" }
            }
        }
    }
}

fn agent(view: &View<'_>) -> Markup {
    let settings = &view.context.config.settings;
    let modes = Mode::ALL.into_iter().filter(|mode| *mode <= settings.max_mode);
    html! {
        label {
            "Agent"
            select name="agent" data-draft="new-task-agent" {
                option value="" { "the default" }
                @for agent in installed_agents(view.context) { option value=(agent) { (agent) } }
            }
        }
        label { "Model" input name="model" data-draft="new-task-model" maxlength="128" placeholder="the default of the agent"; }
        label {
            "Mode"
            select name="mode" data-draft="new-task-mode" {
                @for mode in modes { option value=(mode.name()) selected[mode == Mode::WorkspaceWrite] { (mode.name()) } }
            }
        }
        label { "Attempts" input type="number" name="attempts" data-draft="new-task-attempts" min="1" max="4" value="1" data-kind="number"; }
    }
}

fn check_and_chain() -> Markup {
    html! {
        label { "Verify command" input name="verify" data-draft="new-task-verify" placeholder="make test"; }
        label { "Afterwards, if it succeeds" textarea name="on_success" rows="2" data-draft="new-task-success" {} }
        label { "Afterwards, if it fails or is not verified" textarea name="on_failure" rows="2" data-draft="new-task-failure" {} }
    }
}
