//! Values in variables and flags.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;

use delegator_domain::warning_code::WarningCode;

use super::{read_environment, read_flags, unknown_variables};
use crate::locations::Sources;
use crate::problem::{Problem, ProblemSource};
use crate::resolve::Layer;

fn with_variable(name: &str, value: &str) -> Sources {
    let environment = [("HOME", "/h"), (name, value)];
    Sources {
        environment: environment.into_iter().map(|(n, v)| (OsString::from(n), OsString::from(v))).collect(),
        ..Sources::default()
    }
}

fn flags_of(sources: &Sources) -> (Layer, Vec<Problem>) {
    read_flags(&sources.flags, sources.home())
}

fn with_flag(key: &str, value: &str) -> Sources {
    Sources { flags: vec![(key.to_owned(), value.to_owned())], ..Sources::default() }
}

#[test]
fn variable_texts_become_typed_values() {
    let cases = [
        ("read_only", "YES", "true"),
        ("read_only", "1", "true"),
        ("read_only", "on", "true"),
        ("read_only", "off", "false"),
        ("read_only", "0", "false"),
        ("read_only", " no ", "false"),
        ("max_concurrent", " 7 ", "7"),
        ("log_level", " info ", "\"info\""),
        ("toolsets", "local, extra,,", "[\"local\",\"extra\"]"),
        ("tools", "a", "[\"a\"]"),
        ("allowed_roots", "~/src,/srv,~", "[\"/h/src\",\"/srv\",\"/h\"]"),
        ("codex_bin", "codex-next", "\"codex-next\""),
        ("codex_bin", "~/bin/codex", "\"/h/bin/codex\""),
        ("budget.task_tokens", "1000", "1000"),
        ("notify.command", "notify-send,Done", "[\"notify-send\",\"Done\"]"),
        ("labels", "a=1, b = x=y ,c=", "{\"a\":\"1\",\"b\":\"x=y\",\"c\":\"\"}"),
        (
            "agents",
            r#"{"x": {"protocol": "plain", "command": ["~/x", "-r"]}}"#,
            r#"{"x":{"command":["/h/x","-r"],"env":[],"linger_sec":0,"protocol":"plain","state_dirs":[],"unsandboxed":false}}"#,
        ),
    ];
    for (key, text, expected) in cases {
        let variable = crate::keys::find(key).unwrap().variable().unwrap();
        let (layer, problems) = read_environment(&with_variable(&variable, text));
        assert_eq!(problems, [], "{key}={text}");
        assert_eq!(layer[key].0.to_string(), expected);
        assert_eq!(layer[key].1.to_string(), variable);
    }
}

#[test]
fn an_empty_variable_sets_nothing() {
    for text in ["", ",", " , "] {
        for variable in ["MCP_DELEGATOR_TOOLSETS", "MCP_DELEGATOR_LABELS"] {
            let (layer, problems) = read_environment(&with_variable(variable, text));
            assert!(layer.is_empty() && problems.is_empty(), "{variable}={text:?}");
        }
    }
    let (layer, problems) = read_environment(&with_variable("MCP_DELEGATOR_MAX_CONCURRENT", ""));
    assert!(layer.is_empty() && problems.is_empty());
    let (layer, problems) = flags_of(&with_flag("tool_prefix", ""));
    assert_eq!(problems, []);
    assert_eq!(layer["tool_prefix"].0.as_str(), Some(""), "an empty flag sets an empty prefix");
}

#[test]
fn an_invalid_value_is_a_problem_of_its_variable() {
    let cases = [
        ("READ_ONLY", "maybe", "read_only", "yes/no, on/off), found `maybe`", None),
        ("MAX_CONCURRENT", "many", "max_concurrent", "from 1 to 10000, found `many`", None),
        ("MAX_CONCURRENT", "0", "max_concurrent", "from 1 to 10000, found `0`", None),
        ("MAX_CONCURRENT", "-3", "max_concurrent", "found `-3`", None),
        ("MAX_CONCURRENT", "99999999999999999999999", "max_concurrent", "from 1 to 10000", None),
        ("LOG_LEVEL", "inf", "log_level", "found `inf`", Some("info")),
        ("TOOLSETS", "local,clout", "toolsets", "found `clout`", Some("cloud")),
        ("ALLOWED_ROOTS", "src", "allowed_roots", "absolute", None),
        ("CODEX_BIN", "bin/codex", "codex_bin", "absolute", None),
        ("LABELS", "a", "labels", "no `=`", None),
        ("AGENTS", "{", "agents", "expected a JSON object", None),
        ("AGENTS", "[]", "agents", "a table of agents", None),
        ("AGENTS", r#"{"x": null}"#, "agents.x", "found null", None),
        (
            "AGENTS",
            r#"{"x": {"protocol": "plain", "command": ["x"], "unsandboxed": 1.5}}"#,
            "agents.x.unsandboxed",
            "a fraction",
            None,
        ),
        ("DATABASE_URL", "mysql://u:hunter2@h", "database_url", "postgres://", None),
    ];
    for (name, text, key, problem, suggestion) in cases {
        let variable = format!("MCP_DELEGATOR_{name}");
        let (layer, problems) = read_environment(&with_variable(&variable, text));
        assert!(layer.is_empty());
        assert_eq!(problems.len(), 1, "{name}={text}: {problems:#?}");
        assert_eq!(problems[0].source, ProblemSource::Variable(variable));
        assert_eq!((problems[0].key.as_str(), problems[0].suggestion.as_deref()), (key, suggestion));
        assert!(problems[0].problem.contains(problem), "{:?}", problems[0]);
        assert!(!problems[0].to_string().contains("hunter2"));
    }
}

#[test]
fn a_value_that_is_not_utf8_is_a_problem() {
    let mut sources = with_variable("MCP_DELEGATOR_READ_ONLY", "true");
    sources.environment.insert("MCP_DELEGATOR_TOOL_PREFIX".into(), OsString::from_vec(b"\xff".to_vec()));
    sources
        .environment
        .insert(OsString::from_vec(b"OTHER\xff".to_vec()), OsString::from_vec(b"\xff".to_vec()));
    let (layer, problems) = read_environment(&sources);
    assert_eq!(layer.len(), 1);
    assert_eq!(problems.len(), 1);
    assert_eq!(
        problems[0].to_string(),
        "MCP_DELEGATOR_TOOL_PREFIX: tool_prefix: the value is not UTF-8 text"
    );
}

#[test]
fn an_unknown_variable_is_only_a_warning() {
    for (name, hint) in [
        ("MCP_DELEGATOR_MAX_CONCURENT", Some("MCP_DELEGATOR_MAX_CONCURRENT")),
        ("MCP_DELEGATOR_BUDGET_TASK_TOKEN", Some("MCP_DELEGATOR_BUDGET_TASK_TOKENS")),
        ("MCP_DELEGATOR_WARP_DRIVE", None),
    ] {
        let warnings = unknown_variables(&with_variable(name, "1"));
        assert_eq!(warnings.len(), 1, "{name}");
        assert_eq!(warnings[0].code, WarningCode::UnknownVariable);
        assert!(warnings[0].message.contains(name));
        match hint {
            Some(hint) => assert!(warnings[0].message.contains(&format!("did you mean `{hint}`")), "{name}"),
            None => assert!(!warnings[0].message.contains("did you mean")),
        }
    }
    for name in
        ["MCP_DELEGATOR_HOME", "MCP_DELEGATOR_CONFIG", "MCP_DELEGATOR_LOG", "MCP_DELEGATOR_TOOLS", "PATH"]
    {
        assert_eq!(unknown_variables(&with_variable(name, "1")), [], "{name}");
    }
    assert_eq!(unknown_variables(&with_variable("MCP_DELEGATOR_WARP_DRIVE", "")), []);
}

#[test]
fn flags_are_checked_like_variables() {
    let (layer, problems) = flags_of(&with_flag("max_concurrent", "9"));
    assert_eq!(problems, []);
    assert_eq!(layer["max_concurrent"].1.to_string(), "--max-concurrent");

    let (_, problems) = flags_of(&with_flag("max_concurrent", "x"));
    assert_eq!(problems[0].source, ProblemSource::Flag("--max-concurrent".to_owned()));
    let (_, problems) = flags_of(&with_flag("max_concurent", "3"));
    assert_eq!(problems[0].suggestion.as_deref(), Some("max_concurrent"));
    assert_eq!(problems[0].source, ProblemSource::Flag("--max-concurent".to_owned()));

    let mut twice = with_flag("read_only", "true");
    twice.flags.push(("read_only".to_owned(), "false".to_owned()));
    let (_, problems) = flags_of(&twice);
    assert_eq!(problems.len(), 1);
    assert!(problems[0].problem.contains("twice"));
}

#[test]
fn a_password_in_a_flag_is_rejected() {
    for url in
        ["postgres://u:hunter2@h/d", "postgres://h/d?sslmode=off&PASSWORD=hunter2", "postgres://u@x:p@h/d"]
    {
        let (layer, problems) = flags_of(&with_flag("database_url", url));
        assert!(layer.is_empty(), "{url}");
        assert_eq!(problems.len(), 1);
        assert!(!format!("{problems:?}").contains("hunter2"));
        let (layer, _) = read_environment(&with_variable("MCP_DELEGATOR_DATABASE_URL", url));
        assert_eq!(layer["database_url"].0.as_str(), Some(url), "a variable may contain a password");
    }
    for url in [
        "postgres://u@h:5432/d",
        "postgres://u:@h/d",
        "postgres://h/d?sslmode=require",
        "postgres://h:5432/d?application_name=a@b",
    ] {
        let (_, problems) = flags_of(&with_flag("database_url", url));
        assert_eq!(problems, [], "{url}");
    }
}
