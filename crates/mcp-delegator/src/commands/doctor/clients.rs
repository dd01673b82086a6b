//! Checks of the MCP clients: whether each one that is installed starts this program, and whether users find
//! it on PATH.

use super::check::Check;
use crate::commands::context::Context;
use crate::commands::setup::clients::{self, Client, ClientState};
use crate::commands::setup::program_path::{real_path, risk, started_file};
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
    match started_file(context.process, PROGRAM) {
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
    let started = started_file(context.process, command);
    let own = context.process.program.as_deref().and_then(real_path);
    match client.state {
        ClientState::Unreadable => {
            let problem = client.problem.as_deref().unwrap_or("it cannot be read");
            let fix = format!(
                "Correct the file, or print the entry and add it by hand: {PROGRAM} setup {} --print",
                client.host.name()
            );
            Check::warning(name, format!("{}: {problem}", client.file), fix)
        }
        ClientState::NotRegistered | ClientState::NotFound => {
            Check::warning(name, format!("{} does not know this server", client.title), fix)
        }
        ClientState::RegisteredByUrl => Check::ok(name, format!("{} connects by URL", client.title)),
        ClientState::Registered if started.is_none() => {
            Check::warning(name, format!("{command} in {} does not exist", client.file), fix)
        }
        ClientState::Registered if started.and_then(|file| real_path(&file)) != own => {
            Check::warning(name, format!("{} starts another program: {command}", client.title), fix)
        }
        ClientState::Registered => Check::ok(name, format!("{} starts {command}", client.title)),
    }
}
