//! Runs one command line of a page and checks how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use delegator_testkit::program::{read_text, wait_for_output};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::example_world::ExampleWorld;

/// How a command ends.
#[derive(Debug)]
pub(crate) enum Ending {
    /// By itself.
    Exits,
    /// When its stdin is closed.
    StdinCloses,
    /// When it gets a signal.
    Signal,
    /// With its world: a worker runs while the next commands of its block do.
    WithWorld,
}

/// Whether the command, or the last part of its pipeline, is this program.
pub(crate) fn runs_this_program(command: &str) -> bool {
    command.starts_with("mcp-delegator ") || command.contains("| mcp-delegator ")
}

pub(crate) fn ending(location: &str, command: &str) -> Ending {
    let args = command.split_once("mcp-delegator ").unwrap().1;
    match args.split_whitespace().next().unwrap_or_default() {
        "serve" if args.contains("--http") => Ending::Signal,
        "dashboard" if !args.starts_with("dashboard sessions") => Ending::Signal,
        "serve" => Ending::StdinCloses,
        "worker" => Ending::WithWorld,
        "agents" | "answer" | "apply" | "cancel" | "cleanup-registry" | "cloud" | "completions"
        | "config" | "dashboard" | "demo" | "diff" | "discard" | "doctor" | "env" | "events" | "exec"
        | "fleet" | "help" | "history" | "import" | "init" | "local" | "logs" | "man" | "manifest"
        | "notify" | "queue" | "read" | "restore" | "results" | "resume" | "retry" | "review" | "run"
        | "schema" | "send" | "setup" | "show" | "status" | "undo" | "usage" | "version" | "wait"
        | "watch" | "worktrees" => Ending::Exits,
        other => panic!("{location}: how does `{other}` end? Add it to this list."),
    }
}

/// The exit code that a comment such as `# exit 14` states, otherwise 0. `doctor` and `init` tell the truth about this world:
/// its agent has no sandbox, there is no terminal for questions, and no notification is configured.
fn expected_exit(location: &str, command: &str) -> i32 {
    match command.split_once("mcp-delegator ").map_or("", |(_, args)| args) {
        // The page configures an agent that works.
        args if args.starts_with("doctor") && location.starts_with("docs/adding-an-agent.md") => return 0,
        args if args.starts_with("doctor") || args.starts_with("init --dry-run") => return 4,
        args if args.starts_with("watch") => return 4,
        args if args.starts_with("notify --test") || args.starts_with("notify --retry") => return 4,
        args if args.starts_with("init") => return 2,
        _ => {}
    }
    stated_exit(command)
}

/// The exit code that the comment of a command states.
pub(crate) fn stated_exit(command: &str) -> i32 {
    let comment = command.split_once("# exit ").map(|(_, comment)| comment);
    let digits = comment.and_then(|comment| comment.split(|letter: char| !letter.is_ascii_digit()).next());
    digits.map_or(0, |digits| digits.parse().unwrap())
}

/// Runs a command of a page and panics unless it ends as the page says.
pub(crate) fn run(world: &ExampleWorld, location: &str, command: &str) {
    let script = world.fill_in(command);
    assert!(!script.contains("T-local-…"), "{location}: `{command}` names a task that does not exist");
    match ending(location, command) {
        Ending::Exits => {
            // A failure anywhere in a pipeline counts.
            let args = ["-o", "pipefail", "-c", &script];
            let run = world.stage.world.run_as(Path::new("bash"), args);
            assert_eq!(run.exit, Some(expected_exit(location, command)), "{location}: `{command}`: {run:?}");
            world.wait_for_tasks();
        }
        Ending::StdinCloses => use_stdio_server(shell(world, &script), location),
        Ending::Signal => use_http_server(world, shell(world, &script), location),
        Ending::WithWorld => world.start_worker(shell(world, &script)),
    }
}

/// The command as a process of its own, so that a signal reaches the program and not a shell.
fn shell(world: &ExampleWorld, script: &str) -> Command {
    let mut command = world.stage.world.command_as(Path::new("bash"), ["-c", &format!("exec {script}")]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

fn initialize_request() -> String {
    let client = json!({"name": "docs", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string()
}

fn use_stdio_server(mut command: Command, location: &str) {
    let mut server = command.spawn().unwrap();
    let mut stdin = server.stdin.take().unwrap();
    stdin.write_all(format!("{}\n", initialize_request()).as_bytes()).unwrap();
    let mut response = String::new();
    BufReader::new(server.stdout.as_mut().unwrap()).read_line(&mut response).unwrap();
    assert!(response.contains("serverInfo"), "{location}: {response}");
    drop(stdin);
    let run = wait_for_output(server);
    assert_eq!(run.exit, Some(0), "{location}: {run:?}");
}

fn use_http_server(world: &ExampleWorld, mut command: Command, location: &str) {
    // Behind a proxy only browsers are served.
    let is_public = command.get_args().any(|argument| argument.to_string_lossy().contains("--public-url"));
    let expected = if is_public { b"HTTP/1.1 403" } else { b"HTTP/1.1 200" };
    let mut server = command.spawn().unwrap();
    let address = printed_address(&mut server, location);
    let token = read_text(&world.stage.world.home().join("state/http-token"));
    let (token, body) = (token.trim(), initialize_request());
    let mut stream = TcpStream::connect(&address).unwrap();
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
    let mut status = [0; 12];
    stream.read_exact(&mut status).unwrap();
    assert_eq!(&status, expected, "{location}");
    kill_process(Pid::from_child(&server), Signal::TERM).unwrap();
    server.wait().unwrap();
}

/// The address in the URL that the server prints on stderr.
fn printed_address(server: &mut Child, location: &str) -> String {
    let lines = BufReader::new(server.stderr.as_mut().unwrap()).lines();
    for line in lines.map_while(Result::ok) {
        if let Some((_, url)) = line.split_once("http://") {
            return url.split('/').next().unwrap().to_owned();
        }
    }
    panic!("{location}: the server exited before it listened");
}
