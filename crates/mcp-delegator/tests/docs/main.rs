//! Runs every command of the README and of the pages in `docs/`, in a hermetic world with a scripted agent.
//!
//! Each `sh` block is one world, with the last `toml` block before it as the user's configuration: its lines run in order and must exit with 0, or with the code of a comment such as
//! `# exit 14`. The `console` block of the README is generated from a real session. A line that is neither run nor
//! listed in `other_programs` fails the test, so no new example escapes.

#![expect(clippy::unwrap_used, reason = "a test panics when its setup is not as expected")]

mod commands;
mod example_world;
mod other_programs;
mod pages;
mod session;
mod tutorial;

use example_world::ExampleWorld;
use pages::Block;

/// Its blocks are one session: see `tutorial.rs`.
const TUTORIAL: &str = "docs/tutorial.md";

/// Runs the blocks of the selected pages; returns the number of commands.
fn run_pages(is_selected: impl Fn(&str) -> bool) -> usize {
    let blocks: Vec<Block> = pages::all().iter().flat_map(|page| page.blocks()).collect();
    let mut count = 0;
    for block in blocks.iter().filter(|block| is_selected(&block.page)) {
        let (other, ours): (Vec<&String>, Vec<&String>) =
            block.commands.iter().partition(|command| !commands::runs_this_program(command));
        for command in other {
            other_programs::check(&block.location(), command);
        }
        if ours.is_empty() {
            continue;
        }
        let world = ExampleWorld::new(&ours, &block.config);
        for command in ours {
            commands::run(&world, &block.location(), command);
            count += 1;
        }
        world.drain_workers();
        world.end_chat();
    }
    count
}

#[test]
fn commands_of_the_readme_work() {
    assert!(run_pages(|page| page == "README.md") > 0);
}

#[test]
fn commands_of_the_command_reference_work() {
    assert!(run_pages(|page| page == "docs/commands.md") > 20);
}

#[test]
fn commands_of_the_how_to_pages_work() {
    assert!(run_pages(|page| page.starts_with("docs/how-to/")) > 20);
}

#[test]
fn commands_of_all_other_pages_work() {
    let is_other = |page: &str| {
        !page.starts_with("docs/how-to/") && !["README.md", "docs/commands.md", TUTORIAL].contains(&page)
    };
    assert!(run_pages(is_other) > 10);
}

#[test]
#[should_panic(expected = "is not run by a test")]
fn an_uncovered_command_of_another_program_is_refused() {
    other_programs::check("page.md:1", "make install");
}

#[test]
#[should_panic(expected = "how does `paint` end?")]
fn a_command_with_an_unknown_ending_is_refused() {
    commands::ending("page.md:1", "mcp-delegator paint");
}
