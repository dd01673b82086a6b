//! Commands of other programs in the pages, and what covers them instead of this test.

use std::os::unix::fs::PermissionsExt;

use delegator_testkit::generated::workspace;
use delegator_testkit::program::read_text;

/// The beginning of a command, and why it is not run here.
const COVERED_ELSEWHERE: [(&str, &str); 14] = [
    ("cargo run ", "CI runs the first command of the README; its `demo` is run here as well"),
    ("cargo install ", "it builds the program that this test runs"),
    ("scripts/install", "the newcomer's test runs it with the program that is built already"),
    (
        "scripts/",
        "CI runs `scripts/test`, which runs the other scripts; checked below: the file is executable",
    ),
    ("cargo xtask ", "it builds a release; its parts have tests of their own"),
    ("npm install -g @openai/codex", "`scripts/install-codex` installs the same package for the tests"),
    ("claude plugin ", "the tests of the hosts type these commands into a terminal"),
    ("codex plugin ", "the tests of the hosts run these commands"),
    ("codex login", "it needs an account; the tests of `doctor` run `codex login status`"),
    (
        "echo 'source <(mcp-delegator completions ",
        "the tests of `completions` source the script in a real shell",
    ),
    ("echo 'postgres://", "the tests of `worker` read such a file"),
    ("export ", "the tests of the agents' environment pass such variables on"),
    ("curl -H ", "the tests of the HTTP API send these requests"),
    ("just", "recipes run whole suites or benchmarks; checked below: the recipe exists"),
];

pub(crate) fn is_covered_elsewhere(command: &str) -> bool {
    COVERED_ELSEWHERE.iter().any(|(beginning, _)| command.starts_with(beginning))
}

/// Panics unless the command is listed, and its script or recipe exists.
pub(crate) fn check(location: &str, command: &str) {
    assert!(
        is_covered_elsewhere(command),
        "{location}: `{command}` is not run by a test; run it here or list it with what covers it"
    );
    let mut words = command.split_whitespace();
    match words.next() {
        Some(script) if script.starts_with("scripts/") => {
            let metadata = std::fs::metadata(workspace().join(script));
            let is_executable = metadata.is_ok_and(|file| file.permissions().mode() & 0o111 != 0);
            assert!(is_executable, "{location}: {script} is not an executable file");
        }
        Some("just") => {
            let recipe = words.next().filter(|word| !word.starts_with('#')).unwrap_or("default");
            let is_recipe = |line: &str| {
                let rest = line.strip_prefix(recipe);
                rest.is_some_and(|rest| rest.starts_with([':', ' ']))
            };
            let justfile = read_text(&workspace().join("justfile"));
            assert!(justfile.lines().any(is_recipe), "{location}: there is no recipe {recipe}");
        }
        _ => {}
    }
}
