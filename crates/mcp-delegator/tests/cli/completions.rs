//! Completions in real shells. bash and zsh run on a pseudo terminal and complete with the Tab key; fish prints what it
//! would offer.

use std::path::Path;
use std::process::Command;

use delegator_testkit::program::{World, output_of};
use delegator_testkit::stage::{Stage, successful_turn};
use delegator_testkit::terminal::TerminalSession;
use serde_json::json;

use crate::PROGRAM;

/// What is typed, and the line that the Tab key makes of it.
const COMPLETED: [(&str, &str); 18] = [
    ("mcp-delegator mani", "mcp-delegator manifest "),
    ("mcp-delegator resul", "mcp-delegator results "),
    ("mcp-delegator events summ", "mcp-delegator events summarize "),
    ("mcp-delegator local wa", "mcp-delegator local wait "),
    ("mcp-delegator run x --worki", "mcp-delegator run x --working-dir "),
    ("mcp-delegator run x --mode read", "mcp-delegator run x --mode read-only "),
    ("mcp-delegator run x --mode=read", "mcp-delegator run x --mode=read-only "),
    ("mcp-delegator status --format mark", "mcp-delegator status --format markdown "),
    ("mcp-delegator completions zs", "mcp-delegator completions zsh "),
    ("mcp-delegator setup curs", "mcp-delegator setup cursor "),
    ("mcp-delegator run x --working-dir some-d", "mcp-delegator run x --working-dir some-directory/"),
    ("mcp-delegator events follow some-f", "mcp-delegator events follow some-file.jsonl "),
    ("mcp-delegator wait --las", "mcp-delegator wait --last "),
    ("mcp-delegator help resum", "mcp-delegator help resume "),
    ("mcp-delegator help events summ", "mcp-delegator help events summarize "),
    ("mcp-delegator man mani", "mcp-delegator man manifest "),
    ("mcp-delegator run x --agent hel", "mcp-delegator run x --agent helper "),
    ("mcp-delegator run x --agent cod", "mcp-delegator run x --agent codex "),
];

fn prepared_world() -> World {
    let world = World::new(PROGRAM);
    world.write("project/some-directory/x", "");
    world.write("project/some-file.jsonl", "");
    let agent = "[agents.helper]\nprotocol = \"plain\"\ncommand = [\"true\"]\nunsandboxed = true\n";
    world.write("home/.config/mcp-delegator/config.toml", agent);
    world
}

/// A shell that finds the program by its name.
fn shell(world: &World, name: &str, args: &[&str]) -> Command {
    assert!(Path::new("/usr/bin").join(name).exists(), "{name} is missing: run scripts/install-shells");
    let mut command = world.command_as(&Path::new("/usr/bin").join(name), args);
    let path = format!("{}:/usr/bin:/bin", Path::new(PROGRAM).parent().unwrap().display());
    command.env("PATH", path).env("TERM", "dumb").env("ENV", "");
    command
}

/// Types every line and Tab, then a command that prints the completed line in brackets.
fn complete_on_terminal(command: Command, bind: &str) -> Vec<String> {
    let mut session = TerminalSession::start_interactive(command);
    session.type_text(bind);
    session.wait_for_text("READY");
    COMPLETED
        .iter()
        .enumerate()
        .map(|(number, (typed, _))| {
            session.type_text(&format!("{typed}\t\x18"));
            session.wait_for_text(&format!("<{number}:"));
            session.wait_for_text(&format!(":{number}>"));
            let text = session.text();
            let from = text.rfind(&format!("<{number}:")).unwrap() + format!("<{number}:").len();
            text[from..].split(&format!(":{number}>")).next().unwrap().to_owned()
        })
        .collect()
}

fn assert_completed(shell: &str, lines: Vec<String>) {
    for ((typed, expected), line) in COMPLETED.iter().zip(lines) {
        assert_eq!(line.trim_end(), expected.trim_end(), "{shell}: {typed}");
    }
}

#[test]
fn bash_completes_commands_flags_values_and_paths() {
    let world = prepared_world();
    let command = shell(&world, "bash", &["--norc", "--noprofile", "-i"]);
    // Control-X prints the line and clears it.
    let bind = "source <(mcp-delegator completions bash); n=0; show() { echo \"<$n:$READLINE_LINE:$n>\"; n=$((n+1)); \
                READLINE_LINE=; READLINE_POINT=0; }; bind -x '\"\\C-x\": show'; echo REA''DY\n";
    assert_completed("bash", complete_on_terminal(command, bind));
}

#[test]
fn zsh_completes_commands_flags_values_and_paths() {
    let world = prepared_world();
    let command = shell(&world, "zsh", &["-f", "-i"]);
    let bind = "autoload -Uz compinit; compinit -u -d $HOME/dump; source <(mcp-delegator completions zsh); n=0; \
                show() { print -r -- \"<$n:$BUFFER:$n>\"; n=$((n+1)); BUFFER=; }; zle -N show; bindkey '^X' show; \
                echo REA''DY\n";
    assert_completed("zsh", complete_on_terminal(command, bind));
}

#[test]
fn fish_completes_commands_flags_values_and_paths() {
    let world = prepared_world();
    for (typed, expected) in COMPLETED {
        let script = format!("mcp-delegator completions fish | source; complete --do-complete '{typed}'");
        let run = output_of(&mut shell(&world, "fish", &["--no-config", "-c", &script]));
        let last = expected.trim_end().rsplit(' ').next().unwrap();
        let offered = run.stdout.lines().any(|line| line.split('\t').next() == Some(last));
        assert!(offered, "{typed}: {run:?}");
    }
}

#[test]
fn the_script_of_every_shell_is_listed_with_how_to_install_it() {
    let list = World::new(PROGRAM).run(["completions"]).stdout;
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        assert!(list.contains(&format!("mcp-delegator completions {shell}")), "{list}");
        let script = World::new(PROGRAM).run(["completions", shell]).stdout;
        assert!(script.contains("_MCP_DELEGATOR_COMPLETE"), "{script}");
    }
}

#[test]
fn task_ids_are_completed_with_their_titles() {
    let stage = Stage::with_script(PROGRAM, successful_turn(&[]));
    let id = stage.exec(&[]);
    let offered = |word: &str| {
        let mut command = stage.world.command(["--", "mcp-delegator", "wait", word]);
        output_of(command.env("_MCP_DELEGATOR_COMPLETE", "fish")).stdout
    };
    for word in ["", "T-lo", &id[..11], &id[8..11]] {
        assert_eq!(offered(word), format!("{id}\tdo it\n"), "{word}");
    }
    assert_eq!(json!(offered("T-cloud-")), "");
}
