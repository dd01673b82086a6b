//! Parses the command lines of test runs: which runner they call, and which tests they select.
//!
//! The selectors of a command are those of its words that select tests. Words that control output,
//! parallelism or when to stop are dropped, and so is the name of the runner; so `pytest -q` has the same
//! selectors as `python -m pytest`. A project's own command (`npm test`, `make test`) has none. A directory
//! that the command changes to is a selector, unless it is the agent's working directory.

use super::Runner;
use crate::shell::{self, Pipeline};

/// Programs that print existing text or manage files; their output is never a test run.
const TEXT_PROGRAMS: &str = "[ ack ag apply_patch awk bat cat cd chmod cp curl cut diff echo egrep export false fd fgrep file find gh \
    git grep head jq journalctl kill less ls mkdir more mv nl popd printf ps pushd pwd rg rm sed set sleep \
    sort source stat tac tail test touch tree true uniq wc wget which xxd";

const WRAPPERS: &str =
    "bundle command env exec nice nohup npx poetry pipenv stdbuf sudo time timeout xargs xvfb-run";

/// Flags that select no tests.
const NON_SELECTING_FLAGS: &str = "-- --all --all-features --all-targets --ci --colors --failfast --fail-fast --force-color --locked \
    --no-capture --no-color --no-daemon --no-fail-fast --no-header --no-summary --nocapture --offline \
    --output-on-failure --quiet --release --rerun-tasks --runInBand --show-output --silent --verbose \
    --watch=false --workspace -B -count=1 -json -race";

/// Flags that select no tests and have a value, after `=` or as the next word.
const NON_SELECTING_OPTIONS: &str = "--color --colour --console --features --format --jobs --maxWorkers --reporter --tb --test-reporter \
    --test-threads";

/// Letters of short flags that select no tests, alone or combined (`-xvs`); `-j` and `-n` may be followed by
/// a number.
const NON_SELECTING_LETTERS: &str = "qvsxi";

#[derive(Debug)]
pub(crate) struct ParsedCommand {
    pipelines: Vec<Pipeline>,
    /// The last directory it changed to, unless that is the agent's working directory.
    pub(crate) directory: Option<String>,
}

/// Whether a command looks like a test run, whatever it printed: it calls a runner, or runs something with
/// `test` in its name (`sh test.sh`, `make check-test`) without only printing it.
pub fn looks_like_test_run(line: &str) -> bool {
    let command = ParsedCommand::new(line, None);
    let mentions_test = |word: &String| {
        word.split(|char: char| !char.is_alphanumeric()).any(|part| matches!(part, "test" | "tests"))
    };
    // The shell's own `test` checks files.
    let is_run = |words: &&Vec<String>| !matches!(program(words), "test" | "[");
    let mut runs = command.pipelines.iter().filter_map(|pipeline| pipeline.0.first()).filter(is_run);
    command.named_runner().is_some()
        || (!command.only_prints_text() && runs.any(|words| words.iter().any(mentions_test)))
}

impl ParsedCommand {
    pub(crate) fn new(line: &str, workdir: Option<&str>) -> Self {
        Self::from_script(&shell::unwrap(line), workdir)
    }

    /// Parses a script without shell wrapper; `workdir` is the agent's working directory.
    pub(crate) fn from_script(script: &str, workdir: Option<&str>) -> Self {
        let mut pipelines = shell::pipelines(script);
        for words in pipelines.iter_mut().flat_map(|pipeline| &mut pipeline.0) {
            strip_wrappers(words);
        }
        let directory =
            pipelines.iter().filter_map(|pipeline| changed_directory(pipeline, workdir)).next_back();
        Self { pipelines, directory }
    }

    /// Whether no part of the command runs anything.
    pub(crate) fn only_prints_text(&self) -> bool {
        let prints = |pipeline: &Pipeline| {
            pipeline.0.first().is_some_and(|words| is_text_program(words))
                && !pipeline.0.iter().any(|words| called_runner(words).is_some())
        };
        !self.pipelines.is_empty() && self.pipelines.iter().all(prints)
    }

    pub(crate) fn has_head_or_tail(&self) -> bool {
        self.pipelines
            .iter()
            .any(|pipeline| pipeline.0.iter().skip(1).any(|words| matches!(program(words), "tail" | "head")))
    }

    pub(crate) fn named_runner(&self) -> Option<Runner> {
        self.pipelines.iter().flat_map(|pipeline| &pipeline.0).find_map(|words| called_runner(words))
    }

    /// The sorted words that select tests, for a runner that ran.
    pub(crate) fn selectors(&self, runner: Runner) -> Vec<String> {
        let simple: Vec<&Vec<String>> =
            self.pipelines.iter().filter_map(|pipeline| pipeline.0.first()).collect();
        let runner_commands: Vec<&Vec<String>> =
            simple.iter().copied().filter(|words| called_runner(words) == Some(runner)).collect();
        let mut selected: Vec<String> = match runner_commands.as_slice() {
            [] => simple
                .into_iter()
                .filter(|words| !is_text_program(words))
                .flat_map(|w| project_selectors(w))
                .collect(),
            own => own
                .iter()
                .flat_map(|words| selecting_words(words.iter().skip(name_word_count(runner, words))))
                .collect(),
        };
        selected.extend(self.directory.iter().map(|directory| format!("cd {directory}")));
        selected.sort();
        selected.dedup();
        selected
    }
}

fn called_runner(words: &[String]) -> Option<Runner> {
    let second = words.get(1).map_or("", String::as_str);
    Some(match program(words) {
        "cargo" if matches!(second, "test" | "t") => Runner::Cargo,
        "cargo" if second == "nextest" => Runner::Nextest,
        "cargo-nextest" => Runner::Nextest,
        "pytest" | "py.test" => Runner::Pytest,
        "unittest" => Runner::Unittest,
        "jest" => Runner::Jest,
        "vitest" => Runner::Vitest,
        "mocha" | "_mocha" => Runner::Mocha,
        "go" if second == "test" => Runner::Go,
        "gotestsum" => Runner::Gotestsum,
        "node" if words.iter().any(|word| word == "--test") => Runner::Node,
        "mvn" | "mvnw" | "mvnd" if words.iter().any(|word| is_test_goal(word)) => Runner::Maven,
        "gradle" | "gradlew" if words.iter().any(|word| is_test_goal(word)) => Runner::Gradle,
        "rspec" => Runner::Rspec,
        "phpunit" => Runner::Phpunit,
        "ctest" => Runner::Ctest,
        "dotnet" if second == "test" => Runner::Dotnet,
        _ => return None,
    })
}

/// Number of words that name the runner and its subcommand.
fn name_word_count(runner: Runner, words: &[String]) -> usize {
    match (runner, program(words)) {
        (Runner::Nextest, "cargo") => 3.min(words.len()),
        (Runner::Cargo | Runner::Go | Runner::Dotnet, _) => 2,
        _ => 1,
    }
}

/// `test`, `verify`, `:shop:test`, `check`
fn is_test_goal(word: &str) -> bool {
    let goal = word.rsplit(':').next().unwrap_or_default();
    matches!(goal, "test" | "verify" | "check" | "build" | "install" | "package" | "integration-test")
}

pub(crate) fn is_one_of(word: &str, list: &str) -> bool {
    list.split(' ').any(|listed| listed == word)
}

fn program(words: &[String]) -> &str {
    let path = words.first().map_or("", String::as_str);
    path.rsplit('/').next().unwrap_or_default()
}

/// A path such as `scripts/test` is a project's own script, not the system's `test`.
fn is_text_program(words: &[String]) -> bool {
    let path = words.first().map_or("", String::as_str);
    let is_system_program = !path.contains('/') || path.starts_with("/usr/") || path.starts_with("/bin/");
    is_system_program && is_one_of(program(words), TEXT_PROGRAMS)
}

/// Removes what precedes the actual program: assignments, `timeout 60`, `npx`, `uv run`, `python -m`.
fn strip_wrappers(words: &mut Vec<String>) {
    loop {
        let second = words.get(1).map_or("", String::as_str);
        let taken = match program(words) {
            name if is_assignment(name) => 1,
            "uv" | "poetry" | "pipenv" | "hatch" | "pdm" if second == "run" => 2,
            "bundle" | "pnpm" | "npm" | "yarn" if second == "exec" => 2,
            name if name.starts_with("python") && second == "-m" => 2,
            "sh" | "bash" | "zsh" if !second.is_empty() && !second.starts_with('-') => 1,
            // With their flags and numeric arguments (`timeout -k 5 60`).
            name if is_one_of(name, WRAPPERS) && !second.is_empty() => {
                let belongs_to_wrapper =
                    |word: &&String| word.starts_with(|c: char| c == '-' || c.is_ascii_digit());
                1 + words.iter().skip(1).take_while(belongs_to_wrapper).count()
            }
            "yarn" | "pnpm" | "bun" | "bunx" if matches!(second, "jest" | "vitest" | "mocha") => 1,
            _ => return,
        };
        words.drain(..taken.min(words.len()));
    }
}

pub(crate) fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map_or("", |(name, _)| name);
    !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

fn project_selectors(words: &[String]) -> Vec<String> {
    let at = |index: usize| words.get(index).map_or("", String::as_str);
    let name_words = match (program(words), at(1), at(2)) {
        ("npm" | "yarn" | "pnpm" | "bun", "run", "test") => 3,
        ("npm" | "yarn" | "pnpm" | "bun", "test" | "t", _) => 2,
        ("make" | "just" | "task" | "rake" | "ninja" | "tox" | "composer", "test" | "check" | "tests", _) => {
            2
        }
        ("test" | "test.sh" | "runtests" | "run-tests", ..) => 1,
        _ => 0,
    };
    selecting_words(words.iter().skip(name_words))
}

fn selecting_words<'w>(words: impl Iterator<Item = &'w String>) -> Vec<String> {
    let mut chosen = Vec::new();
    let mut is_value = false;
    for word in words {
        if std::mem::take(&mut is_value) && !word.starts_with('-') {
            continue;
        }
        let name = word.split_once('=').map_or(word.as_str(), |(name, _)| name);
        let is_option = is_one_of(name, NON_SELECTING_OPTIONS);
        is_value = matches!(word.as_str(), "-j" | "-n") || (is_option && name == word);
        let is_flag = [name, word].iter().any(|flag| is_one_of(flag, NON_SELECTING_FLAGS));
        if !is_value && !is_option && !is_flag && !is_short_flag(word) && word != "./..." {
            chosen.push(word.clone());
        }
    }
    chosen
}

fn is_short_flag(word: &str) -> bool {
    let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) else { return false };
    let is_number = letters.strip_prefix(['j', 'n']).is_some_and(|n| n.chars().all(|c| c.is_ascii_digit()));
    // `-rA`: the outcomes that pytest lists.
    let is_reasons = letters
        .strip_prefix('r')
        .is_some_and(|r| !r.is_empty() && r.chars().all(|c| "fEsxXpPaAwN".contains(c)));
    is_number || is_reasons || letters.chars().all(|letter| NON_SELECTING_LETTERS.contains(letter))
}

/// The directory a `cd` leads to, unless it is the agent's working directory. If that is unknown, an absolute
/// path is assumed to be it.
fn changed_directory(pipeline: &Pipeline, workdir: Option<&str>) -> Option<String> {
    let [words] = pipeline.0.as_slice() else { return None };
    let (true, Some(path)) = (matches!(program(words), "cd" | "pushd"), words.get(1)) else { return None };
    let path = path.trim_end_matches('/');
    let inside = match (workdir, path.starts_with('/')) {
        (Some(workdir), true) => {
            path.strip_prefix(workdir.trim_end_matches('/')).map_or(path, |rest| rest.trim_start_matches('/'))
        }
        (None, true) => "",
        _ => path.trim_start_matches("./"),
    };
    Some(inside.to_owned()).filter(|inside| !inside.is_empty() && inside != ".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selected(line: &str, runner: Runner) -> String {
        ParsedCommand::new(line, Some("/home/dev/shop")).selectors(runner).join(" ")
    }

    #[test]
    fn test_runs_are_recognised_by_their_command_line() {
        for line in [
            "sh test.sh",
            "/bin/bash -lc './run-tests --all'",
            "make unit-test",
            "npx jest",
            "cd a && npm test",
        ] {
            assert!(looks_like_test_run(line), "{line}");
        }
        for line in
            ["cat test.sh", "rg test src", "test -f x", "[ -d tests ]", "git log tests", "ls", "cargo build"]
        {
            assert!(!looks_like_test_run(line), "{line}");
        }
    }

    #[test]
    fn test_selectors_are_found() {
        for (line, runner, expected) in [
            ("cargo test", Runner::Cargo, ""),
            ("/bin/bash -lc 'cd /home/dev/shop && A=1 cargo test -q 2>&1 | tail -5'", Runner::Cargo, ""),
            ("cargo test -p till -- --nocapture adds", Runner::Cargo, "-p adds till"),
            ("cargo build && timeout -k 5 60 cargo test --color always", Runner::Cargo, ""),
            ("cargo nextest run -j 2 --no-fail-fast adds", Runner::Nextest, "adds"),
            ("python3 -m pytest -xvs -n auto tests/a.py", Runner::Pytest, "tests/a.py"),
            ("uv run pytest -rA --tb=short", Runner::Pytest, ""),
            ("cd web && npx jest cart", Runner::Jest, "cart cd web"),
            ("cd ./web/ && npm run test -- cart", Runner::Jest, "cart cd web"),
            ("cd /home/dev/shop/web && npm test", Runner::Jest, "cd web"),
            ("make test", Runner::Pytest, ""),
            ("make unit", Runner::Pytest, "make unit"),
            ("bash ./scripts/test adds", Runner::Cargo, "adds"),
            ("go test -v -count=1 ./...", Runner::Go, ""),
            ("go test -run ^TestA$ ./till", Runner::Go, "-run ./till ^TestA$"),
            ("./gradlew :till:test --console=plain", Runner::Gradle, ":till:test"),
            ("git status; vendor/bin/phpunit tests/TillTest.php", Runner::Phpunit, "tests/TillTest.php"),
        ] {
            assert_eq!(selected(line, runner), expected, "{line}");
        }
    }

    #[test]
    fn printing_commands_are_distinguished_from_running_ones() {
        let prints = |line: &str| ParsedCommand::new(line, None).only_prints_text();
        for line in
            ["cat log", "cd a && grep -rn passed . | head", "git show; ls", "sudo tail -f x", "/usr/bin/rg x"]
        {
            assert!(prints(line), "{line}");
        }
        for line in [
            "cargo test | tail -3",
            "make",
            "yes | npm test",
            "ls && ./run.sh",
            "scripts/test",
            "echo x | xargs pytest",
            "",
        ] {
            assert!(!prints(line), "{line}");
        }
    }
}
