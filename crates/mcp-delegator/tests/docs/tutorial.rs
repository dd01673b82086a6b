//! The tutorial, typed line by line into one shell on a terminal, in an empty directory.

use std::path::Path;

use delegator_testkit::generated::workspace;
use delegator_testkit::program::read_text;
use delegator_testkit::stage::Stage;
use delegator_testkit::terminal::run_on_terminal;

use crate::example_world::{PROGRAM, on_path};
use crate::{TUTORIAL, commands, other_programs};

/// Commands that end at the first line that does not exit as the tutorial says.
fn script() -> String {
    let page = std::fs::read_to_string(workspace().join(TUTORIAL)).unwrap();
    let mut lines = vec!["set -e -o pipefail".to_owned()];
    let mut fence: Option<&str> = None;
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            fence = if fence.is_some() { None } else { Some(language) };
        } else if fence == Some("sh") && !other_programs::is_covered_elsewhere(line) {
            lines.push(match commands::stated_exit(line) {
                0 => line.to_owned(),
                exit => format!("if {}; then false; else test $? = {exit}; fi", without_comment(line)),
            });
        }
    }
    lines.join("\n") + "\n"
}

fn without_comment(line: &str) -> &str {
    line.split(" # ").next().unwrap_or_default()
}

#[test]
fn the_tutorial_works_from_its_first_line_to_its_last() {
    let agent = read_text(&workspace().join("crates/mcp-delegator/tests/docs/tutorial_agent.sh"));
    let stage =
        on_path(Stage::with_shell_agent(PROGRAM, &agent)).variable("PAGER", "cat").variable("TERM", "xterm");
    stage.world.write("home/.gitconfig", "[user]\nname = Me\nemail = me@example.com\n");
    stage.world.write("home/.claude.json", "{}\n");
    stage.world.write("tutorial.sh", &script());
    let file = stage.root().join("tutorial.sh");
    let run = run_on_terminal(stage.world.command_as(Path::new("bash"), ["-v".as_ref(), file.as_os_str()]));
    assert_eq!(run.exit, Some(0), "it ended after the last line of this: {}", run.stdout);
    // What the page says about the output, and what the reader has at the end.
    for text in ["verification  verified", "The reviewer found no problems.", "Recommended: attempt 1"] {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    let calendar = stage.world.project().join("calendar");
    assert!(read_text(&calendar.join("leap.sh")).contains("usage: leap.sh YEAR"));
    assert!(read_text(&calendar.join("README.md")).starts_with("# Calendar"));
    assert!(read_text(&stage.world.home().join(".claude.json")).contains("mcp-delegator"));
}
