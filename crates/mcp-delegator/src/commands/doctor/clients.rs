//! Checks of the MCP clients: whether each one that is installed starts this program, and whether users find it on PATH.

use std::path::Path;

use super::check::Check;
use crate::commands::context::Context;
use crate::commands::setup::clients::{self, Client, ClientState};
use crate::commands::setup::program_path::{path_entries, real_path, risk};
use crate::spec::version::PROGRAM;

pub fn checks(context: &Context<'_>) -> Vec<Check> {
    let mut checks = vec![on_path(context)];
    match clients::all(context.process) {
        Err(error) => checks.push(Check::failed(context, "clients", error)),
        Ok(clients) => {
            let found = clients.iter().filter(|client| client.state != ClientState::NotFound);
            let found: Vec<Check> = found.map(|client| registered(context, client)).collect();
            if found.is_empty() {
                let known: Vec<&str> = clients.iter().map(|client| client.title).collect();
                checks.push(Check::ok("clients", format!("none found ({})", known.join(", "))));
            }
            checks.extend(found);
        }
    }
    checks
}

/// Whether the command `mcp-delegator` starts this program.
fn on_path(context: &Context<'_>) -> Check {
    const NAME: &str = "path";
    let own = context.process.program.as_deref().and_then(real_path);
    match path_entries(context.process).next() {
        Some(first) if real_path(&first) == own => match risk(&first, context.process) {
            None => Check::ok(NAME, first.display().to_string()),
            Some(risk) => Check::warning(NAME, risk.message(&first), "Run: scripts/install"),
        },
        Some(first) => Check::warning(
            NAME,
            format!("`{PROGRAM}` starts another program: {}", first.display()),
            "Remove it, or change the order of PATH.",
        ),
        None => Check::warning(
            NAME,
            format!("`{PROGRAM}` is not on PATH"),
            "In a checkout run: scripts/install. Else add its directory to PATH.",
        ),
    }
}

fn registered(context: &Context<'_>, client: &Client) -> Check {
    let name = format!("clients.{}", client.host.name());
    let fix = format!("Run: {PROGRAM} setup {}", client.host.name());
    let command = client.command.as_deref().unwrap_or_default();
    match client.state {
        ClientState::Unreadable => {
            let problem = client.problem.as_deref().unwrap_or("it cannot be read");
            Check::warning(name, format!("{}: {problem}", client.file), "Correct the file.")
        }
        ClientState::NotRegistered | ClientState::NotFound => {
            Check::warning(name, format!("{} does not know this server", client.title), fix)
        }
        ClientState::Registered if !is_found(context, command) => {
            Check::warning(name, format!("{command} in {} does not exist", client.file), fix)
        }
        ClientState::Registered if !is_this_program(context, command) => {
            Check::warning(name, format!("{} starts another program: {command}", client.title), fix)
        }
        ClientState::Registered => Check::ok(name, format!("{} starts {command}", client.title)),
    }
}

fn is_found(context: &Context<'_>, command: &str) -> bool {
    match command == PROGRAM {
        true => path_entries(context.process).next().is_some(),
        false => Path::new(command).exists(),
    }
}

fn is_this_program(context: &Context<'_>, command: &str) -> bool {
    let own = context.process.program.as_deref().and_then(real_path);
    let registered = match command == PROGRAM {
        true => path_entries(context.process).next(),
        false => Some(Path::new(command).to_owned()),
    };
    // A script of an npm installation starts this program, but is another file.
    registered.and_then(|path| real_path(&path)) == own
        || crate::commands::setup::program_path::stable_path(context.process).as_deref()
            == Some(Path::new(command))
}
