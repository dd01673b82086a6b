//! Opens a page of the dashboard that runs, in a browser that the link signs in.

use delegator_engine::{DashboardAddress, Target};

use crate::commands::prelude::*;
use crate::commands::sign_in::{Scope, Sessions, browser, link};

#[derive(Debug)]
pub struct SignInLink {
    pub url: String,
    pub is_opened: bool,
}

/// Creates a link to a page of the server at `url`, and opens it if the user wants that and has a screen.
pub fn sign_in_link(
    context: &Context<'_>,
    url: &str,
    page: Option<&str>,
    (scope, opens): (Scope, bool),
) -> Result<SignInLink, AppError> {
    let sessions = Sessions::new(context.state_dir.as_deref().ok_or_else(no_state_dir)?);
    let code = sessions.create_code(scope);
    let code = code.map_err(|error| io_error("Creating the link", &error))?;
    let url = link::link(url, code.expose(), page);
    let opener = browser::opener(context.process).filter(|_| opens);
    let is_opened = opener.is_some_and(|opener| {
        let opened = browser::open(&opener, &url, &sessions.opening_file());
        opened.inspect_err(|error| tracing::warn!(opener, %error, "could not open a browser")).is_ok()
    });
    Ok(SignInLink { url, is_opened })
}

/// The path of the page of a task or group.
pub fn page_of(engine: &Engine, given: &TaskRef) -> Result<String, AppError> {
    Ok(match engine.results().resolve_target(given.as_str())? {
        Target::Task(id) => format!("/ui/tasks/{id}"),
        Target::Group(id) => format!("/ui/groups/{id}"),
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize, JsonSchema)]
pub struct OpenInput {
    /// Open the page of the task in a browser; needs a dashboard that runs
    #[serde(default)]
    #[schemars(extend("x-markers" = [Marker::CommandLineOnly]))]
    pub open: bool,
}

impl OpenInput {
    /// Before anything is submitted: a page without a server cannot be opened.
    pub fn preflight(self, context: &PreflightContext<'_>) -> Option<Problem> {
        let runs = || context.state_dir.is_some_and(|dir| matches!(DashboardAddress::read(dir), Ok(Some(_))));
        (self.open && !runs()).then(|| {
            let problem = Problem::invalid("open", "needs the dashboard, which does not run");
            problem.suggest(Some("Start it in another terminal: mcp-delegator dashboard"))
        })
    }

    /// The page of a submitted task, or of all attempts.
    pub fn open(self, context: &Context<'_>, task: &Task) -> Result<(), AppError> {
        let page = match &task.group {
            Some(member) => format!("/ui/groups/{}", member.group),
            None => format!("/ui/tasks/{}", task.id),
        };
        let address = |dir: &Path| DashboardAddress::read(dir).ok().flatten();
        let Some(url) = context.state_dir.as_deref().filter(|_| self.open).and_then(address) else {
            return Ok(());
        };
        let link = sign_in_link(context, &url, Some(&page), (Scope::Write, true))?;
        if !link.is_opened {
            context.screen.announce_always(&format!("Open this link within 60 seconds: {}", link.url));
        }
        Ok(())
    }
}

fn no_state_dir() -> AppError {
    AppError::new(ErrorCode::ConfigInvalid, "The state directory is unknown.")
}
