//! Every kind of mistake in a file, with its position.

use std::path::Path;

use proptest::prelude::*;

use super::read;
use crate::problem::{Position, Problem, Source};

fn problems(text: &str, source: Source) -> Vec<Problem> {
    read(text, Path::new("/c.toml"), source, Some(Path::new("/h"))).1
}

/// Line, column, key, a part of the message, suggestion.
type Expected<'a> = (usize, usize, &'a str, &'a str, Option<&'a str>);

fn assert_problems(text: &str, source: Source, expected: &[Expected<'_>]) {
    let found = problems(text, source);
    let actual: Vec<_> = found
        .iter()
        .map(|p| {
            (p.line.unwrap(), p.column.unwrap(), p.key.as_str(), p.problem.as_str(), p.suggestion.as_deref())
        })
        .collect();
    assert_eq!(actual.len(), expected.len(), "{text}\n{actual:#?}");
    for (actual, expected) in actual.iter().zip(expected) {
        assert_eq!(
            (actual.0, actual.1, actual.2, actual.4),
            (expected.0, expected.1, expected.2, expected.4),
            "{text}"
        );
        assert!(actual.3.contains(expected.3), "{text}\n{actual:?}\nlacks {:?}", expected.3);
    }
}

#[test]
fn unknown_keys_and_wrong_values_have_their_position() {
    let cases: &[(&str, &[Expected<'_>])] = &[
        ("max_concurent = 3", &[(1, 1, "max_concurent", "no such key", Some("max_concurrent"))]),
        ("max-concurrent = 3", &[(1, 1, "max-concurrent", "no such key", Some("max_concurrent"))]),
        ("\n  maxConcurrent = 3", &[(2, 3, "maxConcurrent", "no such key", Some("max_concurrent"))]),
        ("teapot = 3", &[(1, 1, "teapot", "no such key", None)]),
        ("task_tokens = 3", &[(1, 1, "task_tokens", "no such key", Some("budget.task_tokens"))]),
        (
            "\"budget.task_tokens\" = 3",
            &[(1, 1, "budget.task_tokens", "no such key", Some("budget.task_tokens"))],
        ),
        (
            "[budget]\ntask_token = 3",
            &[(2, 1, "budget.task_token", "no such key", Some("budget.task_tokens"))],
        ),
        ("budget.task_token = 3", &[(1, 8, "budget.task_token", "no such key", Some("budget.task_tokens"))]),
        ("[budget]\nread_only = true", &[(2, 1, "budget.read_only", "top of the file", Some("read_only"))]),
        ("budget = 3", &[(1, 10, "budget", "expected a table, found `3`", None)]),
        ("[[budget]]\ntask_tokens = 1", &[(1, 1, "budget", "expected a table, found a list", None)]),
        ("[read_only]", &[(1, 1, "read_only", "expected true or false, found a table", None)]),
        ("read_only = \"true\"", &[(1, 13, "read_only", "expected true or false, found text", None)]),
        ("max_concurrent = 2.5", &[(1, 18, "max_concurrent", "found a fraction", None)]),
        ("max_concurrent = 1979-05-27", &[(1, 18, "max_concurrent", "found a date", None)]),
        ("idle_timeout_sec = 0", &[(1, 20, "idle_timeout_sec", "seconds from 1 to 86400, found `0`", None)]),
        ("idle_timeout_sec = -1", &[(1, 20, "idle_timeout_sec", "from 1 to 86400, found `-1`", None)]),
        ("idle_timeout_sec = 86_401", &[(1, 20, "idle_timeout_sec", "found `86401`", None)]),
        (
            "idle_timeout_sec = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF",
            &[(1, 20, "idle_timeout_sec", "from 1 to 86400", None)],
        ),
        ("log_level = \"wran\"", &[(1, 13, "log_level", "found `wran`", Some("warn"))]),
    ];
    for (text, expected) in cases {
        assert_problems(text, Source::UserConfig, expected);
    }
}

#[test]
fn text_lists_and_tables_are_checked_item_by_item() {
    let cases: &[(&str, &[Expected<'_>])] = &[
        ("toolsets = \"local\"", &[(1, 12, "toolsets", "expected a list of local", None)]),
        (
            "toolsets = [\n  \"local\",\n  \"clout\", 3 ]",
            &[
                (3, 3, "toolsets", "found `clout`", Some("cloud")),
                (3, 12, "toolsets", "an item is `3`", None),
            ],
        ),
        ("tool_prefix = \"a b\"", &[(1, 15, "tool_prefix", "at most 32 letters", None)]),
        ("codex_bin = \"./codex\"", &[(1, 13, "codex_bin", "absolute path", None)]),
        ("codex_bin = \"~other/codex\"", &[(1, 13, "codex_bin", "absolute path", None)]),
        ("codex_bin = \"\"", &[(1, 13, "codex_bin", "program name", None)]),
        (
            "allowed_roots = [\"/a\", \"b\", \"/c\\u0000\"]",
            &[
                (1, 24, "allowed_roots", "absolute path", None),
                (1, 29, "allowed_roots", "absolute path", None),
            ],
        ),
        (
            "[notify]\ncommand = []\non = [\"done\"]",
            &[
                (2, 11, "notify.command", "a program name", None),
                (3, 7, "notify.on", "expected one of question, budget", None),
            ],
        ),
        ("notify.command = [\"bin/x\", \"a\"]", &[(1, 19, "notify.command", "absolute path", None)]),
        (
            "labels = { a = 1, \"b c\" = \"x\" }",
            &[(1, 16, "labels.a", "expected text", None), (1, 19, "labels", "label name", None)],
        ),
    ];
    for (text, expected) in cases {
        assert_problems(text, Source::UserConfig, expected);
    }
}

#[test]
fn agents_are_checked_field_by_field() {
    let cases: &[(&str, &[Expected<'_>])] = &[
        ("agents = 3", &[(1, 10, "agents", "a table of agents", None)]),
        ("agents.x = 3", &[(1, 12, "agents.x", "with `protocol` and `command`", None)]),
        ("[agents.Big]\ncommand = [\"x\"]", &[(1, 9, "agents", "lower-case", None)]),
        ("[agents.x]\nprotocol = \"plain\"", &[(1, 9, "agents.x.command", "is missing", None)]),
        ("[agents.x]\ncommand = [\"x\"]", &[(1, 9, "agents.x.protocol", "is missing", None)]),
        (
            "[agents.x]\ncomand = [\"x\"]\nprotocol = \"plane\"\nunsandboxed = \"yes\"\nenv = [\"A=b\"]",
            &[
                (1, 9, "agents.x.command", "is missing", None),
                (2, 1, "agents.x.comand", "no such field", Some("agents.x.command")),
                (3, 12, "agents.x.protocol", "found `plane`", Some("plain")),
                (4, 15, "agents.x.unsandboxed", "true or false", None),
                (5, 8, "agents.x.env", "a variable name", None),
            ],
        ),
        (
            "[agents.x]\nprotocol = \"plain\"\ncommand = []",
            &[(3, 11, "agents.x.command", "a program name", None)],
        ),
        (
            "[agents.x]\nprotocol = \"plain\"\ncommand = [\"./x\"]",
            &[(3, 12, "agents.x.command", "absolute path", None)],
        ),
        (
            "[agents.x]\nprotocol = \"plain\"\ncommand = [\"x\"]\nstate_dirs = [\"/x\", \"x\"]",
            &[(4, 21, "agents.x.state_dirs", "absolute path", None)],
        ),
        ("[agents.codex]\nenv = [\"TOKEN\"]", &[]),
        ("[agents.codex]\nunsandboxed = true", &[(2, 1, "agents.codex.unsandboxed", "only `env`", None)]),
    ];
    for (text, expected) in cases {
        assert_problems(text, Source::UserConfig, expected);
    }
}

#[test]
fn syntax_errors_have_their_position_too() {
    assert_problems(
        "a b",
        Source::UserConfig,
        &[(1, 3, "", "not valid TOML: key with no value, expected `=`", None)],
    );
    let found = problems("tools = [\"ä\", 'x]", Source::UserConfig);
    assert!(found.iter().any(|problem| problem.problem.contains("not valid TOML")), "{found:#?}");
}

#[test]
fn a_line_with_a_syntax_error_is_not_also_reported_missing() {
    let header = "[agents.x]\n";
    assert_problems(
        &format!("{header}command = "),
        Source::UserConfig,
        &[(2, 11, "", "not valid TOML", None)],
    );
    assert_problems(
        &format!("{header}command 'x'"),
        Source::UserConfig,
        &[(2, 9, "", "not valid TOML", None)],
    );
    let found = problems(&format!("{header}protocol = 'plain'\ncommand = ['x' 'y']"), Source::UserConfig);
    assert!(found.iter().all(|problem| problem.problem.contains("not valid TOML")), "{found:#?}");
}

#[test]
fn only_text_before_a_syntax_error_is_checked() {
    assert_problems(
        "idle_timeout_sec = 0\nlog_level = \nread_only = 3",
        Source::UserConfig,
        &[(1, 20, "idle_timeout_sec", "from 1", None), (2, 13, "", "not valid TOML", None)],
    );
}

#[test]
fn a_duplicate_key_hides_no_other_problem() {
    assert_problems(
        "read_only = true\nread_only = false\ntool = 1\n[budget]\n[budget]",
        Source::UserConfig,
        &[
            (2, 1, "read_only", "set twice", None),
            (3, 1, "tool", "no such key", Some("tools")),
            (5, 2, "budget", "set twice", None),
        ],
    );
}

#[test]
fn a_project_may_set_only_a_few_keys() {
    assert_problems(
        "default_format = \"json\"\ncodex_bin = \"/evil\"\nmax_mode = \"read-only\"\nread_ony = true\n\
         [labels]\nteam = \"a\"\n[agents.x]\ncommand = \"evil\"\n[budget]\nday_tokens = 5",
        Source::Project,
        &[
            (2, 1, "codex_bin", "may set only default_format, labels, and lower max_concurrent", None),
            (4, 1, "read_ony", "no such key", Some("read_only")),
            (7, 2, "agents", "may set only", None),
            (10, 1, "budget.day_tokens", "may set only", None),
        ],
    );
}

#[test]
fn messages_never_repeat_free_text() {
    let text = "database_url = \"mysql://u:hunter2@h/d\"\ndatabase_urll = \"hunter2\"\n\
                redact_names = [\"A=hunter2\"]\ntool_prefix = \"hunter2 hunter2\"\n\
                [agents.x]\nprotocol = \"plain\"\ncommand = [\"./hunter2\"]\nenv = [\"K=hunter2\"]";
    let found = problems(text, Source::UserConfig);
    assert_eq!(found.len(), 6, "{found:#?}");
    assert!(!format!("{found:?}").contains("hunter2"), "{found:#?}");
}

#[test]
fn control_characters_in_a_key_are_escaped() {
    let found = problems("\"\\u001b[31m\" = 1", Source::UserConfig);
    assert_eq!(found[0].key, "\\u{1b}[31m");
    let found = problems(&format!("{} = 1", "k".repeat(5000)), Source::UserConfig);
    assert!(found[0].key.chars().count() < 100);
}

#[test]
fn columns_count_characters_and_lines_end_either_way() {
    let text = "labels = { ä = \"ö\", b = 1 }\r\nteapot = 1";
    assert_problems(text, Source::UserConfig, &[(1, 12, "", "not valid TOML", None)]);
    let text = "labels = { \"a\" = \"öö\", b = 1 }\r\nteapot = 1";
    assert_problems(
        text,
        Source::UserConfig,
        &[(1, 28, "labels.b", "expected text", None), (2, 1, "teapot", "no such key", None)],
    );
    let line_and_column = |at| (Position::of("ä\nöx", at).line, Position::of("ä\nöx", at).column);
    assert_eq!(
        [
            line_and_column(0),
            line_and_column(1),
            line_and_column(3),
            line_and_column(5),
            line_and_column(6),
            line_and_column(99)
        ],
        [(1, 1), (1, 1), (2, 1), (2, 2), (2, 3), (2, 3)]
    );
}

#[test]
fn a_megabyte_of_problems_is_truncated() {
    let unknown: String = (0..30_000).map(|n| format!("max_modd{n} = 1\n")).collect();
    let inline: String = (0..30_000).map(|n| format!("key{n} = 1,")).collect();
    let list = format!("toolsets = [{}]", "'x',".repeat(30_000));
    let endless = [unknown, format!("labels = {{ {inline} }}"), list, "= \"\n".repeat(100_000)];
    for text in endless {
        let found = problems(&text, Source::UserConfig);
        assert!((2..=121).contains(&found.len()), "{} problems", found.len());
        let last = found.last().unwrap();
        assert_eq!((last.line, last.problem.contains("more problems")), (None, true), "{last}");
    }
    assert!(!problems(&"[".repeat(1 << 19), Source::Project).is_empty());
}

proptest! {
    #[test]
    fn no_text_makes_reading_panic(text in "\\PC{0,200}") {
        problems(&text, Source::UserConfig);
        problems(&text, Source::Project);
    }

    /// Fragments of valid syntax reach deeper than random text.
    #[test]
    fn no_near_miss_makes_reading_panic(pieces in prop::collection::vec(prop::sample::select(vec![
        "[", "]", "[[", "]]", "{", "}", "=", ".", ",", "\"", "'", "\"\"\"", "\n", "\r\n", "#", "ä", "\u{feff}", "-",
        "agents", "x", "budget", "labels", "max_mode", "toolsets", "notify", "command", "1", "1e9", "0x", "true",
        "\"read-only\"", "\\u0000", " ",
    ]), 0..40)) {
        let text: String = pieces.concat();
        for problem in problems(&text, Source::UserConfig).iter().filter(|problem| !problem.problem.contains("more problems")) {
            let line = problem.line.and_then(|line| text.split('\n').nth(line.checked_sub(1)?));
            let longest = line.map_or(0, |line| line.chars().count() + 1);
            prop_assert!(problem.column.is_some_and(|column| (1..=longest).contains(&column)), "{problem}");
        }
    }
}
