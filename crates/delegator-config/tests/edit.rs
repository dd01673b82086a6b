//! Edits of the user's configuration file: what is refused, what stays, and what other programs wrote.

#![expect(clippy::unwrap_used, reason = "helpers of tests fail as tests do")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use delegator_config::user_edit::{EditError, replace_user_text, set, unset, user_file_path};
use delegator_config::{Sources, load};
use proptest::prelude::*;
use tempfile::TempDir;

struct Home {
    sources: Sources,
    file: PathBuf,
    _dir: TempDir,
}

/// A home directory with this configuration file.
fn home(text: &str) -> Home {
    let home = empty_home();
    fs::create_dir_all(home.file.parent().unwrap()).unwrap();
    fs::write(&home.file, text).unwrap();
    home
}

fn empty_home() -> Home {
    let dir = tempfile::tempdir().unwrap();
    let sources = Sources {
        environment: [("HOME".into(), dir.path().into())].into(),
        current_dir: dir.path().to_owned(),
        cores: 4,
        ..Sources::default()
    };
    let file = user_file_path(&sources).unwrap();
    Home { sources, file, _dir: dir }
}

impl Home {
    fn set(&self, key: &str, value: &str) -> Result<(), EditError> {
        set(&self.sources, key, value)?.write()
    }

    fn unset(&self, key: &str) -> Result<(), EditError> {
        unset(&self.sources, key)?.write()
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.file).unwrap()
    }

    /// The error of an edit, which must have changed nothing.
    fn refused(&self, key: &str, value: &str) -> String {
        let before = fs::read(&self.file).ok();
        let error = self.set(key, value).unwrap_err().to_string();
        assert_eq!(fs::read(&self.file).ok(), before, "{key}");
        error
    }
}

#[test]
fn the_first_value_creates_a_private_file() {
    let home = empty_home();
    home.set("budget.task_tokens", "5000").unwrap();
    assert_eq!(home.text(), "[budget]\ntask_tokens = 5000\n");
    let mode = |path: &std::path::Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&home.file), mode(home.file.parent().unwrap())), (0o600, 0o700));
}

#[test]
fn values_of_every_kind_are_written_as_their_key_requires() {
    let home = home("");
    for (key, value, line) in [
        ("max_concurrent", " 4 ", "max_concurrent = 4"),
        ("read_only", "yes", "read_only = true"),
        ("max_mode", "read-only", "max_mode = \"read-only\""),
        ("sweep_exempt", "a, b", "sweep_exempt = [\"a\", \"b\"]"),
        ("sweep_exempt", "", "sweep_exempt = []"),
        ("notify.command", "['sh', '-c', 'a, b']", "command = ['sh', '-c', 'a, b']"),
        ("allowed_roots", "~/work", "allowed_roots = [\"~/work\"]"),
        ("labels.team", "core", "team = \"core\""),
        ("agents.mine", r#"{"protocol": "plain", "command": ["x"]}"#, "mine = { \"protocol\" = \"plain\""),
        ("agents.claude.env", "TOKEN_A,TOKEN_B", "env = [\"TOKEN_A\", \"TOKEN_B\"]"),
        ("repositories.\"/my repo\".worktree_setup", "npm ci", "worktree_setup = \"npm ci\""),
        ("default_agent", "mine", "default_agent = \"mine\""),
    ] {
        home.set(key, value).unwrap_or_else(|error| panic!("{key}: {error}"));
        assert!(home.text().contains(line), "{key}:\n{}", home.text());
    }
    let config = load(&home.sources).unwrap();
    assert_eq!(config.settings.max_concurrent, 4);
    assert_eq!(config.settings.agents["claude"].env, ["TOKEN_A", "TOKEN_B"]);
}

#[test]
fn what_loading_refuses_is_refused_with_its_message() {
    let home = home("# mine\nmax_mode = 'workspace-write'\n");
    for (key, value, line) in [
        ("max_concurrent", "zero", "max_concurrent = \"zero\""),
        ("max_concurrent", "0", "max_concurrent = 0"),
        ("idle_counts", "activty", "idle_counts = \"activty\""),
        ("default_mode", "danger-full-access", "default_mode = \"danger-full-access\""),
        ("default_agent", "clade", "default_agent = \"clade\""),
        ("fleet_lease_sec", "10", "fleet_lease_sec = 10"),
    ] {
        let refused = home.refused(key, value);
        let text = home.text();
        fs::write(&home.file, format!("{text}{line}\n")).unwrap();
        assert_eq!(refused, load(&home.sources).unwrap_err().error.to_string());
        fs::write(&home.file, text).unwrap();
    }
    assert!(home.refused("default_agent", "clade").ends_with("(did you mean `claude`?)"));
    let exceeds = home.refused("default_mode", "danger-full-access");
    assert!(
        exceeds.contains("danger-full-access exceeds `max_mode`, which is workspace-write ("),
        "{exceeds}"
    );
}

#[test]
fn a_limit_below_the_default_mode_is_refused_from_either_side() {
    let home = home("default_mode = 'workspace-write'\n");
    assert!(home.refused("max_mode", "read-only").contains("exceeds `max_mode`, which is read-only"));
}

#[test]
fn unknown_settings_have_a_suggestion() {
    let home = home("");
    for (key, nearest) in [
        ("max_concurent", Some("max_concurrent")),
        ("task_tokens", Some("budget.task_tokens")),
        ("max_mode.x", Some("max_mode")),
        ("agents.claude.evn", None),
        ("teapot", None),
        ("", None),
        ("a = 1\nb", None),
    ] {
        match set(&home.sources, key, "1") {
            Err(EditError::Unknown(unknown)) => assert_eq!(unknown.nearest, nearest, "{key}"),
            other => panic!("{key}: {other:?}"),
        }
    }
}

#[test]
fn known_problems_stay_and_do_not_prevent_other_edits() {
    let text = "max_concurent = 3 # typo\nhard_timeout_sec = 'long'\n";
    let home = home(text);
    home.set("max_depth", "1").unwrap();
    assert_eq!(home.text(), format!("{text}max_depth = 1\n"));
    let edit = set(&home.sources, "hard_timeout_sec", "60").unwrap();
    assert_eq!(edit.remaining.as_ref().unwrap().problems.len(), 1);
    edit.write().unwrap();
    home.unset("max_concurent").unwrap();
    assert_eq!(home.text(), "hard_timeout_sec = 60\nmax_depth = 1\n");
    assert!(load(&home.sources).is_ok());
    assert!(matches!(home.unset("max_concurent"), Err(EditError::Unknown(_))));
    home.unset("max_concurrent").unwrap();
}

#[test]
fn a_file_that_is_no_toml_is_refused_with_its_place() {
    let home = home("max_depth = 1\nmax_mode =\n");
    assert!(home.refused("max_depth", "2").contains("config.toml:2:11: not valid TOML"));
    assert!(home.unset("max_depth").unwrap_err().to_string().contains("config.toml:2:11"));
}

#[test]
fn a_link_is_followed_and_permissions_stay() {
    let home = empty_home();
    let real = home.sources.current_dir.join("dotfiles.toml");
    fs::write(&real, "max_depth = 1\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir_all(home.file.parent().unwrap()).unwrap();
    symlink(&real, &home.file).unwrap();
    home.set("max_depth", "2").unwrap();
    assert!(home.file.symlink_metadata().unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&real).unwrap(), "max_depth = 2\n");
    assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn the_edit_of_another_program_is_not_lost() {
    let home = home("max_depth = 1\n");
    let edit = set(&home.sources, "max_depth", "2").unwrap();
    fs::write(&home.file, "max_depth = 7 # by hand\n").unwrap();
    assert!(matches!(edit.write(), Err(EditError::Changed { .. })));
    assert_eq!(home.text(), "max_depth = 7 # by hand\n");
    let stale = replace_user_text(&home.sources, "max_depth = 1\n", "max_depth = 3\n".to_owned());
    assert!(matches!(stale, Err(EditError::Changed { .. })));
}

#[test]
fn concurrent_edits_are_all_written() {
    let home = home("");
    let keys =
        ["max_depth", "max_children", "max_concurrent", "niceness", "idle_timeout_sec", "answer_timeout_sec"];
    std::thread::scope(|scope| {
        for key in keys {
            scope.spawn(|| home.set(key, "7").unwrap());
        }
    });
    assert_eq!(home.text().lines().count(), keys.len(), "{}", home.text());
}

#[test]
fn a_replaced_text_must_be_valid_as_a_whole() {
    let before = "max_concurent = 3\n";
    let home = home(before);
    let invalid = replace_user_text(&home.sources, before, "max_concurent = 4\n".to_owned());
    assert!(matches!(invalid, Err(EditError::Invalid(_))), "{invalid:?}");
    replace_user_text(&home.sources, before, "max_concurrent = 4\n".to_owned()).unwrap().write().unwrap();
    assert_eq!(home.text(), "max_concurrent = 4\n");
}

proptest! {
    #[test]
    fn no_name_and_no_value_makes_an_edit_panic(key in "\\PC{0,20}", value in "\\PC{0,20}") {
        let home = home("max_depth = 1\n[budget]\nday_turns = 1\n");
        let _ = set(&home.sources, &key, &value);
        let _ = set(&home.sources, "labels.x", &value);
        let _ = unset(&home.sources, &key);
    }
}
